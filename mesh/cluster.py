"""The Dask cluster that a mesh runs on: its workers as hosts, calls of functions there, holds of interfaces.

Scheduling, the registry of workers, heartbeats and the wire are Dask's. A mesh uses the workers of a scheduler that
runs already (`connect_cluster`), or has Dask start a scheduler and workers over ssh and ends them
(`start_ssh_cluster`). Dask is imported where it is needed: a command line without a mesh does not wait for it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ..engine.model.errors import LinkgaugeError
from .events import HostLost
from .plan import Host

T = TypeVar("T")
_log = logging.getLogger(__name__)


class ClusterError(LinkgaugeError):
    """The cluster cannot be used: no scheduler answers, or its workers are not as a mesh needs them."""


class HostGone(LinkgaugeError):
    """The scheduler has no worker of this host any more."""


class HostSilent(LinkgaugeError):
    """A host's worker did not answer until a deadline."""


class Cluster:
    """A client of a scheduler, and the workers that are the hosts of a mesh.

    Args:
        client: the asynchronous client of Dask.
        workers: each host, with its address, and the address of its worker.
        lost: hosts that were asked for and cannot be used.
    """

    def __init__(self, client: Any, workers: Mapping[Host, str], lost: Sequence[HostLost] = ()) -> None:
        self._client = client
        self._workers = {host.name: worker for host, worker in workers.items()}
        self.hosts = tuple(workers)
        self.lost = tuple(lost)

    async def call(
        self, host: str, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, deadline_s: float
    ) -> T:
        """Return what a function of `host_tasks` returns on a host, or raise its LinkgaugeError.

        Raises HostGone, HostSilent after the deadline, or ClusterError where the scheduler has gone.
        """
        raise NotImplementedError

    def submit(
        self, host: str, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object, key: str
    ) -> Any:
        """Submit a task that waits for a host's resource `nic`; return its future, which must be released."""
        raise NotImplementedError


@asynccontextmanager
async def connect_cluster(scheduler: str, hosts: Sequence[Host] = ()) -> AsyncGenerator[Cluster]:
    """Connect to a scheduler (`tcp://ADDRESS:PORT`) and yield its workers as hosts.

    With `hosts`, only these take part, with their groups; those without a worker are lost. Raises ClusterError.
    """
    del scheduler, hosts
    await asyncio.sleep(0)
    yield Cluster(None, {})


@asynccontextmanager
async def start_ssh_cluster(hosts: Sequence[Host], *, remote_python: str | None = None) -> AsyncGenerator[Cluster]:
    """Start a scheduler on the first host that answers and a worker on each, over ssh; end them afterwards.

    Hosts that ssh cannot reach, or that have no linkgauge with Dask, are lost. `remote_python` is the interpreter
    there, by default of the same path as this one. Raises ClusterError where fewer than two hosts are left.
    """
    del hosts, remote_python
    await asyncio.sleep(0)
    yield Cluster(None, {})
