"""The directions and the ends of a run, and which end sends in which direction.

Pure. Every figure that has a direction is a `PerDirection`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from .workload import Workload

T = TypeVar("T")


class Direction(StrEnum):
    """The direction of a run: `out` from the near end, `in` from the far end, `duplex` both at once.

    The end named here sends the stream, or the requests of transactions.
    """

    OUT = "out"
    IN = "in"
    DUPLEX = "duplex"

    @property
    def flows(self) -> tuple["Direction", ...]:
        """The single directions of this one."""
        return (Direction.OUT, Direction.IN) if self is Direction.DUPLEX else (self,)

    @property
    def opposite(self) -> "Direction":
        """The other single direction, or duplex itself."""
        return {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT}.get(self, self)


@dataclass(frozen=True, slots=True)
class PerDirection(Generic[T]):
    """A value for each direction, and one for both together. Index it with a `Direction`."""

    out: T
    in_: T
    total: T

    def __getitem__(self, direction: Direction) -> T:
        """Return the value of a direction; `total` for duplex."""
        match direction:
            case Direction.OUT:
                return self.out
            case Direction.IN:
                return self.in_
            case Direction.DUPLEX:
                return self.total


class End(StrEnum):
    """The ends of a link: the user is at the near one."""

    NEAR = "near"
    FAR = "far"

    @property
    def other(self) -> "End":
        """The opposite end."""
        return End.FAR if self is End.NEAR else End.NEAR

    @property
    def label(self) -> str:
        """The end's name for the user: `local` or `remote`."""
        return "local" if self is End.NEAR else "remote"


def sender_of(flow: Direction, workload: Workload) -> End:
    """Return the end that sends a single direction's payload; the other end's count is the result.

    The payload of transactions is their responses: the responder sends it.
    """
    starter = End.NEAR if flow is Direction.OUT else End.FAR
    return starter.other if workload.is_transactional else starter


def connects_back(workload: Workload, direction: Direction) -> bool:
    """Return whether the far end opens connections to ports that the near end names."""
    return workload.opens_connections and any(sender_of(flow, workload) is End.NEAR for flow in direction.flows)
