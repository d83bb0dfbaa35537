"""The form of a new sweep: its axes, and how many runs they make."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Input, Label, Static

from ...engine.model.errors import LinkgaugeError, PlanError
from ...engine.results.sweep import Sweep
from ...presets.catalog import Catalog
from ..kit.screens.base_screen import Dialog
from ..kit.widgets.typed_input import TextField
from ..words import numbers
from .sweep_session import DEFAULT_SECONDS, SweepRequest, figure_names
from .sweep_words import estimated_duration_ns

# The fields from the top: name, initial value, hint.
_FIELDS: Final = (
    ("window", "64K..4M", "64K..4M by doubling, or a list: auto,64K,1M"),
    ("sessions", "1,2,5,10", "1,2,5,10 or 1..16"),
    ("message_size", "", "1M, or 512..10240/512"),
    ("direction", "", "out, in, duplex"),
    ("seconds", DEFAULT_SECONDS, "of each run"),
    ("figure", "", ""),
)


class SweepForm(Dialog[Sweep | None]):
    """Answers the sweep, or None. `peer`, `preset` and `direction` come from the cockpit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "app.focus_next", "next", show=False),
        Binding("up", "app.focus_previous", "previous", show=False),
    ]
    DEFAULT_CSS = """
    SweepForm {
        & > Vertical { width: 76; max-width: 96%; }
        & Horizontal { height: 1; }
        & Label { width: 14; color: $foreground 80%; }
        & TextField { width: 1fr; height: 1; border: none; padding: 0 1; background: $panel; }
        & TextField:focus { background: $primary 30%; }
        & #comes-to { height: auto; margin-top: 1; }
        & #comes-to.-wrong { color: $text-error; }
    }
    """

    def __init__(self, catalog: Catalog, peer: str, preset: str, direction: str) -> None:
        super().__init__()
        self._catalog = catalog
        self._peer = peer
        self._preset = preset
        self._values = {name: value for name, value, _ in _FIELDS} | {"direction": direction}

    def compose(self) -> ComposeResult:
        """Compose a line for each field, and the size of the sweep."""
        figures = f"or repeat a published test: {', '.join(figure_names(self._catalog))}"
        with Vertical() as box:
            box.border_title = Content(f"sweep to {self._peer}")
            box.border_subtitle = Content("tab next   enter start   esc back")
            for name, _, hint in _FIELDS:
                with Horizontal():
                    yield Label(name.replace("_", " "), markup=False)
                    field = TextField(self._values[name], compact=True, id=name, placeholder=hint or figures)
                    field.tooltip = Content(hint or figures)
                    yield field
            yield Static(markup=False, id="comes-to")

    def on_mount(self) -> None:
        """Show the size of the sweep as it is at first."""
        self._show_size()

    @on(Input.Changed)
    def _update_size(self) -> None:
        self._show_size()

    @on(Input.Submitted)
    def _submit(self) -> None:
        sweep = self._show_size()
        if sweep is not None:
            self.dismiss(sweep)

    def _show_size(self) -> Sweep | None:
        """Show the number of runs and their duration, or the problem; return the sweep if it is valid."""
        size = self.query_one("#comes-to", Static)
        try:
            sweep = self._build_sweep()
        except LinkgaugeError as error:
            text = str(error)
            if isinstance(error, PlanError) and error.field == "duration":
                text = f"seconds {error.problem}"
            size.add_class("-wrong")
            size.update(Content(f"✗ {numbers.sanitize(text)}"))
            return None
        runs = len(sweep.points)
        duration = numbers.rough_time(estimated_duration_ns(sweep, runs))
        preset = f", compared with {sweep.preset}" if sweep.preset else ""
        size.remove_class("-wrong")
        size.update(Content(f"{numbers.quantity(runs, 'run')}, about {duration}{preset}"))
        return sweep

    def _build_sweep(self) -> Sweep:
        values = {name: self.query_one(f"#{name}", TextField).value.strip() or None for name, *_ in _FIELDS}
        seconds, figure = values.pop("seconds") or DEFAULT_SECONDS, values.pop("figure")
        if figure:  # a figure defines the axes and the preset
            return SweepRequest(figure=figure, seconds=seconds).build_sweep(self._catalog, self._peer, None)
        request = SweepRequest(
            values["window"], values["sessions"], values["message_size"], values["direction"], seconds=seconds
        )
        return request.build_sweep(self._catalog, self._peer, self._preset)
