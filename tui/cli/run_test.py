"""A test without the app: carried out, watched, summed up, judged."""

import asyncio
import contextlib
import signal
from collections.abc import Generator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from ...engine.host.event_loop import run
from ...engine.model.events import Reason, Warned
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...engine.near.connect import open_far_end
from ...engine.results.run_log import RunLog
from ...engine.workers.fork_client import ForkServerLease
from ...presets.catalog import Catalog
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..services.run_log_access import open_run_log
from ..services.run_session import Outcome, RunSession, open_run_session
from .exit_status import INCOMPLETE, verdict_exit_status
from .live_line import LiveLine
from .output import emit_json, emit_rich, print_stderr
from .preset_option import check_link_options, choose_preset
from .render.summary import summary_parts


@dataclass(frozen=True, slots=True)
class TestJob:
    """A test as asked for, checked as far as it can be before anything is begun.

    In place of a preset there may be all of them: then it picks itself.
    """

    plan: Plan
    preset: Preset | Catalog | None
    peer: Peer
    pass_percent: float = DEFAULT_PASS_PERCENT
    csv: Path | None = None
    as_json: bool = False
    variant: Variant = DEFAULT_VARIANT
    label: str | None = None
    target_ci_percent: float | None = None

    def __post_init__(self) -> None:
        """Refuse options that the preset's link cannot be had with."""
        check_link_options(self.preset, self.variant)


def run_test(test: TestJob) -> int:
    """Carry a test out and print what it found; return the exit status."""
    log = open_run_log(print_stderr)
    told: list[str] = []
    try:
        outcome = run(_carry_out(test, log, told))
    finally:
        if log is not None:
            log.close()  # what is still to be written may fail as well
            if log.problem is not None and log.problem not in told:
                print_stderr(log.problem)
    if outcome is None:
        print_stderr("interrupted before anything was measured")
        return INCOMPLETE
    if test.as_json:
        emit_json(outcome.document)
    else:
        emit_rich(
            *summary_parts(
                outcome.summary,
                outcome.verdict,
                preset_id=outcome.preset_id,
                started=outcome.started,
                pass_percent=test.pass_percent,
                findings=outcome.findings,
            )
        )
    if log is not None and log.problem is None:
        print_stderr(f"kept as run {outcome.run_id}")
    return verdict_exit_status(outcome.summary, outcome.verdict)


async def _carry_out(test: TestJob, log: RunLog | None, told: list[str]) -> Outcome | None:
    """Return what came out; None where a signal ended it before it had begun. Notices go to `told` as well."""
    with _stopped_by_signals(test.plan) as signals:
        try:
            async with ForkServerLease(), AsyncExitStack() as stack:
                far = None
                if test.peer.ssh is not None:  # ssh may ask on the terminal, where no line is drawn yet
                    far = await stack.enter_async_context(open_far_end(test.peer))
                live = stack.enter_context(LiveLine(test.plan, str(test.peer)))
                chosen = await choose_preset(test.preset, test.variant, far or test.peer)
                async with open_run_session(
                    test.plan,
                    chosen.preset,
                    test.peer,
                    log=log,
                    csv=test.csv,
                    pass_percent=test.pass_percent,
                    far_end=far,
                    notices=chosen.notices,
                    variant=chosen.variant,
                    label=test.label,
                    target_ci_percent=test.target_ci_percent,
                ) as conducted:
                    signals.conducted = conducted
                    await _watch(conducted, live, told, as_json=test.as_json)
                    return conducted.outcome
        except asyncio.CancelledError:
            if not signals.received:
                raise
            return None if signals.conducted is None else signals.conducted.outcome


async def _watch(conducted: RunSession, live: LiveLine, told: list[str], *, as_json: bool) -> None:
    """Show how it goes. Warnings are in the summary too; in JSON a person does not see them there."""
    async for event in conducted:
        for interval in conducted.intervals:
            live.show(interval, conducted.meter)
        if isinstance(event, Warned) and as_json:
            live.print_above(event.text)
        for notice in conducted.notices[len(told) :]:
            live.print_above(notice)
            told.append(notice)


class _Signals:
    """What SIGINT, SIGTERM and SIGHUP do to a test: the first one ends it in order, a second one at once."""

    def __init__(self, plan: Plan) -> None:
        self.conducted: RunSession | None = None
        self.received = 0
        self._until_stopped = plan.duration_ns is None
        self._task = asyncio.current_task()

    def receive(self, number: signal.Signals) -> None:
        """Take a signal in."""
        self.received += 1
        if self.conducted is not None and self.received == 1:
            self.conducted.stop(*self._why(number))
        elif self._task is not None:
            self._task.cancel()

    def _why(self, number: signal.Signals) -> tuple[Reason, str]:
        if number is signal.SIGINT and self._until_stopped:
            return Reason.STOPPED, "stopped with Ctrl-C, as it was to run until then"
        name = "Ctrl-C (SIGINT)" if number is signal.SIGINT else number.name
        return Reason.INTERRUPTED, f"interrupted by {name}"


@contextlib.contextmanager
def _stopped_by_signals(plan: Plan) -> Generator[_Signals]:
    loop = asyncio.get_running_loop()
    signals = _Signals(plan)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, signals.receive, number)
    try:
        yield signals
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
