"""What forks workers: shared, replaced when it is lost, and gone with the last one who holds it."""

import asyncio
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.model.events import Event, Reason, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, End, Plan, Settings
from linkgauge.engine.near.run import Run, open_run
from linkgauge.engine.workers.fork_client import ForkServerLease
from linkgauge.engine.workers.pool import WorkerPool

from ..child_processes import children_of, starters_of, workers_of

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are read from /proc"),
]
DEADLINE_S = 30.0
ME = os.getpid()
BRIEF = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10)
LONG = Plan(duration_ns=60 * SECOND_NS, interval_ns=SECOND_NS // 10, workers=2)


async def until_no_workers() -> None:
    """Wait for the end of all workers: the far end of a run has its last a moment later."""
    async with asyncio.timeout(DEADLINE_S):
        while workers_of(ME):  # noqa: ASYNC110 - only looking tells of another process
            await asyncio.sleep(0.02)


async def test_both_ends_of_a_process_share_one_and_the_last_to_let_go_ends_it(far_end: Peer, record: Any) -> None:
    """Before a run, in it and after it: one starter, as long as there is an endpoint; then none."""
    async with ForkServerLease():
        seen: set[tuple[int, ...]] = set()

        def act(_run: Run, event: Event) -> None:
            if isinstance(event, Sampled) and event.sample.index < 2:
                seen.add(tuple(starters_of(ME)))
                assert len(workers_of(ME)) == 2

        assert (await record(BRIEF, far_end, act)).end.reason is Reason.COMPLETED
        assert seen == {tuple(starters_of(ME))}
        assert len(starters_of(ME)) == 1
        await until_no_workers()


async def test_nothing_is_left_of_one_that_nobody_asked_for_anything() -> None:
    """Whether it had come up or not."""
    before = children_of(ME)
    for wait_s in (0.0, 0.02, 0.6):
        async with asyncio.timeout(DEADLINE_S), ForkServerLease():
            await asyncio.sleep(wait_s)
        assert children_of(ME) == before


async def test_one_that_is_killed_is_replaced_and_its_workers_go_on(far_end: Peer) -> None:
    """A run that has its workers does not need it; sessions that are added to the run come from the next one."""
    lost: list[int] = []
    async with asyncio.timeout(DEADLINE_S), open_run(LONG, far_end) as run:
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index >= 2 and not lost:
                lost = starters_of(ME)
                os.kill(lost[0], signal.SIGKILL)
                run.change(Settings(sessions=8))
            is_whole = isinstance(event, Sampled) and len(event.sample.sessions) == 8
            if is_whole and all(one.bytes for one in event.sample.sessions):
                run.stop()
    assert event.end.reason is Reason.STOPPED
    (found,) = starters_of(ME)
    assert found != lost[0]
    async with open_run(BRIEF, far_end) as run:
        events = [event async for event in run]
    assert events[-1].end.reason is Reason.COMPLETED
    assert starters_of(ME) == [found]


async def test_a_worker_that_does_not_end_is_ended(far_end: Peer) -> None:
    """Frozen in the middle of a run: nothing is left of it once the run is over."""
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


def heard(_: Any) -> None:
    """Take what a worker says."""


async def test_a_worker_that_cannot_be_forked_says_why() -> None:
    """A starter that may open nothing more: the reason in words, and nothing is left behind."""
    async with asyncio.timeout(DEADLINE_S), ForkServerLease() as hold:
        with pytest.raises(WorkerError, match=r"could not be asked for: .*Bad file descriptor"):
            await hold.start(-1, -1, 0)
        (starter,) = starters_of(ME)
        resource.prlimit(starter, resource.RLIMIT_NOFILE, (4, 1_024))
        with pytest.raises(WorkerError, match="a worker process could not be forked: Too many open files"):
            async with WorkerPool(End.NEAR, Plan(), heard, heard):
                pass
        resource.prlimit(starter, resource.RLIMIT_NOFILE, (256, 1_024))
        async with WorkerPool(End.NEAR, Plan(), heard, heard):
            assert len(workers_of(ME)) == 1
    assert starters_of(ME) == []


async def test_a_starter_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter there any more, as after an update: an error for who needs a worker, and no other."""
    monkeypatch.setattr("sys.executable", "/no/such/python")
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        with pytest.raises(WorkerError, match=r"no worker process could be started: .*No such file"):
            async with WorkerPool(End.NEAR, Plan(), heard, heard):
                pass
    monkeypatch.setattr("sys.executable", "/bin/false")
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        with pytest.raises(WorkerError, match="the process that starts workers has ended: status 1"):
            async with WorkerPool(End.NEAR, Plan(), heard, heard):
                pass


async def test_a_starter_that_never_answers_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not get round to it: an error after the deadline, and nothing is left."""
    monkeypatch.setattr("linkgauge.engine.workers.pool.START_DEADLINE_S", 0.3)
    before = children_of(ME)
    async with asyncio.timeout(DEADLINE_S), ForkServerLease():
        while not starters_of(ME):  # noqa: ASYNC110 - only looking tells of another process
            await asyncio.sleep(0.001)
        os.kill(starters_of(ME)[0], signal.SIGSTOP)
        with pytest.raises(WorkerError, match=r"no worker process could be started in 0\.3 s"):
            async with WorkerPool(End.NEAR, Plan(), heard, heard):
                pass
    assert children_of(ME) == before


async def test_one_more_pipe_than_there_may_be_is_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors while the starter is begun."""

    def none_left() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    async with asyncio.timeout(DEADLINE_S):
        with monkeypatch.context() as patched:
            patched.setattr("linkgauge.engine.workers.fork_client.os.pipe", none_left)
            async with ForkServerLease() as hold:
                with pytest.raises(WorkerError, match=r"no worker process could be started: .*Too many open files"):
                    await hold.start(0, 0, 0)
