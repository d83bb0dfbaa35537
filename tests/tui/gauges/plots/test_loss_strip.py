"""The loss strip: a cell for each moment, higher the more was lost, that tells without colour."""

import pytest
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Direction, Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.traces import DatagramPoint
from linkgauge.presets.auto_select import NO_PRESET
from linkgauge.tui.gauges.plots.loss_strip import loss_strip
from linkgauge.tui.kit.drawing.canvas import GUTTER
from linkgauge.tui.readings.instrument_values import Phase
from linkgauge.tui.readings.live_readings import CockpitSnapshot, LiveReadings

PLAN = Plan(workload=Workload.UDP)


def strip(width: int = 10, most: int = 2, span_s: float = 10.0, **flows: list[DatagramPoint]) -> list[str]:
    """Return the lines of the strip."""
    readings = LiveReadings(PLAN)
    readings.traces.datagrams.update({Direction(name): points for name, points in flows.items()})
    view = CockpitSnapshot(Phase.RUNNING, NO_PRESET, PLAN, LOOPBACK, readings=readings)
    return [line.plain for line in loss_strip(view, span_s, width, most=most)]


def points(*shares: float | None, every_s: float = 1.0) -> list[DatagramPoint]:
    """Return a point for each lost share; None is an interval without datagrams."""
    return [
        DatagramPoint(every_s * number, 0 if share is None else 100_000, round(100_000 * (share or 0)), None, None)
        for number, share in enumerate(shares, start=1)
    ]


def test_each_level_of_loss_has_a_character_of_its_own() -> None:
    """A single lost datagram shows; what has not happened yet is empty."""
    (line,) = strip(out=points(0.0, 0.00001, 0.001, 0.01, 0.05, 0.25, 1.0, None))
    assert line[GUTTER:] == "·▂▃▄▆██   "
    assert line[:GUTTER].strip() == "loss"


@pytest.mark.parametrize(("width", "cells"), [(20, "··▂▂··"), (10, "·▂·"), (5, "▂·")])
def test_no_loss_disappears_at_any_width(width: int, cells: str) -> None:
    """An interval wider than a cell fills its cells, and a cell adds up its intervals."""
    (line,) = strip(width, out=points(0.0, 0.0001, 0.0))
    assert line[GUTTER:].rstrip() == cells


def test_two_directions_have_a_line_each_or_the_worse_of_both() -> None:
    """The arrow says which; a small plot has one line for both."""
    flows = {"out": points(0.0, 0.01), "in": points(0.1, 0.0)}
    out, in_ = strip(**flows)
    assert out.split() == ["loss", "→", "·▄"]
    assert in_.split() == ["loss", "←", "▆·"]
    assert [line.split() for line in strip(most=1, **flows)] == [["loss", "⇄", "▆▄"]]


def test_tcp_has_no_strip() -> None:
    """The plot has the row for itself."""
    assert strip() == []
    assert strip(width=0, out=points(0.1)) == []
