"""The runs that are kept, for the commands that read them."""

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

from ...engine.model.errors import UsageError

if TYPE_CHECKING:
    from ...engine.results.run_log import RunLog, RunRecord


@contextlib.contextmanager
def open_run_list() -> "Generator[RunLog]":
    """Give the run log for reading; where there is none yet, none is made."""
    from ...engine.results.run_log import RunLog
    from .config import data_dir

    with RunLog.open(data_dir(), create=False) as log:
        yield log


def find_run(log: "RunLog", text: str) -> "RunRecord":
    """Return the run that is meant. A log that cannot be read is not the command line's fault."""
    from ...engine.model.errors import RunLogError

    log.list_runs()
    try:
        return log.find(text)
    except RunLogError as error:
        raise UsageError(str(error)) from error
