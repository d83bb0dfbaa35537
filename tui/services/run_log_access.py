"""Access to the run log of this machine, for a new run or for reading.

The log itself is imported late, so that the command line starts fast.
"""

import contextlib
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from ...engine.model.errors import RunLogError, UsageError
from .config import data_dir

if TYPE_CHECKING:
    from ...engine.results.run_log import RunLog, RunRecord

_log = logging.getLogger(__name__)


def open_run_log(report: Callable[[str], None]) -> "RunLog | None":
    """Return the run log for a new run. If it cannot be used, report why and return None."""
    from ...engine.results.run_log import RunLog

    try:
        return RunLog.open(data_dir())
    except (RunLogError, OSError) as error:
        _log.debug("no run log: %s", error)
        report(f"this run is not kept: {error}")
        return None


@contextlib.contextmanager
def open_run_list() -> "Generator[RunLog]":
    """Open the run log for reading. If there is none, none is created."""
    from ...engine.results.run_log import RunLog

    with RunLog.open(data_dir(), create=False) as log:
        yield log


def find_run(log: "RunLog", text: str) -> "RunRecord":
    """Return the run of an id or of the beginning of one. Raises UsageError.

    The log is read first, outside the conversion of errors: a damaged log is no mistake of the user.
    """
    log.list_runs()
    try:
        return log.find(text)
    except RunLogError as error:
        raise UsageError(str(error)) from error
