"""What a person has set once and for all: theme, units, how often the screen is drawn, the pass mark.

Kept as `settings.toml` in the configuration directory, which may also be written by hand. What is wrong in it is
told by file and name and is as it would be without the file; it is never overwritten without being set aside.
"""

import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from ...engine.model.errors import PlanError, PreferencesNotSaved
from ...presets.verdict import DEFAULT_PASS_PERCENT, check_pass_percent
from ..text.numbers import RateUnit
from ..text.parsing import DEFAULT_REFRESH_HZ, check_refresh_hz

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
_HEAD: Final = "# Written by the settings of linkgauge's app (key s); may be edited by hand.\n"
_MOST_ASIDE: Final = 100


@dataclass(frozen=True, slots=True)
class Preferences:
    """What is set."""

    theme: str = "textual-dark"
    units: RateUnit = RateUnit.MBIT
    refresh_hz: float = DEFAULT_REFRESH_HZ
    pass_mark: float = DEFAULT_PASS_PERCENT


@dataclass(frozen=True, slots=True)
class LoadedPreferences:
    """What a file says: what is wrong in it is as it always is, and told in `problems`."""

    preferences: Preferences = Preferences()
    problems: tuple[str, ...] = ()


NO_SAVED_PREFERENCES: Final = LoadedPreferences()


def read_preferences(folder: Path) -> LoadedPreferences:
    """Read what is kept in a configuration directory; no file is no problem."""
    path = folder / FILE_NAME
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return NO_SAVED_PREFERENCES
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = getattr(error, "strerror", None) or f"it is not TOML: {error}"
        return LoadedPreferences(Preferences(), (f"{path}: {why}; nothing of it is used",))
    return _checked(given, path)


def save_preferences(folder: Path, preferences: Preferences) -> Path | None:
    """Write the file in one step; return where one that had something wrong in it was set aside."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside = _set_aside(path) if read_preferences(folder).problems else None
        _replace(path, _text(preferences))
    except OSError as error:
        raise PreferencesNotSaved(f"the settings could not be kept in {path}: {error.strerror or error}") from error
    return aside


def _checked(given: Mapping[str, Any], path: Path) -> LoadedPreferences:
    preferences, problems = Preferences(), list[str]()
    for name, value in given.items():
        try:
            preferences = replace(preferences, **{name: _CHECKS[name](value)})
        except KeyError:
            problems.append(f"{path}: there is no setting {name[:40]!r}; there are {', '.join(_CHECKS)}")
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


def _number(name: str, check: Callable[[float], float]) -> Callable[[object], float]:
    def checked(value: object) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise PlanError(name, repr(value)[:60], "give a number")
        return check(value)

    return checked


_CHECKS: Final[Mapping[str, Callable[[object], Any]]] = {
    "theme": _theme,
    "units": _units,
    "refresh_hz": _number("refresh_hz", check_refresh_hz),
    "pass_mark": _number("pass_mark", check_pass_percent),
}


def _text(preferences: Preferences) -> str:
    """Return the file's text; JSON's strings and numbers are TOML's."""
    values = {one.name: getattr(preferences, one.name) for one in fields(preferences)}
    return _HEAD + "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def _replace(path: Path, text: str) -> None:
    """Write a file so that whoever reads it sees the old one or the new one, whatever happens meanwhile."""
    target = path.resolve()  # a link to where a person keeps such files stays one
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{FILE_NAME}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _set_aside(path: Path) -> Path | None:
    """Rename a file to the first free name beside it."""
    for number in range(1, _MOST_ASIDE):
        aside = path.with_name(f"{FILE_NAME}.bad-{number}")
        if not aside.exists():
            path.rename(aside)
            return aside
    raise FileExistsError(0, f"there are {_MOST_ASIDE - 1} bad ones beside it already")
