"""A mesh from first to last cell: `async with open_mesh(plan, cluster) as mesh: async for event in mesh`.

`MeshBegan` comes first, `MeshEnded` last. While the block lasts, each host runs an endpoint for this mesh alone.
Each pair holds both its interfaces while it is measured. A failing host or path costs only its own cells.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from ..engine.host.event_loop import await_shielded
from ..engine.model.directions import Direction
from ..engine.model.errors import ClusterError, LinkgaugeError, TooFewHosts
from ..engine.model.events import Event
from ..engine.model.host_info import NicInfo
from ..engine.model.plan import SECOND_NS
from .cell_result import read_cell
from .cluster import Cluster, HostFault, no_worker
from .events import (
    CellBegan,
    CellEnded,
    CellFailure,
    FailureCode,
    HostLost,
    MeshBegan,
    MeshEnded,
    MeshEvent,
    RoundBegan,
)
from .host_supervisor import HostSupervisor, describe_fault, together
from .plan import CELL_OVERHEAD_NS, MIN_HOSTS, Cell, MeshMode, MeshPlan, Pairing
from .schedule import leave_out, make_rounds

RUN_MARGIN_S: Final = 15.0
"""A run that takes this much longer than its plan has failed."""
_HOST_MARGIN_S: Final = 12.0  # the near host gives up earlier, and says so
_OTHERS_MARGIN_S: Final = 75.0  # until the lease of a lost coordinator is over
_CLOSE_DEADLINE_S: Final = 15.0
_MOST_WAITING: Final = 256  # unread events: each may have a megabyte
_STOPPED: Final = CellFailure(FailureCode.STOPPED, "the mesh was stopped")
_log = logging.getLogger(__name__)


FindRate = Callable[[NicInfo | None, NicInfo | None], int]
"""Returns the rate of datagrams between two interfaces, in bit/s; raises LinkgaugeError if it is unknown."""


@asynccontextmanager
async def open_mesh(
    plan: MeshPlan, cluster: Cluster, *, done: Collection[Cell] = (), find_rate: FindRate | None = None
) -> AsyncGenerator["Mesh"]:
    """Open the endpoints of all hosts and yield the mesh; the end of the block ends everything on the hosts.

    The plan's hosts are found in the cluster by their names. Cells that are `done` are left out. With `find_rate`,
    each pair's datagrams have the rate of its interfaces. Raises ClusterError if fewer than two hosts can be used,
    and LinkgaugeError if no pair has a rate.
    """
    addresses = {host.name: host.address for host in cluster.hosts}
    found = tuple(replace(host, address=addresses[host.name]) for host in plan.hosts if host.name in addresses)
    reasons = {each.host: each for each in cluster.lost}
    absent = [host.name for host in plan.hosts if host.name not in addresses]
    missing = [reasons.get(name) or no_worker(name) for name in absent]
    if len(found) < MIN_HOSTS:
        raise TooFewHosts(_too_few(missing), found, missing)
    mesh = Mesh(replace(plan, hosts=found), cluster, frozenset(done), missing, find_rate)
    try:
        await mesh.open()
        yield mesh
    finally:
        await await_shielded(mesh.close())


def _too_few(lost: Sequence[HostLost]) -> str:
    reasons = "; ".join(f"{each.host}: {each.failure.detail}" for each in lost[:5])
    return f"a mesh needs at least {MIN_HOSTS} usable hosts; {reasons or 'the cluster has none of these'}"


@dataclass(frozen=True, slots=True)
class _Place:
    """The pair that measures a cell, and the direction from the near host."""

    pairing: Pairing
    direction: Direction


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The end of a cell's run: its events, or its failure, and whether the named host itself failed.

    `texts` are the events as the host sent them.
    """

    events: tuple[Event, ...]
    texts: tuple[str, ...] = ()
    failure: CellFailure | None = None
    is_own: bool = False


class Mesh:
    """A mesh in progress: iterate over its events once, up to `MeshEnded`."""

    def __init__(
        self,
        plan: MeshPlan,
        cluster: Cluster,
        done: Collection[Cell],
        missing: Sequence[HostLost],
        find_rate: FindRate | None = None,
    ) -> None:
        self._plan = plan
        self._find_rate = find_rate
        self._rates: dict[frozenset[str], int | LinkgaugeError] = {}
        self._supervisor = HostSupervisor(cluster, plan.hosts, self._on_lost, plan.port)
        rounds = make_rounds([host.name for host in plan.hosts], plan.seed)
        self._places = {
            cell: _Place(pairing, direction)
            for pairs in rounds
            for pairing in pairs
            for cell, direction in pairing.cells
        }
        self._rounds = leave_out(rounds, done)
        self._pending = {cell: None for cell in self._places if cell not in done}  # in order
        self._missing = missing
        self._is_alone = False  # whether only one pair is measured at a time now
        self._queue: asyncio.Queue[MeshEvent | None] = asyncio.Queue()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._stopping = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        duration_s = (plan.base.duration_ns or 0) / SECOND_NS
        self._run_s = duration_s + RUN_MARGIN_S
        self._host_run_s = duration_s + _HOST_MARGIN_S

    async def open(self) -> None:
        """Start the endpoints; raise ClusterError if fewer than two hosts are left."""
        began_ns, cells = time.monotonic_ns(), len(self._pending)
        await self._supervisor.open()
        # A test starts a process on each host as well, so that a busy host is slow with both.
        overhead_ns = max(time.monotonic_ns() - began_ns, CELL_OVERHEAD_NS)
        early = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for event in (MeshBegan(self._plan, cells, overhead_ns), *self._missing, *early):
            self._queue.put_nowait(event)
        if len(self._supervisor.present) < MIN_HOSTS:
            present = set(self._supervisor.present)
            lost = [*(HostLost(*item) for item in self._supervisor.lost.items()), *self._missing]
            raise TooFewHosts(_too_few(lost), [host for host in self._plan.hosts if host.name in present], lost)
        self._start(self._supervisor.keep())
        if self._find_rate is not None:
            await self._find_rates(self._find_rate)

    async def _find_rates(self, find_rate: FindRate) -> None:
        """Find the rate of each pair; raise LinkgaugeError if no pair has one."""
        nics = await self._supervisor.read_interfaces()
        for pair in dict.fromkeys(map(frozenset, self._places)):  # cells that are done may be measured again
            first, second = sorted(pair)
            try:
                self._rates[pair] = find_rate(nics.get(first), nics.get(second))
            except LinkgaugeError as error:
                self._rates[pair] = error
        rates = list(self._rates.values())
        if rates and isinstance(rates[0], LinkgaugeError) and not any(isinstance(rate, int) for rate in rates):
            raise rates[0]

    async def close(self) -> None:
        """End everything on the hosts."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_DEADLINE_S):
                await self._supervisor.close()

    def __aiter__(self) -> AsyncIterator[MeshEvent]:
        """Return the events."""
        return self._events_of(self._measure_all())

    def stop(self) -> None:
        """End the mesh: running cells fail as stopped, no others begin, `MeshEnded` follows."""
        self._stopping.set()

    async def measure_again(self, cells: Sequence[Cell]) -> AsyncIterator[MeshEvent]:
        """Measure cells once more, one after the other, between `MeshEnded` and the end of the block.

        Yields `CellBegan` and `CellEnded` of each, both isolated, and `HostLost`; nothing after `stop`. Raises
        ClusterError if the scheduler is lost.
        """
        async for event in self._events_of(self._until_stopped(self._measure_alone(cells))):
            yield event

    async def _events_of(self, work: Coroutine[Any, Any, None]) -> AsyncIterator[MeshEvent]:
        """Run `work`, yield its events, and raise its error."""
        task = self._start(work)
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        while (event := await self._queue.get()) is not None:
            if self._queue.qsize() < _MOST_WAITING:
                self._has_room.set()
            yield event
        await task

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._background.add(task)
        return task

    def _emit(self, event: MeshEvent) -> None:
        self._queue.put_nowait(event)
        if self._queue.qsize() >= _MOST_WAITING:
            self._has_room.clear()

    def _on_lost(self, lost: HostLost) -> None:
        """Report a lost host, and end its remaining cells for the same reason."""
        self._emit(lost)
        for cell in [cell for cell in self._pending if lost.host in cell]:
            self._fail(cell, lost.failure)

    def _fail(self, cell: Cell, failure: CellFailure) -> None:
        """End a cell that did not begin."""
        if cell in self._pending:
            del self._pending[cell]
            near = self._places[cell].pairing.near
            self._emit(CellEnded(cell, near, failure=failure, is_isolated=self._is_alone))

    async def _measure_all(self) -> None:
        """Measure every round, and end the mesh."""
        detail = ""
        try:
            await self._until_stopped(self._measure_rounds())
        except ClusterError as error:
            detail = str(error)
            self._supervisor.abandon()
        if self._stopping.is_set():
            detail = detail or _STOPPED.detail
        self._emit(MeshEnded(not self._pending and not detail, detail))
        if self._stopping.is_set():
            await self._supervisor.close()

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` until it is done or the mesh is stopped."""
        if self._stopping.is_set():
            work.close()
            return
        task, stop = asyncio.create_task(work), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
        finally:
            for each in (task, stop):
                each.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    async def _measure_rounds(self) -> None:
        measure: Callable[[Sequence[Pairing]], Coroutine[Any, Any, None]] = {
            MeshMode.ROUNDS: self._measure_beside,
            MeshMode.ISOLATED: self._measure_in_turn,
            MeshMode.ALL: self._measure_at_once,
        }[self._plan.mode]
        self._is_alone = self._plan.mode is MeshMode.ISOLATED
        for number, pairs in enumerate(self._rounds, 1):
            await self._has_room.wait()
            self._emit(RoundBegan(number, len(self._rounds)))
            await measure(pairs)

    async def _measure_beside(self, pairs: Sequence[Pairing]) -> None:
        """Measure disjoint pairs at the same time; each begins when its interfaces are free."""
        await together(self._measure_pair(pairing) for pairing in pairs)

    async def _measure_in_turn(self, pairs: Sequence[Pairing]) -> None:
        for pairing in pairs:
            await self._has_room.wait()
            await self._measure_pair(pairing)

    async def _measure_at_once(self, pairs: Sequence[Pairing]) -> None:
        """Begin the runs of all pairs at the same time: first all in one direction, then all in the other."""
        async with self._holding([pairing for pairing in pairs if self._cells_of(pairing)]) as held:
            for index in range(2):
                cells = [pairing.cells[index][0] for pairing in held]
                await together(self._measure(cell) for cell in cells)

    async def _measure_pair(self, pairing: Pairing) -> None:
        """Measure the remaining cells of a pair, one after the other."""
        cells = self._cells_of(pairing)
        if cells:
            async with self._holding([pairing]) as held:
                for cell in cells if held else ():
                    await self._measure(cell)

    async def _measure_alone(self, cells: Sequence[Cell]) -> None:
        """Measure cells once more, one at a time."""
        self._is_alone = True
        self._pending = dict.fromkeys(cell for cell in cells if cell in self._places)
        for cell in tuple(self._pending):
            await self._has_room.wait()
            pairing = self._places[cell].pairing
            for name, failure in self._supervisor.lost.items():
                if name in cell:
                    self._fail(cell, failure)
            if cell in self._pending:
                async with self._holding([pairing], only=cell) as held:
                    if held:
                        await self._measure(cell)

    def _cells_of(self, pairing: Pairing) -> list[Cell]:
        """Return the remaining cells of a pair."""
        return [cell for cell, _ in pairing.cells if cell in self._pending]

    @asynccontextmanager
    async def _holding(self, pairs: Sequence[Pairing], only: Cell | None = None) -> AsyncGenerator[list[Pairing]]:
        """Hold the interfaces of pairs and yield the pairs that got theirs; the cells of the others fail."""
        pair_s = 2 * self._run_s + RUN_MARGIN_S
        wait_s = pair_s + _OTHERS_MARGIN_S
        async with self._supervisor.holding(pairs, wait_s=wait_s, hold_s=wait_s + pair_s) as failures:
            for pairing, failure in failures.items():
                for cell in self._cells_of(pairing) if only is None else [only]:
                    self._fail(cell, failure)
            yield [pairing for pairing in pairs if pairing not in failures]

    async def _measure(self, cell: Cell) -> None:
        """Measure a cell whose interfaces are held, if it still remains."""
        if cell not in self._pending:
            return
        place = self._places[cell]
        suspects = [name for name in cell if self._supervisor.is_suspect(name)]
        if suspects and (failure := await self._supervisor.find_fault(suspects)):
            self._supervisor.note_failure(failure)
            self._fail(cell, failure)
            return
        del self._pending[cell]
        self._emit(CellBegan(cell, self._is_alone))
        try:
            outcome = await self._run(place)
        except (asyncio.CancelledError, ClusterError) as error:
            stopped = CellFailure(FailureCode.STOPPED, str(error)) if isinstance(error, ClusterError) else _STOPPED
            self._emit(CellEnded(cell, place.pairing.near, failure=stopped, is_isolated=self._is_alone))
            raise
        failure = outcome.failure
        self._emit(CellEnded(cell, place.pairing.near, outcome.events, failure, self._is_alone, outcome.texts))
        if failure is None:
            self._supervisor.note_success(cell)
        elif outcome.is_own:
            self._supervisor.note_failure(failure)
        elif failure.code is FailureCode.UNREACHABLE:
            # The other run would begin on the same host, over the same path.
            for other in self._cells_of(place.pairing):
                self._fail(other, failure)

    async def _run(self, place: _Place) -> _Outcome:
        """Run a cell's test and return its outcome; if it failed, ask both hosts which is at fault."""
        near, far = place.pairing.near, place.pairing.far
        base = self._plan.base
        settings = replace(base.settings, direction=place.direction)
        rate = self._rates.get(frozenset((near, far)))
        if isinstance(rate, LinkgaugeError):
            return _Outcome((), failure=CellFailure(FailureCode.FAILED, str(rate)))
        if rate is not None:
            settings = replace(settings, rate_bit_s=rate)
        plan = replace(base, settings=settings)
        lines: list[str] = []
        try:
            lines = await self._supervisor.run(near, far, plan, seconds=self._host_run_s, deadline_s=self._run_s)
            result = read_cell(lines, plan, place.pairing)
        except HostFault as fault:
            result = describe_fault(fault, near)
        if not isinstance(result, CellFailure):
            return _Outcome(result, tuple(lines))
        if result.host == near:
            return _Outcome((), failure=result, is_own=True)
        fault = await self._supervisor.find_fault((near, far))
        # A host's report about another host is shown, but does not count against it.
        return _Outcome((), failure=fault or result, is_own=fault is not None)
