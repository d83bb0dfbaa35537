"""The Dask cluster of a mesh: its workers as hosts, and calls and tasks there.

Dask does the scheduling, the registry of workers, the heartbeats and the wire. A mesh uses the workers of a running
scheduler (`connect_cluster`), or has Dask start a scheduler and workers over ssh (over_ssh/ssh_cluster.py). Dask is
imported only where it is needed, so that a command line without a mesh does not wait for it.
"""

import asyncio
import contextlib
import logging
import os
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from ..engine.host.event_loop import await_shielded
from ..engine.host.shortage import find_shortage_in
from ..engine.model.errors import (
    ClusterError,
    ExtraMissing,
    LinkgaugeError,
    PlanError,
    TooFewHosts,
    explain_extra,
    explain_os_error,
    make_printable,
)
from .events import CellFailure, FailureCode, HostLost
from .hosts_file import add_groups
from .plan import MIN_HOSTS, Host

NIC: Final = "nic"
"""The resource of a Dask worker that stands for its host's interface: each test takes one."""
SCHEDULER_CLASS: Final = f"{__package__}.dask_servers.MeshScheduler"
WORKER_CLASS: Final = f"{__package__}.dask_servers.MeshWorker"
WORKER_OPTIONS: Final[Mapping[str, Any]] = {"nthreads": 2, "resources": {NIC: 1}, "memory_limit": 0}
"""The options of each worker that a mesh starts itself."""
CONNECT_DEADLINE_S: Final = 10.0
_SCHEMES: Final = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
_ASK_DEADLINE_S: Final = 10.0
_CLOSE_DEADLINE_S: Final = 10.0
_MAX_TEXT: Final = 300
_GOODBYES_S: Final = 1.5  # Dask waits at most 1 s until all workers have gone
_GONE: Final = "its Dask worker has gone"
_DASK_LOGGERS: Final = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application")

T = TypeVar("T")
_log = logging.getLogger(__name__)


class HostFault(Exception):
    """A call of a host's worker has no result. The text is for the user."""


class HostGone(HostFault):
    """The scheduler has lost the worker of this host."""


class HostSilent(HostFault):
    """The worker did not answer before the deadline."""


class HostFailed(HostFault):
    """The function raised an error there, or does not exist there."""


class Cluster:
    """A client of a scheduler, and the workers that are the hosts of a mesh.

    Args:
        client: the asynchronous client of Dask.
        workers: each host, with its address, and the address of its worker.
        lost: requested hosts that cannot be used.
    """

    def __init__(self, client: Any, workers: Mapping[Host, str], lost: Sequence[HostLost] = ()) -> None:
        self._client = client
        self._workers = {host.name: worker for host, worker in workers.items()}
        self._calls: set[asyncio.Future[Any]] = set()
        self._gone = {worker: asyncio.Event() for worker in workers.values()}
        self._checks: dict[str, asyncio.Future[None]] = {}
        self.hosts = tuple(workers)
        self.lost = tuple(lost)
        client.subscribe_topic("all", self._on_event)

    def _on_event(self, event: tuple[float, Any]) -> None:
        """Note a worker that the scheduler has removed: its connection broke, or it said goodbye."""
        message = event[1]
        if isinstance(message, dict):
            members = cast("dict[str, Any]", message)
            if members.get("action") == "remove-worker" and (gone := self._gone.get(members.get("worker", ""))):
                gone.set()

    async def call(
        self, host: str, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, deadline_s: float
    ) -> T:
        """Call a function of `host_tasks` on a host's worker, at once and beside its tasks; return its result.

        Raises HostGone, HostSilent, HostFailed, or ClusterError if the scheduler is lost.
        """
        worker = self._workers[host]
        if self._gone[worker].is_set():
            raise await self._gone_fault(worker)
        run = self._client.run(function, *arguments, workers=[worker], on_error="return")
        answers = await self._race(worker, run, deadline_s)
        answer = answers[worker]
        if not isinstance(answer, BaseException):
            return answer
        if isinstance(answer, OSError) and not await self._has(worker):
            raise await self._gone_fault(worker) from None
        raise HostFailed(_explain(answer)) from None

    async def tell(
        self,
        hosts: Collection[str],
        function: Callable[..., Coroutine[Any, Any, None]],
        *arguments: object,
        deadline_s: float,
    ) -> None:
        """Call a function of `host_tasks` on several workers by one request.

        Waits until all are done, or until the deadline. Workers that fail or have gone are left out. Raises
        ClusterError if the scheduler is lost.
        """
        workers = [worker for worker in map(self._workers.__getitem__, hosts) if not self._gone[worker].is_set()]
        if not workers:
            return
        run = self._begin(self._client.run(function, *arguments, workers=workers, on_error="ignore"))
        await asyncio.wait((run,), timeout=deadline_s)
        if run.done() and isinstance(error := run.exception(), OSError):
            raise ClusterError(f"the Dask scheduler was lost: {_explain(error)}") from error

    async def _gone_fault(self, worker: str) -> HostGone:
        """Return the fault of a worker that has gone; raise ClusterError if the scheduler is ending.

        A scheduler that ends in order removes each of its workers first.
        """
        if worker not in self._checks:
            await asyncio.sleep(_GOODBYES_S)
            check = self._checks.setdefault(worker, asyncio.ensure_future(self._check_scheduler()))
            check.add_done_callback(_take_error)
        await asyncio.shield(self._checks[worker])
        return HostGone(_GONE)

    async def _race(self, worker: str, run: Awaitable[T], deadline_s: float) -> T:
        """Return the result of a request, unless the worker goes or the deadline passes first."""
        gone = self._gone[worker]
        call, watch = self._begin(run), asyncio.create_task(gone.wait())
        try:
            await asyncio.wait((call, watch), timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                return call.result()
        except OSError as error:
            raise ClusterError(f"the Dask scheduler was lost: {_explain(error)}") from error
        finally:
            watch.cancel()
        if gone.is_set():
            raise await self._gone_fault(worker)
        await self._check_scheduler()
        raise HostSilent(f"its Dask worker did not answer for {deadline_s:g} s")

    def _begin(self, request: Awaitable[T]) -> asyncio.Future[T]:
        """Begin a request. It is never cancelled: Dask would leave a socket open while it connects."""
        call = asyncio.ensure_future(request)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        call.add_done_callback(_take_error)
        return call

    async def _check_scheduler(self) -> None:
        """Raise ClusterError if the scheduler does not answer: then no worker is at fault."""
        call = self._begin(self._client.scheduler.identity(n_workers=0))
        await asyncio.wait((call,), timeout=_ASK_DEADLINE_S)
        if not call.done():
            raise ClusterError(f"the Dask scheduler did not answer for {_ASK_DEADLINE_S:g} s")
        if error := call.exception():
            raise ClusterError(f"the Dask scheduler was lost: {_explain(error)}") from error

    async def settle(self) -> None:
        """Wait for the abandoned requests, once the client is closed."""
        if self._calls:
            _, late = await asyncio.wait(self._calls, timeout=_CLOSE_DEADLINE_S)
            for call in late:
                call.cancel()

    async def _has(self, worker: str) -> bool:
        """Return whether the scheduler knows a worker."""
        try:
            async with asyncio.timeout(_ASK_DEADLINE_S):
                return worker in await self._client.scheduler.ncores(workers=[worker])
        except OSError as error:
            raise ClusterError(f"the Dask scheduler was lost: {_explain(error)}") from error

    def submit(
        self, host: str, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: object, key: str
    ) -> "InterfaceTask":
        """Queue a task of a host. Dask begins it when no other task there has the interface."""
        future = self._client.submit(
            function,
            *arguments,
            key=key,
            workers=[self._workers[host]],
            allow_other_workers=False,
            resources={NIC: 1},
            pure=False,
            retries=0,
        )
        return InterfaceTask(future)


def _take_error(call: "asyncio.Future[Any]") -> None:
    """Take the error of an abandoned call, so that asyncio does not log it."""
    if not call.cancelled():
        call.exception()


class InterfaceTask:
    """A task that waits for a host's interface, or has it."""

    def __init__(self, future: Any) -> None:
        self._future = future

    @property
    def is_over(self) -> bool:
        """Whether it ended or failed, or the scheduler has forgotten it."""
        return self._future.done()

    def drop(self) -> None:
        """Have the scheduler forget it, whether it has begun or not."""
        self._future.release()


def no_worker(name: str) -> HostLost:
    """Return the loss of a host because no worker has its name."""
    return HostLost(name, CellFailure(FailureCode.HOST_LOST, "no Dask worker has this name", name))


@asynccontextmanager
async def connect_cluster(scheduler: str, hosts: Sequence[Host] = ()) -> AsyncGenerator[Cluster]:
    """Connect to a scheduler (`tcp://ADDRESS:PORT`) and yield its workers as hosts.

    With `hosts`, only these take part, with their groups; those without a worker are lost. Raises ClusterError, or
    PlanError for a wrong address.
    """
    cluster: Cluster | None = None
    try:
        async with open_client(scheduler) as client:
            cluster = await _find_hosts(client, scheduler, hosts)
            yield cluster
    finally:
        if cluster is not None:
            await await_shielded(cluster.settle())


async def _find_hosts(client: Any, scheduler: str, hosts: Sequence[Host]) -> Cluster:
    """Return the workers of a scheduler as hosts; with `hosts`, only these."""
    names = {host.name for host in hosts}
    found = _check_workers(await _list_workers(client, scheduler), names)
    lost: list[HostLost] = []
    if hosts:
        known = {host.name: (host, worker) for host, worker in found.items()}
        lost = [no_worker(host.name) for host in hosts if host.name not in known]
        chosen = {name: known[name] for name in (host.name for host in hosts) if name in known}
        grouped = add_groups((host for host, _ in chosen.values()), hosts)
        found = {host: chosen[host.name][1] for host in grouped}
    if len(found) < MIN_HOSTS:
        raise TooFewHosts(_too_few(scheduler, found, lost), tuple(found), lost)
    return Cluster(client, found, lost)


@asynccontextmanager
async def open_client(scheduler: str) -> AsyncGenerator[Any]:
    """Connect to a scheduler and yield the asynchronous client of Dask. Raises PlanError or ClusterError."""
    distributed = import_dask()
    from distributed.versions import VersionMismatchWarning

    if scheduler.partition("://")[0] not in _SCHEMES or not scheduler.partition("://")[2]:
        raise PlanError("--scheduler", scheduler, f"give tcp://ADDRESS:PORT ({', '.join(_SCHEMES)})")
    client: Any = None
    try:
        if scheduler.startswith(("tls:", "wss:")) and not _has_certificate():
            raise ClusterError(
                f"{make_printable(scheduler)} needs a certificate: name distributed.comm.tls.ca-file, client.cert "
                "and client.key in Dask's configuration, as the scheduler has them"
            )
        with warnings.catch_warnings():
            # About workers with another Dask or Python: a mesh checks its needs itself.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            client = distributed.Client(
                scheduler, asynchronous=True, set_as_default=False, timeout=CONNECT_DEADLINE_S, name="linkgauge"
            )
            await client
    except asyncio.CancelledError:
        if client is not None:
            await await_shielded(_close(client))
        raise
    except (OSError, ValueError, ImportError, TimeoutError, RuntimeError) as error:
        if client is not None:
            await _close(client)
        raise ClusterError(
            f"no Dask scheduler answers at {make_printable(scheduler)}: {_explain_failure(error, scheduler)}; "
            "start one with: dask scheduler"
        ) from error
    try:
        for topic in ("print", "warn"):  # a worker's words would mix with those of the mesh
            client.unsubscribe_topic(topic)
        yield client
    finally:
        await await_shielded(_close(client))


def _explain_failure(error: BaseException, scheduler: str) -> str:
    """Return why a connection failed: the error of the system that Dask retried until its deadline, if any."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.errno is not None:
        return make_printable(explain_os_error(cause, urlsplit(scheduler).hostname or ""))
    return _explain(error)


def _has_certificate() -> bool:
    """Return whether Dask's configuration names a client's certificate. Raises OSError if it cannot be read."""
    from distributed import security

    made: Any = cast("Any", security.Security)()
    return made.get_connection_args("client")["ssl_context"] is not None


async def _close(client: Any) -> None:
    """Leave the scheduler, which may be lost."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(_CLOSE_DEADLINE_S):
            await client.close()


def import_dask() -> Any:
    """Import Dask and silence its log: its lines on stderr would appear in the middle of a screen."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else NumPy's library starts a thread for each core
    try:
        import distributed
    except ImportError as error:
        raise ExtraMissing(explain_extra("a mesh needs Dask", "mesh")) from error
    for name in _DASK_LOGGERS:
        logger = logging.getLogger(name)
        for handler in logger.handlers[:]:
            logger.removeHandler(handler)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    return distributed


async def _list_workers(client: Any, scheduler: str) -> dict[str, dict[str, Any]]:
    """Return the scheduler's description of each worker, by its address."""
    try:
        async with asyncio.timeout(_ASK_DEADLINE_S):
            return (await client.scheduler.identity(n_workers=-1))["workers"]
    except (OSError, TimeoutError) as error:
        raise ClusterError(f"the Dask scheduler at {scheduler} was lost: {_explain(error)}") from error


def _check_workers(workers: Mapping[str, Mapping[str, Any]], names: Collection[str]) -> dict[Host, str]:
    """Return the host of each worker, in the order of names; raise ClusterError for unsuitable workers.

    With `names`, workers with other names are ignored.
    """
    found: dict[Host, str] = {}
    for worker, info in sorted(workers.items(), key=lambda item: str(item[1].get("name"))):
        if names and _name_of(worker, info) not in names:
            continue
        host = _read_host(worker, info)
        if not info.get("resources", {}).get(NIC):
            raise ClusterError(
                f"the Dask worker {host.name} has no resource {NIC}, which keeps a host from two tests at once; "
                f"start the workers with: dask worker --resources {NIC}=1"
            )
        for other in found:
            if other.address == host.address:
                raise ClusterError(
                    f"the Dask workers {other.name} and {host.name} are on the same host, {host.address}; "
                    "start one on each host: dask worker --nworkers 1"
                )
            if other.name == host.name:
                raise ClusterError(f"two Dask workers are named {host.name}; give each a name of its own: --name")
        found[host] = worker
    return found


def _name_of(worker: str, info: Mapping[str, Any]) -> str:
    """Return the name of a worker's host: the worker's own name if it has one, or its address."""
    name = info.get("name")
    return name if isinstance(name, str) and name != worker else str(info.get("host"))


def _read_host(worker: str, info: Mapping[str, Any]) -> Host:
    address = str(info.get("host"))
    try:
        ip_address(address.partition("%")[0])
        return Host(_name_of(worker, info), address=address)
    except (PlanError, ValueError) as error:
        raise ClusterError(
            f"the Dask worker at {make_printable(worker)} cannot be a host: {_explain(error)}; "
            "start it with a --name and with --host and its IP address"
        ) from error


def _too_few(scheduler: str, found: Mapping[Host, str], lost: Sequence[HostLost]) -> str:
    names = f" ({', '.join(each.host for each in lost[:5])}: no worker has this name)" if lost else ""
    return (
        f"the Dask scheduler at {scheduler} has {len(found) or 'no'} worker{'' if len(found) == 1 else 's'} "
        f"for a mesh{names}; it needs at least {MIN_HOSTS}: dask worker {scheduler} --resources {NIC}=1 --name NAME"
    )


def _explain(error: BaseException) -> str:
    """Return an error of a worker or of Dask as one bounded line for the user."""
    if isinstance(error, ImportError | AttributeError):
        return f"its Python cannot import linkgauge with Dask: {make_printable(str(error))[:_MAX_TEXT]}"
    if type(error).__name__ == "CommClosedError":  # Dask's text has its objects in it
        return "the connection broke"
    if isinstance(error, OSError) and error.errno is not None:
        return make_printable(explain_os_error(error))
    if shortage := find_shortage_in(str(error)):
        return shortage
    text = make_printable(" ".join(str(error).split()))[:_MAX_TEXT]
    return text if isinstance(error, LinkgaugeError) and text else f"{type(error).__name__}: {text}".rstrip(": ")
