"""The log of an endpoint or a watch: a stream, the journal of systemd behind it, or a file that may be rotated.

If the stream leads to the journal (JOURNAL_STREAM, systemd.exec(5)), each line is an entry with fields, in the
journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): a datagram in which each field is `NAME=value` and a
newline. A value with newlines comes after its length, so that no text can begin a field of its own. The packages
that do this call libsystemd and need a compiler. If the journal does not take an entry, its line goes to the stream
and begins with its priority in angle brackets (sd-daemon(3)).
"""

import contextlib
import os
import re
import socket
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from ...engine.host.background_writer import BackgroundWriter, LossText
from ...engine.host.debug_log import open_log_file
from ...engine.model.errors import OutputError, explain_os_error, make_printable
from .output import note_unwritten, print_stderr

_FLUSH_S: Final = 1.0
_PREFIX: Final = "LINKGAUGE_"
_MOST_VALUE: Final = 1_024
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_LENGTH: Final = struct.Struct("<Q")
JOURNAL_SOCKET: Final = Path("/run/systemd/journal/socket")
_NO_FACTS: Final[Mapping[str, object]] = MappingProxyType({})


class Priority(IntEnum):
    """How urgent a line is, as syslog(3) counts."""

    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6


class JournalSocket:
    """Sends entries to the journal of this host. It never waits: a journal that is behind takes no entry."""

    def __init__(self, path: Path = JOURNAL_SOCKET) -> None:
        self._path = str(path)
        self._socket: socket.socket | None = None
        with contextlib.suppress(OSError):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def send(self, fields: Mapping[str, str]) -> bool:
        """Send an entry; return whether the journal has taken it."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto(encode_entry(fields), socket.MSG_DONTWAIT, self._path)
        except OSError:  # it restarts, is behind, or the entry is too long for a datagram
            return False
        return True

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()


class ServiceLog:
    """Writes lines to a stream or to a file. A thread writes the file, so that a slow disk delays no test.

    A file is opened for appending: what logrotate's `copytruncate` cuts off stays off. `reopen` begins a new file
    after the old one was moved away.
    """

    def __init__(
        self,
        stream: TextIO,
        write: Callable[[str], None],
        loss_text: LossText,
        path: str | None = None,
        *,
        journal: Path = JOURNAL_SOCKET,
    ) -> None:
        """Open the log.

        Args:
            stream: the stream of the lines, if there is no file.
            write: writes a line to that stream.
            loss_text: returns the line that reports dropped lines.
            path: the file; None for the stream.
            journal: the socket of the journal.

        Raises:
            OutputError: The file cannot be written.
        """
        self._journal = JournalSocket(journal) if path is None and leads_to_journal(stream) else None
        self._write, self._loss_text, self._path = write, loss_text, path
        self._file = None if path is None else _open(path)
        self._earlier: BackgroundWriter | None = (
            None  # the one before the last rotation, which may still be writing
        )

    @property
    def is_journal(self) -> bool:
        """Whether the lines go to the journal, which has the time itself."""
        return self._journal is not None

    def add(self, line: str, priority: Priority = Priority.INFO, facts: Mapping[str, object] = _NO_FACTS) -> None:
        """Write a line. The journal gets the known facts as fields, `peer` as LINKGAUGE_PEER; None is unknown."""
        if self._file is not None:
            self._file.offer(self._file.OWN_FD, _encode(line), lambda count: self._loss_text(count) + "\n")
        elif self._journal is None:
            self._write(line)
        elif not self._journal.send(_entry(line, priority, facts)):
            self._write(f"<{priority:d}>{line}")

    def reopen(self) -> None:
        """Write to the file's path again, which is another file after a rotation; report why that is impossible."""
        if self._path is None or self._file is None:
            return
        try:
            new = _open(self._path)
        except OutputError as error:
            print_stderr(f"{error}; the log goes on in the earlier file")
            return
        self._file.close()
        self._report(self._file)
        self._earlier, self._file = self._file, new

    def close(self) -> None:
        """Write the waiting lines, for a moment at most."""
        if self._journal is not None:
            self._journal.close()
        if self._file is not None:
            self._file.close()
            for file in (self._earlier, self._file):
                if file is not None:
                    file.flush(_FLUSH_S)
            self._report(self._file)

    def _report(self, file: BackgroundWriter) -> None:
        """Report lines that could not be written: they were asked for, in place of those on stdout."""
        error = file.error or file.passing_error
        if error is not None:
            note_unwritten(f"the log in {make_printable(file.name)} lacks lines: {explain_os_error(error)}")


def leads_to_journal(stream: TextIO) -> bool:
    """Return whether the manager of services has connected a stream to the journal."""
    with contextlib.suppress(OSError, ValueError):
        status = os.fstat(stream.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


def _entry(line: str, priority: Priority, facts: Mapping[str, object]) -> dict[str, str]:
    """Return the fields of an entry; a text of the other end cannot be longer than a line of the log may be."""
    known = {
        f"{_PREFIX}{name.upper()}": str(value)[:_MOST_VALUE] for name, value in facts.items() if value is not None
    }
    return {"MESSAGE": line, "PRIORITY": f"{priority:d}", "SYSLOG_IDENTIFIER": "linkgauge", **known}


def _open(path: str) -> BackgroundWriter:
    try:
        os.close(open_log_file(path))
    except OSError as error:
        raise OutputError(
            f"--log-file: cannot write to {make_printable(path)}: {explain_os_error(error)}"
        ) from error
    return BackgroundWriter(path, partial(open_log_file, path), is_log=True)


def _encode(line: str) -> bytes:
    return f"{line}\n".encode("utf-8", "backslashreplace")


def encode_entry(fields: Mapping[str, str]) -> bytes:
    """Return the datagram of an entry. Raises ValueError for a name that the journal would not take.

    Names have capital letters, digits and underscores; those that begin with an underscore are the journal's own.
    """
    parts: list[bytes] = []
    for name, text in fields.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a field of the journal")
        value = text.encode("utf-8", "backslashreplace")
        if b"\n" in value:
            parts += [name.encode(), b"\n", _LENGTH.pack(len(value)), value, b"\n"]
        else:
            parts += [name.encode(), b"=", value, b"\n"]
    return b"".join(parts)
