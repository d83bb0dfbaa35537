"""The canvas of all plots: cells, columns in eighths, and lines in braille dots."""

import pytest
from linkgauge.tui.rendering.canvas import Canvas, to_eighths


def rows(canvas: Canvas) -> list[str]:
    """Return the text of the rows, the topmost first."""
    return [line.plain for line in canvas.lines()]


def test_a_cell_outside_the_canvas_is_left_out() -> None:
    """At each side."""
    canvas = Canvas(2, 1)
    for x, y in ((-1, 0), (2, 0), (0, -1), (0, 1)):
        canvas.put(x, y, "x", "")
        canvas.overlay(x, y, "x", "")
    assert rows(canvas) == ["  "]


def test_an_overlaid_cell_keeps_its_background() -> None:
    """Text on a filled area does not punch a hole into it."""
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
    """So that a letter can be put on it anywhere."""
    assert Canvas(4, 3).draw_line([(0.0, 0.0), (1.0, 1.0)], "") == {0: 0, 1: 1, 2: 2, 3: 2}


@pytest.mark.parametrize(("fraction", "eighths"), [(-1, 0), (0, 0), (0.0001, 1), (0.5, 12), (1, 24), (7, 24)])
def test_a_column_is_as_high_as_its_fraction(fraction: float, eighths: int) -> None:
    """Anything above 0 is seen, and nothing is higher than the plot."""
    assert to_eighths(fraction, 3) == eighths
