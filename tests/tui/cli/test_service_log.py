"""The log of a service: real files that are moved and cut off, and a pipe in the place of the journal."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import OutputError
from linkgauge.tui.cli.service_log import Priority, ServiceLog


def lost(count: int) -> str:
    """Return the line about lost lines."""
    return f"{count} lost"


def open_log(path: Path) -> ServiceLog:
    """Return a log in a file."""
    with path.open("a") as unused:
        return ServiceLog(unused, pytest.fail, lost, str(path))


def move_away(path: Path, log: ServiceLog) -> None:
    """Rotate as logrotate does without `copytruncate`: lines go to the moved file until the signal."""
    path.rename(path.with_suffix(".1"))
    log.add("before the signal", Priority.ERROR)
    log.reopen()


def cut_off(path: Path, _log: ServiceLog) -> None:
    """Rotate as logrotate's `copytruncate` does."""
    path.with_suffix(".1").write_bytes(path.read_bytes())
    os.truncate(path, 0)


@pytest.mark.parametrize("rotate", [move_away, cut_off])
def test_a_log_file_goes_on_after_each_way_of_a_rotation(
    tmp_path: Path, rotate: Callable[[Path, ServiceLog], None]
) -> None:
    """No line is lost or comes twice, and none follows a hole of zeros."""
    path = tmp_path / "endpoint.log"
    log = open_log(path)
    log.add("first")
    assert log._file is not None
    assert log._file.flush(10)
    rotate(path, log)
    log.add("sécond \udc80")
    log.close()
    assert path.read_text() == "sécond \\udc80\n"
    assert path.with_suffix(".1").read_text().splitlines()[0] == "first"
    assert ("before the signal" in path.with_suffix(".1").read_text()) is (rotate is move_away)


def test_a_log_file_that_cannot_be_written_is_an_error_at_the_start_and_a_message_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service goes on: its lines are in the earlier file."""
    with pytest.raises(OutputError, match=r"--log-file: cannot write to .*: it is not a regular file"):
        open_log(Path("/dev/null"))
    folder = tmp_path / "log"
    folder.mkdir()
    log = open_log(folder / "endpoint.log")
    log.add("first")
    assert log._file is not None
    assert log._file.flush(10)
    folder.rename(tmp_path / "old")
    log.reopen()
    assert "no such file or directory; the log goes on in the earlier file" in capsys.readouterr().err
    log.add("second")
    log.close()
    assert (tmp_path / "old" / "endpoint.log").read_text() == "first\nsecond\n"


@pytest.mark.parametrize("is_journal", [True, False])
def test_lines_to_the_journal_begin_with_their_priority(monkeypatch: pytest.MonkeyPatch, is_journal: bool) -> None:
    """The manager names the stream that it has connected; any other gets plain lines."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading) as read:
        status = os.fstat(writing)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino + (not is_journal)}")
        log = ServiceLog(stream, lambda line: stream.write(line + "\n"), lost)
        log.add("no new clients")
        log.add("key not changed", Priority.WARNING)
        log.close()
        stream.close()
        lines = read.read().splitlines()
    assert lines == (
        ["<6>no new clients", "<4>key not changed"] if is_journal else ["no new clients", "key not changed"]
    )
