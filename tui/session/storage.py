"""The directories of linkgauge's data, configuration and cache, the definitions stored there, and the run log.

The log itself is imported late, so that the command line starts fast.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...engine.model.errors import (
    DecodeError,
    PlanError,
    RunLogError,
    UnknownRun,
    UsageError,
    explain_os_error,
)
from ..words.redaction import REDACTION

if TYPE_CHECKING:
    from ...engine.results.run_log import RunLog, RunRecord


_log = logging.getLogger(__name__)
DATA_DIR_VARIABLE: Final = "LINKGAUGE_DATA_DIR"
CONFIG_DIR_VARIABLE: Final = "LINKGAUGE_CONFIG_DIR"
LAST: Final = "last"
"""In place of the id of a run: the one that was saved last."""
_NAMES_IN_ERROR: Final = 5
_NEWEST: Final = 3
_LAST: Final = "last"

T = TypeVar("T")
_NO_HOME: Final = Path(os.devnull, "no-home-directory")
"""In place of a directory of a user without a home: it is empty, and even root cannot write there."""


def data_dir() -> Path:
    """Return the directory of the run log: LINKGAUGE_DATA_DIR, else the platform's usual one.

    It is not created here: a command that only reads must leave no trace.
    """
    directory = _from_environment(DATA_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_data_path

    return _at_home(user_data_path)


def open_data_dir() -> Path:
    """Return the directory of the run log. The usual one becomes its owner's alone.

    One that LINKGAUGE_DATA_DIR names may have other things in it, and stays as it is. Raises RunLogError for a user
    without a home, as containers have.
    """
    from ...engine.host.saved_files import restrict_to_owner

    directory = data_dir()
    if directory == _NO_HOME:
        raise RunLogError(f"this user has no home directory: set HOME, or {DATA_DIR_VARIABLE} to a directory")
    if _from_environment(DATA_DIR_VARIABLE) is None:
        restrict_to_owner(directory)
    return directory


def config_dir() -> Path:
    """Return the directory of preferences, keys and presets: LINKGAUGE_CONFIG_DIR, else the usual one."""
    directory = _from_environment(CONFIG_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_config_path

    return _at_home(user_config_path)


def cache_dir() -> Path:
    """Return the directory of what can be measured again at any time: the platform's usual one."""
    from platformdirs import user_cache_path

    return _at_home(user_cache_path)


def presets_dir() -> Path:
    """Return the directory of the user's presets, `presets` in the configuration directory. It may not exist."""
    return config_dir() / "presets"


def _from_environment(variable: str) -> Path | None:
    path = os.environ.get(variable)
    return expand_home(variable, path).absolute() if path else None


def expand_home(field: str, path: str) -> Path:
    """Return a path with the home directory in place of `~`; raise PlanError for a user without one."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise PlanError(field, path, "this user has no home directory; give a path without ~") from None


def _at_home(find: Callable[..., Path]) -> Path:
    """Return a directory of the platform; `_NO_HOME` if neither HOME nor the user database has a home.

    XDG asks for absolute paths; a relative one would put files wherever a command is started.
    """
    with contextlib.suppress(RuntimeError):
        directory = find("linkgauge", appauthor=False)
        if directory.is_absolute():
            return directory
    return _NO_HOME


@dataclass(frozen=True, slots=True)
class DefinitionStore:
    """The definitions of series of runs: a small JSON file for each, next to the run log.

    Args:
        kind: what they are, as errors name it: `sweep`, `mesh`.
        plural: the name of their folder in the data directory.
        prefix: the beginning of every name.
    """

    kind: str
    plural: str
    prefix: str

    def save(self, name: str, document: Any) -> None:
        """Write a definition, in place of an earlier one of this name. Raises RunLogError."""
        from ...engine.host.saved_files import create_directory, write_atomically

        path = self._path(name)
        try:
            create_directory(path.parent)
            write_atomically(path, json.dumps(document, indent=1) + "\n")
        except OSError as error:
            raise RunLogError(f"the {self.kind} cannot be saved in {path}: {explain_os_error(error)}") from error
        _log.debug("%s %s is in %s", self.kind, name, path)

    def names(self) -> list[str]:
        """Return the names of the stored definitions, the oldest first."""
        return sorted(path.stem for path in (data_dir() / self.plural).glob(f"{self.prefix}*.json"))

    def find(self, text: str, read: Callable[[Any], T]) -> T:
        """Return what `read` makes of the definition of a name, or of the beginning of one.

        Raises PlanError unless exactly one matches, and RunLogError for one that cannot be read.
        """
        names = self.names()
        matches = [name for name in names if name == text] or [name for name in names if name.startswith(text)]
        if len(matches) != 1:
            hint = ", ".join(matches[:_NAMES_IN_ERROR] if matches else names[-_NEWEST:])
            remedy = f"give a saved {self.kind}: {hint}" if hint else f"no {self.kind} is saved"
            raise PlanError(self.kind, repr(text[:60]), remedy)
        path = self._path(matches[0])
        try:
            return read(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, AttributeError, DecodeError, PlanError) as error:
            raise RunLogError(f"{path} cannot be read: {_explain(error)}; begin a new {self.kind}") from error

    def _path(self, name: str) -> Path:
        return data_dir() / self.plural / f"{name}.json"


def _explain(error: Exception) -> str:
    if isinstance(error, OSError):
        return explain_os_error(error)
    return str(error) if isinstance(error, DecodeError | PlanError) else "it is damaged"


def open_run_log(report: Callable[[str], None], on_problem: Callable[[str], None] | None = None) -> "RunLog | None":
    """Return the run log for a new run. If it cannot be used, report why and return None.

    `on_problem` is called with the text of a later failure, in any thread.
    """
    from ...engine.results.run_log import RunLog

    try:
        return RunLog.open(open_data_dir(), on_problem=on_problem)
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
    """Return the run of an id or of the beginning of one, or for `last` the newest run. Raises UsageError.

    A damaged log is not the user's mistake: it stays a RunLogError.
    """
    try:
        run = log.find_newest() if text == LAST else log.find(text)
    except UnknownRun as error:
        raise UsageError(str(error)) from error
    REDACTION.learn_document(run.peer, run.document)
    return run
