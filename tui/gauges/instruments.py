"""All instruments of a run: their layout, one snapshot for all of them, and the keys of their screen."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ...engine.model.directions import Direction
from ...engine.model.peer import Peer
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ..kit.actions import key_name
from ..kit.drawing.styles import KEY, MUTED
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.feature_app import app_of
from ..readings.cockpit_snapshot import CockpitSnapshot, Phase
from ..readings.flow_reading import datagram_reading
from ..readings.latency_reading import delay_variation_reading, latency_reading, responsiveness_reading
from ..readings.waited_device import far_end_text
from ..words import numbers
from .cpu_panel import CpuPanel
from .datagram_panel import DatagramPanel
from .flow_gauge import FlowGauge
from .latency_bars import LatencyBars
from .path_panel import PathPanel
from .plots.run_plot import RunPlot
from .responsiveness_panel import ResponsivenessPanel
from .session_table import SessionTable
from .verdict_panel import VerdictPanel

if TYPE_CHECKING:
    from .run_event_log import EventLog

_SETTING_KEYS: Final = "more_sessions fewer_sessions smaller_window larger_window direction"
_FIRST_STEPS: Final = (
    ("toggle_run", "start a test"),
    ("respond", "latency under load: grade and queue"),
    ("presets", "choose the kind of network, which sets the expected rate"),
    (_SETTING_KEYS, "sessions, window, direction: also during a test"),
    ("peer", "connect to a host with `linkgauge endpoint`, or ssh://host"),
    ("help", "all keys"),
)
_DEVICE_STEPS: Final = (
    ("toggle_run", "start a test"),
    ("presets", "choose the kind of network, which sets the expected rate"),
    ("more_sessions fewer_sessions direction", "sessions, direction: also during a test"),
    ("peer", "show the code by which a device joins"),
    ("help", "all keys"),
)
_SETTINGS_BEFORE: Final = {_SETTING_KEYS: "sessions, window, direction: before a test"}
_FIRST_KEYS: Final = (
    ("toggle_run", "start"),
    ("presets", "network"),
    ("peer", "connect"),
    ("help", "help"),
    ("leave", "quit"),
)
_NO_REASONS: Final[Mapping[str, str | None]] = {}
_REMEDIES: Final = (
    ("reconnect", "try again"),
    ("peer", "connect to another host; `loopback` tests this machine alone"),
)


# Style classes of the instruments: one panel alone, and fewer panels.
_ALONE: Final = ("-gauges", "-plot", "-sessions", "-cpu", "-why", "-events")
_FEWER: Final = ("-only-gauges", "-only-plot", "")


class Instruments(Container):
    """Shows gauges at the top, the plot in the middle, and sessions, CPU and verdict below.

    The user may choose one panel alone, fewer panels, or the event log as well. The style sheet gives the remaining
    panels the room of the others.
    """

    def __init__(self) -> None:
        super().__init__(id="instruments")
        self._view: CockpitSnapshot | None = None
        self._alone = ""
        self._level = len(_FEWER) - 1
        self._has_log = False
        self._event_log: EventLog | None = None

    def compose(self) -> ComposeResult:
        """Lay out the instruments. CPU has two places; the style sheet shows one of them, by the width."""
        with Horizontal(id="gauges"):
            for direction in Direction:
                yield FlowGauge(direction)
            yield CpuPanel(widget_id="cpu-right")
        yield PlotArea()
        yield PathPanel()
        with Container(id="bottom"):
            yield CpuPanel(widget_id="cpu-below")
            yield SessionTable()
            yield VerdictPanel()

    @property
    def view(self) -> CockpitSnapshot | None:
        """What is shown; None before the first snapshot."""
        return self._view

    def show_next_plot(self) -> None:
        """Show the next plot."""
        self.query_one(RunPlot).show_next_content()

    def maximize_next(self) -> None:
        """Show the next panel alone; after the last one, all of them."""
        order = ("", *_ALONE)
        self._alone = order[(order.index(self._alone) + 1) % len(order)]
        self._arrange()

    def restore(self) -> bool:
        """Show all panels again. Return whether one was alone."""
        was_alone, self._alone = bool(self._alone), ""
        self._arrange()
        return was_alone

    def show_fewer(self) -> None:
        """Close the event log, then the lower panels, then the plot."""
        if self._has_log:
            self._has_log = False
        else:
            self._level = max(self._level - 1, 0)
        self._arrange()

    def show_more(self) -> None:
        """Show the plot, then the lower panels, then the event log."""
        if self._level == len(_FEWER) - 1:
            self._has_log = True
        self._level = min(self._level + 1, len(_FEWER) - 1)
        self._arrange()

    def toggle_log(self) -> None:
        """Open or close the event log."""
        self._has_log = not self._has_log
        self._arrange()

    def _arrange(self) -> None:
        """Give the panels their classes. The event log is made when it is first needed."""
        for name in _ALONE:
            self.set_class(name == self._alone, f"-alone{name}")
        for name in _FEWER[:-1]:
            self.set_class(not self._alone and name == _FEWER[self._level], name)
        needs_log = self._alone == "-events" or (self._has_log and not self._alone)
        log = self._event_log
        if needs_log and log is None:
            from .run_event_log import EventLog

            self._event_log = log = EventLog()
            self.mount(log)
        if log is not None:
            log.display = needs_log
        if self._view is not None:
            self._show_events(self._view)

    def _show_events(self, view: "CockpitSnapshot") -> None:
        log = self._event_log
        if log is not None and log.display:
            events = view.readings.log if view.readings else None
            log.show_lines(events.lines if events else (), events.written if events else 0)

    def show_snapshot(self, view: CockpitSnapshot) -> None:
        """Show these values: each panel takes its own."""
        self._view = view
        running = view.phase in {Phase.RUNNING, Phase.STOPPING}
        self.set_class(running and view.problem is None, "-running")
        settings = view.readings.settings if view.readings else view.plan.settings
        self.set_class(settings.direction is Direction.DUPLEX, "-duplex")
        for gauge in self.query(FlowGauge):
            gauge.show_run(view)
        for panel in self.query(CpuPanel):
            panel.show_run(view)
        self.query_one(PlotArea).show_snapshot(view)
        self._show_path(view)
        self.query_one(SessionTable).show_run(view)
        self.query_one(VerdictPanel).show_snapshot(view)
        self._show_events(view)

    def _show_path(self, view: CockpitSnapshot) -> None:
        """Show the hops of the path, if the run has traced them. Their panel needs a screen with room."""
        path = view.path
        self.set_class(path is not None, "-traced")
        if path is not None:
            self.query_one(PathPanel).show(path)

    def on_flow_gauge_resized(self) -> None:
        """Give the digits of both directions the width of the narrower gauge: at some widths it has a cell less."""
        gauges = [self.query_one(f"#gauge-{flow}", FlowGauge) for flow in Direction.DUPLEX.flows]
        widths = [gauge.size.width for gauge in gauges if gauge.display]
        for gauge in gauges:
            gauge.most_width = min(widths) if len(widths) > 1 else None
            gauge.redraw()


class PlotArea(Container):
    """Shows the plot with the latency or the datagrams of a run, a problem, or the first steps."""

    DEFAULT_CSS = """
    PlotArea > #notice {
        padding: 0 2;
        align: center middle;
        & > Static { width: auto; max-width: 100%; height: auto; }
        &.-problem { border: round $error; border-title-color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="stage")
        self._text = Content("")
        self._view: CockpitSnapshot | None = None

    def compose(self) -> ComposeResult:
        """Lay out the plots, and the notice that takes their place."""
        yield LatencyBars()
        yield ResponsivenessPanel()
        yield RunPlot()
        yield DatagramPanel()
        with VerticalScroll(id="notice"):
            yield Static(markup=False)

    def show_snapshot(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        self._view = view
        plot, notice = self.query_one(RunPlot), self.query_one("#notice", VerticalScroll)
        plot.display = view.readings is not None and view.problem is None
        notice.display = not plot.display
        self._show_beside_plot(view, has_plot=plot.display)
        if plot.display:
            plot.show(view)
            return
        if view.problem is not None:
            text = _problem(view, view.problem.text)
        else:
            text = _first_keys(view) if self.screen.has_class("-tiny") else _welcome(view)
        if text.is_same(self._text):
            return
        self._text = text
        notice.set_class(view.problem is not None, "-problem")
        notice.border_title = Content(view.problem.title if view.problem else "linkgauge")
        notice.query_one(Static).update(text)

    def _show_beside_plot(self, view: "CockpitSnapshot", *, has_plot: bool) -> None:
        """Show latency, or datagrams. A large screen also shows the distribution of their delays."""
        panel, bars = self.query_one(DatagramPanel), self.query_one(LatencyBars)
        readings = view.readings
        loads = self.query_one(ResponsivenessPanel)
        steps = responsiveness_reading(view) if has_plot else None
        loads.display = steps is not None
        if steps is not None:
            loads.show(steps)
        panel.display = has_plot and readings is not None and view.plan.workload.is_datagram
        if panel.display and readings is not None:
            flows = readings.settings.direction.flows
            known = (datagram_reading(view, flow) for flow in flows)
            panel.show([reading for reading in known if reading is not None])
        if not panel.display:
            reading = latency_reading(view) if has_plot and steps is None else None
        else:
            reading = delay_variation_reading(view) if self.screen.has_class("-huge") else None
        bars.display = reading is not None
        if reading is not None:
            bars.show_run(reading, view.readings)

    def on_resize(self) -> None:
        """Show the text for the new size."""
        if self._view is not None:
            self.show_snapshot(self._view)


def _problem(view: CockpitSnapshot, problem: str) -> Content:
    return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(problem), "\n\n", _keys(view, _REMEDIES))


def _welcome(view: "CockpitSnapshot") -> Content:
    remote = "this machine alone, over loopback" if view.peer.is_loopback else far_end_text(view.peer)
    return Content.assemble(
        ("Is this link as fast as it should be?", "bold"),
        "\n",
        ("Remote end: ", MUTED),
        (numbers.sanitize(remote), ""),
        "\n\n",
        _keys(
            view,
            _first_steps(view.peer),
            {"respond": why_unavailable(view.peer, Feature.LOAD_PHASES)},
        ),
    )


def _first_steps(peer: Peer) -> Sequence[tuple[str, str]]:
    """Return the first keys, and what they do with this peer: other programs keep the settings of a test."""
    if peer.is_browser:
        return _DEVICE_STEPS
    if peer.is_foreign:
        return [(keys, _SETTINGS_BEFORE.get(keys, text)) for keys, text in _FIRST_STEPS]
    return _FIRST_STEPS


def _first_keys(view: CockpitSnapshot) -> Content:
    """Return the first keys in as few lines as possible: a screen this low has no footer to show them."""
    parts = [
        Content.assemble((key_name(action, view.keys), KEY), f"{numbers.NBSP}{name}")
        for action, name in _FIRST_KEYS
    ]
    return Content("   ").join(parts)


def _keys(
    view: CockpitSnapshot,
    rows: Sequence[tuple[str, str]],
    unavailable: Mapping[str, str | None] = _NO_REASONS,
) -> Content:
    """Return a line for each key. If it is not available, the reason is beside its name."""
    names = [" ".join(key_name(action, view.keys) for action in actions.split()) for actions, _ in rows]
    width = max(map(len, names))
    lines: list[Content] = []
    for key, (action, text) in zip(names, rows, strict=True):
        reason = unavailable.get(action)
        style, words = (
            (KEY, text) if reason is None else (MUTED, f"{text.partition(':')[0]}: {reason.partition(';')[0]}")
        )
        lines.append(Content.assemble((f"{key:>{width}}", style), (f"  {words}", "" if reason is None else MUTED)))
    return Content("\n").join(lines)


class InstrumentScreen(ActionScreen):
    """A screen with the gauges, plot and panels of a run, live or stored. app.tcss lays them out."""

    @property
    def how_to_trace(self) -> str:
        """What to say of a run that has not traced its path."""
        return "This test has not traced its path."

    @property
    def instruments(self) -> Instruments:
        """The gauges, plot and panels."""
        return self.query_one(Instruments)

    def action_plot(self) -> None:
        """Show the next plot."""
        self.instruments.show_next_plot()

    def action_maximize(self) -> None:
        """Show one panel alone, or the next one."""
        self.instruments.maximize_next()

    def action_fewer_panels(self) -> None:
        """Show fewer panels."""
        self.instruments.show_fewer()

    def action_more_panels(self) -> None:
        """Show more panels."""
        self.instruments.show_more()

    def action_events(self) -> None:
        """Open or close the event log."""
        self.instruments.toggle_log()

    def action_show_path(self) -> None:
        """Show the hops of the path that the run has traced."""
        view = self.instruments.view
        if view is None or view.path is None:
            is_tracing = view is not None and view.phase.is_busy and view.plan.path
            soon = "The hops are shown as soon as they have answered under load."
            self.notify(soon if is_tracing else self.how_to_trace)
            return
        from .path_screen import PathScreen

        app_of(self).push_screen(PathScreen(view, view.path))
