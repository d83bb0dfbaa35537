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

from ..engine.model.errors import NotKept
from .actions import Place, actions_of
from .rendering.charset import Plainer, table_for
from .rendering.diff_compositor import ThriftyApp
from .screens.dialogs.settings import SettingsScreen
from .services.preferences import Found, Preferences
from .text.numbers import plain
from .themes import MONOCHROME

_PROBLEM_SHOWN_S: Final = 15.0
# Classes that app.tcss places things by.
_WIDTHS: Final = [(0, "-narrow"), (110, "-wide"), (160, "-huge")]
_HEIGHTS: Final = [(0, "-tiny"), (12, "-short"), (32, "-tall"), (50, "-towering")]
_KEPT_COMMANDS: Final = frozenset({"Screenshot"})

# Writes what is set; returns where a file with something wrong in it was set aside. Called in a thread.
Keep = Callable[[Preferences], Path | None]


def keep_nothing(_preferences: Preferences) -> Path | None:
    """Let what is set be forgotten."""


class HouseApp(ThriftyApp):
    """An app whose screens have places in the registry; `home` is the one below every other.

    `found` is what was set before, `keep` has it kept.
    """

    TITLE = "linkgauge"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    home: Screen[Any]
    home_place: Place

    def __init__(self, found: Found, keep: Keep) -> None:
        super().__init__()
        table = table_for(os.environ)
        self._plainer = None if table is None else Plainer(table)
        self._keep = keep
        self._problems = found.problems
        self._kept = self.preferences = found.preferences
        self.register_theme(MONOCHROME)
        self.theme = self.preferences.theme

    def on_mount(self) -> None:
        """Tell what of the kept settings could not be used."""
        self.tell("your settings", self._problems, "the settings list them")

    def tell(self, title: str, problems: Sequence[str], where: str) -> None:
        """Tell the first of some problems, and `where` the others are to be found."""
        if problems:
            more = "" if len(problems) == 1 else f", and {len(problems) - 1} more: {where}"
            text = f"{plain(problems[0])}{more}"
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
        except NotKept as error:
            self.notify(plain(str(error)), title="settings", severity="error", markup=False)
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
        place = getattr(screen, "PLACE", None)
        target = screen if isinstance(place, Place) else self.home
        for action in actions_of(place if isinstance(place, Place) else self.home_place):
            yield SystemCommand(action.title, action.help, partial(self.run_action, action.id, target))
        own = super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType] (Screen of what)
        for command in own:
            if command.title in _KEPT_COMMANDS:
                yield command
