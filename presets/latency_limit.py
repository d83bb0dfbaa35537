"""What latency under load may be: the pass marks of a responsiveness test, and how a run's document keeps them."""

from dataclasses import dataclass
from typing import Any, Final, cast

from ..engine.results.json_document import round_figure
from ..engine.results.responsiveness.result import GRADES, Grade

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


def limit_document(limit: LatencyLimit) -> dict[str, Any]:
    """Return the limits as a run's document has them."""
    rise_ns = limit.max_rise_ns
    return {
        "max_rise_ms": None if rise_ns is None else round_figure(rise_ns / _MILLISECOND_NS),
        "worst_grade": limit.worst_grade,
    }


def read_limit(value: object) -> LatencyLimit | None:
    """Return the limits of a document; None where it has none, or is damaged."""
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    rise_ns, worst = _read_rise(members.get("max_rise_ms")), members.get("worst_grade")
    grade: Grade | None = next((each for each in GRADES if each == worst), None)
    return None if rise_ns is None and grade is None else LatencyLimit(rise_ns, grade)


def _read_rise(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST_MS:
        return None
    return round(value * _MILLISECOND_NS)
