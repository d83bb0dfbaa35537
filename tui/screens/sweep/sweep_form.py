"""What to try in a sweep: a small form, which says what it comes to as it is filled."""

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from ....engine.model.errors import LinkgaugeError
from ....engine.results.sweep import Sweep
from ....presets.catalog import Catalog
from ...services.sweeps import DEFAULT_SECONDS, SweepRequest, figure_names
from ...text import numbers
from ...text.sweep import estimated_duration_ns
from ...widgets.common.input_line import TextField

# (name, what is in it at first, what may be): the fields, top down.
_FIELDS: Final = (
    ("window", "64K..4M", "64K..4M doubles, auto,64K,1M names"),
    ("sessions", "1,2,5,10", "1,2,5,10 or 1..16"),
    ("message_size", "", "1M, or 512..10240/512"),
    ("direction", "", "out, in, duplex"),
    ("seconds", DEFAULT_SECONDS, "of each run"),
    ("figure", "", ""),
)


class SweepForm(ModalScreen[Sweep | None]):
    """Answers the sweep that is asked for; None where the person goes back.

    `peer` and `preset` are those of the cockpit, `direction` is what its runs have.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("down", "app.focus_next", "next", show=False),
        Binding("up", "app.focus_previous", "previous", show=False),
    ]
    DEFAULT_CSS = """
    SweepForm {
        align: center middle;
        & > Vertical {
            width: 76;
            max-width: 96%;
            height: auto;
            padding: 0 1;
            border: round $primary;
            background: $surface;
            border-title-style: bold;
        }
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
        """Lay out a line for each field, and what they come to."""
        figures = f"of a document, in place of the above: {', '.join(figure_names(self._catalog))}"
        with Vertical() as box:
            box.border_title = Content(f"sweep against {self._peer}")
            box.border_subtitle = Content("tab next   enter start   esc back")
            for name, _, hint in _FIELDS:
                with Horizontal():
                    yield Label(name.replace("_", " "), markup=False)
                    field = TextField(self._values[name], compact=True, id=name, placeholder=hint or figures)
                    field.tooltip = Content(hint or figures)
                    yield field
            yield Static(markup=False, id="comes-to")

    def on_mount(self) -> None:
        """Say what the fields come to as they are."""
        self._look()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._look()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        sweep = self._look()
        if sweep is not None:
            self.dismiss(sweep)

    def action_back(self) -> None:
        """Go back without an answer."""
        self.dismiss(None)

    def _look(self) -> Sweep | None:
        """Say what the fields come to, or what is wrong with them; return the sweep that they are."""
        said = self.query_one("#comes-to", Static)
        try:
            sweep = self._sweep()
        except LinkgaugeError as error:
            said.add_class("-wrong")
            said.update(Content(f"✗ {numbers.sanitize(str(error))}"))
            return None
        runs = len(sweep.points)
        time = numbers.clock(estimated_duration_ns(sweep, runs))
        held = f", held against {sweep.preset}" if sweep.preset else ""
        said.remove_class("-wrong")
        said.update(Content(f"{numbers.quantity(runs, 'run')}, about {time}{held}"))
        return sweep

    def _sweep(self) -> Sweep:
        typed = {name: self.query_one(f"#{name}", TextField).value.strip() or None for name, *_ in _FIELDS}
        seconds, figure = typed.pop("seconds") or DEFAULT_SECONDS, typed.pop("figure")
        if figure:  # it has its own axes, and its preset
            return SweepRequest(figure=figure, seconds=seconds).build_sweep(self._catalog, self._peer, None)
        asked = SweepRequest(
            typed["window"], typed["sessions"], typed["message_size"], typed["direction"], seconds=seconds
        )
        return asked.build_sweep(self._catalog, self._peer, self._preset)
