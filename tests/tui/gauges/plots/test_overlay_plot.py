"""Runs in one plot: what is drawn at each size, without an app."""

import pytest
from linkgauge.tui.gauges.plots.overlay_plot import Overlay, OverlayLine, overlay_plot
from linkgauge.tui.words.comparison import LETTERS

QUARTERS = [quarter / 4 for quarter in range(1, 61)]


def plot(*lines: OverlayLine, names: tuple[str, ...] = (), size: tuple[int, int] = (78, 12)) -> list[str]:
    """Return the rows of a plot, with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in overlay_plot(Overlay(lines, names), *size)]


def steady(letter: str, bit_s: float) -> OverlayLine:
    """Return a run of 15 seconds at one rate."""
    return OverlayLine(letter, QUARTERS, [bit_s] * len(QUARTERS))


@pytest.mark.parametrize("size", [(78, 4), (78, 8), (118, 16), (198, 28)], ids=str)
def test_a_plot_fills_its_room_and_shows_every_run(size: tuple[int, int]) -> None:
    """The faster run is above the slower one, and both axes have their unit."""
    rows = plot(steady("A", 9.4e9), steady("B", 3e9), size=size)
    assert [len(row) for row in rows] == [size[0]] * size[1]
    (row_a,) = [number for number, row in enumerate(rows) if "A" in row]
    (row_b,) = [number for number, row in enumerate(rows) if "B" in row]
    assert row_a < row_b
    assert "Mb/s 0└" in rows[-1]
    assert " s" in rows[-1]


def test_runs_of_the_same_rate_are_distinguished_by_letters() -> None:
    """No letter covers another one."""
    rows = plot(*(steady(letter, 5e9) for letter in LETTERS))
    (line,) = [row for row in rows if "A" in row]
    assert set(LETTERS) <= set(line)


def test_overlapping_points_have_adjacent_letters() -> None:
    """This is how a sweep begins."""
    rows = plot(OverlayLine("A", [0.0], [1e9]), OverlayLine("B", [0.0], [1e9]), names=("16K", "32K"))
    assert any("AB" in row for row in rows)


def test_a_rate_stands_in_the_row_of_its_tick() -> None:
    """A line at 5 000 is level with the label 5 000."""
    rows = plot(steady("A", 5e9), steady("B", 10e9), size=(78, 16))
    assert [row.split("┤")[0].strip() for row in rows if "A" in row] == ["5 000"]


def test_a_sweep_has_the_names_of_its_steps_below_the_axis() -> None:
    """As many as fit, from the first one on."""
    names = tuple(f"{2**power}K" for power in range(4, 10))
    line = OverlayLine("A", [float(step) for step in range(6)], [1e9] * 6)
    assert all(name in plot(line, names=names)[-1] for name in names)
    narrow = plot(line, names=names, size=(30, 8))[-1]
    assert "16K" in narrow
    assert "32K" not in narrow


def test_a_run_that_carried_nothing_is_drawn_at_zero() -> None:
    """Its line lies on the axis."""
    rows = plot(steady("A", 0.0))
    assert "A" in rows[-2]
