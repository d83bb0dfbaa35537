"""The events of a mesh in progress: one stream for the run log, the screen and the output. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from ..engine.model.events import Event
from .plan import CELL_OVERHEAD_NS, Cell, MeshPlan


class FailureCode(StrEnum):
    """Why a cell has no run."""

    HOST_LOST = "host-lost"
    """One of its hosts has lost its worker."""
    NO_ANSWER = "no-answer"
    """A host did not answer until the deadline."""
    UNREACHABLE = "unreachable"
    """The hosts do not reach each other, or one refuses the other."""
    FAILED = "failed"
    """The test began and broke off, or a host could not run it."""
    BUSY = "busy"
    """Another test had a host's interface until the deadline."""
    STOPPED = "stopped"
    """The user ended the mesh before."""


@dataclass(frozen=True, slots=True)
class CellFailure:
    """Why a cell has no result. `host` is the name of the host at fault; None if that is unknown."""

    code: FailureCode
    detail: str
    host: str | None = None


@dataclass(frozen=True, slots=True)
class MeshBegan:
    """The hosts are known and their endpoints listen: always the first event.

    `plan` has the hosts' addresses, and only hosts that have one. `cells` is the number of cells to measure.
    `overhead_ns` is the expected overhead of a test: the start of all endpoints took so long.
    """

    plan: MeshPlan
    cells: int
    overhead_ns: int = CELL_OVERHEAD_NS


@dataclass(frozen=True, slots=True)
class HostLost:
    """A host takes no further part. Its remaining cells fail for this reason."""

    host: str
    failure: CellFailure


@dataclass(frozen=True, slots=True)
class RoundBegan:
    """A round of disjoint pairs began. `number` counts from 1; `rounds` is the number of rounds."""

    number: int
    rounds: int


@dataclass(frozen=True, slots=True)
class CellBegan:
    """The run of a cell began. With `is_isolated` no other pair is measured at the same time."""

    cell: Cell
    is_isolated: bool = False


@dataclass(frozen=True, slots=True)
class CellEnded:
    """The run of a cell ended: the events of the run, or the reason why there is none.

    `near` is the name of the host that began it: for the direction `in` the receiver. `texts` are the events as the
    JSON that the host sent, so that they need not be encoded again; it may be empty.
    """

    cell: Cell
    near: str
    events: tuple[Event, ...] = ()
    failure: CellFailure | None = None
    is_isolated: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeshEnded:
    """The mesh is over: always the last event. `is_complete` says that every cell was tried, `detail` why not."""

    is_complete: bool
    detail: str = ""


MeshEvent = MeshBegan | HostLost | RoundBegan | CellBegan | CellEnded | MeshEnded
