"""The preferences: theme, units, refresh rate, pass mark and the age to thin runs at, saved as `settings.toml`.

The file is in the configuration directory and may also be edited by hand. A wrong value is reported with its file
and name, and its default is used. A file with wrong values is renamed, not overwritten.
"""

import json
import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from ...engine.host.saved_files import PRIVATE_FILE_MODE, create_private_directory, write_atomically
from ...engine.model.errors import PlanError, PreferencesNotSaved
from ...presets.verdict import DEFAULT_PASS_PERCENT, check_pass_percent
from ..words.numbers import RateUnit, sanitize
from ..words.parsing import DEFAULT_REFRESH_HZ, NEVER, check_refresh_hz, thin_after

FILE_NAME: Final = "settings.toml"
THEMES: Final = {
    "textual-dark": "dark",
    "textual-light": "light",
    "monochrome": "monochrome",
    **{
        name: name
        for name in (
            "nord", "gruvbox", "dracula", "tokyo-night", "monokai", "catppuccin-mocha", "catppuccin-latte",
            "solarized-dark", "solarized-light", "rose-pine", "rose-pine-dawn", "atom-one-dark", "atom-one-light",
        )
    },
}  # fmt: skip
_log = logging.getLogger(__name__)
_HEADER: Final = "# Written by the settings of linkgauge's app (key s). You can edit it.\n"
_MAX_BACKUPS: Final = 100


@dataclass(frozen=True, slots=True)
class Preferences:
    """The preferences, each with its default."""

    theme: str = "textual-dark"
    units: RateUnit = RateUnit.MBIT
    refresh_hz: float = DEFAULT_REFRESH_HZ
    pass_mark: float = DEFAULT_PASS_PERCENT
    thin_after: str = NEVER


@dataclass(frozen=True, slots=True)
class LoadedPreferences:
    """The preferences of a file. `problems` name its wrong values, which have their defaults here."""

    preferences: Preferences = Preferences()
    problems: tuple[str, ...] = ()


NO_SAVED_PREFERENCES: Final = LoadedPreferences()


def read_preferences(folder: Path) -> LoadedPreferences:
    """Read the file of a configuration directory. A missing file is not a problem."""
    path = folder / FILE_NAME
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return NO_SAVED_PREFERENCES
    except (OSError, ValueError, RecursionError) as error:  # TOMLDecodeError, no UTF-8, too many digits
        why = getattr(error, "strerror", None) or f"it is not TOML: {error}"
        return LoadedPreferences(Preferences(), (f"{path}: {why}; the defaults are used",))
    return _validate(values, path)


def read_pass_mark(folder: Path, report: Callable[[str], object]) -> float:
    """Return the pass mark, which the app uses too; report it if it is not the default, and wrong values."""
    loaded = read_preferences(folder)
    for problem in loaded.problems:
        report(sanitize(problem))
    pass_mark = loaded.preferences.pass_mark
    if pass_mark != DEFAULT_PASS_PERCENT:
        report(f"pass mark {pass_mark:g} % from {folder / FILE_NAME}; --pass-mark gives another")
    return pass_mark


def save_preferences(folder: Path, preferences: Preferences) -> Path | None:
    """Write the file in one step.

    Returns the new path of an earlier file that had wrong values, else None. Raises PreferencesNotSaved.
    """
    path = folder / FILE_NAME
    try:
        create_private_directory(folder)
        backup = _rename_to_backup(path) if read_preferences(folder).problems else None
        write_atomically(path, _toml(preferences), mode=PRIVATE_FILE_MODE)
    except OSError as error:
        raise PreferencesNotSaved(
            f"the settings could not be saved in {path}: {error.strerror or error}"
        ) from error
    return backup


def _validate(values: Mapping[str, Any], path: Path) -> LoadedPreferences:
    preferences, problems = Preferences(), list[str]()
    for name, value in values.items():
        try:
            preferences = replace(preferences, **{name: _CHECKS[name](value)})
        except KeyError:
            problems.append(f"{path}: unknown setting {name[:40]!r}; known: {', '.join(_CHECKS)}")
        except PlanError as error:
            problems.append(f"{path}: {error}; {getattr(Preferences(), name)} is used")
    return LoadedPreferences(preferences, tuple(problems))


def _theme(value: object) -> str:
    if value not in THEMES:
        raise PlanError("theme", repr(value)[:60], f"give one of {', '.join(THEMES)}")
    return str(value)


def _units(value: object) -> RateUnit:
    if value not in list(RateUnit):
        raise PlanError("units", repr(value)[:60], f"give {' or '.join(RateUnit)}")
    return RateUnit(str(value))


def _thin_after(value: object) -> str:
    if not isinstance(value, str):
        raise PlanError("thin_after", repr(value)[:60], "give never, or an age such as 30d or 12w")
    return thin_after(value)


def _number(name: str, check: Callable[[float], float]) -> Callable[[object], float]:
    def check_number(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise PlanError(name, repr(value)[:60], "give a number")
        return check(value)

    return check_number


_CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "theme": _theme,
    "units": _units,
    "refresh_hz": _number("refresh_hz", check_refresh_hz),
    "pass_mark": _number("pass_mark", check_pass_percent),
    "thin_after": _thin_after,
}


def _toml(preferences: Preferences) -> str:
    """Return the text of the file. Strings and numbers are written alike in JSON and in TOML."""
    values = {field.name: getattr(preferences, field.name) for field in fields(preferences)}
    return _HEADER + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def _rename_to_backup(path: Path) -> Path:
    """Rename a file with wrong values to the first free name in its directory."""
    for number in range(1, _MAX_BACKUPS):
        backup = path.with_name(f"{FILE_NAME}.bad-{number}")
        if not backup.exists():
            path.rename(backup)
            _log.debug("renamed %s to %s", path, backup)
            return backup
    raise FileExistsError(0, f"there are {_MAX_BACKUPS - 1} backups already")
