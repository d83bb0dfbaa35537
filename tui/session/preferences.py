"""The preferences of the app: those that its dialog changes, the user's keys, and the user's colours."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...engine.model.errors import PreferencesNotSaved, UsageError, explain_os_error
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..words.numbers import RateUnit
from ..words.parsing import DEFAULT_REFRESH_HZ, NEVER
from .settings_file import FILE_NAME, HeldSettings, read_settings, save_settings

_SAVED: Final = ("theme", "units", "refresh_hz", "pass_mark", "thin_after")


@dataclass(frozen=True, slots=True)
class Preferences:
    """The preferences, each with its default."""

    theme: str = "textual-dark"
    units: RateUnit = RateUnit.MBIT
    refresh_hz: float = DEFAULT_REFRESH_HZ
    pass_mark: float = DEFAULT_PASS_PERCENT
    thin_after: str = NEVER
    keys: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The table `keys` of the file: keys by the names of actions."""
    colours: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The table `theme` of the file: the base and the colours of the user's own theme."""

    @property
    def frame_s(self) -> float:
        """The time of a frame in seconds."""
        return 1 / self.refresh_hz


def read_preferences(folder: Path) -> Preferences:
    """Return the preferences that hold. Raises UsageError for a file with a mistake."""
    return preferences_of(read_settings(folder))


def preferences_of(held: HeldSettings) -> Preferences:
    """Return the preferences among the settings that hold."""
    saved = {name: held.value(name) for name in _SAVED}
    return Preferences(**saved, keys=held.tables.get("keys", {}), colours=held.tables.get("theme", {}))


def read_pass_mark(folder: Path, report: Callable[[str], object]) -> float:
    """Return the pass mark, which the app uses too; report it if it is not the default. Raises UsageError."""
    held = read_settings(folder)
    pass_mark: float = held.value("pass_mark")
    if pass_mark != DEFAULT_PASS_PERCENT:
        report(f"pass mark {pass_mark:g} % from {held.values['pass_mark'].source}; --pass-mark gives another")
    return pass_mark


def save_preferences(folder: Path, preferences: Preferences) -> None:
    """Write the preferences that are others than those that hold. Raises PreferencesNotSaved."""
    try:
        before = read_preferences(folder)
        changed = {
            name: getattr(preferences, name)
            for name in _SAVED
            if getattr(before, name) != getattr(preferences, name)
        }
        # Strings and numbers are written alike in JSON and in TOML.
        save_settings(folder, {name: json.dumps(value) for name, value in changed.items()})
    except (OSError, UsageError) as error:
        why = explain_os_error(error) if isinstance(error, OSError) else str(error)
        raise PreferencesNotSaved(f"the settings could not be saved in {folder / FILE_NAME}: {why}") from error
