"""The plot of a run: one key goes through its contents, and each has its own axis."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.traces import DatagramPoint
from linkgauge.presets.auto_select import NO_PRESET
from linkgauge.tui.gauges.plots.run_plot import RunPlot, loss_strip
from linkgauge.tui.kit.drawing.canvas import GUTTER
from linkgauge.tui.readings.cockpit_snapshot import CockpitSnapshot, Phase
from linkgauge.tui.readings.live_readings import LiveReadings

UDP = Plan(workload=Workload.UDP)


def title_and_axis(cockpit: Any) -> tuple[str, str]:
    """Return the title of the plot and the cells left of it, with plain spaces."""
    plot = cockpit.app.cockpit.query_one(RunPlot)
    axis = "".join(line.plain[:8] for line in plot._lines[:-1])
    return str(plot.border_title).replace("\u00a0", " "), axis.replace("\u00a0", " ")


async def test_a_key_goes_through_all_plots(world: Any) -> None:
    """Each has a title with its unit and an axis of its own; after the last comes the first again."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 4e9)
        await cockpit.settle()
        seen = [title_and_axis(cockpit)]
        for _ in range(5):
            await cockpit.press("v")
            seen.append(title_and_axis(cockpit))
        assert seen[0] == seen[5]
        assert seen[4][0].startswith("bytes in flight and windows")
        assert [title.split(",")[0] for title, _ in seen[:4]] == [
            "throughput",
            "RTT",
            "retransmits per second",
            "congestion window",
        ]
        assert len({axis for _, axis in seen[:4]}) == 4


async def test_the_chosen_plot_follows_the_run_and_its_changes(world: Any) -> None:
    """A change has its line, and both periods their means."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space", "v", "v", "v")
        world.script.run_for(40, 4e9)
        world.script.change_settings(world.script.settings.with_changes(sessions=5))
        world.script.run_for(40, 8e9)
        await cockpit.settle()
        labels = cockpit.app.cockpit.query_one(RunPlot)._lines[0].plain.replace("\u00a0", " ")
        assert "1 session 595" in labels  # KiB of one session, then of five
        assert "5 sessions 2 991" in labels


async def test_a_plot_without_values_says_so(world: Any) -> None:
    """An empty plot before the first sample could be mistaken for zeros."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("space", "v")
        assert "no values from the kernel yet" in cockpit.text()


@pytest.mark.every
async def test_the_plots_of_datagrams_are_loss_jitter_delay_and_rtt(world: Any) -> None:
    """TCP's own values have no plot there; the strip of losses stays below each."""
    plan = Plan(workload=Workload.UDP, duration_ns=30 * SECOND_NS)
    async with world.cockpit((120, 40), plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.lost_share = 0.02
        world.script.run_for(40, 9e8)
        await cockpit.settle()
        titles: list[str] = []
        for _ in range(6):
            titles.append(title_and_axis(cockpit)[0].split(",")[0])
            assert "loss ▄▄▄" in cockpit.text()
            await cockpit.press("v")
        assert titles == ["throughput", "lost datagrams", "jitter", "delay variation", "RTT", "throughput"]


def strip(width: int = 10, most: int = 2, span_s: float = 10.0, **flows: list[DatagramPoint]) -> list[str]:
    """Return the lines of the strip."""
    readings = LiveReadings(UDP)
    readings.traces.datagrams.update({Direction(name): points for name, points in flows.items()})
    view = CockpitSnapshot(Phase.RUNNING, NO_PRESET, UDP, LOOPBACK, readings=readings)
    return [line.plain for line in loss_strip(view, span_s, width, most=most)]


def points(*shares: float | None, every_s: float = 1.0) -> list[DatagramPoint]:
    """Return a point for each lost share; None is an interval without datagrams."""
    return [
        DatagramPoint(every_s * number, 0 if share is None else 100_000, round(100_000 * (share or 0)), None, None)
        for number, share in enumerate(shares, start=1)
    ]


def test_each_level_of_loss_has_a_character_of_its_own() -> None:
    """A single lost datagram is visible. The future is empty."""
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
    """The plot has its row."""
    assert strip() == []
    assert strip(width=0, out=points(0.1)) == []
