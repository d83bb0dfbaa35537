"""The tasks of a Dask worker for a mesh on its host: its endpoint, its cells, the hold on its interface.

Each function is a coroutine in the worker's own event loop: none blocks it, and none takes a thread. All are for
`Client.run`, except `hold_interface`: it is a task, so that Dask counts the interface as taken. Dask does not
interrupt a running task that is cancelled, so the task looks for that itself.

All processes are children that end with their standard input, and so with the worker. If the coordinator is lost,
the lease of the endpoint expires, and everything of its mesh on this host ends with it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from .. import __version__
from ..engine.host.child_process import TetheredChild
from ..engine.host.nics.nic import read_connection_nic
from ..engine.model.directions import End
from ..engine.model.errors import EndpointError, WorkerError, make_printable
from ..engine.model.plan import Plan
from ..engine.model.serialization import encode
from ..engine.model.shared_key import SharedKey
from .cell_result import MAX_CELL_BYTES
from .cell_run import RunRequest, encode_request, error_line
from .events import FailureCode
from .host_endpoint import LEASE_S, start_host_endpoint

_RUN_MODULE: Final = f"{__package__}.cell_run"
_POLL_S: Final = 0.5
_CLOSE_DEADLINE_S: Final = 10.0  # a child is killed after 5
_MAX_VERSION_LENGTH: Final = 40
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CellRequest:
    """A run to carry out on the near host of a pair.

    Args:
        mesh_id: the mesh; `open_host` has brought its key.
        address: the near host's own address, as for `open_host`.
        peer_address: the far host's address.
        peer_port: the port of the far host's endpoint, returned by its `open_host`.
        plan: the run, with the direction from the near host.
        seconds: the run is given up after this time.
    """

    mesh_id: str
    address: str
    peer_address: str
    peer_port: int
    plan: Plan
    seconds: float


class _Outcome(Enum):
    """Why an activity is over."""

    DONE = auto()
    OVERDUE = auto()
    STOPPED = auto()
    CLOSED = auto()
    CANCELLED = auto()


_FAILURES: Final = {
    _Outcome.OVERDUE: ("the test was not over after {seconds:g} s", FailureCode.NO_ANSWER, None),
    _Outcome.STOPPED: ("the test was stopped", FailureCode.STOPPED, None),
    _Outcome.CANCELLED: ("the test was stopped: its task was cancelled", FailureCode.STOPPED, None),
    _Outcome.CLOSED: ("this host's endpoint ended during the test", FailureCode.FAILED, End.NEAR),
}


class _Activity:
    """A cell or a hold in progress. Other coroutines end it with `stop`."""

    def __init__(self) -> None:
        self._stopped: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()

    def stop(self, outcome: _Outcome) -> None:
        """End it; the first call counts."""
        if not self._stopped.done():
            self._stopped.set_result(outcome)

    async def outlast(
        self, work: "asyncio.Task[Any] | None", seconds: float, task_key: str | None = None
    ) -> _Outcome:
        """Wait for work, at most for `seconds`; return why the wait is over. Without work, wait for `stop` alone.

        `task_key` is the key of the Dask task that waits; None if it is not a task.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        awaited = {self._stopped} if work is None else {self._stopped, work}
        while (left := deadline - loop.time()) > 0:
            done, _ = await asyncio.wait(awaited, timeout=min(_POLL_S, left), return_when=asyncio.FIRST_COMPLETED)
            if work is not None and work in done:
                return _Outcome.DONE
            if done:
                return self._stopped.result()
            if _is_cancelled(task_key):
                return _Outcome.CANCELLED
        return _Outcome.OVERDUE


class _OpenHost:
    """One mesh on this worker: its key, its endpoint, its cells and holds in progress."""

    def __init__(self, key: SharedKey, endpoint: TetheredChild, port: int) -> None:
        self.key = key
        self.port = port
        self.endpoint = endpoint
        self.holds: dict[str, _Activity] = {}
        self.hold_begun: dict[str, asyncio.Event] = {}
        self.cells: set[_Activity] = set()
        self.is_idle = asyncio.Event()
        self.is_idle.set()
        self.watching: asyncio.Task[None] | None = None

    @contextmanager
    def begin_cell(self) -> Generator[_Activity]:
        """Yield the activity of a cell; it lasts as long as the block."""
        activity = _Activity()
        self.cells.add(activity)
        self.is_idle.clear()
        try:
            yield activity
        finally:
            self.cells.discard(activity)
            if not self.cells:
                self.is_idle.set()

    @contextmanager
    def begin_hold(self, hold_id: str) -> Generator[_Activity]:
        """Yield the activity of a hold; it lasts as long as the block."""
        activity = self.holds[hold_id] = _Activity()
        self.hold_begun.setdefault(hold_id, asyncio.Event()).set()
        try:
            yield activity
        finally:
            if self.holds.get(hold_id) is activity:
                del self.holds[hold_id]
                self.hold_begun.pop(hold_id, None)

    async def close(self, outcome: _Outcome) -> None:
        """End everything, and wait until none of its processes is left."""
        for activity in (*self.cells, *self.holds.values()):
            activity.stop(outcome)
        await self.endpoint.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_DEADLINE_S):
                await self.is_idle.wait()


# By mesh and address: a process may have several workers.
_hosts: Final[dict[tuple[str, str], _OpenHost]] = {}
_openings: Final[dict[tuple[str, str], set[object]]] = {}  # calls of `open_host` that `close_host` has not ended


async def open_host(
    mesh_id: str, key: SharedKey, address: str, version: str, port: int = 0, lease_s: float = LEASE_S
) -> int:
    """Start this host's endpoint for a mesh on a port of an address, 0 for a free one, and return the port.

    An earlier endpoint of the same mesh and address ends. The endpoint ends by itself if `renew_host` is not called
    for `lease_s`, and everything of the mesh on this host ends with it.

    Raises EndpointError if this host has another version of linkgauge, or the endpoint does not start.
    """
    if version != __version__:
        other = make_printable(version[:_MAX_VERSION_LENGTH])
        text = f"this host has linkgauge {__version__}, not {other}; install the same version on all hosts"
        raise EndpointError(text)
    place = mesh_id, address
    opening = _openings.setdefault(place, set())
    mark = object()
    opening.add(mark)
    try:
        if port and (before := _hosts.pop(place, None)) is not None:
            await before.close(_Outcome.CLOSED)
        endpoint, port = await start_host_endpoint(address, key, port, lease_s)
    except WorkerError as error:
        raise EndpointError(str(error)) from error
    finally:
        is_wanted = mark in opening
        opening.discard(mark)
        if not opening and _openings.get(place) is opening:
            del _openings[place]
    if not is_wanted:
        await endpoint.end()
        raise EndpointError("the mesh was closed while its endpoint started")
    before = _hosts.get(place)
    _hosts[place] = host = _OpenHost(key, endpoint, port)
    host.watching = asyncio.create_task(_watch(place, host))
    if before is not None:
        await before.close(_Outcome.CLOSED)
    return port


async def _watch(place: tuple[str, str], host: _OpenHost) -> None:
    """Forget a host whose endpoint has ended, and end its cells and holds."""
    status = await host.endpoint.wait()
    _log.debug("the endpoint of %s on %s has ended with status %d", *place, status)
    if _hosts.get(place) is host:
        del _hosts[place]
    await host.close(_Outcome.CLOSED)


async def read_interface(address: str, peer_address: str) -> Any:
    """Return the encoded interface by which this host reaches another; None if it is unknown."""
    nic = await read_connection_nic((address, 0), (peer_address, 0))
    return None if nic is None else encode(nic)


async def renew_host(mesh_id: str, address: str) -> bool:
    """Renew the lease of this host's endpoint; return whether it still runs. Call it every 15 s."""
    host = _hosts.get((mesh_id, address))
    return host is not None and host.endpoint.write_line()


def find_key(mesh_id: str, address: str) -> SharedKey | None:
    """Return the key of a mesh on this host; None if the host has no endpoint of it."""
    host = _hosts.get((mesh_id, address))
    return None if host is None else host.key


async def close_host(mesh_id: str, address: str) -> None:
    """End the endpoint, the cells and the holds of a mesh on this host, if there are any.

    An endpoint that is still starting ends once it has started: its coordinator may not have waited for it.
    """
    if (opening := _openings.pop((mesh_id, address), None)) is not None:
        opening.clear()
    host = _hosts.pop((mesh_id, address), None)
    if host is not None:
        await host.close(_Outcome.STOPPED)


async def run_cell(request: CellRequest) -> list[str]:
    """Carry out a run from this host and return its events, one JSON text each (`encode_tagged`), in order.

    Without a run, the only line is `{"error": TEXT, "code": CODE, "end": END}`: CODE is a `FailureCode`, END is the
    end at fault: `near`, `far` or null. It raises no error of its own. All lines together have at most
    `MAX_CELL_BYTES`.
    """
    host = _hosts.get((request.mesh_id, request.address))
    if host is None:
        text = "this host has no endpoint of the mesh: its worker was restarted, or the endpoint has ended"
        return [error_line(text, FailureCode.FAILED, End.NEAR)]
    run = RunRequest(request.plan, request.peer_address, request.peer_port, host.key.reveal())
    with host.begin_cell() as activity:
        try:
            child = await TetheredChild.start(_RUN_MODULE, [], encode_request(run), "the test's process")
        except WorkerError as error:
            return [error_line(str(error), FailureCode.FAILED, End.NEAR)]
        return await _read_run(child, activity, request)


async def _read_run(child: TetheredChild, activity: _Activity, request: CellRequest) -> list[str]:
    """Wait for the end of a run's process, and return its lines."""
    reading = asyncio.create_task(child.read_all(MAX_CELL_BYTES))
    try:
        outcome = await activity.outlast(reading, request.seconds)
    finally:
        if not reading.done():
            reading.cancel()
            await asyncio.wait([reading])
        status = await child.end()
    if outcome is not _Outcome.DONE:
        text, code, end = _FAILURES[outcome]
        return [error_line(text.format(seconds=request.seconds), code, end)]
    output = reading.result()
    if output is None:
        return [error_line(f"the test has more than {MAX_CELL_BYTES} bytes of events", FailureCode.FAILED)]
    if status != 0 or not output:
        text = f"the process of the test ended with status {status} before it was over"
        return [error_line(text, FailureCode.FAILED, End.NEAR)]
    return output.splitlines()


async def hold_interface(mesh_id: str, address: str, hold_id: str, seconds: float) -> bool:
    """Occupy this task's resources until `release_interfaces` is called; return whether it was.

    False means that the time was up, the task was cancelled, or the host was closed. `hold_id` is the task's key.
    """
    host = _hosts.get((mesh_id, address))
    if host is None:
        return False
    with host.begin_hold(hold_id) as activity:
        return await activity.outlast(None, seconds, hold_id) is _Outcome.DONE


async def await_hold(mesh_id: str, address: str, hold_id: str, seconds: float) -> bool:
    """Return True once the hold has begun on this host, False if it has not after `seconds`.

    It is for `Client.run`: so the coordinator learns that the far host's interface is taken.
    """
    host = _hosts.get((mesh_id, address))
    if host is None:
        return False
    begun = host.hold_begun.setdefault(hold_id, asyncio.Event())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await begun.wait()
    if not begun.is_set() and host.hold_begun.get(hold_id) is begun:
        del host.hold_begun[hold_id]
    return begun.is_set()


async def release_interfaces(mesh_id: str, hold_ids: Mapping[str, str]) -> None:
    """End this worker's holds among those of these addresses: one call tells several hosts."""
    for address, hold_id in hold_ids.items():
        host = _hosts.get((mesh_id, address))
        hold = None if host is None else host.holds.get(hold_id)
        if hold is not None:
            hold.stop(_Outcome.DONE)


def _is_cancelled(task_key: str | None) -> bool:
    """Return whether Dask has cancelled the task of this key.

    Dask does not tell a running coroutine: the worker keeps its task and its resources in the state `cancelled`.
    """
    if task_key is None:
        return False
    try:
        from distributed import get_worker  # here: the command line and the tests of a host do without Dask

        task = get_worker().state.tasks.get(task_key)
    except (ImportError, ValueError, AttributeError):  # not in a worker, or in one of another Dask
        return False
    return task is not None and task.state == "cancelled"
