"""The events of a mesh in progress: one stream for the run log, the screen and the output. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from ..engine.model.events import Event
from .plan import Cell, MeshPlan


class FailureCode(StrEnum):
    """Why a cell has no run."""

    HOST_LOST = "host-lost"
    """The worker of one of its hosts has gone."""
    NO_ANSWER = "no-answer"
    """A host did not answer until the deadline."""
    UNREACHABLE = "unreachable"
    """The hosts do not reach each other, or one refuses."""
    FAILED = "failed"
    """The test began and broke off, or a host could not run it."""
    BUSY = "busy"
    """Another test had a host's interface until the deadline."""
    STOPPED = "stopped"
    """A person ended the mesh before."""


@dataclass(frozen=True, slots=True)
class CellFailure:
    """Why a cell has no result. `host` is the name of the host at fault; None where that is not known."""

    code: FailureCode
    detail: str
    host: str | None = None


@dataclass(frozen=True, slots=True)
class MeshBegan:
    """The hosts are known and their endpoints listen: always the first event.

    `plan` has the hosts' addresses, and only hosts that have one. `cells` is the number of cells to measure.
    """

    plan: MeshPlan
    cells: int


@dataclass(frozen=True, slots=True)
class HostLost:
    """A host takes no further part; its remaining cells fail with this reason."""

    host: str
    failure: CellFailure


@dataclass(frozen=True, slots=True)
class RoundBegan:
    """A round of disjoint pairs began. `number` counts from 1; `rounds` is how many there are."""

    number: int
    rounds: int


@dataclass(frozen=True, slots=True)
class CellBegan:
    """The run of a cell began. `is_isolated` says that no other pair is measured meanwhile."""

    cell: Cell
    is_isolated: bool = False


@dataclass(frozen=True, slots=True)
class CellEnded:
    """The run of a cell ended: its events, as any run has them, or the reason why there is none.

    `near` is the name of the host that began it: the receiver of a cell whose direction is `in`. `texts` are the
    events as JSON, as the host sent them, or empty: they need not be encoded again.
    """

    cell: Cell
    near: str
    events: tuple[Event, ...] = ()
    failure: CellFailure | None = None
    is_isolated: bool = False
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeshEnded:
    """The mesh is over, always the last event. `is_complete` says that every cell was tried; `detail` why not."""

    is_complete: bool
    detail: str = ""


MeshEvent = MeshBegan | HostLost | RoundBegan | CellBegan | CellEnded | MeshEnded
