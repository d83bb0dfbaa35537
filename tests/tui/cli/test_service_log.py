"""The log of a service: real files that are moved and cut off, and a pipe in the place of the journal."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest
from linkgauge.engine.model.errors import OutputError
from linkgauge.tui.cli.service_log import Priority, ServiceLog, encode_entry


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


def parse_entry(data: bytes) -> dict[str, str]:
    """Return the fields of a datagram, read as systemd.io/JOURNAL_NATIVE_PROTOCOL describes it."""
    fields: dict[str, str] = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, has_value, value = line.partition(b"=")
        if has_value:
            data = rest
        else:
            length = int.from_bytes(rest[:8], "little")
            value, data = rest[8 : 8 + length], rest[9 + length :]
        assert name.decode() not in fields
        fields[name.decode()] = value.decode()
    return fields


@contextmanager
def journal_stream(
    path: Path, monkeypatch: pytest.MonkeyPatch, offset: int = 0
) -> Iterator[tuple[ServiceLog, IO[str], IO[str]]]:
    """Give a log whose stream the manager of services has connected to the journal, and the stream's two ends."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream, os.fdopen(reading) as read:
        status = os.fstat(writing)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino + offset}")
        log = ServiceLog(stream, lambda line: stream.write(line + "\n"), lost, journal=path)
        yield log, stream, read
        log.close()


@pytest.mark.parametrize("is_journal", [True, False])
def test_lines_that_the_journal_does_not_take_begin_with_their_priority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, is_journal: bool
) -> None:
    """Nobody listens on its socket. A stream that is not the journal's gets plain lines."""
    with journal_stream(tmp_path / "absent", monkeypatch, not is_journal) as (log, stream, read):
        log.add("no new clients")
        log.add("key not changed", Priority.WARNING, {"client": "192.0.2.7"})
        stream.close()
        lines = read.read().splitlines()
    assert lines == (
        ["<6>no new clients", "<4>key not changed"] if is_journal else ["no new clients", "key not changed"]
    )


def test_the_journal_gets_an_entry_with_fields_and_no_text_begins_a_field_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A remote end may have any name."""
    path, evil = tmp_path / "socket", "web\nPRIORITY=0\nMESSAGE=all is well"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal,
        journal_stream(path, monkeypatch) as (log, _, _),
    ):
        journal.bind(str(path))
        log.add("db-02: failed", Priority.ERROR, {"event": "check_end", "peer": "db-02", "run": None})
        log.add(f"connected ({evil})", facts={"hostname": evil, "received_bytes": 7, "client": "\udc80"})
        first, second = (parse_entry(journal.recv(65_536)) for _ in range(2))
    assert first == {
        "MESSAGE": "db-02: failed",
        "PRIORITY": "3",
        "SYSLOG_IDENTIFIER": "linkgauge",
        "LINKGAUGE_EVENT": "check_end",
        "LINKGAUGE_PEER": "db-02",
    }
    assert (second["PRIORITY"], second["MESSAGE"]) == ("6", f"connected ({evil})")
    assert (second["LINKGAUGE_HOSTNAME"], second["LINKGAUGE_RECEIVED_BYTES"]) == (evil, "7")
    assert second["LINKGAUGE_CLIENT"] == "\\udc80"


def test_a_journal_that_is_behind_delays_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What its socket has no room for goes to the stream; so does an entry that is too long for a datagram."""
    path = tmp_path / "socket"
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal,
        journal_stream(path, monkeypatch) as (log, _, _),
    ):
        journal.bind(str(path))
        lines: list[str] = []
        log._write = lines.append
        for number in range(5_000):
            log.add(f"line {number}")
        log.add("x" * 2_000_000)
        taken = 0
        with suppress(BlockingIOError):
            while journal.recv(65_536, socket.MSG_DONTWAIT):
                taken += 1
    assert 0 < taken == 5_001 - len(lines)
    assert lines[-1].startswith("<6>xxx")


def test_a_field_needs_a_name_that_the_journal_takes() -> None:
    """Those that begin with an underscore are its own."""
    for name in ("_UID", "peer", "A=B", "A\nB", ""):
        with pytest.raises(ValueError, match="not the name of a field"):
            encode_entry({name: "1"})
