"""The plan of a mesh: its hosts, the test of each pair, and the order of pairs. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from ..engine.metering.idle_time import idle_ns
from ..engine.model.directions import Direction
from ..engine.model.errors import PlanError, UsageError, make_printable
from ..engine.model.plan import SECOND_NS, Plan
from ..engine.model.serialization import OMITTED_AT_DEFAULT
from ..engine.results.confidence import SERIES_INTERVAL_NS
from ..presets.verdict import NO_LIMITS, AcceptanceLimits

MIN_HOSTS: Final = 2
MAX_HOSTS: Final = 4_096
MAX_NAME_LENGTH: Final = 64
PORTS: Final = 65_536
"""A port is below this number."""
CELL_OVERHEAD_NS: Final = SECOND_NS
"""The least overhead of a test that is expected: its process, connecting, the key, the result."""
_RECHECKS_PERCENT: Final = 25
GROUP_PREFIX: Final = "mesh-"
"""The beginning of every mesh's name, which is the group of its runs in the run log."""
# A test of this duration has five samples after the warm-up: enough for a confidence interval. More would cost: the
# coordinator decodes and stores the samples of both ends of thousands of tests.
_LONG_NS: Final = 3 * SECOND_NS
_LONG_INTERVAL_NS: Final = SECOND_NS // 2


class MeshMode(StrEnum):
    """Which pairs are measured at the same time."""

    ROUNDS = "rounds"
    """Disjoint pairs at the same time: each host has one test at a time."""
    ISOLATED = "isolated"
    """One pair at a time: nothing else loads the network."""
    ALL = "all"
    """Rounds whose pairs begin at the same moment: shows the capacity when every host sends or receives."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of a mesh.

    `address` is the IP address at which the others reach it; None before its worker is known. `group` is a rack, a
    site or a switch that the hosts of a group have in common.
    """

    name: str
    group: str | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        """Check the names; raise PlanError unless they can be printed unchanged."""
        for what, text in (("host", self.name), ("group", self.group)):
            if text is None:
                continue
            if not 1 <= len(text) <= MAX_NAME_LENGTH or text != make_printable(text) or text != text.strip():
                raise PlanError(
                    what, repr(text[:MAX_NAME_LENGTH]), f"give 1 to {MAX_NAME_LENGTH} printable characters"
                )


class Cell(NamedTuple):
    """A cell of the matrix, by the names of its hosts: the first sends payload to the second.

    For transactions the first is the client.
    """

    sender: str
    receiver: str


def cells_of_host(name: str, hosts: Iterable[Host]) -> tuple[Cell, ...]:
    """Return the cells that a host has with others: to each, and from each."""
    others = [host.name for host in hosts if host.name != name]
    return tuple(cell for other in others for cell in (Cell(name, other), Cell(other, name)))


def cell_interval_ns(duration_ns: int) -> int:
    """Return the sampling interval of tests of this duration, in nanoseconds."""
    return _LONG_INTERVAL_NS if duration_ns >= _LONG_NS else SERIES_INTERVAL_NS


def check_port(port: int) -> None:
    """Raise PlanError unless the number is a port, or 0 for a free one."""
    if not 0 <= port < PORTS:
        raise PlanError("--port", str(port), f"give 1 to {PORTS - 1}")


@dataclass(frozen=True, slots=True)
class MeshPlan:
    """A mesh to measure. Each pair has two runs, one in each direction; the pair's first host begins both.

    Args:
        group: the mesh's name, and the group of its runs in the run log.
        hosts: the hosts, in the user's order; empty until the hosts of the scheduler are known.
        base: the plan of every run; its direction is replaced.
        mode: which pairs are measured at the same time.
        seed: decides the order of pairs: the same seed gives the same order.
        preset: the id of the preset that judges the rates, `auto`, or None.
        port: the port, TCP and UDP, on which each host's endpoint listens; 0 for a free one.
        limits: what every cell must keep.
    """

    group: str
    hosts: tuple[Host, ...]
    base: Plan
    mode: MeshMode = MeshMode.ROUNDS
    seed: int = 1
    preset: str | None = None
    port: int = field(default=0, metadata=OMITTED_AT_DEFAULT)
    limits: AcceptanceLimits = field(default=NO_LIMITS, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Check the hosts, the duration and the port; raise PlanError or UsageError."""
        check_port(self.port)
        if 0 < len(self.hosts) < MIN_HOSTS:
            raise UsageError(f"a mesh needs at least {MIN_HOSTS} hosts; you gave {len(self.hosts)}")
        if len(self.hosts) > MAX_HOSTS:
            raise UsageError(f"a mesh has at most {MAX_HOSTS} hosts; you gave {len(self.hosts)}")
        seen: set[str] = set()
        for host in self.hosts:
            if host.name in seen:
                raise PlanError("hosts", repr(host.name), "give each host once")
            seen.add(host.name)
        if self.base.duration_ns is None:
            raise PlanError("--seconds", "none", "each test of a mesh needs an end: give a duration")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, in the order of hosts."""
        names = [host.name for host in self.hosts]
        return tuple(Cell(sender, receiver) for sender in names for receiver in names if sender != receiver)


def estimate_ns(plan: MeshPlan, cells: int, overhead_ns: int, rechecks: int | None = None) -> int:
    """Return the estimated time of so many tests with an overhead each, and of the end of all on the hosts.

    `rechecks` tests follow one after the other: the cells that are slow so far. None if nothing is known yet: then
    a quarter more is right within a third, from no such test to tests of seven eighths of the time.
    """
    turns = -(-cells // _cells_at_once(plan))
    test_ns = _test_ns(plan) + overhead_ns
    again_ns = rechecks * test_ns if rechecks is not None else turns * test_ns * _RECHECKS_PERCENT // 100
    if plan.mode is MeshMode.ISOLATED:  # every cell is alone already
        again_ns = 0
    return turns * test_ns + again_ns + 2 * overhead_ns


def mean_overhead_ns(plan: MeshPlan, ended: int, took_ns: int) -> int:
    """Return the overhead of each of the tests that have ended since the first began."""
    turns = -(-ended // _cells_at_once(plan))
    return max(took_ns // turns - _test_ns(plan), 0)


def _test_ns(plan: MeshPlan) -> int:
    """Return the duration of a test's payload, and of the latency that is measured before it."""
    return idle_ns(plan.base) + (plan.base.duration_ns or 0)


def _cells_at_once(plan: MeshPlan) -> int:
    return 1 if plan.mode is MeshMode.ISOLATED else max(len(plan.hosts) // 2, 1)


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two hosts that are measured with each other. `near` begins both runs: first it sends, then it receives."""

    near: str
    far: str

    @property
    def cells(self) -> tuple[tuple[Cell, Direction], tuple[Cell, Direction]]:
        """Both cells in the order of their runs, with the direction of each from the near end."""
        return (
            (Cell(self.near, self.far), Direction.OUT),
            (Cell(self.far, self.near), Direction.IN),
        )
