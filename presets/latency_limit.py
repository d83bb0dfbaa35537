"""What latency under load may be: the pass marks of a responsiveness test, and how a run's document keeps them."""

from dataclasses import dataclass
from typing import Final

from ..engine.results.json_document import figures_of
from ..engine.results.responsiveness.result import GRADES, Grade
from ..engine.results.run_result import LimitFigures

_MILLISECOND_NS: Final = 1_000_000
_MOST_MS: Final = 1e9


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """The limits that a test is judged by; None is no limit.

    `max_rise_ns` is the most by which latency may rise under load in any direction, `worst_grade` the lowest grade
    that is a pass.
    """

    max_rise_ns: int | None = None
    worst_grade: Grade | None = None


def limit_figures(limit: LatencyLimit | None) -> LimitFigures | None:
    """Return the limits as the result of a run has them."""
    return None if limit is None else figures_of(LimitFigures, limit)


def read_limit(figures: LimitFigures | None) -> LatencyLimit | None:
    """Return the limits of a stored run; None where it has none, or is damaged."""
    if figures is None:
        return None
    rise_ms, worst = figures.max_rise_ms, figures.worst_grade
    rise_ns = None if rise_ms is None or not 0 <= rise_ms < _MOST_MS else round(rise_ms * _MILLISECOND_NS)
    grade: Grade | None = next((each for each in GRADES if each == worst), None)
    return None if rise_ns is None and grade is None else LatencyLimit(rise_ns, grade)
