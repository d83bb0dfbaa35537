"""What this machine serves now: its clients and what they carry, what it allows, and its log."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, Protocol

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Footer, Static

from ....engine.far.status import EndpointStatus
from ....engine.model.errors import RunLogError
from ...actions import ScreenKind, bindings
from ...interfaces import ExportFormat
from ...rendering.diff_compositor import DiffScreen
from ...rendering.styles import KEY, MUTED
from ...services.preferences import Preferences
from ...state.endpoint import EndpointInfo, EndpointLog, EndpointRates, EndpointSnapshot
from ...text import numbers
from ...widgets.endpoint.client_table import ClientTable
from ...widgets.endpoint.header import EndpointHeader
from ...widgets.endpoint.limits_panel import LimitsPanel
from ...widgets.endpoint.log_view import EndpointLogView
from ...widgets.endpoint.throughput_gauge import EndpointGauge
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..layout import app_of

_MARKS: Final = (
    ("○ ● ■", "in the log: a client was let in; its run began; its run ended"),
    ("✗", "somebody was turned away, with the limit's name where it was one"),
    ("▲", "something to know"),
)


class EndpointHandle(Protocol):
    """The endpoint, as far as its screen knows it: values to look at, and three things a person can do."""

    @property
    def info(self) -> EndpointInfo:
        """Where it listens, and how to get there."""
        ...

    @property
    def log(self) -> EndpointLog:
        """Its log."""
        ...

    def status(self) -> EndpointStatus:
        """Return what it does now."""
        ...

    def reload(self) -> None:
        """Read limits and key again."""
        ...

    def shut_down(self) -> None:
        """End it once the runs that go on have ended; a second time: at once."""
        ...


class EndpointScreen(DiffScreen):
    """Looks at an endpoint as often as it draws."""

    AUTO_FOCUS = "#log"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.ENDPOINT
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.ENDPOINT)
    DEFAULT_CSS = """
    EndpointScreen {
        background: $background;
        & EndpointHeader { background: $panel; }
        & EndpointGauge, & ClientTable, & LimitsPanel, & EndpointLogView, & #nobody {
            border: round $foreground 22%;
            border-title-color: $foreground 80%;
            border-title-style: bold;
            border-subtitle-color: $foreground 62%;
        }
        & #rates { height: 9; }
        & #nobody { height: 1fr; padding: 0 2; align: left middle; scrollbar-size-vertical: 1; }
        & #nobody Static { height: auto; }
        & #below { height: 15; }
        & LimitsPanel { width: 46; height: 100%; }
        & EndpointLogView { width: 1fr; height: 100%; }
        & EndpointGauge { width: 1fr; height: 100%; }
        &.-towering #rates { height: 12; }
        &.-towering #below { height: 20; }
        &.-narrow LimitsPanel { width: 41; }
        &.-short {
            & EndpointGauge, & ClientTable, & LimitsPanel, & EndpointLogView, & #nobody {
                border: none;
                border-top: solid $foreground 22%;
            }
            & #rates { height: 5; }
            & #below { height: 7; }
        }
        &.-tiny {
            & #below, & Footer { display: none; }
            & #rates { height: 1fr; }
            & EndpointGauge { border: none; border-top: solid $foreground 22%; }
        }
    }
    """

    def __init__(self, endpoint: EndpointHandle, preferences: Preferences) -> None:
        super().__init__()
        self._serving = endpoint
        self._preferences = preferences
        self._readings = EndpointRates(endpoint.info)
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the head, the rates, the clients or how to become one, limits and log."""
        yield EndpointHeader()
        with Horizontal(id="rates"):
            yield EndpointGauge("received")
            yield EndpointGauge("sent")
        yield ClientTable()
        with VerticalScroll(id="nobody") as nobody:
            nobody.border_title = Content("clients")
            yield Static(_invitation(self._serving.info), markup=False)
        with Horizontal(id="below"):
            yield LimitsPanel()
            yield EndpointLogView()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Look, and go on looking."""
        self.paint()
        self._keep_time()

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set."""
        self._preferences = preferences
        if self.is_mounted:
            self._keep_time()
            self.paint()

    def _keep_time(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(1 / self._preferences.refresh_hz, self.paint)

    def paint(self) -> None:
        """Look at the endpoint, and hand every widget its values."""
        journal, units = self._serving.log, self._preferences.units
        served = self._readings.update(self._serving.status(), journal.totals)
        self.query_one(EndpointHeader).show(served)
        self._show_rates(served)
        table, nobody = self.query_one(ClientTable), self.query_one("#nobody")
        table.display = bool(served.clients) and not self.has_class("-tiny")
        nobody.display = not served.clients and not self.has_class("-tiny")
        table.show(served.clients, units)
        self.query_one(LimitsPanel).show(served)
        self.query_one(EndpointLogView).show(journal.lines, journal.lines_written)

    def _show_rates(self, served: EndpointSnapshot) -> None:
        units = self._preferences.units
        self.query_one("#serving-received", EndpointGauge).show(served.received_bit_s, served.received_rates, units)
        self.query_one("#serving-sent", EndpointGauge).show(served.sent_bit_s, served.sent_rates, units)

    # What the keys do: one method for each action of the registry.

    def action_copy(self) -> None:
        """Hand the terminal the command that connects, for its clipboard."""
        app_of(self).copy_to_clipboard(self._serving.info.command)
        self.notify(
            "The terminal has the command that connects, if it takes what apps copy (OSC 52).", title="copy"
        )

    def action_reload(self) -> None:
        """Read limits and key again; the log says what came of it."""
        if self._serving.info.can_reload:
            self._serving.reload()
            self.paint()
        else:
            self.notify("There is no file to read again: it was started without --limits and --key-file.")

    def action_finish(self) -> None:
        """End the endpoint, once its runs have ended; the second time at once."""
        self._serving.shut_down()
        self.paint()

    async def action_settings(self) -> None:
        """Change what is set once and for all."""
        await app_of(self).run_action("app.settings")

    def action_export(self) -> None:
        """Write a picture of the screen."""
        ask_export(self, [], _no_runs)

    def action_help(self) -> None:
        """Explain every key of this screen."""
        app_of(self).push_screen(HelpScreen(ScreenKind.ENDPOINT, _MARKS))

    async def action_redraw(self) -> None:
        """Draw all of the screen again."""
        await app_of(self).run_action("app.redraw")


def _no_runs(run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
    del run_ids, form
    raise RunLogError(f"an endpoint keeps no runs, so {path} cannot be written: the near end has them")


def _invitation(facts: EndpointInfo) -> Content:
    """Return how to become the first client."""
    return Content.assemble(
        ("Nobody is connected. ", "bold"),
        ("On the other host:", MUTED),
        "\n\n",
        (numbers.sanitize(facts.command), "bold $text-primary"),
        "\n\n",
        ("y", KEY),
        ("  copies it", MUTED),
        (f"   ·   {facts.hint}" if facts.hint else "", MUTED),
    )
