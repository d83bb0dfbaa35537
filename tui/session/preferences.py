"""The preferences of the app, which its dialog changes: theme, units, refresh rate, pass mark, age to thin runs at."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

from ...engine.model.errors import PreferencesNotSaved, UsageError, explain_os_error
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..words.numbers import RateUnit
from ..words.parsing import DEFAULT_REFRESH_HZ, NEVER
from .settings_file import FILE_NAME, read_settings, save_settings


@dataclass(frozen=True, slots=True)
class Preferences:
    """The preferences, each with its default."""

    theme: str = "textual-dark"
    units: RateUnit = RateUnit.MBIT
    refresh_hz: float = DEFAULT_REFRESH_HZ
    pass_mark: float = DEFAULT_PASS_PERCENT
    thin_after: str = NEVER


def read_preferences(folder: Path) -> Preferences:
    """Return the preferences that hold. Raises UsageError for a file with a mistake."""
    held = read_settings(folder)
    return Preferences(**{each.name: held.value(each.name) for each in fields(Preferences)})


def save_preferences(folder: Path, preferences: Preferences) -> None:
    """Write the preferences that are others than those that hold. Raises PreferencesNotSaved."""
    try:
        before = read_preferences(folder)
        names = (each.name for each in fields(Preferences))
        changed = {
            name: getattr(preferences, name)
            for name in names
            if getattr(before, name) != getattr(preferences, name)
        }
        # Strings and numbers are written alike in JSON and in TOML.
        save_settings(folder, {name: json.dumps(value) for name, value in changed.items()})
    except (OSError, UsageError) as error:
        why = explain_os_error(error) if isinstance(error, OSError) else str(error)
        raise PreferencesNotSaved(f"the settings could not be saved in {folder / FILE_NAME}: {why}") from error
