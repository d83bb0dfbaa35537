"""Output of the commands: data to stdout, messages to stderr.

A closed pipe (`linkgauge presets list | head -1`) is not an error, and a test continues without its reader.
"""

import contextlib
import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

from ...engine.model.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROGRAM: Final = "linkgauge"


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


def emit(text: str) -> None:
    """Write data to stdout, at once."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()


def emit_line(text: str) -> None:
    """Write one line of data to stdout, at once."""
    emit(text + "\n")


def emit_json(document: Any) -> None:
    """Write one JSON document to stdout."""
    emit_line(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def emit_json_line(document: Any) -> None:
    """Write one JSON document to stdout, on one line."""
    emit_line(json.dumps(document, ensure_ascii=False, allow_nan=False))


def check_json_options(as_json: bool, as_json_stream: bool) -> None:
    """Raise UsageError for both kinds of JSON at once."""
    if as_json and as_json_stream:
        raise UsageError("--json-stream and --json exclude each other: give one of them")


def emit_rich(*parts: "RenderableType", is_wide: bool = False) -> None:
    """Write tables and styled text to stdout; without a terminal they are plain and 100 cells wide.

    With `is_wide` they do not wrap without a terminal, so that a program finds a row in each line.
    """
    from rich.console import Console

    from ..rendering.line_breaks import respect_no_break_spaces

    respect_no_break_spaces()
    pipe_width = 10_000 if is_wide else 100
    console = Console(width=None if sys.stdout.isatty() else pipe_width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # Padding at the right end of a table would wrap in a narrow window.
    emit("".join(line.rstrip(" ") + "\n" for line in capture.get().splitlines()))


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
    """Print a message for a person on stderr."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        sys.stderr.flush()


def print_stderr_line(text: str) -> None:
    """Write a line of a log to stderr, without the program's name."""
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def print_stderr_json(document: Any) -> None:
    """Print a message for a program on stderr: one JSON document on one line."""
    with contextlib.suppress(OSError):
        sys.stderr.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stderr.flush()


def keep_log_off_screen() -> None:
    """Turn off a debug log on stderr before an app draws there, and name the alternative."""
    from ...engine.host.debug_log import LOG_VARIABLE, disable_stderr_log

    if disable_stderr_log():
        print_stderr(f"no log while the app uses the terminal; to log to a file, set {LOG_VARIABLE}=FILE")


def stderr_console() -> "Console":
    """Return the Rich console of stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)
