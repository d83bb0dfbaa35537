"""The marks of a mesh's cells: how fast each is, so that it can be told without colours. Pure."""

from collections.abc import Mapping
from enum import Enum
from statistics import median
from typing import Final

from ...engine.results.counter_sums import percent_of
from ...mesh.figures import CellFigure, MeshMatrix
from ...mesh.plan import Cell
from ...mesh.reading.relative_rates import expected_rates
from ...presets.verdict import DEFAULT_PASS_PERCENT, FAIL_PERCENT
from ..words import numbers

_WHOLE_FROM: Final = 999.95


class CellMark(Enum):
    """How fast a cell is. The value is its character, where there is room for one."""

    GOOD = "•"
    SHORT = "▼"
    FAIL = "✗"
    NO_RESULT = "!"
    WAITING = "·"


class CellScale:
    """Judges the cells of a matrix: by their expected rate, else by the median of all cells.

    A cell without an expected rate of its own has the one that its hosts' other cells suggest, as in the reading.
    """

    def __init__(self, matrix: MeshMatrix, pass_percent: float = DEFAULT_PASS_PERCENT) -> None:
        self._figures: Mapping[Cell, CellFigure] = matrix.figures
        self._pass_percent = pass_percent
        values = [figure.value for figure in matrix.figures.values() if figure.value is not None]
        self.median: float | None = median(values) if values else None
        self.is_of_transactions = any(figure.transactions_s is not None for figure in matrix.figures.values())
        self._expected = expected_rates(matrix)
        self.has_expected = any(self.is_of_expected(cell) for cell in matrix.figures)
        rates = [rate for figure in matrix.figures.values() if (rate := figure.counted_bit_s) is not None]
        self._rates = numbers.rate_scale(numbers.RateUnit.MBIT, max(rates, default=0.0))

    @property
    def unit(self) -> str:
        """The unit of the numbers in cells: `Gb/s`, `Mb/s`, or `trans/s`."""
        return "trans/s" if self.is_of_transactions else self._rates.unit

    def percent(self, cell: Cell) -> float | None:
        """Return a cell in percent of its expected rate, or of the median without one; None without a result."""
        figure = self._figures.get(cell)
        if figure is None or figure.value is None:
            return None
        if figure.percent is not None:
            return figure.percent
        return percent_of(figure.value, self._expected.get(cell, self.median))

    def is_of_expected(self, cell: Cell) -> bool:
        """Return whether the percentage of a cell is of an expected rate, and not of the median."""
        figure = self._figures.get(cell)
        return figure is not None and (figure.percent is not None or cell in self._expected)

    def mark(self, cell: Cell) -> CellMark:
        """Return the mark of a cell."""
        percent = self.percent(cell)
        if percent is None:
            figure = self._figures.get(cell)
            return CellMark.WAITING if figure is None or figure.failure is None else CellMark.NO_RESULT
        if percent >= self._pass_percent:
            return CellMark.GOOD
        return CellMark.SHORT if percent >= FAIL_PERCENT else CellMark.FAIL

    def number(self, cell: Cell) -> str:
        """Return the result of a cell as a number of `unit`, at most six characters long; "" without one."""
        figure = self._figures.get(cell)
        if figure is None or figure.value is None:
            return ""
        if figure.transactions_s is not None:
            return numbers.transaction_number(figure.value)
        bit_s = figure.value / self._rates.bit_s
        return numbers.number(bit_s, 1 if bit_s < _WHOLE_FROM else 0)


def legend(scale: CellScale, pass_percent: float = DEFAULT_PASS_PERCENT) -> str:
    """Return what the marks of a map mean, on one line."""
    of = "the expected rate" if scale.has_expected else "the median"
    marks = {
        CellMark.SHORT: f"under {pass_percent:g}{numbers.NBSP}% of {of}",
        CellMark.FAIL: f"under {FAIL_PERCENT:g}{numbers.NBSP}%",
        CellMark.NO_RESULT: "no result",
        CellMark.WAITING: "not measured",
    }
    return "  ".join(f"{mark.value} {words}" for mark, words in marks.items())
