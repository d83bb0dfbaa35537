"""Where text goes: data to stdout, everything else to stderr, and never a traceback over either.

A reader that has gone away (`linkgauge presets list | head -1`) is no error, and a test that runs goes on
without it.
"""

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROGRAM: Final = "linkgauge"


def prepare_streams() -> None:
    """Make stdin, stdout and stderr safe to use, whatever linkgauge was started with.

    A missing one becomes /dev/null, before a socket or the run log takes its number; a character that the
    terminal's encoding lacks becomes a question mark.
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


def emit_rich(*parts: "RenderableType") -> None:
    """Write tables and styled text to stdout; without a terminal they are plain and 100 cells wide."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    # Cells that a table pads at its right end are of no use to anybody, and wrap in a narrow window.
    emit("".join(line.rstrip(" ") + "\n" for line in capture.get().splitlines()))


def discard_stdout() -> None:
    """Send what is still written to stdout nowhere: its reader has gone."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def print_stderr(text: str) -> None:
    """Tell a person something, on stderr."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        sys.stderr.flush()


def print_stderr_json(document: Any) -> None:
    """Tell a program something, on stderr: one JSON document on one line."""
    with contextlib.suppress(OSError):
        sys.stderr.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stderr.flush()


def keep_log_off_screen() -> None:
    """Turn a debug log on stderr off before an app draws there, and say where it can go instead."""
    from ...engine.host.debug_log import LOG_VARIABLE, disable_stderr_log

    if disable_stderr_log():
        print_stderr(f"the app has the terminal for itself: no log; give {LOG_VARIABLE}=FILE")


def stderr_console() -> "Console":
    """Return the Rich console of stderr."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)
