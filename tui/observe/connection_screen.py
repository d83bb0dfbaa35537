"""One connection of another program in gauges: rates, plots of rate, RTT and cwnd, windows, and why it is slow."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...engine.model.directions import Direction
from ...observe.observation import ConnectionKey, ObservedConnection, Status
from ...presets.diagnosis.window_bounds import FlowWindows
from ..gauges.flow_gauge import FlowGauge
from ..gauges.plots.run_plot import RunPlot
from ..gauges.plots.window_bars import WINDOW_TITLES, window_lines
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styled_lines import LineWidget, first_fit, join_fit
from ..kit.drawing.styles import KEY, MUTED
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import preferences_of
from ..readings.cockpit_snapshot import CockpitSnapshot
from ..readings.flow_reading import FlowReading, flow_reading
from ..readings.plot_values import PlotContent
from ..session.preferences import Preferences
from .connection_readings import ConnectionReadings, Point, shown_direction
from .connection_words import STATUS_MARKS, facts, figures, short_reason
from .observe_lines import connection_head, saving_mark, why_lines, wrapped
from .observed_records import ObservedRecords

_MAIN_CONTENTS: Final = (PlotContent.THROUGHPUT, PlotContent.RTT, PlotContent.CWND, PlotContent.WINDOWS)
_EXPECTED_AT: Final = 0.9  # of a gauge's bar
_PANELS: Final = ("", "-only-flows", "-only-plot", "-only-windows", "-only-why")


class WindowPanel(LineWidget[tuple[FlowWindows, ...]]):
    """Shows the bytes in flight of a connection beside the windows that bound them."""

    DEFAULT_CSS = """
    WindowPanel { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__((), widget_id="windows")

    def draw(self, value: tuple[FlowWindows, ...], width: int, height: int) -> list[Content]:
        """Return a bar for each window."""
        self.set_titles(first_fit(width, *map(Content, WINDOW_TITLES[1:])))
        return window_lines(value, width, height)


def toggle_saving(screen: ActionScreen, records: ObservedRecords, row: ObservedConnection) -> None:
    """Save a connection from now on, or end its entry; tell its id, or why there is none."""
    if row.key not in records.saved_keys:
        if not records.start(row):
            screen.notify("There is no run log to save it to.", severity="warning")
        return
    record = records.stop(row.key)
    if record is None:
        screen.notify("No payload moved, so that nothing was saved.", severity="warning")
    else:
        screen.notify(record.run_id, title="saved")


class ConnectionScreen(ActionScreen):
    """One connection, until the user goes back.

    Args:
        row: The connection as the table has it.
        points: Its last points.
        records: Saves it to the run log.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.CONNECTION
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.CONNECTION)
    DEFAULT_CSS = """
    ConnectionScreen {
        & #flows { height: 9; }
        & #flows > FlowGauge, & #flows > WindowPanel { width: 1fr; height: 100%; }
        & #plots { height: 1fr; min-height: 6; layout: horizontal; }
        & #plots > #plot { width: 1fr; height: 100%; }
        & #side { width: 1fr; height: 100%; }
        & #side > RunPlot { height: 1fr; }
        & #why { height: 11; }
        & #why > Static { height: auto; }
        &.-narrow #windows, &.-narrow #side { display: none; }
        &.-short #flows { height: 5; }
        &.-short #why { height: 8; }
        &.-short #side, &.-short #windows { display: none; }
        &.-towering #flows { height: 11; }
        &.-towering #why { height: 14; }
        &.-tiny #flows { height: 5; }
        &.-tiny #why, &.-tiny KeyFooter, &.-tiny #side, &.-tiny #windows { display: none; }
        &.-receives #windows, &.-receives #side { display: none; }
        &.-only-flows #flows, &.-only-windows #flows, &.-only-why #why { height: 1fr; }
        &.-only-flows #windows, &.-only-windows FlowGauge { display: none; }
        &.-only-windows #windows, &.-only-why #why { display: block; }
        &.-only-flows #plots, &.-only-flows #why, &.-only-windows #plots, &.-only-windows #why { display: none; }
        &.-only-plot #flows, &.-only-plot #why, &.-only-plot #side { display: none; }
        &.-only-why #flows, &.-only-why #plots { display: none; }
    }
    """

    def __init__(self, row: ObservedConnection, points: Iterable[Point], records: ObservedRecords) -> None:
        super().__init__()
        self._records = records
        self.key: ConnectionKey = row.key
        self._row = row
        self._points = list(points)
        self._readings = ConnectionReadings(row, self._points)
        self._is_gone = False
        self._is_frozen = False
        self._alone = ""

    def compose(self) -> ComposeResult:
        """Compose gauges, plots and findings."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        with Horizontal(id="flows"):
            for direction in Direction:
                yield FlowGauge(direction)
            yield WindowPanel()
        with Horizontal(id="plots"):
            yield RunPlot(_MAIN_CONTENTS)
            with Container(id="side"):
                yield RunPlot((PlotContent.RTT,), widget_id="plot-rtt")
                yield RunPlot((PlotContent.CWND,), widget_id="plot-cwnd")
        with VerticalScroll(id="why", classes="panel") as why:
            why.border_title = "why"
            yield Static(markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        """Draw what the table knew."""
        self.draw()

    def on_resize(self) -> None:
        """Fill the new size."""
        self.draw()

    def take(self, row: ObservedConnection | None, point: Point | None) -> None:
        """Take the next observation: the row, or None if the connection is gone; and the point, if there is one.

        If the plot needs another direction or the line of the expected rate, it is made again.
        """
        self._is_gone = row is None
        if row is not None:
            self._row = self._readings.row = row
        if point is not None:
            self._points.append(point)
            if not self._readings.fits(self._row):
                self._readings = ConnectionReadings(self._row, self._points)
            else:
                self._readings.add_point(point)
        if not self._is_frozen:
            self.draw()

    def apply(self, preferences: Preferences) -> None:
        """Draw in other units."""
        del preferences
        self.draw()

    def draw(self) -> None:
        """Draw the present state, unless there is no part of the screen yet, or none any more."""
        if not self.query("#why > Static"):
            return
        row, width = self._row, self.size.width - 2
        preferences = preferences_of(self)
        view = self._readings.snapshot(preferences.units, preferences.pass_mark)
        self.query_one("#head", Static).update(self._head(width), layout=False)
        self.query_one("#now", Static).update(self._state(width), layout=False)
        self.set_class(row.out.sample is None or row.direction is Direction.IN, "-receives")
        self._show_gauges(view)
        self.query_one(WindowPanel).show(row.windows)
        for plot in self.query(RunPlot):
            plot.show(view)
        lines = [*why_lines(row), *wrapped(figures(row), width - 2)]
        self.query_one("#why > Static", Static).update(Content("\n").join(lines))

    def _show_gauges(self, view: CockpitSnapshot) -> None:
        """Show the rate of each direction with payload. What is slow for a reason of its own is not SHORT."""
        shown = self._readings.direction
        for direction in Direction:
            gauge = self.query_one(f"#gauge-{direction}", FlowGauge)
            gauge.display = direction in {*shown.flows, shown}
            if gauge.display:
                gauge.show(self._reading(view, direction))

    def _reading(self, view: CockpitSnapshot, direction: Direction) -> FlowReading:
        """Return the reading of a gauge, with the expected rate also if it is far above the plot."""
        reading, row = flow_reading(view, direction), self._row
        if row.expected is not None and shown_direction(row) is direction:
            full_bit_s = max(reading.full_bit_s, row.expected.bit_s / _EXPECTED_AT)
            reading = replace(reading, expected=row.expected, full_bit_s=full_bit_s)
        is_judged = row.status is Status.LIMITED or reading.rating == "pass"
        return replace(reading, is_judged=is_judged)

    def _head(self, width: int) -> Content:
        name = Content.styled("linkgauge  ", KEY) + Content.styled("observe  ", "bold")
        rest = connection_head(self._row, max(width - name.cell_length, 20))
        return first_fit(width, name + rest, connection_head(self._row, width))

    def _state(self, width: int) -> Content:
        row = self._row
        parts = [Content.styled(f"{STATUS_MARKS[row.status]} {short_reason(row)}", "bold")]
        if self.key in self._records.saved_keys:
            parts.append(saving_mark("saving"))
        if self._is_frozen:
            parts.append(Content.styled("❚❚ frozen", "bold $text-warning"))
        if self._is_gone and row.status is not Status.ENDED:
            parts.append(Content.styled("no payload moves: not read any more", "$text-warning"))
        return join_fit(width, [*parts, *(Content.styled(text, MUTED) for text in facts(row))], "   ")

    # Actions of the registry.

    def action_save_connection(self) -> None:
        """Save the connection, or end its entry."""
        toggle_saving(self, self._records, self._row)
        self.draw()

    def action_plot_next(self) -> None:
        """Show the next plot."""
        self.query_one("#plot", RunPlot).show_next_content()

    def action_maximize_next(self) -> None:
        """Show one part alone, or the next one; after the last, all of them."""
        self._show_alone(_PANELS[(_PANELS.index(self._alone) + 1) % len(_PANELS)])

    def _show_alone(self, name: str) -> None:
        self._alone = name
        for each in _PANELS[1:]:
            self.set_class(each == name, each)

    def action_freeze(self) -> None:
        """Freeze or release the display."""
        self._is_frozen = not self._is_frozen
        self.draw()

    def action_export(self) -> None:
        """Export a picture of the screen."""
        prompt_export(self)

    def action_close_connection(self) -> None:
        """Show all parts again, or go back to the table."""
        if self._alone:
            self._show_alone("")
        else:
            self.dismiss(None)
