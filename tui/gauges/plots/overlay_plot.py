"""Several runs in one plot, each a braille line with its letter on it: the plot is readable without colour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from textual.content import Content

from ...kit.drawing.canvas import GUTTER, Canvas, base_axis, tick_decimals, ticks, time_labels, value_axis
from ...kit.drawing.styled_lines import LineWidget
from ...kit.drawing.styles import SERIES_STYLES, TRACK
from ...words import numbers

OverlayUnit = Literal["Mb/s", "ms"]
_MILLION: Final = 1e6
_HEADROOM: Final = 1.08
_LETTER_EVERY: Final = 22  # cells
_GRID_EVERY: Final = 4  # cells
_NARROWEST, _LOWEST = 20, 4


@dataclass(frozen=True, slots=True)
class OverlayLine:
    """One run: its letter, and its rate at each time, warm-up included; or its latency in nanoseconds."""

    letter: str
    at_s: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Several runs in one plot. The x axis counts seconds, or with `names` steps that have these labels.

    `unit` is for values divided by a million: Mb/s for rates, ms for nanoseconds.
    """

    lines: Sequence[OverlayLine]
    names: Sequence[str] = ()
    unit: OverlayUnit = "Mb/s"


class OverlayPlot(LineWidget[Overlay]):
    """Shows an Overlay; both axes begin at 0."""

    DEFAULT_CSS = """
    OverlayPlot { height: 1fr; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="overlay")

    def draw(self, value: Overlay, width: int, height: int) -> list[Content]:
        """Return the plot, or nothing if there is no room or no line."""
        return overlay_plot(value, width, height) if width >= _NARROWEST and height >= _LOWEST else []


def overlay_plot(overlay: Overlay, width: int, height: int) -> list[Content]:
    """Return a plot of the lines that have points; nothing if there are none."""
    series, names = [line for line in overlay.lines if line.at_s], overlay.names
    if not series:
        return []
    room, rows = width - GUTTER, height - 1
    top = max(max(line.values) for line in series) / _MILLION * _HEADROOM or 1.0
    span = float(max(len(names) - 1, 1)) if names else max(line.at_s[-1] for line in series) or 1.0
    labels = _rate_labels(top, rows)
    canvas = Canvas(room, rows)
    for y in labels:
        for x in range(_GRID_EVERY - 1, room, _GRID_EVERY):
            canvas.put(x, y, "·", TRACK)
    paths: list[dict[int, int]] = []
    for line in series:
        points = [(x / span, value / _MILLION / top) for x, value in zip(line.at_s, line.values, strict=True)]
        paths.append(canvas.draw_line(points, SERIES_STYLES[line.letter]))
    _draw_letters(canvas, series, paths)
    lines = [axis + line for axis, line in zip(value_axis(rows, labels), canvas.lines(), strict=True)]
    columns = _name_labels(names, span, room) if names else time_labels(span, room)
    return [*lines, base_axis(room, columns, f"{overlay.unit} 0")]


def _rate_labels(top: float, rows: int) -> dict[int, str]:
    """Return the labels of the rows with round rates."""
    rates = ticks(top, max(rows // 3, 3))[1:]
    decimals = tick_decimals(rates[0])
    return {round(rate / top * (4 * rows - 1)) // 4: numbers.number(rate, decimals) for rate in rates}


def _name_labels(names: Sequence[str], span: float, room: int) -> list[tuple[int, str]]:
    """Return as many names as fit, each centred below its step."""
    every = ceil(len(names) * (max(map(len, names)) + 2) / room)
    return [
        (round(number / span * (room - 1)) - len(names[number]) // 2, names[number])
        for number in range(0, len(names), every)
    ]


def _draw_letters(canvas: Canvas, series: Sequence[OverlayLine], paths: Sequence[Mapping[int, int]]) -> None:
    """Put letters on each line at regular intervals, each line at other columns: no letter hides another."""
    occupied: set[tuple[int, int]] = set()
    for number, (line, path) in enumerate(zip(series, paths, strict=True)):
        first = round(_LETTER_EVERY * (0.3 + number / len(series)))
        columns = [x for x in range(first, canvas.width, _LETTER_EVERY) if x in path] or [max(path)]
        for column in columns:
            x, y = column, path[column]
            while (x, y) in occupied:
                x = (x + 1) % canvas.width
            occupied.add((x, y))
            canvas.put(x, y, line.letter, f"bold {SERIES_STYLES[line.letter]}")
