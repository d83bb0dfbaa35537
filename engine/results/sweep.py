"""A sweep: its definition, and one short run for each combination of settings.

Pure. A Sweep defines the axes, and the plan that all runs have in common. The order of the points is random but
fixed by the sweep's name: a drift of the link or the hosts then affects all values alike, instead of looking like
an effect of the last axis.
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
            raise PlanError("sweep", f"{count} runs", f"give axes that make 1 to {MAX_POINTS} runs")
        if self.base.duration_ns is None:
            raise PlanError("duration", "until stopped", "each run of a sweep has an end: give seconds")
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
