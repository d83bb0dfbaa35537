"""The hosts of a mesh, supervised: their endpoints, leases and interfaces, and which hosts are lost.

A host is lost when its worker has gone, or after two failures of its own in a row. A failure that another host or a
path causes does not count.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from .. import __version__
from ..engine.model.errors import ClusterError, DecodeError
from ..engine.model.host_info import NicInfo
from ..engine.model.plan import Plan
from ..engine.model.serialization import decode
from ..engine.model.shared_key import SharedKey
from . import host_tasks
from .cluster import Cluster, HostFailed, HostFault, HostGone, InterfaceTask
from .events import CellFailure, FailureCode, HostLost
from .plan import PORTS, Host, Pairing

OPEN_DEADLINE_S: Final = 30.0
"""For an endpoint to start: on a busy host, its worker first has to import linkgauge."""
RENEW_S: Final = 15.0
PROBE_DEADLINE_S: Final = 5.0
_RENEW_DEADLINE_S: Final = 10.0
_CLOSE_DEADLINE_S: Final = 12.0
_HOLD_WAIT_S: Final = 2.0  # then it is asked again, so that a host that hangs is noticed
_MOST_STRIKES: Final = 2

T = TypeVar("T")
_log = logging.getLogger(__name__)


class HostSupervisor:
    """The hosts of one mesh on a cluster.

    Args:
        cluster: their workers.
        hosts: the hosts with their addresses.
        port: the port of each host's endpoint, 0 for a free one.
        on_lost: is called once for each lost host.

    `addresses` has the address of each host, `ports` the port of each endpoint that runs.
    """

    def __init__(
        self, cluster: Cluster, hosts: Iterable[Host], on_lost: Callable[[HostLost], None], port: int = 0
    ) -> None:
        self.mesh_id = secrets.token_hex(8)
        self.lost: dict[str, CellFailure] = {}
        self._cluster = cluster
        self._key = SharedKey.generate()
        self._on_lost = on_lost
        self._port = port
        self.addresses = {host.name: host.address or "" for host in hosts}
        self.ports: dict[str, int] = {}
        self._strikes = dict.fromkeys(self.addresses, 0)
        self._holds = 0
        self._is_closed = self._is_abandoned = False

    @property
    def present(self) -> list[str]:
        """The names of the hosts that are not lost."""
        return [name for name in self.addresses if name not in self.lost]

    async def open(self) -> None:
        """Start the endpoint of every host; hosts that fail to are lost."""
        await together(self._open(name) for name in self.addresses)

    async def _open(self, name: str) -> None:
        call = self.call(
            name, host_tasks.open_host, self._key, deadline_s=OPEN_DEADLINE_S, more=(__version__, self._port)
        )
        try:
            port: object = await call
            if type(port) is not int or not 0 < port < PORTS:  # a host sent it, and the others get it
                raise HostFailed("it did not report the port of its endpoint")
            self.ports[name] = port
        except HostFault as fault:
            self._lose(describe_fault(fault, name))

    async def read_interfaces(self) -> dict[str, NicInfo | None]:
        """Return the interface by which each host reaches the others; None if it is unknown."""
        nics = await together(self._read_interface(name) for name in self.present)
        return dict(zip(self.present, nics, strict=True))

    async def _read_interface(self, name: str) -> NicInfo | None:
        other = next(each for each in self.present if each != name)
        places = self.addresses[name], self.addresses[other]
        try:
            answer = await self._cluster.call(
                name, host_tasks.read_interface, *places, deadline_s=_RENEW_DEADLINE_S
            )
            return None if answer is None else decode(NicInfo, answer)
        except (HostFault, DecodeError) as fault:
            _log.debug("the interface of %s is unknown: %s", name, fault)
            return None

    async def keep(self) -> None:
        """Renew the leases of all hosts, for ever; start an endpoint that has ended once more.

        Each host has its own task: one that does not answer must not use up the leases of the others.
        """
        await together(self._keep(name) for name in self.addresses)

    async def _keep(self, name: str) -> None:
        while name not in self.lost:
            await asyncio.sleep(RENEW_S)
            await self._renew(name)

    async def _renew(self, name: str) -> None:
        try:
            is_kept = await self.call(name, host_tasks.renew_host, deadline_s=_RENEW_DEADLINE_S)
            if not is_kept and name in self.ports:
                await self._open(name)
        except HostGone as fault:
            self._lose(describe_fault(fault, name))
        except HostFault as fault:  # a test that needs this host will find out
            _log.debug("%s: %s", name, fault)

    async def close(self) -> None:
        """End everything on all hosts, lost hosts included: they may come back."""
        names = [] if self._is_abandoned else list(self.addresses)  # an endpoint may be about to start
        self._is_closed, self.ports = True, {}
        await together(self._close(name) for name in names)

    def abandon(self) -> None:
        """Ask the hosts nothing more: their scheduler is lost, and their leases will end everything there."""
        self._is_abandoned = True
        self.ports = {}

    async def _close(self, name: str) -> None:
        # No long wait for a host that did not answer before: its lease ends everything there.
        deadline_s = PROBE_DEADLINE_S if name in self.lost else _CLOSE_DEADLINE_S
        try:
            await self.call(name, host_tasks.close_host, deadline_s=deadline_s)
        except (HostFault, ClusterError) as fault:
            _log.debug("%s was not closed: %s", name, fault)

    async def run(self, near: str, far: str, plan: Plan, *, seconds: float, deadline_s: float) -> list[str]:
        """Run a test from one host to another and return its lines; raise HostFault if the near worker fails."""
        request = host_tasks.CellRequest(
            self.mesh_id, self.addresses[near], self.addresses[far], self.ports[far], plan, seconds
        )
        return await self._cluster.call(near, host_tasks.run_cell, request, deadline_s=deadline_s)

    async def find_fault(self, names: Sequence[str]) -> CellFailure | None:
        """Ask hosts whether they and their endpoints still answer; return the first failure, None without one."""
        faults = await together(self._probe(name) for name in names)
        return next((fault for fault in faults if fault is not None), None)

    async def _probe(self, name: str) -> CellFailure | None:
        try:
            if await self.call(name, host_tasks.renew_host, deadline_s=PROBE_DEADLINE_S):
                return None
        except HostFault as fault:
            return describe_fault(fault, name)
        return CellFailure(FailureCode.FAILED, "its endpoint has ended", name)

    def note_success(self, names: Iterable[str]) -> None:
        """Forget the earlier failures of hosts that took part in a good test."""
        self._strikes.update(dict.fromkeys(names, 0))

    def note_failure(self, failure: CellFailure) -> None:
        """Count a failure; the host at fault is lost if its worker has gone, or at the second one in a row."""
        name = failure.host
        if name is None or failure.code in {FailureCode.BUSY, FailureCode.STOPPED, FailureCode.UNREACHABLE}:
            return
        self._strikes[name] += 1
        if failure.code is FailureCode.HOST_LOST or self._strikes[name] >= _MOST_STRIKES:
            self._lose(failure)

    def is_suspect(self, name: str) -> bool:
        """Return whether the last test of a host failed through its own fault."""
        return self._strikes[name] > 0

    def _lose(self, failure: CellFailure) -> None:
        name = failure.host
        if name is not None and name not in self.lost:
            _log.debug("host %s is lost: %s", name, failure.detail)
            self.lost[name] = failure
            if not self._is_closed:  # the mesh is over
                self._on_lost(HostLost(name, failure))

    @asynccontextmanager
    async def holding(
        self, pairings: Iterable[Pairing], *, wait_s: float, hold_s: float
    ) -> AsyncGenerator[dict[Pairing, CellFailure]]:
        """Take the interfaces of disjoint pairs; yield the pairs that did not get theirs, with the reason.

        They are taken within `wait_s`, one after the other in the order of the hosts' names, so that two meshes on
        one cluster never wait for each other. The end of the block releases them. If the block is cancelled or a
        host does not answer, a hold ends when the host is closed, or `hold_s` after it began.
        """
        pair_of = {name: pairing for pairing in pairings for name in (pairing.near, pairing.far)}
        taken: dict[str, tuple[str, InterfaceTask]] = {}
        failures: dict[Pairing, CellFailure] = {}
        deadline = asyncio.get_running_loop().time() + wait_s
        try:
            for name in sorted(pair_of):
                if pair_of[name] in failures:
                    continue
                failure = self.lost.get(name) or await self._take(name, taken, deadline, hold_s)
                if failure is not None:
                    failures[pair_of[name]] = failure
                    self.note_failure(failure)
            yield failures
            await self._release({name: hold_id for name, (hold_id, _) in taken.items()})
        finally:
            for _, task in taken.values():
                task.drop()

    async def _take(
        self, name: str, taken: dict[str, tuple[str, InterfaceTask]], deadline: float, hold_s: float
    ) -> CellFailure | None:
        """Take a host's interface; return the failure if it was not possible."""
        self._holds += 1
        hold_id = f"linkgauge-{self.mesh_id}-{self._holds}"
        place = (self.mesh_id, self.addresses[name], hold_id)
        task = self._cluster.submit(name, host_tasks.hold_interface, *place, hold_s, key=hold_id)
        taken[name] = hold_id, task
        loop = asyncio.get_running_loop()
        wait_deadline_s = _HOLD_WAIT_S + PROBE_DEADLINE_S
        try:
            while loop.time() < deadline:
                call = self._cluster.call(
                    name, host_tasks.await_hold, *place, _HOLD_WAIT_S, deadline_s=wait_deadline_s
                )
                if await call:
                    return None
                if task.is_over:
                    return await self._probe(name) or CellFailure(
                        FailureCode.FAILED, "its worker did not take the task that keeps its interface", name
                    )
        except HostFault as fault:
            return describe_fault(fault, name)
        return CellFailure(FailureCode.BUSY, "another test, or other tasks of Dask, had its interface", name)

    async def _release(self, holds: Mapping[str, str]) -> None:
        """Release the interfaces of hosts, without asking those that do not answer."""
        hold_ids = {self.addresses[name]: hold_id for name, hold_id in holds.items()}
        await self._cluster.tell(
            holds, host_tasks.release_interfaces, self.mesh_id, hold_ids, deadline_s=PROBE_DEADLINE_S
        )

    async def call(
        self,
        name: str,
        function: Callable[..., Coroutine[Any, Any, T]],
        *first: object,
        deadline_s: float,
        more: Sequence[object] = (),
    ) -> T:
        """Call a function of `host_tasks` whose arguments are the mesh, `first`, the host's address, and `more`."""
        arguments = (self.mesh_id, *first, self.addresses[name], *more)
        return await self._cluster.call(name, function, *arguments, deadline_s=deadline_s)


def describe_fault(fault: HostFault, name: str) -> CellFailure:
    """Return the failure of a host whose worker gave no result."""
    if isinstance(fault, HostGone):
        code = FailureCode.HOST_LOST
    else:
        code = FailureCode.FAILED if isinstance(fault, HostFailed) else FailureCode.NO_ANSWER
    return CellFailure(code, str(fault), name)


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines at the same time and return their results; the first error ends all, and is raised."""
    tasks = [asyncio.ensure_future(each) for each in work]
    if not tasks:
        return []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()
        return [task.result() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
