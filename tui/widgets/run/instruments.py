"""All instruments in their places: takes a View, and hands each its values."""

from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Container, Horizontal

from ....engine.model.plan import Direction, End
from ....engine.results.summary import CpuSummary, Measurement, Summary
from ...state.instrument_values import CpuReading, FlowReading, Phase, response_bits_of
from ...state.live_readings import CockpitSnapshot
from .cpu_panel import CpuPanel
from .flow_gauge import FlowGauge
from .plot_area import PlotArea
from .session_table import SessionTable
from .verdict_panel import VerdictPanel


class Instruments(Container):
    """Gauges on top, the plot in the middle, sessions, CPU and verdict below."""

    def __init__(self) -> None:
        super().__init__(id="instruments")

    def compose(self) -> ComposeResult:
        """Lay the instruments out; CPU has two places, of which the width chooses one."""
        with Horizontal(id="gauges"):
            for direction in Direction:
                yield FlowGauge(direction)
            yield CpuPanel(widget_id="cpu-beside")
        yield PlotArea()
        with Container(id="bottom"):
            yield CpuPanel(widget_id="cpu-below")
            yield SessionTable()
            yield VerdictPanel()

    def show(self, view: CockpitSnapshot) -> None:
        """Show these values."""
        board = view.readings
        direction = (board.settings if board else view.plan.settings).direction
        for gauge_of in Direction:
            gauge = self.query_one(f"#gauge-{gauge_of}", FlowGauge)
            gauge.display = gauge_of is direction or gauge_of in direction.flows
            if gauge.display:
                gauge.pass_percent = view.pass_percent
                gauge.show(replace(_flow(view, gauge_of), units=view.units))
        near, far = _cpu(view, End.NEAR), _cpu(view, End.FAR)
        shared = view.near is not None and view.far is not None and view.near.hostname == view.far.hostname
        for panel in self.query(CpuPanel):
            panel.show(near, far, shared_host=shared)
        self.query_one(PlotArea).show(view)
        running = view.phase in {Phase.RUNNING, Phase.STOPPING}
        self.set_class(running and view.problem is None, "-running")
        rows = board.session_rows() if board else ()
        answer_bits = response_bits_of(board.plan if board else view.plan)
        self.query_one(SessionTable).show(rows, board.retransmits() if board else None, answer_bits)
        self.query_one(VerdictPanel).show(view)


def _flow(view: CockpitSnapshot, direction: Direction) -> FlowReading:
    board = view.readings
    peak = view.peak[direction]
    if board is None:
        expected = view.expectation[direction]
        return FlowReading(direction, expected=expected, response_bits=response_bits_of(view.plan), peak=peak)
    now = replace(board.flow(direction), peak=peak)
    if view.summary is None:
        return now
    measured = _measured(view.summary, direction)
    return FlowReading(
        direction,
        measured.bit_s if measured is not None and measured.span_ns > 0 else None,
        view.summary.expectation[direction],
        now.highest_bit_s,
        is_final=True,
        response_bits=now.response_bits,
        latency=measured.latency if measured is not None else None,
        peak=peak,
        margin_percent=None
        if measured is None or measured.estimate is None
        else measured.estimate.half_width_percent,
    )


def _measured(summary: Summary, direction: Direction) -> Measurement | None:
    return summary.measured[direction]


def _cpu(view: CockpitSnapshot, end: End) -> CpuReading:
    """Return the load of one end: of the last second while a run goes on, then of the whole run."""
    if view.readings is None:
        return CpuReading(end)
    now = view.readings.cpu(end)
    if view.summary is None:
        return now
    whole: CpuSummary = view.summary.near_cpu if end is End.NEAR else view.summary.far_cpu
    return CpuReading(
        end,
        whole.host_percent,
        now.hottest_core,
        whole.hottest_core_percent,
        None,
        whole.msec_per_mib,
        now.cores,
    )
