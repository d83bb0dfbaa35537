"""The plots of TCP's values: gaps for unknown ones, rates for counts, arrows for directions."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.results.sums.traces import PlotPeriod, TcpPoint
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.gauges.plots.trace_plot import TracePlot
from linkgauge.tui.readings.cockpit_snapshot import CockpitSnapshot, Phase
from linkgauge.tui.readings.live_readings import LiveReadings
from linkgauge.tui.readings.plot_values import PlotContent


def tcp_plot(content: PlotContent, **lines: list[TcpPoint]) -> TracePlot:
    """Return the plot of points by direction."""
    plan = Plan(Settings(Direction.DUPLEX))
    readings = LiveReadings(plan)
    readings.traces.periods = [PlotPeriod(0.0, plan.settings, Expectation())]
    readings.traces.tcp = {Direction(name): points for name, points in lines.items()}
    preset = load_catalog().find("loopback")
    return TracePlot(CockpitSnapshot(Phase.RUNNING, preset, plan, LOOPBACK, readings=readings), content)


def drawn(plot: TracePlot, width: int = 40, rows: int = 8, span_s: float = 10.0) -> list[str]:
    """Return the rows of a plot."""
    return [line.plain for line in plot.draw(width, rows, plot.top(0.0, rows), span_s, has_colours=True).lines()]


def points(*values: int | None, every_s: float = 1.0) -> list[TcpPoint]:
    """Return points with one value for all quantities."""
    return [TcpPoint((number + 1) * every_s, value, value, value) for number, value in enumerate(values)]


@pytest.mark.parametrize("content", [PlotContent.RTT, PlotContent.CWND])
def test_an_unknown_value_is_a_gap_and_not_a_zero(content: PlotContent) -> None:
    """From 3 s to 6 s nothing is drawn."""
    lines = drawn(tcp_plot(content, out=points(9_000, 9_000, 9_000, None, None, 9_000, 9_000)))
    covered = {x for line in lines for x, character in enumerate(line) if character != " "}
    assert {5, 10, 25} <= covered
    assert not covered & {14, 17, 20}


def test_retransmits_are_per_second_however_long_the_intervals_are() -> None:
    """Five in a quarter of a second are twenty in a second."""
    plot = tcp_plot(PlotContent.RETRANSMITS, out=points(0, 5, 0, every_s=0.25))
    assert plot.top(0.0, 8) >= 20
    assert plot.top(50.0, 8) == 50.0
    assert plot.top(70.0, 8) == 30.0  # of which less than half would be filled


def test_two_directions_can_be_told_apart_without_colour() -> None:
    """By the arrows on the lines, which the legend explains."""
    plot = tcp_plot(PlotContent.RTT, **{"out": points(*[9_000] * 10), "in": points(*[3_000] * 10)})
    text = "".join(drawn(plot))
    assert "→" in text
    assert "←" in text
    assert plot.legend() == ["← in", "→ out"]
    assert tcp_plot(PlotContent.RTT, out=points(1)).legend() == []


@pytest.mark.parametrize(
    ("content", "value", "label"),
    [(PlotContent.RTT, 212, "0.2"), (PlotContent.RTT, 24_000, "20"), (PlotContent.CWND, 4 << 20, "4\u00a0000")],
)
def test_the_axis_has_round_values_in_its_unit(content: PlotContent, value: int, label: str) -> None:
    """Milliseconds, or KiB."""
    plot = tcp_plot(content, out=points(value))
    axis: list[Any] = plot.value_axis(10, plot.top(0.0, 10))
    assert any(label in line.plain for line in axis)


@pytest.mark.parametrize("rows", [3, 5, 12])
def test_the_labels_of_periods_are_not_written_over_the_line(rows: int) -> None:
    """The first row is only for labels: the highest values stay below it."""
    plot = tcp_plot(PlotContent.RTT, out=points(*[22_400] * 10))
    more = PlotPeriod(5.0, Settings(sessions=2), Expectation())
    plot._periods = [*plot._periods, more]
    labels, *others = drawn(plot, rows=rows)
    assert "22.4" in labels
    assert not any("\u2800" < character <= "\u28ff" for character in labels)
    assert any("\u2800" < character <= "\u28ff" for line in others for character in line)
