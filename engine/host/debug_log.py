"""The debug log: the `linkgauge` logger written to stderr or to a file, as LINKGAUGE_LOG says. Off by default.

Every process of a test sets it up for itself: the variable reaches processes that are started from here. If the
log goes to a pipe or a terminal, a thread writes it, so that a stopped reader holds nothing up. Lines that
cannot be written are lost: `lost_lines_problem` says so at the end of a command.
"""

import contextlib
import errno
import logging
import os
import stat
import sys
from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Final

from ..model.errors import explain_os_error, make_printable

LOG_VARIABLE: Final = "LINKGAUGE_LOG"
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_FLUSH_S: Final = 0.5
_FORMAT: Final = "%(asctime)s.%(msecs)03d [%(process)d] %(name)s: %(message)s"


def configure_debug_log(environment: MutableMapping[str, str] = os.environ, *, has_stderr: bool = True) -> None:
    """Set the `linkgauge` logger up from LINKGAUGE_LOG; without the variable, do nothing.

    A level (`debug`, `info` or `warning`) writes to stderr. Any other value is a file, to which debug messages are
    appended. The file is opened at the first message, so that one that cannot be written stops no worker. If
    another process reads this one's stderr for an error's text, the log must not go there (`has_stderr`): it goes
    to files only.
    """
    target = environment.get(LOG_VARIABLE)
    if not target:
        return
    level = _LEVELS.get(target.lower())
    if level is not None and not has_stderr:
        return
    handler = _BackgroundHandler() if level is not None else _file_handler(target)
    handler.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))
    _replace_handlers(handler)
    _logger().setLevel(logging.DEBUG if level is None else level)


def disable_stderr_log(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Turn the log off, for this process and those it starts, if it goes to stderr; return whether it did.

    A full-screen app calls this before it draws: a line on stderr would appear in the middle of its screen.
    """
    if environment.get(LOG_VARIABLE, "").lower() not in _LEVELS:
        return False
    del environment[LOG_VARIABLE]
    _replace_handlers()
    return True


def keep_warnings_in_background() -> None:
    """Have a thread write the warnings of libraries to stderr, such as those about connections that break."""
    logging.lastResort = _BackgroundHandler(logging.WARNING)


def flush_debug_log() -> None:
    """Write the waiting lines, for a moment at most. A process that ends without its exit handlers calls this."""
    for handler in _logger().handlers:
        handler.flush()


def lost_lines_problem() -> str | None:
    """Return why the file that LINKGAUGE_LOG names lacks lines of this process; None if all are there."""
    flush_debug_log()
    for handler in _logger().handlers:
        if isinstance(handler, _FileHandler | _BackgroundHandler) and (reason := handler.loss()) is not None:
            return f"the log in {make_printable(handler.path or '')} lacks lines: {reason}"
    return None


def debug_log_problem(environment: MutableMapping[str, str] = os.environ) -> str | None:
    """Return why the file that LINKGAUGE_LOG names cannot be written; None if it can, or if there is none."""
    target = environment.get(LOG_VARIABLE)
    if not target or target.lower() in _LEVELS or not _is_file(target):
        return None
    try:
        _check_writable(target)
    except OSError as error:
        for handler in _logger().handlers:
            if isinstance(handler, _FileHandler):
                handler.is_reported = True
        return f"no log: cannot write to {make_printable(target)}: {explain_os_error(error)}"
    return None


def _check_writable(path: str) -> None:
    """Raise OSError for a file that cannot be written. A missing one is not made: there may never be a message."""
    try:
        os.close(open_log_file(path, 0))
    except FileNotFoundError:
        folder = Path(os.path.realpath(path)).parent
        folder.stat()
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def open_log_file(path: str, more_flags: int = os.O_CREAT) -> int:
    """Open a regular file for appending; return its descriptor. Do not wait if a named pipe has taken its name."""
    from .saved_files import follow_links

    fd = os.open(follow_links(Path(path)), _APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | more_flags, 0o666)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("it is not a regular file")
    return fd


class _FileHandler(logging.Handler):
    """A log in a file, which the first line opens. Lines that cannot be written are lost, and cause no others."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        self._fd: int | None = None
        self._is_cut = False  # within a line
        self._error: OSError | None = None
        self.is_reported = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line in one piece: other processes append to the same file."""
        try:
            data = ("\n" * self._is_cut + self.format(record) + "\n").encode("utf-8", "backslashreplace")
            if self._fd is None:
                self._fd = open_log_file(self.path)
            self._is_cut = os.write(self._fd, data) < len(data)
            if self._is_cut:
                self._error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._error = error
        except Exception:  # noqa: BLE001 - a log must not break what it describes
            return

    def loss(self) -> str | None:
        """Return why lines are missing; None if none are, or if the user knows already."""
        if self._error is None or self.is_reported:
            return None
        return explain_os_error(self._error)

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with contextlib.suppress(OSError):
                os.close(fd)
        super().close()


class _BackgroundHandler(logging.Handler):
    """A log on stderr, or in a named pipe or a device, which a thread opens and writes. Full, it loses lines."""

    def __init__(self, level: int = logging.NOTSET, path: str | None = None) -> None:
        super().__init__(level)
        # If the log is off, as in most workers, this is not needed.
        from .background_writer import BackgroundWriter, stream_writer

        self.path = path
        self._find_writer = stream_writer
        own = None if path is None else BackgroundWriter(path, partial(os.open, path, _APPEND), is_log=True)
        self._own = None if own is None else (own.OWN_FD, own)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line."""
        try:
            line = self.format(record) + "\n"
            target = self._own or self._find_writer(sys.stderr)
            if target is None:
                sys.stderr.write(line)
            else:
                target[1].offer(target[0], line.encode("utf-8", "backslashreplace"), _lost_lines)
        except Exception:  # noqa: BLE001 - a log must not break what it describes
            return

    def flush(self) -> None:
        """Wait for a moment until the lines are written, unless their reader has stopped already."""
        target = self._own or self._find_writer(sys.stderr)
        if target is not None and not target[1].is_stalled:
            target[1].flush(_FLUSH_S)

    def loss(self) -> str | None:
        """Return why lines are missing from a pipe or a device; None if none are, and for stderr."""
        writer = None if self._own is None else self._own[1]
        if writer is None or (writer.is_idle and writer.error is None):
            return None
        error = writer.error or writer.passing_error
        return "nobody reads it" if error is None else explain_os_error(error)


def _file_handler(path: str) -> logging.Handler:
    """Return the handler of a file: opening a named pipe waits for its reader."""
    if _is_file(path):
        return _FileHandler(path)
    return _BackgroundHandler(path=path)


def _is_file(path: str) -> bool:
    """Return whether a path is for a file, which the first message may make: neither a pipe nor a device."""
    try:
        mode = Path(path).stat().st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    except OSError:
        return True


def _lost_lines(count: int) -> str:
    return f"{count} lines lost: the log was not read\n"


def _logger() -> logging.Logger:
    return logging.getLogger(__name__.partition(".")[0])


def _replace_handlers(*handlers: logging.Handler) -> None:
    logger = _logger()
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    for handler in handlers:
        logger.addHandler(handler)
    logger.propagate = not handlers
