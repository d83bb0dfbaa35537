"""Which hosts of a mesh are lost, by their answers; with Dask, the same is in test_coordinator.

The answers stand for workers that are broken, which a real one cannot be told to be.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from linkgauge.engine.model.errors import ClusterError
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.serialization import encode
from linkgauge.mesh import host_supervisor
from linkgauge.mesh.cluster import Cluster, HostFailed, HostFault, HostGone, HostSilent, InterfaceTask
from linkgauge.mesh.events import CellFailure, FailureCode, HostLost
from linkgauge.mesh.host_supervisor import HostSupervisor, together
from linkgauge.mesh.plan import Host, Pairing

HOSTS = [Host(name, address=f"127.0.0.1{number}") for number, name in enumerate(("db-1", "db-2", "db-3"))]
NAMES = [host.name for host in HOSTS]
NIC = NicInfo("eth0", "virtual", mtu_bytes=1500)


class Answers(Cluster):
    """Workers that give the answers of a table, by host and function; an error is raised."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Any] = {(name, "open_host"): 5820 for name in NAMES}
        self.calls: list[tuple[str, str]] = []
        self.deadlines: dict[tuple[str, str], float] = {}
        self.released: list[str] = []
        self.futures: dict[str, asyncio.Future[None]] = {}

    async def call(
        self, host: str, function: Callable[..., Coroutine[Any, Any, Any]], *_: object, deadline_s: float
    ) -> Any:
        """Return the answer of a host to a function."""
        place = host, function.__name__
        self.calls.append(place)
        self.deadlines[place] = deadline_s
        await asyncio.sleep(0)
        answer = self.answers.get(place)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def tell(self, hosts: Any, *_: object, **_options: object) -> None:
        """Note whose interfaces are released."""
        self.released = sorted(hosts)

    def submit(self, host: str, *_: object, **_options: object) -> InterfaceTask:
        """Return a task that the scheduler never begins."""
        self.futures[host] = asyncio.get_running_loop().create_future()
        return InterfaceTask(_Task(self.futures[host]))


class _Task:
    """A future of Dask: one that is released is forgotten."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self.done = future.done
        self.release = future.cancel


@pytest.fixture
def cluster() -> Answers:
    """Give workers whose endpoints start."""
    return Answers()


@pytest.fixture
def lost() -> list[HostLost]:
    """Give the list of lost hosts that the mesh is told of."""
    return []


@pytest.fixture
def hosts(cluster: Answers, lost: list[HostLost]) -> HostSupervisor:
    """Give the supervisor of three hosts."""
    return HostSupervisor(cluster, HOSTS, lost.append)


@pytest.mark.parametrize("port", [None, True, "5820", 5820.0, 0, -1, 65_536])
async def test_a_host_whose_endpoint_has_no_port_is_lost(
    cluster: Answers, hosts: HostSupervisor, lost: list[HostLost], port: object
) -> None:
    """The other hosts would connect to what it sent."""
    cluster.answers["db-2", "open_host"] = port
    await hosts.open()
    assert hosts.present == ["db-1", "db-3"]
    assert [(each.host, each.failure.code) for each in lost] == [("db-2", FailureCode.FAILED)]
    assert "did not report the port" in lost[0].failure.detail


@pytest.mark.parametrize("port", [1, 65_535])
async def test_every_port_that_can_be_is_one(cluster: Answers, hosts: HostSupervisor, port: int) -> None:
    """The first and the last."""
    cluster.answers["db-2", "open_host"] = port
    await hosts.open()
    assert hosts.present == NAMES


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (HostGone("gone"), FailureCode.HOST_LOST),
        (HostFailed("no memory"), FailureCode.FAILED),
        (HostSilent("silent"), FailureCode.NO_ANSWER),
    ],
)
async def test_the_kind_of_fault_is_the_code_of_the_failure(
    cluster: Answers, hosts: HostSupervisor, lost: list[HostLost], fault: HostFault, code: FailureCode
) -> None:
    """Each is told once, however often it is seen."""
    cluster.answers["db-1", "open_host"] = cluster.answers["db-1", "renew_host"] = fault
    await hosts.open()
    failure = CellFailure(code, str(fault), "db-1")
    assert lost == [HostLost("db-1", failure)]
    assert await hosts.find_fault(["db-1"]) == failure
    hosts.note_failure(failure)
    assert len(lost) == 1


async def test_an_end_of_the_scheduler_is_no_hosts_fault(cluster: Answers, hosts: HostSupervisor) -> None:
    """It ends the mesh; no host is lost."""
    cluster.answers["db-1", "open_host"] = ClusterError("the Dask scheduler was lost")
    with pytest.raises(ClusterError):
        await hosts.open()
    assert not hosts.lost


def failure_of(code: FailureCode, name: str | None = "db-1") -> CellFailure:
    """Return a failure of a test."""
    return CellFailure(code, "text", name)


@pytest.mark.parametrize("code", [FailureCode.FAILED, FailureCode.NO_ANSWER])
def test_a_host_is_lost_at_its_second_failure_in_a_row(
    hosts: HostSupervisor, lost: list[HostLost], code: FailureCode
) -> None:
    """A good test between them forgets the first."""
    hosts.note_failure(failure_of(code))
    assert hosts.is_suspect("db-1")
    assert not hosts.is_suspect("db-2")
    hosts.note_success(["db-1"])
    assert not hosts.is_suspect("db-1")
    hosts.note_failure(failure_of(code))
    assert not lost
    hosts.note_failure(failure_of(code))
    assert hosts.lost == {"db-1": failure_of(code)}
    assert hosts.present == ["db-2", "db-3"]


def test_a_host_whose_worker_has_gone_is_lost_at_once(hosts: HostSupervisor, lost: list[HostLost]) -> None:
    """There is nothing to try again."""
    hosts.note_failure(failure_of(FailureCode.HOST_LOST))
    assert lost == [HostLost("db-1", failure_of(FailureCode.HOST_LOST))]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        *((code, "db-1") for code in (FailureCode.BUSY, FailureCode.STOPPED, FailureCode.UNREACHABLE)),
        (FailureCode.FAILED, None),
    ],
)
def test_a_failure_that_another_causes_does_not_count(
    hosts: HostSupervisor, lost: list[HostLost], code: FailureCode, name: str | None
) -> None:
    """A busy interface, the user, a path, and an unknown end."""
    for _ in range(3):
        hosts.note_failure(failure_of(code, name))
    assert not lost
    assert not hosts.is_suspect("db-1")


async def test_an_endpoint_that_has_ended_is_a_fault_and_is_started_again(
    cluster: Answers, hosts: HostSupervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that fails otherwise is left to its next test; one that has gone is lost."""
    monkeypatch.setattr(host_supervisor, "RENEW_S", 0.01)
    await hosts.open()
    cluster.answers.update(
        {
            ("db-1", "renew_host"): False,
            ("db-2", "renew_host"): HostSilent("silent"),
            ("db-3", "renew_host"): HostGone("gone"),
        }
    )
    fault = await hosts.find_fault(["db-1"])
    assert fault == CellFailure(FailureCode.FAILED, "its endpoint has ended", "db-1")
    cluster.calls.clear()
    keeping = asyncio.create_task(hosts.keep())
    async with asyncio.timeout(20):
        while cluster.calls.count(("db-1", "open_host")) < 2 or cluster.calls.count(("db-2", "renew_host")) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    keeping.cancel()
    assert ("db-2", "open_host") not in cluster.calls
    assert list(hosts.lost) == ["db-3"]
    assert cluster.calls.count(("db-3", "renew_host")) == 1


async def test_the_interface_of_a_host_is_read_towards_another_one(cluster: Answers, hosts: HostSupervisor) -> None:
    """A host that fails, or answers something else, has an unknown one."""
    cluster.answers["db-1", "read_interface"] = encode(NIC)
    cluster.answers["db-2", "read_interface"] = {"name": 7}
    cluster.answers["db-3", "read_interface"] = HostSilent("silent")
    assert await hosts.read_interfaces() == {"db-1": NIC, "db-2": None, "db-3": None}
    assert not hosts.lost


async def test_all_hosts_are_closed_and_lost_ones_get_less_time(
    cluster: Answers, hosts: HostSupervisor, lost: list[HostLost]
) -> None:
    """A lost one may come back. After the end, nobody is told of further losses."""
    hosts.note_failure(failure_of(FailureCode.HOST_LOST))
    cluster.answers["db-2", "close_host"] = HostSilent("silent")
    await hosts.close()
    assert sorted(cluster.calls) == [(name, "close_host") for name in NAMES]
    assert cluster.deadlines["db-1", "close_host"] < cluster.deadlines["db-3", "close_host"]
    hosts.note_failure(failure_of(FailureCode.HOST_LOST, "db-3"))
    assert [each.host for each in lost] == ["db-1"]
    assert "db-3" in hosts.lost


async def test_hosts_of_a_lost_scheduler_are_asked_nothing_more(cluster: Answers, hosts: HostSupervisor) -> None:
    """Each call would wait for its deadline."""
    hosts.abandon()
    await hosts.close()
    assert not cluster.calls


async def test_a_pair_that_does_not_get_both_interfaces_gives_back_the_first(
    cluster: Answers, hosts: HostSupervisor
) -> None:
    """In the order of names; the pair's other host is not asked. A host that fails has a strike."""
    pair, other = Pairing("db-3", "db-1"), Pairing("db-2", "db-4")
    cluster.answers["db-1", "await_hold"] = True
    cluster.answers["db-2", "await_hold"] = HostSilent("silent")
    cluster.answers["db-3", "await_hold"] = True
    hosts.addresses["db-4"] = "127.0.0.14"
    async with hosts.holding([pair, other], wait_s=30, hold_s=30) as failures:
        assert failures == {other: CellFailure(FailureCode.NO_ANSWER, "silent", "db-2")}
        assert list(cluster.futures) == ["db-1", "db-2", "db-3"]
        assert not cluster.released
    assert cluster.released == ["db-1", "db-2", "db-3"]
    assert all(future.cancelled() for future in cluster.futures.values())
    assert hosts.is_suspect("db-2")


async def test_an_interface_that_another_test_has_is_busy_at_the_deadline(
    cluster: Answers, hosts: HostSupervisor
) -> None:
    """It is nobody's fault."""
    async with hosts.holding([Pairing("db-1", "db-2")], wait_s=0.05, hold_s=30) as failures:
        (failure,) = failures.values()
    assert (failure.code, failure.host) == (FailureCode.BUSY, "db-1")
    assert not hosts.is_suspect("db-1")


async def test_the_first_error_ends_all_work_that_runs_together() -> None:
    """Nothing goes on behind the caller's back."""
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")

    async def fail() -> None:
        raise ClusterError("lost")

    with pytest.raises(ClusterError):
        await together([wait(), fail()])
    assert ended == ["waiting"]
    assert await together([]) == []
    assert await together([asyncio.sleep(0.01, "slow"), asyncio.sleep(0, "fast")]) == ["slow", "fast"]
