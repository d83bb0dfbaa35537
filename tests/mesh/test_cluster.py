"""Workers as hosts: their names, groups and addresses. Clusters that a mesh cannot use, with the remedy."""

from collections.abc import AsyncIterator

import pytest
from distributed import Scheduler, Worker
from linkgauge.engine.model.errors import ClusterError, PlanError
from linkgauge.mesh.cluster import HostFailed, HostGone, HostSilent, connect_cluster
from linkgauge.mesh.events import FailureCode
from linkgauge.mesh.plan import Host

from . import worker_functions

NIC = {"nic": 1}


@pytest.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    """Give a scheduler in this process."""
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        yield scheduler


def worker(scheduler: Scheduler, address: str, name: str | None = None, **options: object) -> Worker:
    """Return a worker in this process, not started."""
    settings = {"nthreads": 1, "resources": NIC, "memory_limit": 0, "dashboard": False, **options}
    return Worker(scheduler.address, host=address, name=name, **settings)


async def test_workers_are_hosts_by_their_names_or_addresses(scheduler: Scheduler) -> None:
    """With a file, only its hosts with their groups; those without a worker are lost."""
    async with worker(scheduler, "127.0.0.42", "db-2"), worker(scheduler, "127.0.0.41"):
        async with connect_cluster(scheduler.address) as cluster:
            assert set(cluster.hosts) == {
                Host("db-2", address="127.0.0.42"),
                Host("127.0.0.41", address="127.0.0.41"),
            }
            assert cluster.lost == ()
        hosts = [Host("db-9", "rack-2"), Host("db-2", "rack-1"), Host("127.0.0.41")]
        async with connect_cluster(scheduler.address, hosts) as cluster:
            assert cluster.hosts == (Host("db-2", "rack-1", "127.0.0.42"), Host("127.0.0.41", None, "127.0.0.41"))
            (lost,) = cluster.lost
            assert (lost.host, lost.failure.code) == ("db-9", FailureCode.HOST_LOST)


async def test_workers_without_the_resource_are_refused_with_the_option(scheduler: Scheduler) -> None:
    """Nothing would keep a host from two tests at once."""
    async with worker(scheduler, "127.0.0.42", "db-2"), worker(scheduler, "127.0.0.41", "db-1", resources={}):
        with pytest.raises(ClusterError, match=r"db-1 has no resource nic.*--resources nic=1"):
            async with connect_cluster(scheduler.address):
                pass


async def test_two_workers_on_one_host_are_refused(scheduler: Scheduler) -> None:
    """They would share one interface without knowing it."""
    async with worker(scheduler, "127.0.0.41", "db-1"), worker(scheduler, "127.0.0.41", "db-2"):
        with pytest.raises(ClusterError, match=r"db-1 and db-2 are on the same host, 127.0.0.41.*--nworkers 1"):
            async with connect_cluster(scheduler.address):
                pass


async def test_too_few_workers_are_an_error_that_says_how_to_start_them(scheduler: Scheduler) -> None:
    """One is too few, and so is one of the named hosts."""
    async with worker(scheduler, "127.0.0.41", "db-1"):
        with pytest.raises(ClusterError, match=r"has 1 worker for a mesh; .*dask worker tcp://.*--resources nic=1"):
            async with connect_cluster(scheduler.address):
                pass
        with pytest.raises(ClusterError, match=r"db-7: no worker has this name"):
            async with connect_cluster(scheduler.address, [Host("db-1"), Host("db-7")]):
                pass


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1: .*dask scheduler"),
        ("tcp://no-such-host.invalid:1", "no Dask scheduler answers at tcp://no-such-host.invalid:1"),
        ("tcp://127.0.0.1:port", "no Dask scheduler answers at tcp://127.0.0.1:port"),
        ("nonsense://x", "nonsense://x is invalid; give tcp://ADDRESS:PORT"),
        ("127.0.0.1:8786", "127.0.0.1:8786 is invalid; give tcp://ADDRESS:PORT"),
        ("tcp://", "tcp:// is invalid; give tcp://ADDRESS:PORT"),
    ],
)
async def test_a_missing_scheduler_is_named(address: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its address, and the command that starts one."""
    monkeypatch.setattr("linkgauge.mesh.cluster.CONNECT_DEADLINE_S", 0.5)
    with pytest.raises(ClusterError if "answers" in words else PlanError, match=words):
        async with connect_cluster(address):
            pass


@pytest.mark.every
async def test_a_call_has_one_of_four_ends(scheduler: Scheduler) -> None:
    """A result, an error of the function, no answer, or no worker."""
    async with (
        worker(scheduler, "127.0.0.42", "db-2"),
        worker(scheduler, "127.0.0.41", "db-1") as leaving,
        connect_cluster(scheduler.address) as cluster,
    ):
        assert await cluster.call("db-1", worker_functions.double, 4, deadline_s=5) == 8
        with pytest.raises(HostFailed, match="no such interface"):
            await cluster.call("db-1", worker_functions.fail, "no such interface", deadline_s=5)
        with pytest.raises(HostSilent, match=r"did not answer for 0\.1 s"):
            await cluster.call("db-1", worker_functions.wait, 1.0, deadline_s=0.1)
        await leaving.close()
        with pytest.raises(HostGone):
            await cluster.call("db-1", worker_functions.double, 4, deadline_s=5)
        assert await cluster.call("db-2", worker_functions.double, 4, deadline_s=5) == 8
