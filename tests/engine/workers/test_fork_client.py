"""The fork server: shared, replaced when it was killed, and ended with its last lease."""

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.workers.fork_client import ForkServerLease
from linkgauge.engine.workers.pool import WorkerPool

from ..child_processes import children_of, fork_servers_of, workers_of
from ..conftest import RATE_BIT_S
from ..waiting import until

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are read from /proc"),
]
DEADLINE_S = 30.0
ME = os.getpid()
BRIEF = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S)
LONG = Plan(duration_ns=60 * SECOND_NS, interval_ns=SECOND_NS // 10, workers=2, rate_bit_s=RATE_BIT_S)


@pytest.fixture(scope="module")
def fork_server() -> None:
    """Keep none: they are what is tested."""


async def until_no_workers() -> None:
    """Wait until no worker is left: the far end of a run ends its own a moment later."""
    await until(lambda: not workers_of(ME))


async def test_both_ends_of_a_process_share_one_fork_server(far_end: Peer, record: Any) -> None:
    """Before a run, during it and after it: one fork server, while there is an endpoint."""
    async with ForkServerLease():
        seen: set[tuple[int, ...]] = set()

        def act(_run: Run, event: Event) -> None:
            if isinstance(event, Sampled) and event.sample.index < 2:
                seen.add(tuple(fork_servers_of(ME)))
                assert len(workers_of(ME)) == 2

        assert (await record(BRIEF, far_end, act)).end.reason is Reason.COMPLETED
        assert seen == {tuple(fork_servers_of(ME))}
        assert len(fork_servers_of(ME)) == 1
        await until_no_workers()


async def test_an_endpoint_that_is_closed_twice_returns_one_lease() -> None:
    """The others keep their fork server."""
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        await until(lambda: fork_servers_of(ME))
        servers = fork_servers_of(ME)
        async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
            await endpoint.__aexit__()
        assert fork_servers_of(ME) == servers


async def test_a_fork_server_without_requests_ends_with_its_lease() -> None:
    """Whether it was ready or still importing."""
    before = children_of(ME)
    for wait_s in (0.0, 0.02, 0.6):
        async with asyncio.timeout(DEADLINE_S), ForkServerLease():
            await asyncio.sleep(wait_s)
        assert children_of(ME) == before


async def test_a_killed_fork_server_is_replaced_and_its_workers_continue(far_end: Peer) -> None:
    """A run with its workers does not need it; sessions added to the run come from the next fork server."""
    lost: list[int] = []
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, far_end) as run:
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index >= 2 and not lost:
                lost = fork_servers_of(ME)
                os.kill(lost[0], signal.SIGKILL)
                run.change_settings(Settings(sessions=8))
            is_whole = isinstance(event, Sampled) and len(event.sample.sessions) == 8
            if is_whole and all(session.bytes for session in event.sample.sessions):
                run.stop()
    assert event.end.reason is Reason.STOPPED
    (replacement,) = fork_servers_of(ME)
    assert replacement != lost[0]
    async with open_run(BRIEF, far_end) as run:
        events = [event async for event in run]
    assert events[-1].end.reason is Reason.COMPLETED
    assert fork_servers_of(ME) == [replacement]


@pytest.mark.every
@pytest.mark.parametrize("is_ready", [True, False])
async def test_a_stopped_fork_server_is_replaced(monkeypatch: pytest.MonkeyPatch, is_ready: bool) -> None:
    """By SIGSTOP, also while it starts: it does not answer, and may never be continued."""
    monkeypatch.setattr("linkgauge.engine.workers.fork_client._LOOK_S", 0.1)
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        if is_ready:
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
        while not (stopped := fork_servers_of(ME)):  # noqa: ASYNC110 - only looking tells of another process
            await asyncio.sleep(0.001)
        os.kill(stopped[0], signal.SIGSTOP)
        async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
            assert len(workers_of(ME)) == 1
        assert stopped[0] not in fork_servers_of(ME)


async def kill_next_fork_server(killed: set[int]) -> None:
    """Wait for a fork server that is not in the set, kill it, and add it."""
    while not (new := set(fork_servers_of(ME)) - killed):  # noqa: ASYNC110 - only looking tells of another process
        await asyncio.sleep(0.001)
    for pid in new:
        os.kill(pid, signal.SIGKILL)
    killed |= new


async def test_a_fork_server_that_is_killed_while_it_starts_is_replaced() -> None:
    """Killed before it could fork: the next one does, and after three of them the cause is an error."""
    killed: set[int] = set()
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        await kill_next_fork_server(killed)
        async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
            assert len(workers_of(ME)) == 1
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():

        async def kill_three() -> None:
            for _ in range(3):
                await kill_next_fork_server(killed)

        killing = asyncio.create_task(kill_three())
        with pytest.raises(WorkerError, match="the process that starts workers has ended: status -9"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
        await killing
    assert fork_servers_of(ME) == []


# A fork server that is killed in the first moment of its first worker: that one lives, and its owner does not know
# of it.
KILLED_AT_FORK = """
import os, signal, sys
from pathlib import Path
mark, fork = Path({mark!r}), os.fork

def fork_once():
    pid = fork()
    if pid and not mark.exists():
        mark.write_text(str(pid), encoding="ascii")
        os.kill(os.getpid(), signal.SIGKILL)
    return pid

os.fork = fork_once
"""


async def test_a_worker_whose_fork_server_was_killed_before_its_report_takes_no_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Another one is forked with its own channel, and the first one ends at once."""
    mark = tmp_path / "first"
    (tmp_path / "sitecustomize.py").write_text(KILLED_AT_FORK.format(mark=str(mark)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    async with asyncio.timeout(DEADLINE_S), ForkServerLease(), WorkerPool(End.NEAR, Plan(), ignore, ignore):
        first = int(mark.read_text(encoding="ascii"))
        await until(lambda: not is_running(first))
        assert len(workers_of(ME)) == 1


@pytest.mark.every
async def test_a_frozen_worker_is_killed_at_the_end_of_the_run(far_end: Peer) -> None:
    """Stopped in the middle of a run, which it cannot notice: nothing is left of it."""
    frozen: list[int] = []
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, far_end) as run:
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index >= 2 and not frozen:
                frozen = workers_of(ME)
                for pid in frozen:
                    os.kill(pid, signal.SIGSTOP)
                run.stop()
    assert len(frozen) == 2
    await until_no_workers()


def is_running(pid: int) -> bool:
    """Return whether a process is neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ignore(_: Any) -> None:
    """Ignore an event."""


async def test_a_worker_that_cannot_be_forked_says_why() -> None:
    """A fork server at its limit of descriptors: the reason in words, and nothing is left behind."""
    async with asyncio.timeout(DEADLINE_S), ForkServerLease() as lease:
        with pytest.raises(WorkerError, match="could be started: bad file descriptor"):
            await lease.start(-1, 0)
        (server,) = fork_servers_of(ME)
        resource.prlimit(server, resource.RLIMIT_NOFILE, (4, 1_024))
        with pytest.raises(WorkerError, match="no worker process could be started: too many open files"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
        resource.prlimit(server, resource.RLIMIT_NOFILE, (256, 1_024))
        async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
            assert len(workers_of(ME)) == 1
    assert fork_servers_of(ME) == []


async def test_a_fork_server_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter any more, as after an update: an error if a worker is needed, and nowhere else."""
    monkeypatch.setattr("sys.executable", "/no/such/python")
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        with pytest.raises(WorkerError, match=r"could be started: /no/such/python: no such file"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
    monkeypatch.setattr("sys.executable", "/bin/false")
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        with pytest.raises(WorkerError, match="the process that starts workers has ended: status 1"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass


async def test_a_frozen_fork_server_is_an_error_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine too busy to start it: an error, and nothing is left."""
    monkeypatch.setattr("linkgauge.engine.workers.pool.START_DEADLINE_S", 0.3)
    before = children_of(ME)
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        await until(lambda: fork_servers_of(ME))
        os.kill(fork_servers_of(ME)[0], signal.SIGSTOP)
        with pytest.raises(WorkerError, match=r"no worker process could be started in 0\.3 s"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
    assert children_of(ME) == before


async def test_a_pipe_that_cannot_be_opened_is_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors while the fork server starts."""

    def refuse() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    async with asyncio.timeout(DEADLINE_S):
        with monkeypatch.context() as patched:
            patched.setattr("linkgauge.engine.workers.fork_client.os.pipe", refuse)
            async with ForkServerLease() as lease:
                with pytest.raises(WorkerError, match=r"no worker process could be started: too many open files"):
                    await lease.start(0, 0)


@pytest.mark.parametrize(("mode", "why"), [(0o600, "permission denied"), (None, "no such file or directory")])
async def test_a_python_that_cannot_be_executed_is_named(
    mode: int | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade may have moved it, and a disk be mounted without the right to execute."""
    program = tmp_path / "python"
    if mode is not None:
        program.touch(mode)
    monkeypatch.setattr(sys, "executable", str(program))
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        with pytest.raises(WorkerError, match=f"{program}: {why}; put it back, make it executable"):
            async with WorkerPool(End.NEAR, Plan(), ignore, ignore):
                pass
