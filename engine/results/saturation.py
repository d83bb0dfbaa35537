"""What a sweep shows: from where on more brings nothing, and which settings are best.

Pure. Every claim is made with the intervals of the rates (interval.py), and with a confidence that allows for the
number of comparisons (Bonferroni): whoever compares twenty settings at 95 % finds a difference that is none. A gain
counts when the intervals leave no doubt that it is more than 1 %: on a steady link a difference of a thousandth can
be shown, and nobody would set anything by it. A rate that is not known within a tenth is no ground for any claim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from .comparison import compare_estimates
from .confidence import Estimate
from .sweep import AXES, Axis, SweepPoint, SweepResult

MIN_GAIN_PERCENT: Final = 1.0
MAX_HIDDEN_GAIN_PERCENT: Final = 5.0  # what may be gained at most where it is said that nothing is
_DOUBT: Final = 0.05
_UNSURE_PERCENT: Final = 10.0


@dataclass(frozen=True, slots=True)
class SaturationPoint:
    """The least value of an axis beyond which no gain is shown, all other settings as in `at`.

    `at_most_percent` is what may still be gained beyond it, the largest upper end of the intervals; None where
    `value` is the largest that was tried.
    """

    axis: Axis
    point: SweepPoint
    value: int
    max_gain_percent: float | None
    is_first: bool


@dataclass(frozen=True, slots=True)
class BestSettings:
    """The fastest cell of a direction, those that may be as fast, and the most modest of all these."""

    fastest: SweepResult
    equivalent: tuple[SweepResult, ...]
    least_demanding: SweepResult


def find_saturation_points(results: Sequence[SweepResult]) -> list[SaturationPoint]:
    """Return the knee of every axis, for each combination of the others that has three values on it or more."""
    found: list[SaturationPoint] = []
    for axis in AXES:
        if axis == "direction":
            continue
        lines: dict[tuple[object, ...], list[tuple[int, SweepResult]]] = {}
        for cell in results:
            value = cell.point.value(axis)
            if isinstance(value, int):  # a window left to the kernel is nowhere on the axis
                others = tuple(cell.point.value(other) for other in AXES if other != axis)
                lines.setdefault(others, []).append((value, cell))
        for others in sorted(lines, key=lambda key: [str(one).rjust(12) for one in key]):
            line = sorted(lines[others], key=lambda pair: pair[0])
            knee = _knee(axis, line)
            if knee is not None:
                found.append(knee)
    return found


def _knee(axis: Axis, line: Sequence[tuple[int, SweepResult]]) -> SaturationPoint | None:
    known = [(value, cell, steady) for value, cell in line if (steady := reliable_estimate(cell)) is not None]
    if len(known) < 3:
        return None
    confidence = 1 - _DOUBT / (len(known) - 1)
    for place, (value, cell, steady) in enumerate(known):
        gains = [compare_estimates(steady, larger, confidence) for _, _, larger in known[place + 1 :]]
        if all(gain is not None and (gain.low or 0.0) <= MIN_GAIN_PERCENT for gain in gains):
            at_most = max((gain.high or 0.0 for gain in gains if gain is not None), default=None)
            return SaturationPoint(axis, cell.point, value, at_most, place == 0)
    return None


def find_best(results: Iterable[SweepResult]) -> BestSettings | None:
    """Return the fastest of cells that ran in the same direction; None where no rate is known well enough."""
    known = [(steady, cell) for cell in results if (steady := reliable_estimate(cell)) is not None]
    if not known:
        return None
    top, fastest = max(known, key=lambda pair: pair[0].mean)
    confidence = 1 - _DOUBT / max(1, len(known) - 1)
    alike: list[SweepResult] = []
    for steady, cell in known:
        lead = compare_estimates(steady, top, confidence)
        if cell is fastest or (lead is not None and (lead.low or 0.0) <= MIN_GAIN_PERCENT):
            alike.append(cell)
    return BestSettings(fastest, tuple(alike), min(alike, key=_modesty))


def reliable_estimate(result: SweepResult) -> Estimate | None:
    """Return a cell's rate with its error; None where nothing moved, or too little is known of it."""
    steady = None if result.summary.measured.total is None else result.summary.measured.total.estimate
    percent = None if steady is None else steady.half_width_percent
    return steady if percent is not None and percent <= _UNSURE_PERCENT else None


def _modesty(cell: SweepResult) -> tuple[int, int, int]:
    """Order settings by what they ask for: few sessions, then a small window, the kernel's own before all."""
    point = cell.point
    return point.sessions, point.window_bytes or 0, point.message_bytes
