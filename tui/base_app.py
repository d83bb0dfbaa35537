"""What the app and the endpoint's have in common: what a person has set, the palette, plain characters."""

import os
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from textual.app import SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen

from ..engine.model.errors import PreferencesNotSaved
from .actions import ScreenKind, actions_of
from .rendering.charset import CharacterFilter, translation_table
from .rendering.diff_compositor import DiffApp
from .screens.dialogs.settings import SettingsScreen
from .services.preferences import LoadedPreferences, Preferences
from .text.numbers import sanitize
from .themes import MONOCHROME

_PROBLEM_SHOWN_S: Final = 15.0
# Classes that app.tcss places things by.
_WIDTHS: Final = [(0, "-narrow"), (110, "-wide"), (160, "-huge")]
_HEIGHTS: Final = [(0, "-tiny"), (12, "-short"), (32, "-tall"), (50, "-towering")]
_KEPT_COMMANDS: Final = frozenset({"Screenshot"})

# Writes what is set; returns where a file with something wrong in it was set aside. Called in a thread.
SavePreferences = Callable[[Preferences], Path | None]


def discard_preferences(_preferences: Preferences) -> Path | None:
    """Let what is set be forgotten."""


class BaseApp(DiffApp):
    """An app whose screens have places in the registry; `home` is the one below every other.

    `found` is what was set before, `keep` has it kept.
    """

    TITLE = "linkgauge"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    home: Screen[Any]
    home_screen_kind: ScreenKind

    def __init__(self, loaded: LoadedPreferences, save: SavePreferences) -> None:
        super().__init__()
        table = translation_table(os.environ)
        self._plainer = None if table is None else CharacterFilter(table)
        self._keep = save
        self._problems = loaded.problems
        self._kept = self.preferences = loaded.preferences
        self.register_theme(MONOCHROME)
        self.theme = self.preferences.theme

    def on_mount(self) -> None:
        """Tell what of the kept settings could not be used."""
        self.notify_problems("your settings", self._problems, "the settings list them")

    def notify_problems(self, title: str, problems: Sequence[str], where: str) -> None:
        """Tell the first of some problems, and `where` the others are to be found."""
        if problems:
            more = "" if len(problems) == 1 else f", and {len(problems) - 1} more: {where}"
            text = f"{sanitize(problems[0])}{more}"
            self.notify(text, title=title, severity="warning", timeout=_PROBLEM_SHOWN_S, markup=False)

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set; who has more to do with it than the theme does so, too."""
        self.preferences = preferences
        self.theme = preferences.theme

    def action_settings(self) -> None:
        """Change what is set: at once, and kept when the screen is left."""
        self.push_screen(SettingsScreen(self.preferences, self.apply, self._problems), self._left_settings)

    def _left_settings(self, _nothing: None) -> None:
        if self.preferences != self._kept:
            self.run_worker(self._keep_now(self.preferences), group="keep", exit_on_error=False)

    async def _keep_now(self, preferences: Preferences) -> None:
        try:
            aside = await to_thread(self._keep, preferences)
        except PreferencesNotSaved as error:
            self.notify(sanitize(str(error)), title="settings", severity="error", markup=False)
            return
        self._kept, self._problems = preferences, ()
        if aside is not None:
            self.notify(f"The file that had something wrong in it is now {aside}", title="settings", markup=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's own, and last the one for a terminal that cannot show every character."""
        own = super().get_line_filters()
        return own if self._plainer is None else [*own, self._plainer]

    def get_default_screen(self) -> Screen[Any]:
        """Return the screen that stays below every other."""
        return self.home

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the screen, or of the one at home, then what Textual has to offer here."""
        place = getattr(screen, "SCREEN_KIND", None)
        target = screen if isinstance(place, ScreenKind) else self.home
        for action in actions_of(place if isinstance(place, ScreenKind) else self.home_screen_kind):
            yield SystemCommand(action.title, action.help, partial(self.run_action, action.id, target))
        own = super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType] (Screen of what)
        for command in own:
            if command.title in _KEPT_COMMANDS:
                yield command
