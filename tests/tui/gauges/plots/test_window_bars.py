"""Bars of the bytes in flight and of the windows that limit them."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.presets.diagnosis.window_bounds import FlowWindows
from linkgauge.tui.gauges.plots.window_bars import window_lines

FULL = FlowWindows(Direction.OUT, 40_960, 42_496, 98_304, 174_080)


def plain(*windows: FlowWindows, width: int = 60, height: int = 12) -> list[str]:
    """Return the lines with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in window_lines(windows, width, height)]


def test_each_value_has_a_bar_on_one_scale() -> None:
    """The longest bar fills its room, and the others are in proportion."""
    lines = plain(FULL, height=5)
    assert [line[:12].strip() for line in lines] == ["in flight", "window", "cwnd", "needed"]
    assert [line[-8:].strip() for line in lines] == ["40 KiB", "42 KiB", "96 KiB", "170 KiB"]
    filled = [line.count("█") for line in lines]
    assert filled[3] == 36
    assert filled[0] < filled[2] < filled[3]
    assert {len(line) for line in lines} == {60}


def test_the_directions_of_duplex_have_arrows() -> None:
    """Each has four bars. A small terminal shows those that fit."""
    both = FULL, FlowWindows(Direction.IN, 1_000, None, None, None)
    lines = plain(*both)
    assert [line[0] for line in lines] == ["→"] * 4 + ["←"] * 4
    assert lines[5].endswith("– KiB")
    assert len(plain(*both, height=5)) == 5


@pytest.mark.parametrize("width", [40, 60, 200])
def test_a_high_plot_explains_its_words(width: int) -> None:
    """A line for each word below the bars, none of them wider than the plot."""
    lines = plain(FULL, width=width, height=9)
    assert lines[4] == ""
    assert [line[:12].strip() for line in lines[5:]] == ["in flight", "window", "cwnd", "needed"]
    assert "not yet" in lines[5]
    assert max(map(len, lines)) <= width
    assert len(plain(FULL, width=width, height=8)) == 4


def test_without_values_it_says_so() -> None:
    """Before the first second, and if the kernel reports nothing about TCP."""
    assert plain() == plain(FlowWindows(Direction.OUT, None, None, None, None)) == ["no values from the kernel yet"]
    assert plain(FULL, width=15) == []


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_run_shows_its_windows(world: Any, size: tuple[int, int]) -> None:
    """They follow the last seconds of the run, and stay after its end."""
    plan = Plan(Settings(window_bytes=65_536), duration_ns=30 * SECOND_NS)
    async with world.cockpit(size, plan=plan) as cockpit:
        await cockpit.press("space", "v", "v", "v", "v")
        assert "no values from the kernel yet" in cockpit.text()
        world.script.run_for(40, 4e9)
        await cockpit.settle()
        for name in ("in flight", "window", "cwnd", "needed"):
            assert name in cockpit.text()
        world.script.end()
        await cockpit.settle()
        assert "in flight" in cockpit.text()
