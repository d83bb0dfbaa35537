"""Clients of an endpoint, and an app that shows one of its widgets."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from linkgauge.engine.far.status import RunStatus
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.endpoint.endpoint_rates import ClientReading
from linkgauge.tui.kit.drawing.screen_diff import screen_strips
from textual.app import App, ComposeResult
from textual.widget import Widget

W = TypeVar("W", bound=Widget)
STREAM = RunStatus(Workload.STREAM, Settings(Direction.OUT, 5), 60 * SECOND_NS, 9 * SECOND_NS, 2**30, 0)
CLIENTS = (
    ClientReading(1, "192.0.2.7", "web-07", 10 * SECOND_NS, STREAM, 941e6, 0.0),
    ClientReading(2, "198.51.100.4", "lab\x1b[2J", 2 * SECOND_NS),
)


class WidgetApp(App[None], Generic[W]):
    """An app with a single widget."""

    def __init__(self, widget: W) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        """Show the widget."""
        yield self.widget

    def lines(self) -> Sequence[str]:
        """Return the lines of the screen, with plain spaces."""
        return [strip.text.replace("\u00a0", " ") for strip in screen_strips(self.screen)]
