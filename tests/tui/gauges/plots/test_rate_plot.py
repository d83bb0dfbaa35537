"""The plot of a run: its axes, the expected rate, warm-up and changes."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.sums.traces import OtherTestsSpan, PlotPeriod, PlotPoint
from linkgauge.presets.expectation import find_expectation
from linkgauge.tui.gauges.flow_gauge import FlowGauge
from linkgauge.tui.gauges.plots.rate_plot import RatePlot
from linkgauge.tui.gauges.plots.run_plot import RunPlot
from linkgauge.tui.kit.drawing.canvas import EIGHTHS
from linkgauge.tui.run.cockpit_state import CockpitState

_MARKS = {"⣀": 1, "⠤": 3, "⠒": 5, "⠉": 7}  # eighths of a cell: the middle of each row of dots


def plot_lines(cockpit: Any) -> list[str]:
    """Return the lines of the plot, with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in cockpit.app.cockpit.query_one(RunPlot)._lines]


def titles(cockpit: Any) -> tuple[str, str]:
    """Return the title of the plot and its legend, with plain spaces."""
    plot = cockpit.app.cockpit.query_one(RunPlot)
    return str(plot.border_title).replace("\u00a0", " "), str(plot.border_subtitle).replace("\u00a0", " ")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
async def test_the_axes_stay_while_a_run_gets_slower(world: Any, size: tuple[int, int]) -> None:
    """Rates would otherwise change their height; the time axis covers the whole duration from the start."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        before = plot_lines(cockpit)
        world.script.run_for(40, 1e9)
        await cockpit.settle()
        after = plot_lines(cockpit)
        assert before != after
        assert [line[:8] for line in before] == [line[:8] for line in after]
        assert before[-1] == after[-1]
        assert before[-1].rstrip("─").endswith("30 s")


async def test_without_an_expected_rate_the_axis_follows_the_measured_one(world: Any) -> None:
    """An axis that is drawn before the first sample must not keep its top of 1 000."""
    async with world.cockpit((120, 40), preset="loopback") as cockpit:
        await cockpit.press("space")
        await cockpit.settle()
        world.script.run_for(8, 95.6e6)
        await cockpit.settle()
        assert plot_lines(cockpit)[0].lstrip().startswith("100┤")
        assert cockpit.app.cockpit.query_one("#gauge-out", FlowGauge)._reading.full_bit_s == 100e6


@pytest.mark.parametrize("rows", [3, 8, 11, 14, 30])
@pytest.mark.parametrize("bit_s", [40e6, 89e6, 94.3e6, 94.8e6, 95.6e6, 99e6, 104e6])
async def test_a_bar_above_the_expected_rate_is_never_below_its_line(world: Any, rows: int, bit_s: float) -> None:
    """Both use one grid of eighths of a cell, so that a pass of 95.6 is not below the line of 94.8."""
    preset = world.catalog.find("100mb-fd")
    state = CockpitState(LOOPBACK, Plan(duration_ns=30 * SECOND_NS), preset, 95.0)
    expectation = find_expectation(preset, state.plan.settings)
    state.begin_run()
    state.readings.traces.periods = [PlotPeriod(0.0, state.plan.settings, expectation)]
    state.readings.periods[0].points[Direction.OUT] = [PlotPoint(30.0, bit_s, False)]
    view = state.snapshot()
    lines = RatePlot(view).draw(40, rows, view.rate_top, 30.0, has_colours=False).lines()
    columns = ["".join(line.plain[x] for line in reversed(lines)) for x in (0, 2)]
    line = next((8 * y + _MARKS[mark] for y, mark in enumerate(columns[0]) if mark in _MARKS))
    bar = sum(EIGHTHS.index(part) for part in columns[1])
    assert bar >= line if bit_s >= expectation.out.bit_s else bar - 1 <= line
    axis = RatePlot(view).value_axis(rows, view.rate_top)
    assert axis[rows - 1 - int(line // 8)].plain.strip().startswith("94.80")


async def test_the_time_axis_of_an_endless_run_grows_by_steps(world: Any) -> None:
    """From 30 s to 60 s."""
    async with world.cockpit((80, 24), plan=Plan(duration_ns=None)) as cockpit:
        await cockpit.press("space")
        for ticks, end in ((100, "30"), (40, "60")):
            world.script.run_for(ticks, 9e9)
            await cockpit.settle()
            assert plot_lines(cockpit)[-1].rstrip("─").endswith(f"{end} s")


async def test_a_change_has_a_line_and_both_averages_in_the_title(world: Any) -> None:
    """The legend explains each mark that is drawn, and no other."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 4e9)
        await cockpit.settle()
        assert titles(cockpit) == ("throughput, Mb/s", "░ warm-up   ⠤⠤ expected   ⠄ peak")
        world.script.change_settings(world.script.settings.with_changes(sessions=5))
        world.script.run_for(40, 8e9)
        await cockpit.settle()
        title, legend = titles(cockpit)
        assert title.startswith("throughput: 1 session ")
        assert " → 5 sessions " in title
        assert "│ change" in legend
        (column,) = {line.index("│", 8) for line in plot_lines(cockpit)[:-1] if "│" in line[8:]}
        assert column > 8


async def test_the_words_on_a_plot_are_readable_with_16_colours_and_with_none(world: Any) -> None:
    """Labels have the background of the screen, not of an area. Without colours, areas are characters."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 9e9)
        world.script.change_settings(world.script.settings.with_changes(sessions=5))
        world.script.run_for(40, 9e9)
        await cockpit.settle()
        lines = cockpit.app.cockpit.query_one(RunPlot)._lines
        words = [part for part in lines[0].divide([8]) if "sessions" in part.plain]
        assert words
        for part in words:
            at = part.plain.index("sessions")
            assert any(span.start <= at < span.end and "on $background" in str(span.style) for span in part.spans)
        plot = RatePlot(cockpit.app.cockpit.state.snapshot())
        coloured, plain = (
            "".join(line.plain for line in plot.draw(60, 12, 10e9, 30.0, has_colours=has_colours).lines())
            for has_colours in (True, False)
        )
        assert "█" not in coloured
        assert plain.count("█") > 100


async def test_two_quick_changes_are_compared_with_the_last_measured_rate(world: Any) -> None:
    """Nothing was measured between them. Without any rate there is no comparison."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("space", "plus", "plus")
        world.script.run_for(12, 3e9)
        await cockpit.settle()
        assert titles(cockpit)[0] == "throughput, Mb/s"
        await cockpit.press("minus", "minus")
        world.script.run_for(12, 1e9)
        await cockpit.settle()
        title = titles(cockpit)[0]
        assert "–" not in title
        assert title.startswith("throughput: 3 sessions 2 99")
        assert "→ 1 session 99" in title


@pytest.mark.parametrize(("preset", "unit"), [("10gbe-9000", "Mb/s"), ("25gbe-9000", "Gb/s")])
async def test_the_axis_has_the_gauges_unit(world: Any, preset: str, unit: str) -> None:
    """Gb/s from 10 000 Mb/s on, in the title and at the axis."""
    async with world.cockpit((120, 40), preset=preset) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        assert titles(cockpit)[0] == f"throughput, {unit}"
        highest = max(float(line[:7].replace(" ", "")) for line in plot_lines(cockpit)[:-1] if "┤" in line)
        assert highest < 100 if unit == "Gb/s" else highest >= 1_000
        assert unit in cockpit.text().replace("\u00a0", " ")


async def test_other_tests_of_the_endpoint_are_marked_below_the_rates(world: Any) -> None:
    """The marks cover the time that they ran, and the legend explains them."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(20, 4e9)
        await cockpit.settle()
        assert not any("×" in line for line in plot_lines(cockpit))
        cockpit.app.cockpit.state.readings.traces.other_tests.append(OtherTestsSpan(2.0, 4.0))
        world.script.run_for(20, 4e9)
        await cockpit.settle()
        *_, bottom, _ = plot_lines(cockpit)
        assert bottom.count("×") >= 2
        assert "× other tests" in titles(cockpit)[1]
