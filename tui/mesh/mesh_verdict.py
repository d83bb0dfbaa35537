"""The verdict of a mesh and of each cell: by the expected rate, else by the median of all cells. Pure."""

from collections.abc import Mapping, Sequence
from enum import Enum
from statistics import median
from typing import Final, Literal

from ...engine.results.rate_and_loss import percent_of
from ...mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from ...mesh.plan import Cell
from ...mesh.reading.relative_rates import expected_rates
from ...presets.verdict import DEFAULT_PASS_PERCENT, FAIL_PERCENT, NO_LIMITS, rate_word
from ..words import numbers

_WHOLE_FROM: Final = 999.95


class CellState(Enum):
    """The state of a cell: how fast it is. The value is its character, if there is room for one."""

    PASS = "•"  # noqa: S105 (a verdict)
    SHORT = "▼"
    FAIL = "✗"
    NO_RESULT = "!"
    WAITING = "·"
    RUNNING = "●"
    LIMIT = "◆"
    """It breaks a limit of the user, whatever its rate."""
    SELF = "╲"
    """A host and itself: there is nothing to measure."""


MeshVerdict = Literal["pass", "short", "fail", "none"]


class CellScale:
    """Judges the cells of a matrix by their expected rates, else by the median of all cells.

    A cell without an expected rate gets the one that its hosts' other cells suggest, as in `mesh/reading`.
    """

    def __init__(self, matrix: MeshMatrix, pass_percent: float = DEFAULT_PASS_PERCENT) -> None:
        self._matrix = matrix
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
    def has_limits(self) -> bool:
        """Whether the user has set limits for cells."""
        return self._matrix.limits != NO_LIMITS

    @property
    def unit(self) -> str:
        """The unit of the numbers in cells: `Gb/s`, `Mb/s`, or `trans/s`."""
        return "trans/s" if self.is_of_transactions else self._rates.unit

    def percent(self, cell: Cell) -> float | None:
        """Return a cell in percent of its expected rate, else of the median; None without a result."""
        figure = self._figures.get(cell)
        if figure is None or figure.value is None:
            return None
        if figure.percent is not None:
            return figure.percent
        return percent_of(figure.value, self._expected.get(cell, self.median))

    def is_of_expected(self, cell: Cell) -> bool:
        """Return whether a cell has an expected rate, so that its percentage is not of the median."""
        figure = self._figures.get(cell)
        return figure is not None and (figure.percent is not None or cell in self._expected)

    def state(self, cell: Cell) -> CellState:
        """Return the state of a cell by its limits and its rate, whether it runs or not."""
        return CellState.LIMIT if self._matrix.check_limits(cell).broken else self.rate_state(cell)

    def rate_state(self, cell: Cell) -> CellState:
        """Return the state of a cell by its rate alone."""
        percent = self.percent(cell)
        if percent is None:
            figure = self._figures.get(cell)
            return CellState.WAITING if figure is None or figure.failure is None else CellState.NO_RESULT
        return CellState[rate_word(percent, self._pass_percent).upper()]

    def number(self, cell: Cell) -> str:
        """Return the result of a cell as a number of `unit`, at most six characters long; "" without one."""
        figure = self._figures.get(cell)
        if figure is None or figure.value is None:
            return ""
        if figure.transactions_s is not None:
            return numbers.transaction_number(figure.value)
        bit_s = figure.value / self._rates.bit_s
        return numbers.number(bit_s, 1 if bit_s < _WHOLE_FROM else 0)


def judge_mesh(
    matrix: MeshMatrix, findings: Sequence[MeshFinding], pass_percent: float = DEFAULT_PASS_PERCENT
) -> MeshVerdict:
    """Return the verdict of a mesh: the worst of its cells.

    `fail`: a cell is under half of its expected rate, or breaks a limit. `short`: a cell is under the pass mark
    or, without an expected rate, slower than the others; losses at the usual rate do not count. `none`: no cell is
    slow so far, but some are not measured yet, or have no figure that a limit asks for.
    """
    scale = CellScale(matrix, pass_percent)
    checks = [matrix.check_limits(cell) for cell in matrix.figures]
    states = {scale.rate_state(cell) for cell in matrix.figures if scale.is_of_expected(cell)}
    if CellState.FAIL in states or any(check.broken for check in checks):
        return "fail"
    slow = [each for each in findings if each.code is not MeshFindingCode.HOST_DOWN and each.lost_percent is None]
    if CellState.SHORT in states or slow:
        return "short"
    return "pass" if matrix.is_complete and not any(check.unknown for check in checks) else "none"


def legend(scale: CellScale, pass_percent: float = DEFAULT_PASS_PERCENT) -> str:
    """Return the meaning of the marks of a map, on one line."""
    of = "the expected rate" if scale.has_expected else "the median"
    marks = {
        CellState.SHORT: f"under {pass_percent:g}{numbers.NBSP}% of {of}",
        CellState.FAIL: f"under {FAIL_PERCENT:g}{numbers.NBSP}%",
        CellState.LIMIT: "breaks a limit",
        CellState.NO_RESULT: "no result",
        CellState.WAITING: "not measured",
    }
    if not scale.has_limits:
        del marks[CellState.LIMIT]
    return "  ".join(f"{mark.value} {words}" for mark, words in marks.items())
