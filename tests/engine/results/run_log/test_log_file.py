"""The run log's file: one that cannot be used is an error that names it and the remedy."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.results.run_log import RunLog, RunQuery, log_file
from linkgauge.engine.results.run_log.log_file import open_for_reading, prepare_log

from ..sent_run_logs import lead_pages_to_each_other, make_log


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"a letter to a friend " * 100)


def _another_program_s(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE friends (name)")


def _newer(path: Path) -> None:
    RunLog.open(path.parent).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def _a_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_not_a_database, "it is not a run log; move it away"),
        (_another_program_s, "is another program's database; choose another data directory"),
        (_newer, r"was made by a newer linkgauge \(its format is 99, this one reads 2\); upgrade"),
        (_a_directory, "it cannot be opened; make its directory writable"),
    ],
)
def test_a_file_that_is_not_a_run_log_is_reported_and_left_alone(
    tmp_path: Path, spoil: object, says: str, create: bool
) -> None:
    """With its path and what to do; nothing is written to it."""
    assert callable(spoil)
    path = tmp_path / "runs.sqlite3"
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(RunLogError, match=says) as raised:
        RunLog.open(tmp_path, create=create)
    assert str(path) in str(raised.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_directory_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RunLogError, match=r"file/data: not a directory; make it writable, or choose another"):
        RunLog.open(tmp_path / "file" / "data")
    with pytest.raises(RunLogError, match="not a directory"):
        RunLog.open(tmp_path / "file" / "data", create=False)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Give a directory with a log in it that this process may read and not write."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        RunLog.open(place).close()
        (place / "runs.sqlite3").chmod(0o444)
        place.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            try:
                os.seteuid(65_534)  # root may write anywhere
            except OSError:
                pytest.skip("root may write to a read-only directory, and cannot be anyone else here")
        try:
            yield place
        finally:
            if is_root:
                os.seteuid(0)
            place.chmod(0o755)


def test_a_read_only_directory_is_reported(read_only: Path) -> None:
    """The caller decides whether the run goes on without its log."""
    with pytest.raises(RunLogError, match="writable, or choose another data directory"):
        RunLog.open(read_only)
    with pytest.raises(RunLogError, match="make it writable, or choose another data directory"):
        RunLog.open(read_only / "missing")


def test_a_read_only_log_is_read_unless_a_writer_left_entries_beside_it(read_only: Path) -> None:
    """With them, the file alone would tell less than was saved."""
    path = read_only / "runs.sqlite3"
    with open_for_reading(path) as connection:
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    prepare_log(path, create=False)
    assert [each.name for each in read_only.iterdir()] == ["runs.sqlite3"]
    user, is_root = os.geteuid(), os.getuid() == 0
    if is_root:
        os.seteuid(0)
    read_only.chmod(0o755)
    (read_only / "runs.sqlite3-wal").write_bytes(b"entries")
    read_only.chmod(0o555)
    os.seteuid(user)
    with pytest.raises(RunLogError, match="writable, or choose another"), open_for_reading(path):
        pass


def _modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}


def test_a_new_run_log_is_its_owners_alone(tmp_path: Path) -> None:
    """With the files that SQLite keeps beside it while a run is written, and the directory."""
    before = os.umask(0)
    try:
        with RunLog.open(tmp_path / "data") as log:
            log.begin("20261121-014629-7f3a", "", "loopback")
            assert log.list_runs()
            modes = _modes(tmp_path / "data")
    finally:
        os.umask(before)
    assert {"runs.sqlite3", "runs.sqlite3-wal", "runs.sqlite3-shm"} <= modes.keys()
    assert modes.pop("data") == 0o700
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("create", [True, False])
def test_an_existing_run_log_becomes_its_owners_alone_when_it_is_opened(tmp_path: Path, create: bool) -> None:
    """Even while another process has it open. The directory may have other files in it."""
    tmp_path.chmod(0o755)
    with RunLog.open(tmp_path) as log:
        log.begin("20261121-014629-7f3a", "", "loopback")
        assert log.list_runs()
        for path in tmp_path.iterdir():
            path.chmod(0o644)
        RunLog.open(tmp_path, create=create).close()
        modes = _modes(tmp_path)
        assert modes.pop(tmp_path.name) == 0o755
        assert set(modes.values()) == {0o600}
        assert [run.run_id for run in log.list_runs()] == ["20261121-014629-7f3a"]


def test_the_file_of_another_program_keeps_its_permissions(tmp_path: Path) -> None:
    """It is not a run log."""
    path = tmp_path / "runs.sqlite3"
    _another_program_s(path)
    path.chmod(0o644)
    with pytest.raises(RunLogError):
        RunLog.open(tmp_path)
    assert path.stat().st_mode & 0o777 == 0o644


def test_pages_that_lead_to_each_other_end_by_their_rows_or_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that gives rows ends at the file's room; one that gives none has a limit of time."""
    path = make_log(tmp_path)
    lead_pages_to_each_other(path)
    with RunLog.open(tmp_path, create=False) as log:
        with pytest.raises(RunLogError, match="it is damaged; move it away"):
            log.start_times()
        monkeypatch.setattr(log_file, "_STATEMENT_S", 0.1)
        with pytest.raises(RunLogError, match="it takes too long to read; move it away"):
            log.find_runs(RunQuery((("peer", "nobody"),)))


def test_a_journal_of_sqlite_that_names_another_file_is_refused_and_deletes_nothing(tmp_path: Path) -> None:
    """SQLite would take that file for one of its own, which is done with."""
    path = make_log(tmp_path / "log")
    victim = tmp_path / "letter"
    victim.write_text("to a friend")
    name = str(victim).encode()
    end = name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    numbers = (0, 0, path.stat().st_size // 4096, 512, 4096)  # no pages, a seed, the file's pages, a sector, a page
    head = bytes.fromhex("d9d505f920a163d7") + b"".join(number.to_bytes(4, "big") for number in numbers)
    path.with_name(path.name + "-journal").write_bytes(head.ljust(512, b"\0") + bytes.fromhex("40000001") + end)
    with pytest.raises(RunLogError, match=r"runs.sqlite3-journal; somebody may have sent it: move it away"):
        RunLog.open(tmp_path / "log", create=False)
    assert victim.exists()


def test_links_beside_a_run_log_change_the_mode_of_no_other_file(tmp_path: Path) -> None:
    """They are not followed."""
    path = make_log(tmp_path / "log")
    other = tmp_path / "page"
    other.touch(0o644)
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).symlink_to(other)
    with contextlib.suppress(RunLogError), RunLog.open(tmp_path / "log", create=False) as log:
        log.list_runs()
    assert other.stat().st_mode & 0o777 == 0o644
    assert other.read_bytes() == b""
