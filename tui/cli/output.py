"""Output of the commands: data to stdout, messages to stderr.

A closed pipe (`linkgauge presets list | head -1`) is not an error, and a test continues without its reader.
A command that measures or serves calls `write_in_background`: threads write from then on, so that a reader that has
stopped disturbs no test. At the end, `finish_output` waits for the readers, and no longer once a signal has come.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from ...engine.host.background_writer import BackgroundWriter, LossText, all_writers, stream_writer, write_all
from ...engine.host.debug_log import lost_lines_problem
from ...engine.host.end_signals import end_signals
from ...engine.model.errors import OutputError, PlanError, RunLogError, explain_os_error, make_printable
from ..words.redaction import REDACTION

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROGRAM: Final = "linkgauge"
_MESSAGE_WAIT_S: Final = 2.0  # for a reader of stderr that is not a terminal
_SIGNAL_WAIT_S: Final = 1.0  # for any reader, since the first signal
_LAST_WAIT_S: Final = 0.3  # for any reader, if ending the test took longer than that
_FLUSH_S: Final = 0.2
_LINES: Final = 500


def prepare_streams() -> None:
    """Make stdin, stdout and stderr safe to use.

    Open /dev/null for a closed one, before a socket or the run log takes its descriptor; write a question mark for
    a character that the terminal's encoding lacks.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        stream: Any = getattr(sys, name)
        if stream is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
        elif number > 0 and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


class _Background:
    """The output of a command that measures or serves: written by threads, and waited for at the end."""

    def __init__(self) -> None:
        self.is_on = False
        self.is_unwritten = False
        self.signal_number: int | None = None
        self.signal_time = 0.0

    def put(self, stream: TextIO, text: str) -> bool:
        """Queue text for a stream; return False if it is to be written at once."""
        target = stream_writer(stream) if self.is_on else None
        if target is not None:
            target[1].put(target[0], _encode(stream, text))
        return target is not None


_background: Final = _Background()


def write_in_background() -> None:
    """Have threads write to stdout and stderr from now on, for a command that measures or serves."""
    from ...engine.host.debug_log import keep_warnings_in_background

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    _background.is_on = True
    keep_warnings_in_background()


def note_unwritten(text: str | None = None) -> None:
    """Note that an output that was asked for is not whole, and print why; without a text that was done before.

    The command goes on: its other outputs may be fine.
    """
    if text is not None:
        print_stderr(text)
    _background.is_unwritten = True


@contextlib.contextmanager
def noted_if_unwritten(path: Path) -> Generator[None]:
    """Note that a file could not be written, and why, if writing it fails in this context."""
    try:
        yield
    except OSError as error:
        note_unwritten(f"cannot write {path}: {explain_os_error(error)}")
    except RunLogError as error:  # of a page
        note_unwritten(str(error))


def note_signal(number: int) -> None:
    """Note that a signal ends the command: `finish_output` then waits only a moment."""
    if _background.signal_number is None:
        _background.signal_number, _background.signal_time = number, time.monotonic()


def finish_output(status: int, *, must_deliver: bool = True) -> int:
    """Wait for the readers of what threads write; return the exit status. Without threads return `status`.

    A result waits until its reader has it or a signal comes. Messages on stderr wait for a user at a terminal,
    and a moment for anything else. If an output that was asked for is not whole, on stdout or in a file, the status
    of a good result is that of an OutputError. Every other status says more, and stays.

    Args:
        status: the exit status of the command.
        must_deliver: False for a command without results, whose status does not change.
    """
    problem = lost_lines_problem()
    if problem is not None:
        print_stderr(problem)
    try:
        if _background.is_on:
            status = _finish(status, must_deliver=must_deliver)
        return OutputError.exit_status if status == 0 and _background.is_unwritten else status
    finally:
        _background.is_on, _background.signal_number, _background.is_unwritten = False, None, False


def _finish(status: int, *, must_deliver: bool) -> int:
    with _noted_signals():
        _wait_for_readers()
        undelivered = any(writer.has_results for writer in all_writers() if writer is not _message_writer())
        _report_failures()
        _wait_for_readers()
    if undelivered and must_deliver and _background.signal_number is not None:
        return 128 + _background.signal_number
    return status


@contextlib.contextmanager
def _noted_signals() -> Generator[None]:
    """Note the signals that end a command, instead of ending at once. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda received, _frame: note_signal(received)) for number in end_signals()
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _message_writer() -> BackgroundWriter | None:
    """Return the writer of stderr if nobody at a terminal reads it, and no result goes there."""
    target = None if sys.stderr.isatty() else stream_writer(sys.stderr)
    results = stream_writer(sys.stdout)
    return None if target is None or (results is not None and results[1] is target[1]) else target[1]


def _wait_for_readers() -> None:
    """Wait until all is written. Without results, or after a signal, only for a moment."""
    started = time.monotonic()
    messages = _message_writer()
    while True:
        now = time.monotonic()
        if _background.signal_number is not None and now > max(
            _background.signal_time + _SIGNAL_WAIT_S, started + _LAST_WAIT_S
        ):
            return
        is_early = now - started < _MESSAGE_WAIT_S
        waiting = [
            writer
            for writer in all_writers()
            if not writer.is_idle and (is_early or (writer.has_results and writer is not messages))
        ]
        if not waiting:
            return
        waiting[0].flush(_FLUSH_S)


def _report_failures() -> None:
    """Print why a result could not be written, and note it."""
    messages = _message_writer()
    for writer in all_writers():
        error = writer.error
        if error is None or writer.is_reported or not writer.had_results or writer is messages:
            continue
        writer.is_reported = True
        if isinstance(error, BrokenPipeError):
            print_stderr(f"{writer.name}: its reader closed it before it had everything")
        else:
            note_unwritten(f"cannot write to {writer.name}: {explain_os_error(error)}")


def _encode(stream: TextIO, text: str) -> bytes:
    return text.encode(stream.encoding or "utf-8", stream.errors or "replace")


class BackgroundStream:
    """A stream of text for Rich, written like all other output of the command."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    @property
    def is_idle(self) -> bool:
        """Whether the reader has everything, so that another frame makes sense."""
        target = stream_writer(self._stream)
        return target is None or target[1].is_idle

    def write(self, text: str) -> int:
        """Queue text, or write it at once."""
        text = REDACTION.text(text)
        if text and not _background.put(self._stream, text):
            _write_whole(self._stream, text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: `write` has done it."""

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()


def emit(text: str) -> None:
    """Write data to stdout, at once."""
    _emit(REDACTION.text(text))


def _emit(text: str) -> None:
    if _background.put(sys.stdout, text):
        return
    try:
        _write_whole(sys.stdout, text)
    except BrokenPipeError:
        discard_stdout()
    except OSError as error:
        discard_stdout()  # the interpreter would write the rest at its end, and fail once more
        raise OutputError(f"cannot write to stdout: {explain_os_error(error)}") from error


def _write_whole(stream: TextIO, text: str) -> None:
    """Write all of a text.

    With PYTHONUNBUFFERED a stream of Python drops the rest of a write that a signal cuts short, which a pipe does
    from 64 KiB on, and says nothing.
    """
    stream.flush()
    try:
        fd = stream.fileno()
    except (OSError, ValueError):  # a stream without a file
        stream.write(text)
        stream.flush()
    else:
        write_all(fd, _encode(stream, text))


def emit_line(text: str) -> None:
    """Write one line of data to stdout, at once."""
    emit(text + "\n")


def emit_redacted_line(text: str) -> None:
    """Write a line to stdout that has its stand-ins already."""
    _emit(text + "\n")


def emit_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    _emit(json.dumps(REDACTION.document(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def emit_json_list(items: Iterable[Any]) -> None:
    """Write a list as one JSON document to stdout, item by item: it may be larger than the memory."""
    before, end = "[\n", "[]"
    for item in items:
        text = json.dumps(REDACTION.document(item), indent=2, ensure_ascii=False, allow_nan=False)
        _emit(before + "  " + text.replace("\n", "\n  "))
        before, end = ",\n", "\n]"
    emit_line(end)


def emit_lines(lines: Iterable[str]) -> None:
    """Write lines of data to stdout, many at a time."""
    remaining = iter(lines)
    while batch := list(islice(remaining, _LINES)):
        _emit("".join(f"{REDACTION.line(line).rstrip(' ')}\n" for line in batch))


def emit_json_line(document: Any) -> None:
    """Write one JSON document to stdout, on one line."""
    emit_redacted_line(json.dumps(REDACTION.document(document), ensure_ascii=False, allow_nan=False))


def check_output_file(field: str, path: Path | None, *, force: bool) -> None:
    """Raise PlanError for a file that exists, unless it may be replaced. Devices and pipes are written to.

    Args:
        field: The name of the file in errors: `CSV file`, `HTML file` or `report`.
        path: The file; None without one.
        force: Whether an existing file may be replaced.

    Raises:
        PlanError: The file exists, its directory does not, or its name is a dash.
    """
    if path is None:
        return
    from ...engine.host.saved_files import check_output_path

    check_output_path(field, path)
    if path.is_file() and not force:
        raise PlanError(field, path, "it exists already; give another file, or --force to replace it")


def write_csv_file(path: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write rows to a CSV file, as RFC 4180 has them, and say so, or why they could not be written."""
    import csv

    from ...engine.host.saved_files import written_whole

    with noted_if_unwritten(path):
        with written_whole(path, newline="") as stream:
            csv.writer(stream, lineterminator="\r\n").writerows([map(REDACTION.text, row) for row in rows])
        print_stderr(f"rows written to {path}")


def emit_rich(*parts: "RenderableType", is_wide: bool = False) -> None:
    """Write tables and styled text to stdout; without a terminal they are plain and 100 cells wide.

    With `is_wide` they do not wrap without a terminal, so that a program finds a row in each line.
    """
    from rich.console import Console

    from ..kit.drawing.line_breaks import respect_no_break_spaces

    respect_no_break_spaces()
    pipe_width = 10_000 if is_wide else 100
    console = Console(
        file=cast("TextIO", BackgroundStream(sys.stdout)),
        width=None if sys.stdout.isatty() else pipe_width,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # Padding at the right end of a table would wrap in a narrow window.
    _emit("".join(REDACTION.line(line).rstrip(" ") + "\n" for line in capture.get().splitlines()))


def terminal_width() -> int | None:
    """Return the columns of the terminal that stdout is; None for a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def discard_stdout() -> None:
    """Redirect stdout to /dev/null, once its reader has gone."""
    with contextlib.suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def print_stderr(text: str) -> None:
    """Print a message on stderr. A path or name in it, which may be anybody's, drives no terminal."""
    printable = "\n".join(map(make_printable, text.split("\n")))
    _write_stderr(f"{PROGRAM}: {printable}\n")


def _write_stderr(text: str) -> None:
    text = REDACTION.text(text)
    if _background.put(sys.stderr, text):
        return
    with contextlib.suppress(OSError):
        _write_whole(sys.stderr, text)


def log_stderr_line(text: str, loss_text: LossText) -> None:
    """Write a line of a log to stderr; `loss_text` reports lines that were dropped because too many waited."""
    target = stream_writer(sys.stderr)
    if target is None:
        _write_stderr(text + "\n")
    else:
        line = REDACTION.text(text) + "\n"
        target[1].offer(target[0], _encode(sys.stderr, line), lambda lost: loss_text(lost) + "\n")


def keep_log_off_screen() -> None:
    """Turn off a debug log on stderr before an app draws there, and name the alternative."""
    from ...engine.host.debug_log import LOG_VARIABLE, disable_stderr_log

    if disable_stderr_log():
        print_stderr(f"no log while the app uses the terminal; to log to a file, set {LOG_VARIABLE}=FILE")


def stderr_console() -> "Console":
    """Return the Rich console of stderr."""
    from rich.console import Console

    stream = cast("TextIO", BackgroundStream(sys.stderr))
    return Console(file=stream, stderr=True, highlight=False, markup=False, emoji=False)
