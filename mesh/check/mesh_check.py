"""Whether every host of a mesh can be used, and reaches every other one: `check_mesh`, without a test or a load.

The hosts are opened as for the mesh itself: logged in to, their Python and linkgauge compared, a worker and an
endpoint started on each. Then each host connects to the endpoints of all others. For a mesh of datagrams each also
opens a UDP session with them, which carries a few datagrams.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, cast

from ...engine.model.directions import Direction
from ...engine.model.errors import TooFewHosts, make_printable
from ...engine.model.plan import SECOND_NS, Plan, Settings
from ..cell_result import read_cell
from ..cluster import Cluster, HostFailed, HostFault, connect_cluster
from ..events import CellFailure, FailureCode, HostLost
from ..host_supervisor import HostSupervisor, describe_fault, together
from ..over_ssh.ssh_cluster import start_ssh_cluster
from ..plan import Cell, Host, MeshPlan, Pairing
from .reached_endpoints import MAX_TEXT, deadline_s, reach_endpoints

_MAX_VERSION: Final = 40
_FEW_NS: Final = SECOND_NS // 2  # the shortest run
_LOW_BIT_S: Final = 100_000
_RUN_S: Final = 20.0
_DEADLINE_S: Final = 25.0


@dataclass(frozen=True, slots=True)
class HostCheck:
    """A host: the version of its Python and the port of its endpoint, None if unknown; and its failure, if any."""

    host: Host
    python: str | None = None
    port: int | None = None
    failure: CellFailure | None = None


@dataclass(frozen=True, slots=True)
class PathCheck:
    """Whether a host reaches the endpoint of another: `cell` is from it to the other."""

    cell: Cell
    port: int
    failure: CellFailure | None = None


@dataclass(frozen=True, slots=True)
class MeshCheck:
    """The hosts of a mesh in their order, and the paths between those that have an endpoint."""

    hosts: tuple[HostCheck, ...]
    paths: tuple[PathCheck, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the mesh can measure every cell."""
        return len(self.hosts) > 1 and all(each.failure is None for each in (*self.hosts, *self.paths))


async def check_mesh(plan: MeshPlan, scheduler: str | None, remote_python: str | None = None) -> MeshCheck:
    """Check the hosts of a plan; without any, all workers of the scheduler.

    Args:
        plan: the mesh; its port and its workload decide what is tried.
        scheduler: the address of a Dask scheduler; None for hosts that ssh reaches.
        remote_python: the interpreter of hosts that ssh reaches.

    Raises:
        ClusterError: there is no scheduler, or this machine does not reach it.
    """
    try:
        async with _open_cluster(plan, scheduler, remote_python) as cluster:
            return await check_cluster(plan, cluster)
    except TooFewHosts as error:
        checks = [HostCheck(host) for host in error.found]
        return MeshCheck(tuple(_in_order(plan.hosts, [*checks, *_lost_checks(error.lost)])))


@asynccontextmanager
async def _open_cluster(
    plan: MeshPlan, scheduler: str | None, remote_python: str | None
) -> AsyncGenerator[Cluster]:
    if scheduler is None:
        async with start_ssh_cluster(plan.hosts, remote_python=remote_python) as cluster:
            yield cluster
    else:
        async with connect_cluster(scheduler, plan.hosts) as cluster:
            yield cluster


async def check_cluster(plan: MeshPlan, cluster: Cluster) -> MeshCheck:
    """Check the hosts of a plan on their cluster, and end everything there again."""
    wanted = {host.name for host in plan.hosts or cluster.hosts}
    hosts = [host for host in cluster.hosts if host.name in wanted]
    supervisor = HostSupervisor(cluster, hosts, lambda _lost: None, plan.port)
    keeping = asyncio.create_task(supervisor.keep())
    try:
        await supervisor.open()
        ports = dict(supervisor.ports)
        names = [host.name for host in hosts if host.name in supervisor.present]
        answers = await together(_ask(supervisor, name, names) for name in names)
        if plan.base.workload.is_datagram:
            answers = await together(_try_datagrams(supervisor, plan, answer) for answer in answers)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await supervisor.close()
    found = {answer.name: answer for answer in answers}
    checks = [
        HostCheck(host, found[host.name].python, ports.get(host.name), found[host.name].failure)
        if host.name in found
        else HostCheck(host, failure=_with_remedy(supervisor.lost[host.name]))
        for host in hosts
    ]
    paths = tuple(path for answer in answers for path in answer.paths)
    return MeshCheck(tuple(_in_order(plan.hosts, [*checks, *_lost_checks(cluster.lost)])), paths)


def _with_remedy(failure: CellFailure) -> CellFailure:
    """Return the failure of a host with what to do if it is silent: its worker has just come to the scheduler."""
    if failure.code is not FailureCode.NO_ANSWER:
        return failure
    remedy = "firewalls must let the scheduler connect to free ports of this host; or it is overloaded"
    return replace(failure, detail=f"{failure.detail}; {remedy}")


def _lost_checks(lost: Iterable[HostLost]) -> list[HostCheck]:
    return [HostCheck(Host(each.host), failure=each.failure) for each in lost]


def _in_order(given: Sequence[Host], checks: Sequence[HostCheck]) -> list[HostCheck]:
    """Return the checks in the order of the given hosts, with their groups."""
    places = {host.name: (place, host.group) for place, host in enumerate(given)}
    grouped = [
        replace(each, host=replace(each.host, group=places.get(each.host.name, (0, each.host.group))[1]))
        for each in checks
    ]
    return sorted(grouped, key=lambda each: places.get(each.host.name, (len(places), None))[0])


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer of a host that has an endpoint."""

    name: str
    python: str | None = None
    paths: tuple[PathCheck, ...] = ()
    failure: CellFailure | None = None


async def _ask(supervisor: HostSupervisor, name: str, names: Sequence[str]) -> _Answer:
    """Have a host connect to the endpoints of all others."""
    cells = [Cell(name, other) for other in names if other != name]
    targets = [(supervisor.addresses[cell.receiver], supervisor.ports[cell.receiver]) for cell in cells]
    try:
        call = supervisor.call(name, reach_endpoints, deadline_s=deadline_s(len(targets)), more=(targets,))
        python, problems = _read_answer(await call, len(targets))
    except HostFault as fault:
        return _Answer(name, failure=describe_fault(fault, name))
    paths = tuple(
        PathCheck(cell, port, None if problem is None else CellFailure(FailureCode.UNREACHABLE, problem))
        for cell, (_, port), problem in zip(cells, targets, problems, strict=True)
    )
    return _Answer(name, python, paths)


def _read_answer(answer: object, count: int) -> tuple[str, list[str | None]]:
    """Return the members of a host's answer; raise HostFault for anything else."""
    members: Mapping[str, object] = cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
    python, given = members.get("python"), members.get("problems")
    problems = cast("list[object]", given) if isinstance(given, list) else []
    texts = [text for text in problems if text is None or isinstance(text, str)]
    if not isinstance(python, str) or len(problems) != count or len(texts) != count:
        raise HostFailed("it sent an answer that cannot be read")
    shown = [None if text is None else make_printable(text[:MAX_TEXT]) for text in texts]
    return make_printable(python[:_MAX_VERSION]), shown


async def _try_datagrams(supervisor: HostSupervisor, plan: MeshPlan, answer: _Answer) -> _Answer:
    """Have a host open a UDP session with each endpoint that it reaches, one after the other."""
    settings = Settings(rate_bit_s=_LOW_BIT_S, direction=Direction.OUT)
    few = Plan(settings, plan.base.workload, _FEW_NS, interval_ns=_FEW_NS // 5)
    paths: list[PathCheck] = []
    for path in answer.paths:
        failure = path.failure or await _try_session(supervisor, Pairing(*path.cell), few)
        paths.append(replace(path, failure=failure))
    return replace(answer, paths=tuple(paths))


async def _try_session(supervisor: HostSupervisor, pairing: Pairing, plan: Plan) -> CellFailure | None:
    try:
        lines = await supervisor.run(pairing.near, pairing.far, plan, seconds=_RUN_S, deadline_s=_DEADLINE_S)
    except HostFault as fault:
        return describe_fault(fault, pairing.near)
    result = read_cell(lines, plan, pairing)
    return result if isinstance(result, CellFailure) else None
