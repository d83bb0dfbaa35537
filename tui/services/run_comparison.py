"""Runs of the log against the first of them, as the app and the report show them: values only. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ...engine.results.comparison import Comparison, Figure, compare
from ..state.instrument_values import PlotPoint
from ..text import numbers
from ..text.comparison import difference_words, figure_name, figure_value_words, plan_difference_words
from ..text.run_list import RunLine, run_line
from .stored_run import StoredRun

LETTERS: Final = "ABCDEFGH"  # what runs are called beside each other, and how many there can be
Significance = Literal["real", "alike", "plain"]
SIGNIFICANCE_MARKS: Final[dict[Significance, str]] = {"real": "≠", "alike": "≈", "plain": "·"}


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One thing of two runs: both values, and what their difference is worth.

    `real` is a difference that the runs show, `alike` one that they do not; `plain` has no interval to tell.
    """

    name: str
    first: str
    second: str
    difference: str
    significance: Significance


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """A run against the first one: what was asked for differently, and what came out differently."""

    line: RunLine
    plan_rows: tuple[ComparisonRow, ...]
    figure_rows: tuple[ComparisonRow, ...]


def compare_stored_runs(runs: Sequence[StoredRun]) -> list[ComparisonTable]:
    """Return each run against the first."""
    first = runs[0]
    return [_beside(first, other, compare(first.outcome.summary, other.outcome.summary)) for other in runs[1:]]


def rate_points(run: StoredRun) -> list[PlotPoint]:
    """Return a run's rate over its time: of what its direction was at each moment, both of them added."""
    points = [point for leg in run.readings.periods for point in leg.points.get(leg.settings.direction, [])]
    return sorted(points, key=lambda point: point.at_s)


def _beside(first: StoredRun, other: StoredRun, comparison: Comparison) -> ComparisonTable:
    one, two = run_line(first.row), run_line(other.row)
    changed = [ComparisonRow(name, a, b, "", "plain") for name, a, b in plan_difference_words(comparison)]
    for name in ("peer", "preset"):
        a, b = getattr(one, name), getattr(two, name)
        if a != b:
            changed.append(ComparisonRow(name, a or numbers.UNKNOWN, b or numbers.UNKNOWN, "", "plain"))
    figures = [figure for figure in comparison.figures if (figure.first, figure.second) != (None, None)]
    return ComparisonTable(two, tuple(changed), tuple(_row(figure) for figure in figures))


def _row(figure: Figure) -> ComparisonRow:
    found = figure.difference
    is_shown = None if found is None else found.is_significant
    return ComparisonRow(
        figure_name(figure),
        figure_value_words(figure, second=False),
        figure_value_words(figure, second=True),
        difference_words(figure),
        "plain" if is_shown is None else "real" if is_shown else "alike",
    )
