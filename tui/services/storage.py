"""The directories of linkgauge's data, configuration and cache, and access to the run log.

The log itself is imported late, so that the command line starts fast.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import RunLogError, UnknownRun, UsageError, explain_os_error

if TYPE_CHECKING:
    from ...engine.results.run_log import RunLog, RunRecord


_log = logging.getLogger(__name__)
DATA_DIR_VARIABLE: Final = "LINKGAUGE_DATA_DIR"
CONFIG_DIR_VARIABLE: Final = "LINKGAUGE_CONFIG_DIR"


def data_dir() -> Path:
    """Return the directory of the run log: that of LINKGAUGE_DATA_DIR, else the platform's usual one.

    It is not created here: a command that only reads must leave no trace.
    """
    directory = _from_environment(DATA_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_data_path

    return user_data_path("linkgauge", appauthor=False)


def open_data_dir() -> Path:
    """Return the directory of the run log. The usual one becomes its owner's alone.

    One that LINKGAUGE_DATA_DIR names may have other things in it, and stays as it is.
    """
    from ...engine.host.saved_files import restrict_to_owner

    directory = data_dir()
    if _from_environment(DATA_DIR_VARIABLE) is None:
        restrict_to_owner(directory)
    return directory


def config_dir() -> Path:
    """Return the directory of preferences, keys and presets: that of LINKGAUGE_CONFIG_DIR, else the usual one."""
    directory = _from_environment(CONFIG_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_config_path

    return user_config_path("linkgauge", appauthor=False)


def cache_dir() -> Path:
    """Return the directory of what can be measured again at any time: the platform's usual one."""
    from platformdirs import user_cache_path

    return user_cache_path("linkgauge", appauthor=False)


def presets_dir() -> Path:
    """Return the directory of the user's presets, `presets` in the configuration directory. It may not exist."""
    return config_dir() / "presets"


def _from_environment(variable: str) -> Path | None:
    path = os.environ.get(variable)
    return Path(path).expanduser().absolute() if path else None


def open_run_log(report: Callable[[str], None]) -> "RunLog | None":
    """Return the run log for a new run. If it cannot be used, report why and return None."""
    from ...engine.results.run_log import RunLog

    try:
        return RunLog.open(open_data_dir())
    except (RunLogError, OSError) as error:
        _log.debug("no run log: %s", error)
        why = explain_os_error(error) if isinstance(error, OSError) else str(error)
        report(f"this run is not saved: {why}")
        return None


@contextlib.contextmanager
def open_run_list() -> "Generator[RunLog]":
    """Open the run log for reading. If there is none, none is created."""
    from ...engine.results.run_log import RunLog

    with RunLog.open(open_data_dir(), create=False) as log:
        yield log


def find_run(log: "RunLog", text: str) -> "RunRecord":
    """Return the run of an id or of the beginning of one. Raises UsageError.

    That a log is damaged is no mistake of the user: it stays a RunLogError.
    """
    try:
        return log.find(text)
    except UnknownRun as error:
        raise UsageError(str(error)) from error
