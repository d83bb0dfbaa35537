"""The dialog to edit the preferences. Changes apply at once; the app saves them when the dialog closes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Select, Static

from ...engine.model.errors import PlanError
from ..kit.drawing.styles import MUTED
from ..kit.screens.base_screen import Dialog
from ..kit.widgets.typed_input import TextField
from ..session.preferences import Preferences
from ..session.setting_table import OWN_THEME, THEMES
from ..words.numbers import RateUnit
from ..words.parsing import MAX_REFRESH_HZ, MIN_REFRESH_HZ, pass_percent, refresh_hz, thin_after

_PARSERS: Final[dict[str, Callable[[str], float | str]]] = {
    "refresh_hz": refresh_hz,
    "pass_mark": pass_percent,
    "thin_after": thin_after,
}
_NAMES: Final = {
    "theme": "theme",
    "units": "units",
    "refresh_hz": "refresh rate",
    "pass_mark": "pass mark",
    "thin_after": "thin runs",
}
_HINTS: Final = {
    "theme": "",
    "units": "of gauges and plots",
    "refresh_hz": f"frames per second, {MIN_REFRESH_HZ:g} to {MAX_REFRESH_HZ:g}",
    "pass_mark": "percent of the expected rate",
    "thin_after": "to one sample a second: after 30d, 12w; or never",
}


class SettingsScreen(Dialog[None]):
    """Calls `apply` with each valid change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]
    DEFAULT_CSS = """
    SettingsScreen {
        background: $background 0%;  /* changes are visible at once on the screen below */
        & > Vertical { max-width: 96%; max-height: 96%; padding: 1 1 0 1; }
        & Horizontal { height: auto; min-height: 2; }
        & .name { width: 14; height: 1; text-style: bold; }
        & .value { width: 22; height: 1; background: $panel; }
        & Select SelectCurrent, & Select SelectCurrent:hover { background: $panel; padding: 0 1; }
        & Select:focus SelectCurrent { background: $panel-lighten-2; text-style: bold; }
        & Select SelectOverlay { scrollbar-size-vertical: 1; max-height: 10; }
        & Input { padding: 0 1; }
        & Input:focus { background: $panel-lighten-2; }
        & .hint { width: 1fr; height: auto; padding: 0 0 0 2; color: $foreground 62%; }
        & .hint.-wrong { color: $text-error; }
    }
    """

    def __init__(self, preferences: Preferences, apply: Callable[[Preferences], None]) -> None:
        super().__init__()
        self._preferences = preferences
        self._apply = apply

    def compose(self) -> ComposeResult:
        """Compose a line for each preference, with its hint."""
        current = self._preferences
        with Vertical() as box:
            box.border_title = Content("settings")
            box.border_subtitle = Content("tab next   enter choose   esc back")
            themes = [(label, name) for name, label in THEMES.items()]
            themes += [("your own", OWN_THEME)] if current.colours else []
            yield from self._line("theme", self._select("theme", themes, current.theme))
            yield from self._line(
                "units", self._select("units", [(unit.value, unit) for unit in RateUnit], current.units)
            )
            for name in _PARSERS:
                saved = getattr(current, name)
                value = saved if isinstance(saved, str) else f"{saved:g}"
                yield from self._line(name, TextField(value, id=name, classes="value", compact=True))

    def _select(self, name: str, options: list[tuple[str, Any]], value: object) -> Select[Any]:
        return Select(options, value=value, allow_blank=False, id=name, classes="value", compact=True)

    def _line(self, name: str, field: Select[Any] | TextField) -> ComposeResult:
        with Horizontal():
            yield Static(Content(_NAMES[name]), classes="name", markup=False)
            yield field
            yield Static(Content.styled(_HINTS[name], MUTED), id=f"hint-{name}", classes="hint", markup=False)

    @on(Select.Changed)
    def _apply_choice(self, event: Select.Changed) -> None:
        self._set(str(event.select.id), event.value)

    @on(Input.Changed)
    def _apply_text(self, event: Input.Changed) -> None:
        """Apply a valid value; otherwise show the problem and change nothing."""
        name = str(event.input.id)
        hint = self.query_one(f"#hint-{name}", Static)
        try:
            value = _PARSERS[name](event.value)
        except PlanError as error:
            hint.add_class("-wrong")
            hint.update(Content(f"✗ {error.problem}"))
            return
        hint.remove_class("-wrong")
        hint.update(Content.styled(_HINTS[name], MUTED))
        self._set(name, value)

    @on(Input.Submitted)
    def _go_to_next_field(self) -> None:
        self.focus_next()

    def _set(self, name: str, value: object) -> None:
        changed = replace(self._preferences, **{name: value})
        if changed != self._preferences:
            self._preferences = changed
            self._apply(changed)
