"""The screen of an endpoint: its clients with their rates, its limits and its log."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Static

from ..kit.actions import Marks, ScreenKind, bindings
from ..kit.drawing.styles import KEY, MUTED
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import app_of
from ..session.preferences import Preferences
from ..words import numbers
from .client_table import ClientTable
from .endpoint_panels import EndpointGauge, EndpointHeader, EndpointLogView, LimitsPanel, RateHistory
from .endpoint_rates import EndpointInfo, EndpointRates, EndpointSnapshot
from .served_endpoint import ServedEndpoint

_MARKS: Final[Marks] = (
    ("○ ● ■", "in the log: a client connected; its test started; its test finished"),
    ("✗", "a connection was rejected, by the named limit if there is one"),
    ("▲", "warning or note"),
)


class EndpointScreen(ActionScreen):
    """Polls an endpoint at the refresh rate."""

    AUTO_FOCUS = "#log"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.ENDPOINT
    MARKS: ClassVar[Marks] = _MARKS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.ENDPOINT)
    DEFAULT_CSS = """
    EndpointScreen {
        & EndpointHeader { background: $panel; }
        & EndpointGauge, & ClientTable, & LimitsPanel, & EndpointLogView, & #no-clients {
            border: round $foreground 22%;
            border-title-color: $foreground 80%;
            border-title-style: bold;
            border-subtitle-color: $foreground 62%;
        }
        & #rates { height: 9; }
        & #no-clients { height: 1fr; padding: 0 2; align: left middle; scrollbar-size-vertical: 1; }
        & #no-clients Static { height: auto; }
        & #below { height: 15; }
        & LimitsPanel { width: 46; height: 100%; }
        & EndpointLogView { width: 1fr; height: 100%; }
        & EndpointGauge { width: 1fr; height: 100%; }
        &.-towering #rates { height: 12; }
        &.-towering #below { height: 20; }
        &.-narrow LimitsPanel { width: 41; }
        &.-short {
            & EndpointGauge, & ClientTable, & LimitsPanel, & EndpointLogView, & #no-clients {
                border: none;
                border-top: solid $foreground 22%;
            }
            & #rates { height: 5; }
            & #below { height: 7; }
        }
        &.-tiny {
            & #below, & KeyFooter { display: none; }
            & #rates { height: 1fr; }
            & EndpointGauge { border: none; border-top: solid $foreground 22%; }
        }
    }
    """

    def __init__(self, endpoint: ServedEndpoint, preferences: Preferences) -> None:
        super().__init__()
        self._endpoint = endpoint
        self._preferences = preferences
        self._rates = EndpointRates(endpoint.info)
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Compose the head, the rates, the clients or an invitation, the limits and the log."""
        yield EndpointHeader()
        with Horizontal(id="rates"):
            yield EndpointGauge("received")
            yield EndpointGauge("sent")
        yield ClientTable()
        with VerticalScroll(id="no-clients") as invitation:
            invitation.border_title = Content("clients")
            yield Static(_invitation(self._endpoint.info), markup=False)
        with Horizontal(id="below"):
            yield LimitsPanel()
            yield EndpointLogView()
        yield self.footer()

    def on_mount(self) -> None:
        """Paint, and start the refresh timer."""
        self.paint()
        self._start_timer()

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences."""
        self._preferences = preferences
        if self.is_mounted:
            self._start_timer()
            self.paint()

    def _start_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(self._preferences.frame_s, self.paint)

    def paint(self) -> None:
        """Poll the endpoint, and pass every widget its values."""
        log = self._endpoint.log
        snapshot = self._rates.update(self._endpoint.status())
        self.query_one(EndpointHeader).show(snapshot)
        self._show_rates(snapshot)
        self._show_clients(snapshot)
        self.query_one(LimitsPanel).show_snapshot(snapshot)
        self.query_one(EndpointLogView).show_lines(log.lines, log.lines_written)

    def _show_rates(self, snapshot: EndpointSnapshot) -> None:
        units = self._preferences.units
        received = RateHistory(snapshot.received_bit_s, snapshot.received_rates, units)
        self.query_one("#serving-received", EndpointGauge).show(received)
        sent = RateHistory(snapshot.sent_bit_s, snapshot.sent_rates, units)
        self.query_one("#serving-sent", EndpointGauge).show(sent)

    def _show_clients(self, snapshot: EndpointSnapshot) -> None:
        table, invitation = self.query_one(ClientTable), self.query_one("#no-clients")
        has_room = not self.has_class("-tiny")
        table.display = bool(snapshot.clients) and has_room
        invitation.display = not snapshot.clients and has_room
        table.show_clients(snapshot.clients, self._preferences.units)

    # Actions of the registry.

    def action_copy(self) -> None:
        """Copy the connect command to the clipboard of the terminal."""
        app_of(self).copy_to_clipboard(self._endpoint.info.command)
        self.notify("Copied, if your terminal supports OSC 52.", title="copy")

    def action_reload(self) -> None:
        """Read the limits and the key again; the log has the result."""
        if self._endpoint.info.can_reload:
            self._endpoint.reload()
            self.paint()
        else:
            self.notify("Nothing to reload: no --limits or --key-file was given.")

    def action_finish(self) -> None:
        """End the endpoint once its runs have ended; a second request ends it at once."""
        self._endpoint.shut_down()
        self.paint()

    def action_export(self) -> None:
        """Export a picture of the screen."""
        prompt_export(self)


def _invitation(info: EndpointInfo) -> Content:
    """Return how to connect the first client."""
    return Content.assemble(
        ("No clients. ", "bold"),
        (
            "Only this host can connect. In another terminal:"
            if info.is_loopback
            else "Connect from the other host:",
            MUTED,
        ),
        "\n\n",
        (numbers.sanitize(info.command), "bold $text-primary"),
        "\n\n",
        ("y", KEY),
        ("  copies this command", MUTED),
        (f"   ·   {info.hint}" if info.hint else "", MUTED),
        *_page_invitation(info),
    )


def _page_invitation(info: EndpointInfo) -> list[tuple[str, str]]:
    """Return the link to the page for browsers and its QR code; nothing without the page."""
    if info.page is None:
        return []
    code = "\n".join(info.page_code)
    return [
        ("\n\nOr with the browser of another device:\n\n", MUTED),
        (numbers.sanitize(info.page), "bold $text-primary"),
        ("\n\n", ""),
        (code, "white on black"),
    ]
