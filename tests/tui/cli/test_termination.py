"""The end of a command: signals stop a run in order, and the exit status says how it went."""

import asyncio
import os
import signal

import pytest
from linkgauge.engine.model.errors import (
    LinkgaugeError,
    PeerError,
    PlanError,
    RunLogError,
    UnknownPreset,
    UsageError,
)
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.run_result import RunResult
from linkgauge.presets.verdict import VerdictCode
from linkgauge.tui.cli.termination import (
    RunStopper,
    exit_status,
    handle_signals,
    run_exit_status,
)


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


async def test_a_signal_that_was_ignored_stays_so_but_for_the_hang_up_of_a_screen() -> None:
    """Afterwards it is ignored again."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    try:
        with handle_signals(received.put_nowait):
            signal.raise_signal(signal.SIGHUP)
            with handle_signals(received.put_nowait, draws=True):
                signal.raise_signal(signal.SIGHUP)
                assert await received.get() is signal.SIGHUP
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
            signal.raise_signal(signal.SIGTERM)
            assert await received.get() is signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, before)
    assert received.empty()


async def test_the_first_signal_stops_the_run_and_the_second_cancels_the_task() -> None:
    """The reason names the signal."""
    run = Run()

    stopper = RunStopper()
    with stopper.in_force():
        stopper.stop = run.stop
        stopper.receive(signal.SIGTERM)
        stopper.receive(signal.SIGTERM)
        await asyncio.Event().wait()
    assert (stopper.first, stopper.received) == (signal.SIGTERM, 2)
    assert run.stops == [(Reason.INTERRUPTED, "interrupted by SIGTERM")]


async def test_a_signal_before_any_run_cancels_the_task() -> None:
    """There is nothing to stop in order."""
    stopper = RunStopper()
    with stopper.in_force():
        stopper.receive(signal.SIGINT)
        await asyncio.Event().wait()
    assert stopper.first is signal.SIGINT


async def test_a_cancellation_without_a_signal_goes_on() -> None:
    """Another task may end this one."""

    async def work() -> None:
        with RunStopper().in_force():
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (PlanError("window", "1", "give more"), 2),
        (UnknownPreset("gbe", ()), 2),
        (UsageError("PEER"), 2),
        (PeerError("nobody answers"), 3),
        (RunLogError("damaged"), 3),
    ],
)
def test_what_a_person_can_correct_on_the_command_line_exits_2(error: LinkgaugeError, status: int) -> None:
    """Everything else is a test that could not be run."""
    assert error.exit_status == status


@pytest.mark.parametrize(
    ("word", "reason", "is_measured", "number", "status"),
    [
        ("pass", Reason.COMPLETED, True, None, 0),
        ("none", Reason.COMPLETED, True, None, 0),
        ("none", Reason.STOPPED, True, signal.SIGINT, 0),
        ("short", Reason.COMPLETED, True, None, 1),
        ("fail", Reason.COMPLETED, True, None, 1),
        ("none", Reason.COMPLETED, False, None, 3),
        ("none", Reason.INTERRUPTED, True, None, 3),
        ("none", Reason.INTERRUPTED, True, signal.SIGTERM, 143),
        ("none", Reason.PEER_LOST, True, signal.SIGINT, 3),
        ("none", Reason.PEER_STOPPED, True, None, 3),
        ("none", Reason.WORKER_LOST, False, None, 3),
    ],
)
def test_the_exit_status_tells_a_bad_link_from_a_test_that_was_none(
    word: VerdictCode, reason: Reason, is_measured: bool, number: int | None, status: int
) -> None:
    """0 pass or nothing to judge, 1 short or fail, 3 not run to its end or nothing measured, else the signal's."""
    measured = {"total": {"bytes": 1_176_250_000}} if is_measured else None
    result = RunResult.of({"verdict": word, "ended": {"reason": reason}, "measured": measured})
    assert run_exit_status(result, number) == status
    if word == "none" and status == 0:
        assert run_exit_status(result, is_judged=True) == 3


@pytest.mark.parametrize(
    ("word", "number", "status"),
    [
        ("pass", None, 0),
        ("short", None, 1),
        ("fail", None, 1),
        ("none", None, 3),
        (None, None, 3),
        ("pass", 2, 130),
        (None, 15, 143),
    ],
)
def test_a_command_ends_by_its_verdict_or_by_the_signal(word: str | None, number: int | None, status: int) -> None:
    """What a signal cut short is no pass, whatever it has so far."""
    assert exit_status(word, number) == status
