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

from ....engine.far.status import ServingNow
from ....engine.model.errors import StoreError
from ...actions import Place, bindings
from ...interfaces import Form
from ...rendering.diff_compositor import ThriftyScreen
from ...rendering.styles import KEY, MUTED
from ...services.preferences import Preferences
from ...state.endpoint import Facts, Journal, Readings, Served
from ...text import numbers as words
from ...widgets.endpoint.client_table import ClientTable
from ...widgets.endpoint.header import ServingHead
from ...widgets.endpoint.limits_panel import LimitsPanel
from ...widgets.endpoint.log_view import ServingLog
from ...widgets.endpoint.throughput_gauge import ServingGauge
from ..dialogs.export import export_from
from ..dialogs.help import HelpScreen
from ..layout import app_of

_MARKS: Final = (
    ("○ ● ■", "in the log: a client was let in; its run began; its run ended"),
    ("✗", "somebody was turned away, with the limit's name where it was one"),
    ("▲", "something to know"),
)


class Serving(Protocol):
    """The endpoint, as far as its screen knows it: values to look at, and three things a person can do."""

    @property
    def facts(self) -> Facts:
        """Where it listens, and how to get there."""
        ...

    @property
    def journal(self) -> Journal:
        """Its log."""
        ...

    def now(self) -> ServingNow:
        """Return what it does now."""
        ...

    def reload(self) -> None:
        """Read limits and key again."""
        ...

    def leave(self) -> None:
        """End it once the runs that go on have ended; a second time: at once."""
        ...


class EndpointScreen(ThriftyScreen):
    """Looks at an endpoint as often as it draws."""

    AUTO_FOCUS = "#log"
    PLACE: ClassVar[Place] = Place.ENDPOINT
    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.ENDPOINT)
    DEFAULT_CSS = """
    EndpointScreen {
        background: $background;
        & ServingHead { background: $panel; }
        & ServingGauge, & ClientTable, & LimitsPanel, & ServingLog, & #nobody {
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
        & ServingLog { width: 1fr; height: 100%; }
        & ServingGauge { width: 1fr; height: 100%; }
        &.-towering #rates { height: 12; }
        &.-towering #below { height: 20; }
        &.-narrow LimitsPanel { width: 41; }
        &.-short {
            & ServingGauge, & ClientTable, & LimitsPanel, & ServingLog, & #nobody {
                border: none;
                border-top: solid $foreground 22%;
            }
            & #rates { height: 5; }
            & #below { height: 7; }
        }
        &.-tiny {
            & #below, & Footer { display: none; }
            & #rates { height: 1fr; }
            & ServingGauge { border: none; border-top: solid $foreground 22%; }
        }
    }
    """

    def __init__(self, serving: Serving, preferences: Preferences) -> None:
        super().__init__()
        self._serving = serving
        self._preferences = preferences
        self._readings = Readings(serving.facts)
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the head, the rates, the clients or how to become one, limits and log."""
        yield ServingHead()
        with Horizontal(id="rates"):
            yield ServingGauge("received")
            yield ServingGauge("sent")
        yield ClientTable()
        with VerticalScroll(id="nobody") as nobody:
            nobody.border_title = Content("clients")
            yield Static(_invitation(self._serving.facts), markup=False)
        with Horizontal(id="below"):
            yield LimitsPanel()
            yield ServingLog()
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
        journal, units = self._serving.journal, self._preferences.units
        served = self._readings.take(self._serving.now(), journal.totals)
        self.query_one(ServingHead).show(served)
        self._show_rates(served)
        table, nobody = self.query_one(ClientTable), self.query_one("#nobody")
        table.display = bool(served.clients) and not self.has_class("-tiny")
        nobody.display = not served.clients and not self.has_class("-tiny")
        table.show(served.clients, units)
        self.query_one(LimitsPanel).show(served)
        self.query_one(ServingLog).show(journal.lines, journal.written)

    def _show_rates(self, served: Served) -> None:
        units = self._preferences.units
        self.query_one("#serving-received", ServingGauge).show(served.received_bit_s, served.received, units)
        self.query_one("#serving-sent", ServingGauge).show(served.sent_bit_s, served.sent, units)

    # What the keys do: one method for each action of the registry.

    def action_copy(self) -> None:
        """Hand the terminal the command that connects, for its clipboard."""
        app_of(self).copy_to_clipboard(self._serving.facts.command)
        self.notify(
            "The terminal has the command that connects, if it takes what apps copy (OSC 52).", title="copy"
        )

    def action_reload(self) -> None:
        """Read limits and key again; the log says what came of it."""
        if self._serving.facts.has_files:
            self._serving.reload()
            self.paint()
        else:
            self.notify("There is no file to read again: it was started without --limits and --key-file.")

    def action_finish(self) -> None:
        """End the endpoint, once its runs have ended; the second time at once."""
        self._serving.leave()
        self.paint()

    async def action_settings(self) -> None:
        """Change what is set once and for all."""
        await app_of(self).run_action("app.settings")

    def action_export(self) -> None:
        """Write a picture of the screen."""
        export_from(self, [], _no_runs)

    def action_help(self) -> None:
        """Explain every key of this screen."""
        app_of(self).push_screen(HelpScreen(Place.ENDPOINT, _MARKS))

    async def action_redraw(self) -> None:
        """Draw all of the screen again."""
        await app_of(self).run_action("app.redraw")


def _no_runs(run_ids: Sequence[str], form: Form, path: Path) -> Path:
    del run_ids, form
    raise StoreError(f"an endpoint keeps no runs, so {path} cannot be written: the near end has them")


def _invitation(facts: Facts) -> Content:
    """Return how to become the first client."""
    return Content.assemble(
        ("Nobody is connected. ", "bold"),
        ("On the other host:", MUTED),
        "\n\n",
        (words.plain(facts.command), "bold $text-primary"),
        "\n\n",
        ("y", KEY),
        ("  copies it", MUTED),
        (f"   ·   {facts.hint}" if facts.hint else "", MUTED),
    )
