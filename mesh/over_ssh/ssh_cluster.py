"""A Dask cluster that is started over ssh for one mesh: which hosts can take part, and their processes.

Dask's SpecCluster starts the scheduler and the workers (`ssh_process`), as SSHCluster does, but with a name and an
address for each worker, and with a key of this cluster alone. Each host is asked first, by itself: SSHCluster gives
up all hosts if one does not answer. ~/.ssh/config and known_hosts apply as asyncssh reads them.
"""

import asyncio
import contextlib
import logging
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final, cast

from ... import __version__
from ...engine.model.errors import (
    ClusterError,
    ExtraMissing,
    PlanError,
    explain_extra,
    explain_os_error,
    make_printable,
)
from ..cluster import WORKER_OPTIONS, Cluster, connect_cluster, import_dask, open_client
from ..events import CellFailure, FailureCode, HostLost
from ..plan import MIN_HOSTS, Host

_LOGIN_DEADLINE_S: Final = 15.0
_CHECK_DEADLINE_S: Final = 45.0
_WORKERS_DEADLINE_S: Final = 10.0
_IDLE_S: Final = 300  # then the scheduler of a killed coordinator ends, and its workers with it
_MAX_TEXT: Final = 200
# For the processes there. Lock files would stay on the hosts.
_SETTINGS: Final = {"distributed.worker.use-file-locking": False, "distributed.comm.default-scheme": "tls"}
_CHECK: Final = "import linkgauge, distributed, linkgauge.mesh.host_tasks; print(linkgauge.__version__)"
_log = logging.getLogger(__name__)


@asynccontextmanager
async def start_ssh_cluster(hosts: Sequence[Host], *, remote_python: str | None = None) -> AsyncGenerator[Cluster]:
    """Start a scheduler on the first host that ssh reaches and a worker on each; end them afterwards.

    Hosts that ssh cannot reach, or that have no linkgauge with Dask, are lost. `remote_python` is the interpreter
    there, by default at the path of this one. Raises ClusterError if fewer than two hosts are left.
    """
    async with start_processes(hosts, remote_python) as (scheduler, found, lost):
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
    asyncssh = _import_asyncssh()
    python = remote_python or sys.executable
    for host in hosts:
        if not set(host.name).isdisjoint("'\"\\$`;&|<> "):
            raise PlanError("host", repr(host.name), "give a name or an address that ssh knows")
    answers = await asyncio.gather(*(_ask(asyncssh, host, python) for host in hosts))
    different, same = _separate_same_hosts([answer for answer in answers if isinstance(answer, Host)])
    found = _keep_reachable(different)
    lost = (*(answer for answer in answers if isinstance(answer, HostLost)), *same)
    _check_number(found, lost)
    async with _spec_cluster(found, python) as cluster:
        problems = {name: worker.problem for name, worker in cluster.workers.items()}
        failed = [host for host in found if problems[host.name] is not None]
        lost += tuple(_lost(host, FailureCode.FAILED, problems[host.name]) for host in failed)
        found = tuple(host for host in found if host not in failed)
        _check_number(found, lost)
        yield cluster.scheduler_address, found, lost


def _check_number(found: Sequence[Host], lost: Sequence[HostLost]) -> None:
    if len(found) < MIN_HOSTS:
        reasons = "; ".join(f"{each.host}: {each.failure.detail}" for each in lost[:5])
        raise ClusterError(f"a mesh needs at least {MIN_HOSTS} hosts that ssh can start a worker on; {reasons}")


def _import_asyncssh() -> Any:
    try:
        import asyncssh
    except ImportError as error:
        raise ExtraMissing(explain_extra("hosts by ssh need asyncssh", "mesh")) from error
    logger = logging.getLogger("asyncssh")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return asyncssh


async def _ask(asyncssh: Any, host: Host, python: str) -> Host | HostLost:
    """Log in to a host and return it with its address, or the reason why no worker can run there."""
    try:
        async with asyncio.timeout(_LOGIN_DEADLINE_S):
            connection = await asyncssh.connect(*_target(host)[0], **_target(host)[1])
        async with connection, asyncio.timeout(_CHECK_DEADLINE_S):
            command = f"echo $SSH_CONNECTION; {python} -P -c {shlex.quote(_CHECK)}"
            answer = await connection.run(command, check=False, encoding="utf-8", errors="replace")
    except TimeoutError:
        return _lost(host, FailureCode.NO_ANSWER, "ssh timed out")
    except (OSError, ValueError, asyncssh.Error) as error:  # ValueError: ~/.ssh/config, a key file, a name
        reason = explain_os_error(error, host.name) if isinstance(error, OSError) else error
        return _lost(host, FailureCode.UNREACHABLE, f"ssh: {reason}")
    words = str(answer.stdout).split()
    if answer.exit_status or not words:
        reason = (str(answer.stderr).strip().splitlines() or ["it printed nothing"])[-1]
        return _lost(host, FailureCode.FAILED, f"{python} there cannot import linkgauge with Dask: {reason}")
    if words[-1] != __version__:
        return _lost(host, FailureCode.FAILED, f"it has linkgauge {words[-1]}; install {__version__} there too")
    return replace(host, address=_read_address(words))


def _target(host: Host) -> tuple[tuple[str], dict[str, Any]]:
    """Return the arguments of `asyncssh.connect` for a host, `[USER@]NAME`."""
    user, _, name = host.name.rpartition("@")
    return (name,), {"username": user} if user else {}


def _lost(host: Host, code: FailureCode, text: str) -> HostLost:
    detail = make_printable(" ".join(text.split()))[:_MAX_TEXT]
    return HostLost(host.name, CellFailure(code, detail, host.name))


def _read_address(words: Sequence[str]) -> str | None:
    """Return the address of the sshd, the third word of SSH_CONNECTION; None if it is not an address."""
    try:
        return str(ip_address(words[2].partition("%")[0])) if len(words) == 5 else None
    except ValueError:
        return None


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


@asynccontextmanager
async def _spec_cluster(hosts: Sequence[Host], python: str) -> AsyncGenerator[Any]:
    """Start the scheduler on the first host and a worker on each, and end them; raise ClusterError."""
    from dask import config
    from distributed import SpecCluster

    credentials = _create_credentials()
    scheduler, workers = _describe_processes(hosts, python, {**credentials, **_SETTINGS})
    with config.set(credentials):  # for the connections of this process, too
        cluster: Any = SpecCluster(workers, scheduler, asynchronous=True, name="linkgauge")
        try:
            await cluster
        except Exception as error:  # Dask raises a plain one if a process does not start
            await _end(cluster)
            text = make_printable(" ".join(str(error).split()))[:_MAX_TEXT] or type(error).__name__
            raise ClusterError(f"Dask did not start over ssh: {text}") from error
        try:
            yield cluster
        finally:
            await _end(cluster)


def _describe_processes(
    hosts: Sequence[Host], python: str, config: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the processes for SpecCluster: a scheduler on the first host, and a worker on each, by name."""
    from .ssh_process import SshProcess, SshScheduler, SshWorker

    def describe(process: type[SshProcess], host: Host, opts: dict[str, Any]) -> dict[str, Any]:
        (address,), login = _target(host)
        listen = {"host": host.address} if host.address else {}
        spec = {"cls": process.DASK_CLASS, "opts": {**opts, **listen}}
        order = {"config": config, "spec": spec}
        return {"cls": process, "options": {"host": address, "login": login, "python": python, "order": order}}

    workers = {host.name: describe(SshWorker, host, {**WORKER_OPTIONS, "name": host.name}) for host in hosts}
    scheduler = describe(SshScheduler, hosts[0], {"port": 0, "idle_timeout": f"{_IDLE_S} s"})
    return scheduler, workers


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


async def _end(cluster: Any) -> None:
    """End the processes, also if some have ended already or a host is lost."""
    processes = [*cluster.workers.values(), cluster.scheduler]
    try:
        async with asyncio.timeout(_LOGIN_DEADLINE_S):
            await cluster.close()
    except Exception as error:  # noqa: BLE001 - assertions of Dask included
        _log.debug("the Dask cluster was not closed: %s", error)
    for process in processes:  # Dask closes none of them if its scheduler has gone before
        with contextlib.suppress(Exception):
            await process.close()
