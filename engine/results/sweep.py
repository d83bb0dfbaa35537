"""A sweep: its definition, one short run for each combination of settings, and the conclusions from their rates.

Pure. A Sweep defines the axes, and the plan that all runs have in common. The order of the points is random, but
the sweep's name fixes it: so a drift of the link or the hosts affects all values alike, and does not look like an
effect of the last axis.

Saturation points and best settings use the rates' confidence intervals (confidence.py), at a confidence that is
corrected for the number of comparisons (Bonferroni): of twenty comparisons at 95 %, one is likely to show a false
difference. A gain counts only if it is significantly more than 1 %: on a steady link a thousandth may be
significant, but has no practical use. Rates that are not known within 10 % are ignored; if the highest rate of all
is such a rate, there is no conclusion.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

from ..model.directions import Direction
from ..model.errors import PlanError
from ..model.plan import Plan, Settings
from .comparison import compare_estimates
from .confidence import Estimate
from .summary import Summary

MAX_POINTS: Final = 1_000
MIN_GAIN_PERCENT: Final = 1.0
MAX_HIDDEN_GAIN_PERCENT: Final = 5.0  # beyond a saturation point, such a gain may remain unseen
_DOUBT: Final = 0.05
_MAX_HALF_WIDTH_PERCENT: Final = 10.0
Axis = Literal["direction", "sessions", "window_bytes", "message_bytes"]
AXES: Final[tuple[Axis, ...]] = ("direction", "sessions", "window_bytes", "message_bytes")


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """A combination of settings; `message_bytes` is the size of a session's writes."""

    direction: Direction
    sessions: int
    window_bytes: int | None
    message_bytes: int

    def value(self, axis: Axis) -> int | str | None:
        """Return the value on one axis."""
        return {
            "direction": self.direction.value,
            "sessions": self.sessions,
            "window_bytes": self.window_bytes,
            "message_bytes": self.message_bytes,
        }[axis]

    def to_plan(self, base: Plan) -> Plan:
        """Return the plan of this point's run."""
        settings = Settings(self.direction, self.sessions, self.window_bytes)
        return replace(base, settings=settings, block_bytes=self.message_bytes)

    @classmethod
    def from_plan(cls, plan: Plan) -> "SweepPoint":
        """Return the point of a plan."""
        settings = plan.settings
        return cls(settings.direction, settings.sessions, settings.window_bytes, plan.block_bytes)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The definition of a sweep: its name, which is the group of its runs, its peer, and the values of its axes.

    `base` is the plan that all runs have in common; `preset` is the id of a preset, `figure` the id of a
    document's experiment that the sweep repeats.
    """

    group: str
    peer: str
    base: Plan
    directions: tuple[Direction, ...]
    sessions: tuple[int, ...]
    windows: tuple[int | None, ...]
    messages: tuple[int, ...]
    preset: str | None = None
    figure: str | None = None

    def __post_init__(self) -> None:
        """Check the number of points, the duration and every point's plan; raise PlanError for invalid ones."""
        count = len(self.directions) * len(self.sessions) * len(self.windows) * len(self.messages)
        if not 1 <= count <= MAX_POINTS:
            raise PlanError("sweep", f"{count} runs", f"give settings for 1 to {MAX_POINTS} runs")
        if self.base.duration_ns is None:
            raise PlanError("--seconds", "none", "each run of a sweep needs an end: give a duration")
        for point in self._grid():
            point.to_plan(self.base)

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """The points in the order of their runs, each combination once."""
        points = self._grid()
        random.Random(self.group).shuffle(points)  # noqa: S311 (an order, no secret)
        return tuple(points)

    def values(self, axis: Axis) -> tuple[int | str | None, ...]:
        """Return the values of an axis, in the requested order."""
        values: dict[Axis, tuple[int | str | None, ...]] = {
            "direction": tuple(direction.value for direction in self.directions),
            "sessions": self.sessions,
            "window_bytes": self.windows,
            "message_bytes": self.messages,
        }
        return values[axis]

    @property
    def varied_axes(self) -> tuple[Axis, ...]:
        """The axes that have more than one value."""
        return tuple(axis for axis in AXES if len(self.values(axis)) > 1)

    def _grid(self) -> list[SweepPoint]:
        values = product(self.directions, self.sessions, self.windows, self.messages)
        return list(dict.fromkeys(SweepPoint(*combination) for combination in values))


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A point of the sweep with the summary of its run."""

    point: SweepPoint
    run_id: str
    summary: Summary

    @property
    def bit_s(self) -> float | None:
        """The rate of all directions together; None if not measured."""
        return None if self.summary.measured.total is None else self.summary.measured.total.bit_s


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
    """The fastest cell of a direction, the cells that may be as fast, and the least demanding of them."""

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
            if isinstance(value, int):  # an automatic window has no place on the axis
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
    if len(known) < 3 or noisy_leader(cell for _, cell in line) is not None:
        return None
    confidence = 1 - _DOUBT / (len(known) - 1)
    for place, (value, cell, steady) in enumerate(known):
        gains = [compare_estimates(steady, larger, confidence) for _, _, larger in known[place + 1 :]]
        if all(gain is not None and (gain.low or 0.0) <= MIN_GAIN_PERCENT for gain in gains):
            at_most = max((gain.high or 0.0 for gain in gains if gain is not None), default=None)
            return SaturationPoint(axis, cell.point, value, at_most, place == 0)
    return None


def find_best(results: Sequence[SweepResult]) -> BestSettings | None:
    """Return the best of results with the same direction; None if the highest rate is not known well enough."""
    if noisy_leader(results) is not None:
        return None
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
    return BestSettings(fastest, tuple(alike), min(alike, key=_cost_of))


def noisy_leader(results: Iterable[SweepResult]) -> SweepResult | None:
    """Return the result with the highest rate if its rate is not known precisely enough; otherwise None."""
    leader = max(results, key=lambda result: result.bit_s or 0.0, default=None)
    is_noisy = leader is not None and bool(leader.bit_s) and reliable_estimate(leader) is None
    return leader if is_noisy else None


def reliable_estimate(result: SweepResult) -> Estimate | None:
    """Return a result's rate with its error; None if it is 0 or not known precisely enough."""
    total = result.summary.measured.total
    estimate = None if total is None else total.estimate
    percent = None if estimate is None else estimate.half_width_percent
    return estimate if percent is not None and percent <= _MAX_HALF_WIDTH_PERCENT else None


def _cost_of(cell: SweepResult) -> tuple[int, int, int]:
    """Return a key that orders settings by cost: sessions, then the window (automatic first), then messages."""
    point = cell.point
    return point.sessions, point.window_bytes or 0, point.message_bytes
