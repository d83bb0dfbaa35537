"""A remote end that is killed or suspended in the middle of a run: the run ends with a reason, or continues."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run

from ..engine.child_processes import fork_servers_of, workers_of
from .conftest import DEADLINE_S

StartEndpoint = Callable[..., tuple["subprocess.Popen[str]", str]]
pytestmark = pytest.mark.every


def exists(pid: int) -> bool:
    """Return whether there is such a process."""
    return Path(f"/proc/{pid}").exists()


async def end_after(peer: str, workload: Workload, seconds: int, act: Callable[[], None]) -> str:
    """Carry out a run, act in the middle of it, and return the reason of its end."""
    plan = Plan(
        Settings(Direction.DUPLEX, 2, 65_536), workload, seconds * SECOND_NS, interval_ns=SECOND_NS // 4, workers=1
    )
    has_acted = False
    async with asyncio.timeout(DEADLINE_S), open_run(plan, Peer.parse(peer)) as run:
        async for event in run:
            if isinstance(event, Sampled) and event.sample.index == 1 and not has_acted:
                has_acted = True
                act()
            if isinstance(event, Ended):
                return event.end.reason.value
    raise AssertionError("a run ends with Ended")


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.RR, Workload.CRR])
async def test_a_far_end_that_is_killed_ends_the_run_at_once_and_leaves_no_worker(
    start_endpoint: StartEndpoint, workload: Workload
) -> None:
    """Its connection is reset, and its workers end with their channels."""
    process, peer = start_endpoint("--open")
    left: list[int] = []

    def kill() -> None:
        left.extend([*fork_servers_of(process.pid), *workers_of(process.pid)])
        process.kill()

    assert await end_after(peer, workload, 60, kill) in {"peer_lost", "session_lost"}
    assert len(left) == 2
    async with asyncio.timeout(DEADLINE_S):
        while any(map(exists, left)):  # noqa: ASYNC110 - only looking tells
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.RR, Workload.CRR])
@pytest.mark.parametrize(("pause_s", "ends"), [(3.0, {"completed"}), (None, {"peer_lost"})])
async def test_a_far_end_that_is_suspended_is_waited_for_and_then_lost(
    start_endpoint: StartEndpoint, workload: Workload, pause_s: float | None, ends: set[str]
) -> None:
    """Three seconds end no run; the silence of a far end that does not come back does."""
    process, peer = start_endpoint("--open")
    suspended: list[int] = []

    def resume() -> None:
        for pid in reversed(suspended):
            with contextlib.suppress(ProcessLookupError):  # a worker that has ended with its run
                os.kill(pid, signal.SIGCONT)

    def suspend() -> None:
        suspended.extend([process.pid, *fork_servers_of(process.pid), *workers_of(process.pid)])
        for pid in suspended:
            os.kill(pid, signal.SIGSTOP)
        if pause_s is not None:
            asyncio.get_running_loop().call_later(pause_s, resume)

    try:
        assert await end_after(peer, workload, 5, suspend) in ends
    finally:
        resume()
    assert await end_after(peer, workload, 1, lambda: None) == "completed"
