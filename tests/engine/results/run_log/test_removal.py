"""Deletion gives space back in pieces: others can write meanwhile, and a process that is killed leaves no rest."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.events import Warned
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, RunLog
from linkgauge.engine.results.run_log.removal import file_size

from ..day_of_samples import sample_texts
from ..log_entries import DEADLINE_S, ENDED, start_child

_EARLIER = Path(__file__).parents[1] / "data" / "earlier_version.sqlite3"


def _add_rows(path: Path, run_id: str, count: int) -> None:
    """Add a run as an earlier version wrote it: a row for each event."""
    texts = sample_texts(64)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO runs (id, preset, peer, owner) VALUES (?, '', 'h', '')", (run_id,))
        rows = ((run_id, number, texts[number % len(texts)]) for number in range(count))
        connection.executemany("INSERT INTO events (run_id, seq, event) VALUES (?, ?, ?)", rows)
        connection.commit()


def _add_noise(log: RunLog, run_id: str, count: int) -> None:
    """Add a run of texts that cannot be compressed much."""
    log.begin(run_id, "", "h")
    for number in range(count):
        log.append_event(run_id, Warned(f"{number} {os.urandom(1_900).hex()}"))
    log.append_event(run_id, ENDED)
    log.finish(run_id, "none", {})
    assert log.flush()


def _check(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for table in ("events", "blocks", "removals"):
            sql = f"SELECT count(*) FROM {table} WHERE run_id NOT IN (SELECT id FROM runs)"  # noqa: S608
            assert connection.execute(sql).fetchone() == (0,)


def test_a_deleted_run_gives_its_space_back(tmp_path: Path) -> None:
    """The file of the log is as small as before."""
    with RunLog.open(tmp_path) as log:
        _add_noise(log, "r1", 3)
        before = file_size(log.path)
        _add_noise(log, "r2", 900)
        assert file_size(log.path) > 4 * before
        log.delete("r2")
        assert file_size(log.path) <= before + 100_000
        assert [row.run_id for row in log.list_runs()] == ["r1"]
        assert len(list(log.events("r1"))) == 4
    _check(tmp_path / RUN_LOG_FILE_NAME)


@pytest.mark.every
@pytest.mark.parametrize("is_large", [False, True])
def test_a_file_of_an_earlier_version_is_rewritten_once(tmp_path: Path, is_large: bool) -> None:
    """By the first deletion if little is left; else only if the caller lets it take long."""
    path = tmp_path / RUN_LOG_FILE_NAME
    shutil.copy(_EARLIER, path)
    _add_rows(path, "r1", 3_000)
    _add_rows(path, "r2", 19_000 if is_large else 10)
    with RunLog.open(tmp_path) as log:
        log.delete("r1")
        if is_large:
            large = file_size(path)
            log.delete_all([], rewrite=True)
            assert file_size(path) < large - 2_000_000
        assert len(log.list_runs()) == 2
        assert sum(1 for _ in log.events("r2")) == (19_000 if is_large else 10)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    _check(path)


def _longest_wait(path: Path, is_over: threading.Event) -> float:
    """Write again and again as another process does; return the longest time that a transaction took."""
    longest = 0.0
    with contextlib.closing(sqlite3.connect(path, timeout=DEADLINE_S, isolation_level=None)) as connection:
        while not is_over.is_set():
            began = time.monotonic()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE runs SET note = 'busy' WHERE id = 'r2'")
            connection.execute("COMMIT")
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.001)
    return longest


def delete_beside_a_writer(path: Path) -> float:
    """Delete run r1 in another process while this one writes; return the longest wait for the lock."""
    script = "import sys; from pathlib import Path; from linkgauge.engine.results.run_log import RunLog; "
    script += "log = RunLog.open(Path(sys.argv[1]), create=False); log.delete('r1')"
    is_over = threading.Event()
    waits: list[float] = []
    thread = threading.Thread(target=lambda: waits.append(_longest_wait(path, is_over)))
    thread.start()
    try:
        subprocess.run([sys.executable, "-c", script, str(path.parent)], check=True, timeout=120)
    finally:
        is_over.set()
        thread.join()
    return waits[0]


@pytest.mark.every
def test_a_writer_waits_for_a_fraction_of_a_second_while_a_long_run_is_deleted(tmp_path: Path) -> None:
    """Here for rows of an earlier version, of which a run of a day has 700 000."""
    path = tmp_path / RUN_LOG_FILE_NAME
    RunLog.open(tmp_path).close()
    _add_rows(path, "r1", 20_000)
    _add_rows(path, "r2", 10)
    before = file_size(path)
    assert (
        delete_beside_a_writer(path) < 1.0
    )  # it is some hundredths; one transaction for all is shorter on no disk
    assert file_size(path) < before / 10
    _check(path)


_DELETE = """
import sys
from pathlib import Path
from linkgauge.engine.results.run_log import RunLog
with RunLog.open(Path(sys.argv[1]), create=False) as log:
    print("begun", flush=True)
    log.delete("r1")
"""


def test_the_rest_of_a_deletion_that_was_killed_is_deleted_by_the_next(tmp_path: Path) -> None:
    """The run is gone at once, whatever of its events is still there."""
    path = tmp_path / RUN_LOG_FILE_NAME
    RunLog.open(tmp_path).close()
    _add_rows(path, "r1", 20_000)
    _add_rows(path, "r2", 10)
    with start_child(_DELETE, tmp_path) as child:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            deadline = time.monotonic() + DEADLINE_S
            while connection.execute("SELECT count(*) FROM removals").fetchone() == (0,):
                assert time.monotonic() < deadline
                assert child.poll() is None
        child.kill()
    with RunLog.open(tmp_path) as log:
        assert [row.run_id for row in log.list_runs()] == ["r2"]
        log.delete("r2")
    _check(path)
    assert file_size(path) < 200_000


def test_no_run_is_deleted_if_one_cannot_be(tmp_path: Path) -> None:
    """All are checked first."""
    with RunLog.open(tmp_path) as log:
        _add_noise(log, "r1", 1)
        log.begin("r2", "", "h")
        with pytest.raises(RunLogError, match="r2 is still running"):
            log.delete_all(["r1", "r2"])
        with pytest.raises(RunLogError, match="no run 'r3'"):
            log.delete_all(["r1", "r3"])
        assert len(log.list_runs()) == 2


_RECORD = """
import sys, time
from pathlib import Path
from linkgauge.engine.model.events import Warned
from linkgauge.engine.results.run_log import RunLog

with RunLog.open(Path(sys.argv[1])) as log:
    for run in range(3):
        run_id = f"{sys.argv[2]}-{run}"
        log.begin(run_id, "", "h:1")
        for number in range(600):
            log.append_event(run_id, Warned(str(number)))
            if number % 100 == 0:
                log.list_runs()
        assert log.flush()
        log.set_label(run_id, "x")
        log.finish(run_id, "none", {})
    log.flush()
    print(log.problem)
"""


@pytest.mark.every
def test_two_recorders_and_a_deletion_at_once_get_on_with_each_other(tmp_path: Path) -> None:
    """No process reports a lock, and every run is whole."""
    path = tmp_path / RUN_LOG_FILE_NAME
    RunLog.open(tmp_path).close()
    _add_rows(path, "r1", 5_000)
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(start_child(_RECORD, tmp_path, name)) for name in ("a", "b")]
        deletion = stack.enter_context(start_child(_DELETE, tmp_path))
        assert [child.communicate(timeout=DEADLINE_S)[0] for child in children] == ["None\n", "None\n"]
        assert deletion.communicate(timeout=DEADLINE_S)[0] == "begun\n"
        assert [child.returncode for child in (*children, deletion)] == [0, 0, 0]
    with RunLog.open(tmp_path) as log:
        assert sorted(row.run_id for row in log.list_runs()) == [
            f"{name}-{run}" for name in "ab" for run in range(3)
        ]
        for row in log.list_runs():
            assert [event.text for event in log.events(row.run_id) if isinstance(event, Warned)] == [
                str(number) for number in range(600)
            ]
    _check(path)
