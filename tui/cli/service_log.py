"""The log of an endpoint or a watch: a stream, the journal of systemd behind it, or a file that may be rotated.

If the stream leads to the journal (JOURNAL_STREAM, systemd.exec(5)), each line begins with its priority in angle
brackets, which the journal takes off and keeps as a field (sd-daemon(3)).
"""

import contextlib
import os
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Final, TextIO

from ...engine.host.background_writer import BackgroundWriter, LossText
from ...engine.host.debug_log import open_log_file
from ...engine.model.errors import OutputError, explain_os_error, make_printable
from .output import print_stderr

_FLUSH_S: Final = 1.0


class Priority(IntEnum):
    """How urgent a line is, as syslog(3) counts."""

    ERROR = 3
    WARNING = 4
    NOTICE = 5
    INFO = 6


class ServiceLog:
    """Writes lines to a stream or to a file. A thread writes the file, so that a slow disk delays no test.

    A file is opened for appending: what logrotate's `copytruncate` cuts off stays off. `reopen` begins a new file
    after the old one was moved away.
    """

    def __init__(
        self, stream: TextIO, write: Callable[[str], None], loss_text: LossText, path: str | None = None
    ) -> None:
        """Open the log.

        Args:
            stream: the stream of the lines, if there is no file.
            write: writes a line to that stream.
            loss_text: returns the line that reports dropped lines.
            path: the file; None for the stream.

        Raises:
            OutputError: The file cannot be written.
        """
        self.is_journal = path is None and leads_to_journal(stream)
        self._write, self._loss_text, self._path = write, loss_text, path
        self._file = None if path is None else _open(path)
        self._earlier: BackgroundWriter | None = (
            None  # the one before the last rotation, which may still be writing
        )

    def add(self, line: str, priority: Priority = Priority.INFO) -> None:
        """Write a line."""
        if self._file is not None:
            self._file.offer(self._file.OWN_FD, _encode(line), lambda count: self._loss_text(count) + "\n")
        else:
            self._write(f"<{priority:d}>{line}" if self.is_journal else line)

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
        if self._file is not None:
            self._file.close()
            for file in (self._earlier, self._file):
                if file is not None:
                    file.flush(_FLUSH_S)
            self._report(self._file)

    def _report(self, file: BackgroundWriter) -> None:
        """Report lines that could not be written."""
        error = file.error or file.passing_error
        if error is not None:
            print_stderr(f"the log in {make_printable(file.name)} lacks lines: {explain_os_error(error)}")


def leads_to_journal(stream: TextIO) -> bool:
    """Return whether the manager of services has connected a stream to the journal."""
    with contextlib.suppress(OSError, ValueError):
        status = os.fstat(stream.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
    return False


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
