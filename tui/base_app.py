"""The base of both apps: preferences, the command palette, and characters for plain terminals."""

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
from .rendering.styles import MONOCHROME
from .screens.dialogs.settings import SettingsScreen
from .services.preferences import LoadedPreferences, Preferences
from .text.numbers import sanitize

_PROBLEM_TIMEOUT_S: Final = 15.0
# Breakpoint classes that app.tcss lays screens out by.
_WIDTHS: Final = [(0, "-narrow"), (110, "-wide"), (160, "-huge")]
_HEIGHTS: Final = [(0, "-tiny"), (12, "-short"), (32, "-tall"), (50, "-towering")]
_TEXTUAL_COMMANDS: Final = frozenset({"Screenshot"})

# Saves preferences, in a thread; returns the new path of an invalid file that it has moved out of the way.
SavePreferences = Callable[[Preferences], Path | None]


def discard_preferences(_preferences: Preferences) -> Path | None:
    """Save nothing."""


class BaseApp(DiffApp):
    """An app with actions from the registry; `home` is its bottom screen, of the kind `home_screen_kind`.

    Args:
        loaded: The preferences saved before, with the problems of their file.
        save: Saves changed preferences.
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
        self._character_filter = None if table is None else CharacterFilter(table)
        self._save = save
        self._problems = loaded.problems
        self._saved = self.preferences = loaded.preferences
        self.register_theme(MONOCHROME)
        self.theme = self.preferences.theme

    def on_mount(self) -> None:
        """Notify of problems in the saved preferences."""
        self.notify_problems("your settings", self._problems, "the settings list them")

    def notify_problems(self, title: str, problems: Sequence[str], where: str) -> None:
        """Notify of the first problem, and of where to find the others."""
        if problems:
            more = "" if len(problems) == 1 else f", and {len(problems) - 1} more: {where}"
            text = f"{sanitize(problems[0])}{more}"
            self.notify(text, title=title, severity="warning", timeout=_PROBLEM_TIMEOUT_S, markup=False)

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences. A subclass extends this to its screens."""
        self.preferences = preferences
        self.theme = preferences.theme

    def action_settings(self) -> None:
        """Edit the preferences; they apply at once and are saved when the dialog closes."""
        self.push_screen(SettingsScreen(self.preferences, self.apply, self._problems), self._save_if_changed)

    def _save_if_changed(self, _answer: None) -> None:
        if self.preferences != self._saved:
            self.run_worker(self._save_in_thread(self.preferences), group="preferences", exit_on_error=False)

    async def _save_in_thread(self, preferences: Preferences) -> None:
        try:
            moved_file = await to_thread(self._save, preferences)
        except PreferencesNotSaved as error:
            self.notify(sanitize(str(error)), title="settings", severity="error", markup=False)
            return
        self._saved, self._problems = preferences, ()
        if moved_file is not None:
            text = f"The file that had something wrong in it is now {moved_file}"
            self.notify(text, title="settings", markup=False)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, then the one for a terminal that cannot show every character."""
        filters = super().get_line_filters()
        return filters if self._character_filter is None else [*filters, self._character_filter]

    def get_default_screen(self) -> Screen[Any]:
        """Return the bottom screen."""
        return self.home

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the screen, for a dialog those of the bottom screen, then some of Textual's."""
        kind = getattr(screen, "SCREEN_KIND", None)
        target = screen if isinstance(kind, ScreenKind) else self.home
        for action in actions_of(kind if isinstance(kind, ScreenKind) else self.home_screen_kind):
            yield SystemCommand(action.title, action.help, partial(self.run_action, action.id, target))
        commands = super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType] (Screen of what)
        for command in commands:
            if command.title in _TEXTUAL_COMMANDS:
                yield command
