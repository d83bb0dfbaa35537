"""A Dask cluster that is started over ssh for one mesh: which hosts can take part, and their processes.

A scheduler on the first host and a worker on each, each in a login of its own (`host_login`), with a key of this
cluster alone. A host that fails costs only itself. ssh's configuration and known hosts are the user's.
"""

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from ...engine.host.event_loop import await_shielded
from ...engine.model.errors import ClusterError, PeerError, PeerUnreachable, PlanError, TooFewHosts, make_printable
from ..cluster import WORKER_OPTIONS, Cluster, connect_cluster, import_dask, open_client
from ..events import CellFailure, FailureCode, HostLost
from ..host_supervisor import together
from ..plan import MIN_HOSTS, Host
from .dask_process import why_unreached
from .host_login import HostLogin

_MOST_LOGINS: Final = 8
_WORKERS_DEADLINE_S: Final = 10.0
_IDLE_S: Final = 300  # then the scheduler of a killed coordinator ends, and its workers with it
_SCHEDULER_TRIES: Final = 3
_MAX_TEXT: Final = 300
# For the processes there. Lock files would stay on the hosts.
_SETTINGS: Final = {"distributed.worker.use-file-locking": False, "distributed.comm.default-scheme": "tls"}
T = TypeVar("T")
_log = logging.getLogger(__name__)


@asynccontextmanager
async def start_ssh_cluster(hosts: Sequence[Host], *, remote_python: str | None = None) -> AsyncGenerator[Cluster]:
    """Start a scheduler on the first host that can have it and a worker on each; end them afterwards.

    Hosts that ssh cannot reach, or that have no linkgauge with Dask, are lost. `remote_python` is the interpreter
    there, by default at the path of this one. Raises ClusterError if fewer than two hosts are left.
    """
    async with start_processes(hosts, remote_python) as (scheduler, found, lost):
        if reason := await why_unreached(scheduler):
            raise ClusterError(f"this machine does not reach Dask's scheduler on {found[0].name}: {reason}")
        async with open_client(scheduler) as client:
            try:
                await client.wait_for_workers(len(found), timeout=_WORKERS_DEADLINE_S)
            except TimeoutError:
                _log.debug("not all workers of %s came", scheduler)
        async with connect_cluster(scheduler, found) as cluster:
            cluster.lost = (*lost, *cluster.lost)
            yield cluster


@asynccontextmanager
async def start_processes(
    hosts: Sequence[Host], remote_python: str | None
) -> AsyncGenerator[tuple[str, tuple[Host, ...], tuple[HostLost, ...]]]:
    """Start a scheduler and workers; yield its address, the hosts with a worker, and the lost hosts."""
    import_dask()
    from dask import config

    for host in hosts:
        if not set(host.name).isdisjoint("'\"\\$`;&|<> "):
            raise PlanError("host", repr(host.name), "give a name or an address that ssh knows")
    python, limit = remote_python or sys.executable, asyncio.Semaphore(_MOST_LOGINS)
    logins = {host.name: HostLogin(host, python, limit) for host in hosts}
    scheduler: HostLogin | None = None
    try:
        addresses, lost = await _attempt(logins.values(), HostLogin.open)
        different, same = _separate_same_hosts(
            [replace(host, address=addresses[host.name]) for host in hosts if host.name in addresses]
        )
        found = _keep_reachable(different)
        lost += same
        _check_number(found, lost)
        credentials = _create_credentials()
        processes = _Processes({**credentials, **_SETTINGS}, {host.name: host for host in found})
        scheduler = await _start_scheduler(processes, [HostLogin(host, python, limit) for host in found], lost)
        found = found[found.index(scheduler.host) :]
        _check_number(found, lost)
        served, late = await _attempt([logins[host.name] for host in found], processes.start_worker)
        lost += late
        found = tuple(host for host in found if host.name in served)
        _check_number(found, lost)
        with config.set(credentials):  # for the connections of this process, too
            yield processes.scheduler, found, tuple(lost)
    finally:
        await await_shielded(_close(logins.values(), scheduler))


async def _attempt(
    logins: Iterable[HostLogin], act: Callable[[HostLogin], Coroutine[Any, Any, T]]
) -> tuple[dict[str, T], list[HostLost]]:
    """Do something with all logins; return each host's result, and the hosts that failed, which are closed."""

    async def attempt(login: HostLogin) -> T | HostLost:
        try:
            return await act(login)
        except PeerError as error:
            await login.close()
            code = FailureCode.UNREACHABLE if isinstance(error, PeerUnreachable) else FailureCode.FAILED
            return _lost(login.host, code, str(error))

    tried = list(logins)
    answers = dict(zip((login.host.name for login in tried), await together(map(attempt, tried)), strict=True))
    lost = [answer for answer in answers.values() if isinstance(answer, HostLost)]
    return {name: answer for name, answer in answers.items() if not isinstance(answer, HostLost)}, lost


class _Processes:
    """The scheduler and the workers: their options and their configuration, for `dask_process`.

    Attributes:
        scheduler: The scheduler's address; "" before it has started.
    """

    def __init__(self, config: Mapping[str, Any], hosts: Mapping[str, Host]) -> None:
        self._config, self._hosts = config, hosts
        self.scheduler = ""

    async def start_scheduler(self, login: HostLogin) -> None:
        """Start the scheduler; raise PeerError."""
        listening = self._listening(login)
        options = {"port": 0, "idle_timeout": f"{_IDLE_S} s", **listening}
        await login.open()
        address = await login.serve(options, self._config, None)
        if listening and listening["host"] != urlsplit(address).hostname:
            raise PeerError("its Dask scheduler has an address of another host")
        self.scheduler = address

    async def start_worker(self, login: HostLogin) -> str:
        """Start a worker; raise PeerError."""
        options = {**WORKER_OPTIONS, "name": login.host.name, **self._listening(login)}
        return await login.serve(options, self._config, self.scheduler)

    def _listening(self, login: HostLogin) -> dict[str, str]:
        address = self._hosts[login.host.name].address
        return {"host": address} if address else {}


async def _start_scheduler(processes: _Processes, logins: Sequence[HostLogin], lost: list[HostLost]) -> HostLogin:
    """Start the scheduler on the first host that can, and return its login; the hosts before it are lost.

    Raises ClusterError if none of the first few can.
    """
    for login in logins[:_SCHEDULER_TRIES]:
        try:
            await processes.start_scheduler(login)
        except PeerError as error:
            await login.close()
            text = f"Dask's scheduler did not start there: {error}"
            lost.append(_lost(login.host, FailureCode.FAILED, text))
        except BaseException:
            await await_shielded(login.close())
            raise
        else:
            return login
    raise TooFewHosts(_reasons(lost[-_SCHEDULER_TRIES:]), [each.host for each in logins[_SCHEDULER_TRIES:]], lost)


async def _close(logins: Iterable[HostLogin], scheduler: HostLogin | None) -> None:
    """End the workers, and then the scheduler, also if some have ended already or a host is lost."""
    await together(login.close() for login in logins)
    if scheduler is not None:
        await scheduler.close()


def _check_number(found: Sequence[Host], lost: Sequence[HostLost]) -> None:
    if len(found) < MIN_HOSTS:
        text = f"a mesh needs at least {MIN_HOSTS} hosts that ssh can start a worker on; {_reasons(lost)}"
        raise TooFewHosts(text, found, lost)


def _reasons(lost: Sequence[HostLost]) -> str:
    return "; ".join(f"{each.host}: {each.failure.detail}" for each in lost[:5])


def _lost(host: Host, code: FailureCode, text: str) -> HostLost:
    detail = make_printable(" ".join(text.split()))[:_MAX_TEXT]
    return HostLost(host.name, CellFailure(code, detail, host.name))


def _separate_same_hosts(hosts: Sequence[Host]) -> tuple[list[Host], list[HostLost]]:
    """Return the hosts with different addresses, and as lost those with the address of an earlier one."""
    first: dict[str, Host] = {}
    found: list[Host] = []
    lost: list[HostLost] = []
    for host in hosts:
        earlier = first.setdefault(host.address, host) if host.address is not None else host
        if earlier is host:
            found.append(host)
        else:
            is_named = str(host.address) in f"{earlier.name} {host.name}"
            both = "" if is_named else f": both have the address {host.address}"
            lost.append(_lost(host, FailureCode.FAILED, f"it is the same host as {earlier.name}{both}"))
    return found, lost


def _keep_reachable(hosts: Sequence[Host]) -> tuple[Host, ...]:
    """Return the hosts. If not all have addresses of loopback, these go: others would not reach them."""
    local = [host for host in hosts if host.address is not None and ip_address(host.address).is_loopback]
    if len(local) == len(hosts):
        return tuple(hosts)
    return tuple(replace(host, address=None) if host in local else host for host in hosts)


def _create_credentials() -> dict[str, Any]:
    """Return Dask's configuration with a key and a certificate of this cluster alone.

    Without them, anyone who reaches the scheduler's port could run code on every host.
    """
    from distributed import security

    made: Any = cast("Any", security.Security).temporary()
    roles = {
        f"distributed.comm.tls.{role}.{part}": getattr(made, f"tls_{role}_{part}")
        for role in ("client", "scheduler", "worker")
        for part in ("key", "cert")
    }
    return {**roles, "distributed.comm.tls.ca-file": made.tls_ca_file, "distributed.comm.require-encryption": True}
