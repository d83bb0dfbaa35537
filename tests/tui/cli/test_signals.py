"""Signals: each reaches the handler while the context is open; the first stops a run, the next cancels."""

import asyncio
import os
import signal

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.tui.cli.signals import RunStopper, handle_signals


class Run:
    """A run that remembers its stop."""

    def __init__(self) -> None:
        self.stops: list[tuple[Reason, str]] = []

    def stop(self, reason: Reason, detail: str = "") -> None:
        """Remember the reason."""
        self.stops.append((reason, detail))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_reaches_the_handler_in_the_loop(number: signal.Signals) -> None:
    """And none is handled afterwards."""
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    with handle_signals(received.put_nowait):
        os.kill(os.getpid(), number)
        assert await received.get() is number
    assert not asyncio.get_running_loop().remove_signal_handler(number)


async def test_the_first_signal_stops_the_run_and_the_second_cancels_the_task() -> None:
    """The reason names the signal."""
    run = Run()

    async def work() -> None:
        stopper = RunStopper()
        stopper.run = run
        stopper.receive(signal.SIGTERM)
        stopper.receive(signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(work())
    assert run.stops == [(Reason.INTERRUPTED, "interrupted by SIGTERM")]


async def test_a_signal_before_any_run_cancels_the_task() -> None:
    """There is nothing to stop in order."""

    async def work() -> None:
        RunStopper().receive(signal.SIGINT)
        await asyncio.Event().wait()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(work())
