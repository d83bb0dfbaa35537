"""The runs that are kept, for the commands that read them."""

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

from .status import UsageProblem

if TYPE_CHECKING:
    from ...engine.runlog import RunLog, RunRow


@contextlib.contextmanager
def kept_runs() -> "Generator[RunLog]":
    """Give the run log for reading; where there is none yet, none is made."""
    from ...engine.runlog import RunLog
    from ..paths import data_dir

    with RunLog.open(data_dir(), create=False) as log:
        yield log


def find_run(log: "RunLog", text: str) -> "RunRow":
    """Return the run that is meant. A log that cannot be read is not the command line's fault."""
    from ...engine.errors import StoreError

    log.runs()
    try:
        return log.find(text)
    except StoreError as error:
        raise UsageProblem(str(error)) from error
