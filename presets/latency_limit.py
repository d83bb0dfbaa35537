"""What latency under load may be: the pass marks of a responsiveness test."""

from dataclasses import dataclass

from ..engine.results.responsiveness.result import Grade


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """The limits that a test is judged by; None is no limit.

    `max_rise_ns` is the most by which latency may rise under load in any direction, `worst_grade` the lowest grade
    that is a pass.
    """

    max_rise_ns: int | None = None
    worst_grade: Grade | None = None
