"""What the screens have in common: how they reach their app, and what app.tcss lays instruments out by."""

from typing import Any, cast

from textual.app import App
from textual.screen import Screen

from ..rendering.diff_compositor import DiffScreen
from ..services.preferences import Preferences


def app_of(screen: Screen[Any]) -> App[None]:
    """Return the app of a screen; Textual does not say of which kind it is."""
    return cast("App[None]", screen.app)  # pyright: ignore[reportUnknownMemberType]


def preferences_of(screen: Screen[Any]) -> Preferences:
    """Return what is set in the app of a screen."""
    return getattr(app_of(screen), "preferences", Preferences())


class InstrumentScreen(DiffScreen):
    """A screen with a title, instruments and keys: of a run that goes on, or of one that is kept."""
