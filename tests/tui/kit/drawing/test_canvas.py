"""Plots in cells: the grid, columns in eighths, braille lines, axes and bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.tui.kit.drawing.canvas import GUTTER, Canvas, bar, base_axis, ticks, to_eighths, value_axis


def rows(canvas: Canvas) -> list[str]:
    """Return the text of the rows, the topmost first."""
    return [line.plain for line in canvas.lines()]


def test_a_cell_outside_the_canvas_is_left_out() -> None:
    """On each side."""
    canvas = Canvas(2, 1)
    for x, y in ((-1, 0), (2, 0), (0, -1), (0, 1)):
        canvas.put(x, y, "x", "")
        canvas.overlay(x, y, "x", "")
    assert rows(canvas) == ["  "]


def test_an_overlaid_cell_keeps_its_background() -> None:
    """Text on a filled area leaves no hole in it."""
    canvas = Canvas(3, 1)
    canvas.put(0, 0, "█", "red on red")
    canvas.write(0, 0, "ab", "bold")
    (line,) = canvas.lines()
    assert line.plain == "ab "
    assert [str(span.style) for span in line.spans] == ["bold on red", "bold"]


@pytest.mark.parametrize(
    ("points", "lines"),
    [
        ([(0.0, 0.0), (1.0, 0.0)], ["   ", "⣀⣀⣀"]),
        ([(0.0, 1.0), (1.0, 1.0)], ["⠉⠉⠉", "   "]),
        ([(0.0, 0.0), (0.0, 1.0)], ["⡇  ", "⡇  "]),
        ([(0.5, 0.0)], ["   ", " ⡀ "]),
        ([], ["   ", "   "]),
    ],
)
def test_a_line_goes_through_its_points_without_a_gap(points: list[tuple[float, float]], lines: list[str]) -> None:
    """In dots of half a cell by a quarter of one; a single point is a dot."""
    canvas = Canvas(3, 2)
    canvas.draw_line(points, "red")
    assert rows(canvas) == lines


def test_lines_that_cross_share_a_cell() -> None:
    """The dots of both stay."""
    canvas = Canvas(1, 1)
    canvas.draw_line([(0.0, 0.0), (1.0, 0.0)], "red")
    canvas.draw_line([(0.0, 1.0), (1.0, 1.0)], "blue")
    assert rows(canvas) == ["⣉"]


def test_a_line_has_a_row_in_every_column_that_it_passes() -> None:
    """A letter can then be anywhere on it."""
    assert Canvas(4, 3).draw_line([(0.0, 0.0), (1.0, 1.0)], "") == {0: 0, 1: 1, 2: 2, 3: 2}


@pytest.mark.parametrize(("fraction", "eighths"), [(-1, 0), (0, 0), (0.0001, 1), (0.5, 12), (1, 24), (7, 24)])
def test_a_column_is_as_high_as_its_fraction(fraction: float, eighths: int) -> None:
    """Anything above 0 is visible, and nothing is higher than the plot."""
    assert to_eighths(fraction, 3) == eighths


@pytest.mark.parametrize(
    ("top", "most", "values"),
    [
        (10_827, 2, [0, 10_000]),
        (10_827, 5, [0, 5_000, 10_000]),
        (109, 6, [0, 20, 40, 60, 80, 100]),
        (30, 4, [0, 10, 20, 30]),
        (1, 2, [0, 1]),
    ],
)
def test_ticks_are_few_and_round(top: float, most: int, values: list[float]) -> None:
    """Zero is always one of them."""
    assert ticks(top, most) == pytest.approx(values)


def test_labelled_rows_have_a_tick() -> None:
    """Rows are counted from the bottom, and come from the top."""
    assert [line.plain for line in value_axis(3, {1: "5 000"})] == ["       │", "  5 000┤", "       │"]


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ([(3, "5"), (9, "10")], "───5────10"),
        ([(-2, "16K")], "16K───────"),
        ([(0, "longer than that")], "──────────"),
    ],
)
def test_a_base_axis_keeps_its_width(labels: list[tuple[int, str]], line: str) -> None:
    """A label at an end is moved inside. One that does not fit is left out."""
    assert base_axis(10, labels).plain == f"{'0':>{GUTTER - 1}}└{line}"


@given(
    fraction=st.sampled_from([None, 0.0, 0.001, 0.5, 0.999, 1.0, 7.0]),
    tick=st.sampled_from([None, 0.0, 0.9, 1.0]),
)
def test_a_bar_always_has_its_width(fraction: float | None, tick: float | None) -> None:
    """No value moves anything beside it, and the bar has the tick if it is wanted."""
    drawn = bar(fraction, 40, "green", tick).plain
    assert len(drawn) == 40
    assert ("┃" in drawn) == (tick is not None)


def test_a_bar_is_drawn_in_eighths() -> None:
    """A change of one eighth of a cell is visible."""
    assert bar(0.5, 4, "green").plain == "██░░"
    assert bar(5 / 32, 4, "green").plain == "▋░░░"
    assert bar(1.0, 0, "green").plain == ""
