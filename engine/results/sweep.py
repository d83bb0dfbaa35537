"""A sweep: one short run for each combination of settings, and what can be said of all of them together.

Pure. A Sweep is its definition, as it is kept: the axes, and the plan that every run has in common. Its points are
run in an order shuffled by its name, always the same: what drifts on the link or the hosts while a sweep goes on
then falls on all values alike, instead of looking like an effect of the axis that is changed last.
"""

import random
from dataclasses import dataclass, replace
from itertools import product
from typing import Final, Literal

from ..model.errors import PlanError
from ..model.plan import Direction, Plan, Settings
from .summary import Summary

MAX_POINTS: Final = 1_000
Axis = Literal["direction", "sessions", "window_bytes", "message_bytes"]
AXES: Final[tuple[Axis, ...]] = ("direction", "sessions", "window_bytes", "message_bytes")


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One combination of settings. `message_bytes` is what a session hands to its socket at once."""

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
        """Return the point that a plan is."""
        settings = plan.settings
        return cls(settings.direction, settings.sessions, settings.window_bytes, plan.block_bytes)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep is: its name, which its runs have as their group, where it goes, and what is tried.

    `base` is the plan that all runs have in common; `preset` is an id or nothing, `figure` the id of a document's
    experiment that this repeats.
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
        """Refuse what no sweep can have, point by point, before the first one runs."""
        count = len(self.directions) * len(self.sessions) * len(self.windows) * len(self.messages)
        if not 1 <= count <= MAX_POINTS:
            raise PlanError("sweep", f"{count} runs", f"give axes that make 1 to {MAX_POINTS} runs")
        if self.base.duration_ns is None:
            raise PlanError("duration", "until stopped", "each run of a sweep has an end: give seconds")
        for point in self._grid():
            point.to_plan(self.base)

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """Every combination once, in the order in which they are run."""
        points = self._grid()
        random.Random(self.group).shuffle(points)  # noqa: S311 (an order, no secret)
        return tuple(points)

    def values(self, axis: Axis) -> tuple[int | str | None, ...]:
        """Return the values of an axis, as they were asked for."""
        found: dict[Axis, tuple[int | str | None, ...]] = {
            "direction": tuple(direction.value for direction in self.directions),
            "sessions": self.sessions,
            "window_bytes": self.windows,
            "message_bytes": self.messages,
        }
        return found[axis]

    @property
    def varied_axes(self) -> tuple[Axis, ...]:
        """The axes that have more than one value."""
        return tuple(axis for axis in AXES if len(self.values(axis)) > 1)

    def _grid(self) -> list[SweepPoint]:
        values = product(self.directions, self.sessions, self.windows, self.messages)
        return list(dict.fromkeys(SweepPoint(*one) for one in values))


@dataclass(frozen=True, slots=True)
class SweepResult:
    """A point that was run, and what that run measured."""

    point: SweepPoint
    run_id: str
    summary: Summary

    @property
    def bit_s(self) -> float | None:
        """The rate, of both directions together where both ran."""
        return None if self.summary.measured.total is None else self.summary.measured.total.bit_s
