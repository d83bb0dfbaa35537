"""A test without the app: run it, show its progress, print its summary and verdict."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ....engine.host.event_loop import run
from ....engine.model.errors import LinkgaugeError
from ....engine.model.events import Event, Reason, Started, Warned
from ....engine.model.peer import Peer
from ....engine.model.plan import Plan
from ....engine.near.connect import open_far_end
from ....engine.results.json_stream import error_line, warning_line
from ....engine.results.run_log import RunLog
from ....engine.workers.fork_client import ForkServerLease
from ....presets.catalog import Catalog
from ....presets.latency_limit import LatencyLimit
from ....presets.preset import Preset
from ....presets.sending_rate import SendingRate
from ....presets.verdict import DEFAULT_PASS_PERCENT
from ....presets.wire import DEFAULT_VARIANT, Variant
from ...services.preset_choice import choose_preset, with_sending_rate
from ...services.pruning import thin_old_runs
from ...services.run_recorder import Outcome
from ...services.run_session import RunSession, SessionOptions, open_run_session
from ...services.storage import open_run_log
from ..live_line import LiveLine
from ..output import check_json_options, emit_json, emit_json_line, emit_rich, print_stderr, write_in_background
from ..preset_option import check_link_options
from ..render.summary import summary_parts
from ..termination import (
    INCOMPLETE,
    RunStopper,
    handle_signals,
    interruption,
    signal_exit_status,
    verdict_exit_status,
)


@dataclass(frozen=True, slots=True)
class TestJob:
    """A test and its outputs, with checked options.

    With a catalog as preset, the one that fits the link is chosen once the far end is known. `why` asks for the
    diagnosis of a run without an expected rate, too. `sending_rate` is the requested rate of datagrams,
    `latency_limit` what latency under load is judged by.
    """

    plan: Plan
    preset: Preset | Catalog | None
    peer: Peer
    pass_percent: float = DEFAULT_PASS_PERCENT
    csv: Path | None = None
    as_json: bool = False
    as_json_stream: bool = False
    variant: Variant = DEFAULT_VARIANT
    label: str | None = None
    target_ci_percent: float | None = None
    why: bool = False
    sending_rate: SendingRate | None = None
    latency_limit: LatencyLimit | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for link options that do not go with the preset, UsageError for two kinds of JSON."""
        check_link_options(self.preset, self.variant)
        check_json_options(self.as_json, self.as_json_stream)


def run_test(test: TestJob) -> int:
    """Run a test and print its result; return the exit status."""
    write_in_background()
    log = open_run_log(print_stderr)
    printed: list[str] = []
    try:
        outcome, signal_number = run(_run_session(test, log, printed))
    except LinkgaugeError as error:
        if test.as_json_stream:
            emit_json_line(error_line(str(error)))
        raise
    finally:
        if log is not None:
            log.close(print_stderr)  # the last writes may fail too
            if log.problem is not None and log.problem not in printed:
                print_stderr(log.problem)
    if outcome is None:
        text = "interrupted before anything was measured"
        if test.as_json_stream:
            emit_json_line(error_line(text))
        print_stderr(text)
        return INCOMPLETE if signal_number is None else signal_exit_status(signal_number)
    if log is not None and log.problem is None:
        print_stderr(f"saved as run {outcome.run_id}")
    _print_outcome(test, outcome)
    if signal_number is None:
        thin_old_runs()
    return verdict_exit_status(outcome.summary, outcome.verdict, signal_number)


def _print_outcome(test: TestJob, outcome: Outcome) -> None:
    if test.as_json:
        emit_json(outcome.document)
    elif not test.as_json_stream:
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


async def _run_session(
    test: TestJob, log: RunLog | None, printed: list[str]
) -> tuple[Outcome | None, signal.Signals | None]:
    """Return the outcome, and the signal that came, if any. Notices are added to `printed`.

    There is no outcome where the signal came before the run began.
    """
    session: RunSession | None = None
    stopper = RunStopper(partial(_explain_signal, is_endless=not test.plan.has_end))
    with handle_signals(stopper.receive):
        try:
            async with ForkServerLease(), AsyncExitStack() as stack:
                far = None
                if test.peer.ssh is not None:  # before the live line: ssh may ask on the terminal
                    far = await stack.enter_async_context(open_far_end(test.peer))
                live = stack.enter_context(LiveLine(test.plan, str(test.peer)))
                choice = await choose_preset(test.preset, test.variant, far or test.peer)
                plan, choice = await with_sending_rate(test.plan, test.sending_rate, choice, far or test.peer)
                async with open_run_session(
                    plan,
                    choice.preset,
                    test.peer,
                    log=log,
                    far_end=far,
                    options=SessionOptions(
                        csv=test.csv,
                        pass_percent=test.pass_percent,
                        variant=choice.variant,
                        notices=choice.notices,
                        label=test.label,
                        target_ci_percent=test.target_ci_percent,
                        diagnose_without_target=test.why,
                        latency_limit=test.latency_limit,
                    ),
                ) as session:
                    stopper.run = session
                    await _show(session, live, printed, test)
                    return session.outcome, stopper.first
        except asyncio.CancelledError:
            if not stopper.received:
                raise
            return None if session is None else session.outcome, stopper.first


async def _show(session: RunSession, live: LiveLine, printed: list[str], test: TestJob) -> None:
    """Show the run's progress. Warnings are in the summary, but a person does not see them in JSON."""
    async for event in session:
        for interval in session.intervals:
            live.show(interval, session.meter)
        if isinstance(event, Warned) and (test.as_json or test.as_json_stream):
            live.print_above(event.text)
        notices = session.notices[len(printed) :]
        for notice in notices:
            live.print_above(notice)
            printed.append(notice)
        if test.as_json_stream:
            _emit_lines(session, event, notices)


def _emit_lines(session: RunSession, event: Event, notices: Sequence[str]) -> None:
    """Write the lines of an event, and the notices as warnings: after `start`, and before `end`."""
    lines = list(session.json_lines(event))
    warnings = [warning_line(notice, run_id=session.run_id) for notice in notices]
    for line in [*lines, *warnings] if isinstance(event, Started) else [*warnings, *lines]:
        emit_json_line(line)


def _explain_signal(number: signal.Signals, *, is_endless: bool) -> tuple[Reason, str]:
    if number is not signal.SIGINT:
        return interruption(number)
    if is_endless:
        return Reason.STOPPED, "stopped with Ctrl-C"
    return Reason.INTERRUPTED, "interrupted by Ctrl-C"
