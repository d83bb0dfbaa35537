"""What the engine's tests share: both event loops, a real far end, and a count of descriptors."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.iperf3.near.run import open_iperf3_run
from linkgauge.engine.model.events import Ended, Event, Sampled, Started
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.run_end import RunEnd
from linkgauge.engine.near.base_run import Run
from linkgauge.engine.near.connect import FarEnd
from linkgauge.engine.near.run import open_run
from linkgauge.engine.speedtest.run import open_speed_run

DEADLINE_S = 20.0
# Where nothing depends on the rate: at its full speed, loopback takes two cores for as long as a run lasts.
RATE_BIT_S = 100_000_000


def _descriptors() -> set[str]:
    return {f"{fd.name} {fd.readlink()}" for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}


def _left_open(before: set[str]) -> list[str]:
    return [fd for fd in _descriptors() - before if "socket:" in fd or "memfd:" in fd]


@pytest.fixture(scope="module", autouse=True)
def no_descriptor_leaks() -> Iterator[None]:
    """Fail a module whose tests leave sockets or blocks of shared memory open.

    Searching for garbage takes a fifth of a second, longer than most modules: it is done only if something is open.
    """
    if not Path("/proc/self/fd").is_dir():
        yield
        return
    before = _descriptors()
    yield
    if _left_open(before):
        gc.collect()
    left = _left_open(before)
    assert not left, f"descriptors left open: {left}"


@pytest.fixture
async def far_end(fork_server: None) -> AsyncIterator[Peer]:
    """Give a far end in this process, on 127.0.0.1."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        yield Peer(*endpoint.address)


@pytest.fixture
async def endpoint(fork_server: None) -> AsyncIterator[Endpoint]:
    """Give the far end itself."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        yield endpoint


class Recorded:
    """The events of a run, and what is usually asked of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def started(self) -> Started:
        """The first event."""
        first = self.events[0]
        assert isinstance(first, Started)
        return first

    @property
    def end(self) -> RunEnd:
        """Why the run ended."""
        last = self.events[-1]
        assert isinstance(last, Ended)
        return last.end

    @property
    def samples(self) -> list[Sampled]:
        """Both ends' samples."""
        return [event for event in self.events if isinstance(event, Sampled)]


def _open(plan: Plan, peer: FarEnd) -> AbstractAsyncContextManager[Run]:
    if isinstance(peer, Peer) and peer.iperf3 is not None:
        return open_iperf3_run(plan, peer)
    if isinstance(peer, Peer) and peer.speed is not None:
        return open_speed_run(plan, peer)
    return open_run(plan, peer)


@pytest.fixture
def record() -> Callable[..., Any]:
    """Give a coroutine that runs a plan to its end, calling `act(run, event)` at each event."""

    async def record(
        plan: Plan,
        peer: FarEnd,
        act: Callable[[Run, Event], None] = lambda _run, _event: None,
        deadline_s: float = DEADLINE_S,
    ) -> Recorded:
        recorded = Recorded()
        async with asyncio.timeout(deadline_s), _open(plan, peer) as run:
            async for event in run:
                recorded.events.append(event)
                act(run, event)
        assert isinstance(recorded.events[0], Started)
        assert isinstance(recorded.events[-1], Ended)
        return recorded

    return record


@pytest.fixture(scope="module")
def recorded_runs() -> dict[tuple[str, str], Recorded]:
    """Give the module's runs by plan and event loop."""
    return {}


@pytest.fixture
def record_once(
    record: Callable[..., Any], far_end: Peer, recorded_runs: dict[tuple[str, str], Recorded]
) -> Callable[..., Any]:
    """Give a coroutine that returns the events of a plan's run: one run for all tests of a module."""

    async def record_once(plan: Plan) -> Recorded:
        key = repr(plan), type(asyncio.get_running_loop()).__module__
        if key not in recorded_runs:
            recorded_runs[key] = await record(plan, far_end)
        return recorded_runs[key]

    return record_once
