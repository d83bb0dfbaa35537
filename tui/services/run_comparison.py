"""The comparison of stored runs with the first of them, as values for the app and the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...engine.results.comparison import Comparison, compare
from ..state.instrument_values import PlotPoint
from ..text import numbers
from ..text.comparison import ComparisonRow, figure_rows, plan_rows
from ..text.run_list import RunLine, run_line
from .stored_run import StoredRun

LETTERS: Final = "ABCDEFGH"  # the names of compared runs; also the limit of their number


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """A run against the first one: the settings that differ, then the figures."""

    line: RunLine
    plan_rows: tuple[ComparisonRow, ...]
    figure_rows: tuple[ComparisonRow, ...]


def compare_stored_runs(runs: Sequence[StoredRun]) -> list[ComparisonTable]:
    """Return a table for each run after the first, which it is compared with."""
    first = runs[0]
    return [_table(first, other, compare(first.outcome.summary, other.outcome.summary)) for other in runs[1:]]


def rate_points(run: StoredRun) -> list[PlotPoint]:
    """Return a run's rate over time, in the direction of each moment; that of duplex is the sum of both."""
    points = [
        point for period in run.readings.periods for point in period.points.get(period.settings.direction, [])
    ]
    return sorted(points, key=lambda point: point.at_s)


def _table(first: StoredRun, other: StoredRun, comparison: Comparison) -> ComparisonTable:
    first_line, other_line = run_line(first.row), run_line(other.row)
    rows = plan_rows(comparison)
    for name in ("peer", "preset"):
        before, after = getattr(first_line, name), getattr(other_line, name)
        if before != after:
            rows.append(ComparisonRow(name, before or numbers.UNKNOWN, after or numbers.UNKNOWN))
    return ComparisonTable(other_line, tuple(rows), tuple(figure_rows(comparison)))
