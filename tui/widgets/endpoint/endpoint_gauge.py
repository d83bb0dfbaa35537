"""The rate of an endpoint in one direction: the number, and a plot of the last minutes."""

from collections.abc import Sequence
from typing import Final

from textual.content import Content

from ...rendering.big_digits import align_right, big_digits, largest_font, style_digits
from ...rendering.canvas import EIGHTHS, Canvas, to_eighths
from ...rendering.styled_lines import LineWidget
from ...rendering.styles import MUTED
from ...text import numbers
from ...text.numbers import RateUnit

_NAMES: Final = {"received": "← receives", "sent": "→ sends"}
_COLOURS: Final = {"received": "$primary", "sent": "$success"}
_NOTE_CELLS: Final = 16  # right of the digits: the unit, and the rate in the other unit


class EndpointGauge(LineWidget):
    """Shows a rate in large digits, and below it a plot with one column for each second."""

    DEFAULT_CSS = """
    EndpointGauge { padding: 0 1; }
    """

    def __init__(self, rate_name: str) -> None:
        super().__init__(widget_id=f"serving-{rate_name}")
        self._rate_name = rate_name
        self._bit_s: float | None = None
        self._past: Sequence[float] = ()
        self._units = RateUnit.MBIT

    def show(self, bit_s: float | None, past: Sequence[float], units: RateUnit) -> None:
        """Show these values."""
        self._bit_s, self._past, self._units = bit_s, past, units
        self.redraw()

    def draw(self, width: int, height: int) -> list[Content]:
        """Return the digits, and below them the plot in the remaining rows."""
        top = max([*self._past[-width:], self._bit_s or 0.0], default=0.0)
        self.set_titles(_NAMES[self._rate_name], f"highest {numbers.rate_in_unit(top, self._units)}" if top else "")
        number = numbers.rate_in_unit(self._bit_s, self._units)
        widest = max(numbers.rate_in_unit(top, self._units), number, key=len)
        font = largest_font(widest, width - _NOTE_CELLS, max(height - 1, 1))
        notes = [
            Content.styled(self._units.value, "bold"),
            Content.styled(numbers.rate_with_unit(self._bit_s, self._units.other), MUTED),
        ]
        if font is None:
            lines = [Content.assemble((number, "bold"), " ", notes[0], "  ", notes[1])]
        else:
            rows = big_digits(align_right(number, widest), font)
            notes += [Content("")] * (len(rows) - len(notes))
            lines = [
                Content.assemble(style_digits(row, "$foreground"), " ", note)
                for row, note in zip(rows, notes, strict=False)
            ]
        return [*lines[:height], *self._plot(width, height - len(lines), top)]

    def _plot(self, width: int, rows: int, top: float) -> list[Content]:
        """Return the plot, the newest second at the right."""
        if rows <= 0:
            return []
        canvas = Canvas(width, rows)
        for x in range(width):
            canvas.put(x, 0, "▁", "$foreground 22%")
        past, colour = self._past[-width:], _COLOURS[self._rate_name]
        for x, bit_s in enumerate(past, width - len(past)):
            high = to_eighths(bit_s / top, rows) if top else 0
            for y in range((high + 7) // 8):
                part = min(high - 8 * y, 8)
                ground = f" on {colour}" if part == 8 else ""  # as in digits: no seam between rows
                canvas.put(x, y, EIGHTHS[part], f"{colour}{ground}")
        return canvas.lines()
