"""The results of a sweep: the saturation point of each axis, and the best settings.

Pure. Every result uses the rates' confidence intervals (confidence.py), at a confidence that is corrected for the
number of comparisons (Bonferroni): of twenty comparisons at 95 %, one is likely to show a false difference. A gain
counts only if it is significantly more than 1 %: on a steady link a thousandth may be significant, but is of no
practical use. Rates that are not known within 10 % are ignored.
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
_MAX_HALF_WIDTH_PERCENT: Final = 10.0


@dataclass(frozen=True, slots=True)
class SaturationPoint:
    """The smallest value of an axis beyond which no gain is significant; the other settings are those of `point`.

    `max_gain_percent` is the largest upper end of the gains' intervals beyond it; None if `value` is the largest
    of the sweep.
    """

    axis: Axis
    point: SweepPoint
    value: int
    max_gain_percent: float | None
    is_first: bool


@dataclass(frozen=True, slots=True)
class BestSettings:
    """The fastest cell of a direction, the cells that may be as fast, and the least demanding of these."""

    fastest: SweepResult
    equivalent: tuple[SweepResult, ...]
    least_demanding: SweepResult


def find_saturation_points(results: Sequence[SweepResult]) -> list[SaturationPoint]:
    """Return the saturation points of every axis, for each combination of the others with three values or more."""
    saturation_points: list[SaturationPoint] = []
    for axis in AXES:
        if axis == "direction":
            continue
        lines: dict[tuple[object, ...], list[tuple[int, SweepResult]]] = {}
        for cell in results:
            value = cell.point.value(axis)
            if isinstance(value, int):  # a window left to the kernel is nowhere on the axis
                others = tuple(cell.point.value(other) for other in AXES if other != axis)
                lines.setdefault(others, []).append((value, cell))
        for others in sorted(lines, key=lambda key: [str(value).rjust(12) for value in key]):
            line = sorted(lines[others], key=lambda pair: pair[0])
            saturation = _saturation_point(axis, line)
            if saturation is not None:
                saturation_points.append(saturation)
    return saturation_points


def _saturation_point(axis: Axis, line: Sequence[tuple[int, SweepResult]]) -> SaturationPoint | None:
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
    """Return the best of cells with the same direction; None if no rate is known precisely enough."""
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
    """Return a cell's rate with its error; None if it is 0 or not known precisely enough."""
    total = result.summary.measured.total
    estimate = None if total is None else total.estimate
    percent = None if estimate is None else estimate.half_width_percent
    return estimate if percent is not None and percent <= _MAX_HALF_WIDTH_PERCENT else None


def _modesty(cell: SweepResult) -> tuple[int, int, int]:
    """Order settings by what they ask for: few sessions, then a small window, the kernel's own before all."""
    point = cell.point
    return point.sessions, point.window_bytes or 0, point.message_bytes
