"""The look of an app by the user's settings: its preferences, with keys and colours that have been checked."""

from ...engine.model.errors import PlanError, UsageError
from ..kit.drawing.styles import own_theme
from ..kit.key_map import KeyMap, KeyMistake
from ..session.preferences import Preferences, preferences_of
from ..session.setting_table import OWN_THEME
from ..session.settings_file import read_settings
from ..session.storage import config_dir


def read_look() -> Preferences:
    """Return the preferences that hold, with keys and colours that can be used. Raises UsageError for others."""
    held = read_settings(config_dir())
    preferences = preferences_of(held)
    try:
        KeyMap(preferences.keys)
        if preferences.colours:
            own_theme(preferences.colours)
    except KeyMistake as error:
        raise held.mistake("keys", error.action, str(error)) from error
    except PlanError as error:
        raise held.mistake("theme", error.field, str(error)) from error
    if preferences.theme == OWN_THEME and not preferences.colours:
        raise UsageError(f"{held.values['theme'].source}: theme {OWN_THEME!r} needs colours; give them in [theme]")
    return preferences
