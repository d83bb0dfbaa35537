"""What a person sets once and for all: in force as soon as it is chosen or typed, kept when the screen is left."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Select, Static

from ....engine.model.errors import PlanError
from ...rendering.styles import MUTED
from ...services.preferences import THEMES, Preferences
from ...text import numbers
from ...text.numbers import RateUnit
from ...text.parsing import MAX_REFRESH_HZ, MIN_REFRESH_HZ, pass_percent, refresh_hz
from ...widgets.common.input_line import TextField

_READ: Final[dict[str, Callable[[str], float]]] = {"refresh_hz": refresh_hz, "pass_mark": pass_percent}
_NAMES: Final = {"theme": "theme", "units": "units", "refresh_hz": "refresh rate", "pass_mark": "pass mark"}
_HINTS: Final = {
    "theme": "",
    "units": "of the gauges and the plot",
    "refresh_hz": f"frames a second, {MIN_REFRESH_HZ:g} to {MAX_REFRESH_HZ:g}",
    "pass_mark": "percent of the expected rate",
}


class SettingsScreen(ModalScreen[None]):
    """Hands `apply` whatever is in force from now on; `problems` are those of the file that it was kept in."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]
    DEFAULT_CSS = """
    SettingsScreen {
        align: center middle;
        background: $background 0%;  /* what is set is seen at once on the screen below */
        & > Vertical {
            width: 72;
            max-width: 96%;
            height: auto;
            max-height: 96%;
            padding: 1 1 0 1;
            border: round $primary;
            background: $surface;
            border-title-style: bold;
        }
        & Horizontal { height: auto; min-height: 2; }
        & .name { width: 14; height: 1; text-style: bold; }
        & .value { width: 22; height: 1; background: $panel; }
        & Select SelectCurrent, & Select SelectCurrent:hover { background: $panel; padding: 0 1; }
        & Select:focus SelectCurrent { background: $panel-lighten-2; text-style: bold; }
        & Select SelectOverlay { scrollbar-size-vertical: 1; max-height: 10; }
        & Input { padding: 0 1; }
        & Input:focus { background: $panel-lighten-2; }
        & .said { width: 1fr; height: auto; padding: 0 0 0 2; color: $foreground 62%; }
        & .said.-wrong { color: $text-error; }
        & #problems { height: auto; color: $text-warning; margin: 0 0 1 0; }
    }
    """

    def __init__(
        self, preferences: Preferences, apply: Callable[[Preferences], None], problems: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._preferences = preferences
        self._apply = apply
        self._problems = problems

    def compose(self) -> ComposeResult:
        """Lay out a line for each, with what is to be said of it beside it."""
        now = self._preferences
        with Vertical() as box:
            box.border_title = Content("settings")
            box.border_subtitle = Content("tab next   enter choose   esc back")
            if self._problems:
                lines = [f"▲ {numbers.sanitize(problem)}" for problem in self._problems]
                yield Static(Content("\n".join(lines)), id="problems", markup=False)
            themes = [(shown, name) for name, shown in THEMES.items()]
            yield from self._line("theme", self._select("theme", themes, now.theme))
            yield from self._line(
                "units", self._select("units", [(unit.value, unit) for unit in RateUnit], now.units)
            )
            for name in _READ:
                value = f"{getattr(now, name):g}"
                yield from self._line(name, TextField(value, id=name, classes="value", compact=True))

    def _select(self, name: str, options: list[tuple[str, Any]], value: object) -> Select[Any]:
        return Select(options, value=value, allow_blank=False, id=name, classes="value", compact=True)

    def _line(self, name: str, chosen: Select[Any] | TextField) -> ComposeResult:
        with Horizontal():
            yield Static(Content(_NAMES[name]), classes="name", markup=False)
            yield chosen
            yield Static(Content.styled(_HINTS[name], MUTED), id=f"said-{name}", classes="said", markup=False)

    @on(Select.Changed)
    def _chosen(self, event: Select.Changed) -> None:
        self._set(str(event.select.id), event.value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        """Put into force what is possible; of anything else say what is, and leave all as it was."""
        name = str(event.input.id)
        said = self.query_one(f"#said-{name}", Static)
        try:
            value = _READ[name](event.value)
        except PlanError as error:
            said.add_class("-wrong")
            said.update(Content(f"✗ {str(error).removeprefix(f'{error.field}: ')}"))
            return
        said.remove_class("-wrong")
        said.update(Content.styled(_HINTS[name], MUTED))
        self._set(name, value)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.focus_next()

    def _set(self, name: str, value: object) -> None:
        changed = replace(self._preferences, **{name: value})
        if changed != self._preferences:
            self._preferences = changed
            self._apply(changed)

    def action_back(self) -> None:
        """Go back; what is in force stays so."""
        self.dismiss(None)
