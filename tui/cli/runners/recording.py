"""What commands that measure have in common: the run log, the lines of errors, and the end without a result."""

from collections.abc import Callable, Container, Generator
from contextlib import contextmanager

from ....engine.model.errors import LinkgaugeError
from ....engine.results.json_stream import error_line
from ....engine.results.run_log import RunLog
from ...session.storage import open_run_log
from ..output import emit_json_line, print_stderr
from ..termination import exit_status


@contextmanager
def open_recording(
    open_log: Callable[[], RunLog | None] = lambda: open_run_log(print_stderr), printed: Container[str] = ()
) -> Generator[RunLog | None]:
    """Open the run log for the time of the context; None for runs that are not stored.

    At the end it prints what went wrong with the log, unless that is among the lines that were `printed`.
    """
    log = open_log()
    try:
        yield log
    finally:
        if log is not None:
            log.close(print_stderr)  # the last writes may fail too
            if log.problem is not None and log.problem not in printed:
                print_stderr(log.problem)


@contextmanager
def error_lines(*, as_json_stream: bool) -> Generator[None]:
    """Have an error that ends the context in the JSON lines as well."""
    try:
        yield
    except LinkgaugeError as error:
        if as_json_stream:
            emit_json_line(error_line(str(error)))
        raise


def end_unmeasured(signal_number: int | None, *, as_json_stream: bool) -> int:
    """Say that a signal came before any result; return the exit status."""
    text = "interrupted before anything was measured"
    if as_json_stream:
        emit_json_line(error_line(text))
    print_stderr(text)
    return exit_status(None, signal_number)
