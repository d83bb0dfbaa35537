"""A test without the app: run it, show its progress, print its summary and verdict."""

import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from ....engine.host.event_loop import run
from ....engine.model.errors import LinkgaugeError
from ....engine.model.events import Event, Started, Warned
from ....engine.model.run_end import Reason
from ....engine.near.connect import FarEnd, open_far_end
from ....engine.near.shape.shape_measurement import ShapeRequest, measure_shape
from ....engine.protocol.foreign.missing_features import Feature, why_unavailable
from ....engine.results.json_stream import confirmation_line, warning_line
from ....engine.results.run_log import RunLog
from ....engine.workers.fork_client import ForkServerLease
from ....presets.diagnosis.confirmation import (
    Confirmation,
    Experiment,
    asks_for_bursts,
    confirmation_document,
    failed_confirmation,
    find_experiments,
    judge_experiment,
    nothing_to_confirm,
    with_shape,
)
from ...session.pruning import thin_old_runs
from ...session.run_recorder import Outcome
from ...session.run_session import RunSession, open_run_session
from ...session.run_spec import RunSpec, complete_spec
from ...words import numbers
from ..live_line import LiveLine
from ..output import (
    emit_json,
    emit_json_line,
    emit_line,
    emit_rich,
    note_unwritten,
    print_stderr,
    write_in_background,
)
from ..render.summary import summary_parts
from ..termination import RunStopper, exit_status, interruption, run_exit_status
from .recording import end_unmeasured, error_lines, open_recording

_GROUP_PREFIX: Final = "confirms-"  # and the id of the run with the finding


@dataclass(slots=True)
class _Progress:
    """The runs of a command: the test, and the confirmation of its limiting cause."""

    session: RunSession | None = None
    second: RunSession | None = None
    experiment: Experiment | None = None
    confirmation: Confirmation | None = None
    is_printed: bool = False
    printed: list[str] = field(default_factory=list[str])

    @property
    def outcome(self) -> Outcome | None:
        """The result of the test; None if it did not begin."""
        return None if self.session is None else self.session.outcome

    @property
    def has_all_rows(self) -> bool:
        """Whether the CSV file, if there is one, has all rows."""
        return all(each.has_all_rows for each in (self.session, self.second) if each is not None)

    @property
    def run_ids(self) -> list[str]:
        """The runs that are in the run log."""
        return [
            each.run_id for each in (self.session, self.second) if each is not None and each.outcome is not None
        ]

    def end_confirmation(self) -> None:
        """Note that a signal came before the confirmation had a result."""
        if self.confirmation is None and self.experiment is not None:
            self.confirmation = failed_confirmation(self.experiment, "interrupted")


def run_test(test: RunSpec) -> int:
    """Run a test, print its result and the result of a confirmation; return the exit status."""
    write_in_background()
    progress, as_json_stream = _Progress(), test.outputs.as_json_stream
    stopper = RunStopper(partial(_explain_signal, is_endless=not test.plan.has_end))
    with open_recording(printed=progress.printed) as log, error_lines(as_json_stream=as_json_stream):
        run(_carry_out(test, log, progress, stopper))
    if not progress.has_all_rows:
        note_unwritten()  # a notice has said why
    outcome, signal_number = progress.outcome, stopper.first
    if outcome is None:
        return end_unmeasured(signal_number, as_json_stream=as_json_stream)
    if log is not None and log.problem is None:
        ids = progress.run_ids
        print_stderr(f"saved as {'run' if len(ids) == 1 else 'runs'} {' and '.join(ids)}")
    _print_results(test, progress, outcome)
    if signal_number is not None and progress.experiment is not None:
        return exit_status(None, signal_number)
    if signal_number is None:
        thin_old_runs()
    return run_exit_status(outcome.result, signal_number)


def _print_results(test: RunSpec, progress: _Progress, outcome: Outcome) -> None:
    """Print the result unless that was done, then the result of the confirmation."""
    progress.end_confirmation()
    confirmation = progress.confirmation
    if test.outputs.as_json:
        document = None if confirmation is None else confirmation_document(confirmation)
        emit_json({**outcome.document, **({"confirmation": document} if test.confirm else {})})
    elif test.outputs.as_json_stream:
        if confirmation is not None:
            emit_json_line(confirmation_line(confirmation_document(confirmation), run_id=outcome.run_id))
    else:
        if not progress.is_printed:
            _print_outcome(test, outcome)
        if confirmation is not None:
            emit_line(numbers.sanitize(confirmation.text))


def _print_outcome(test: RunSpec, outcome: Outcome) -> None:
    emit_rich(*summary_parts(outcome, test.judging.pass_percent))


async def _carry_out(test: RunSpec, log: RunLog | None, progress: _Progress, stopper: RunStopper) -> None:
    """Carry out a test, and its confirmation. A signal ends them; `progress` has what there is by then."""
    with stopper.in_force():
        async with ForkServerLease(), AsyncExitStack() as stack:
            far = None
            if test.peer.ssh is not None:  # before the live line: ssh may ask on the terminal
                far = await stack.enter_async_context(open_far_end(test.peer))
            runner = _Runner(test, log, far, stopper, progress)
            await runner.run_test()
            if test.confirm and not stopper.received:
                await runner.confirm()


class _Runner:
    """Runs a test against one far end, and then the experiment that its findings ask for."""

    def __init__(
        self, test: RunSpec, log: RunLog | None, far: FarEnd | None, stopper: RunStopper, progress: _Progress
    ) -> None:
        """Prepare the test.

        Args:
            test: The test and its outputs.
            log: The run log to write to; None for runs that are not stored.
            far: The far end if it is up; None for one that each run connects to or starts.
            stopper: Stops the run in progress at a signal.
            progress: The runs so far.
        """
        self._test, self._log, self._far, self._stopper, self._progress = test, log, far, stopper, progress

    async def run_test(self) -> None:
        """Choose the preset and the rate, and run the test."""
        test, far = self._test, self._far or self._test.peer
        with LiveLine(test.plan, str(test.peer), test.outputs.line_ns) as live:
            self._test = test = await complete_spec(test, far)
            async with open_run_session(test, log=self._log, far_end=self._far) as session:
                self._progress.session = session
                await self._show(session, live)
        self._stopper.stop = None

    async def confirm(self) -> None:
        """Run the test once more with the option that tells most of the first finding."""
        outcome, progress = self._progress.outcome, self._progress
        if outcome is None:
            return
        if not self._test.outputs.is_for_programs:
            _print_outcome(self._test, outcome)
            progress.is_printed = True
        is_whole = outcome.summary.is_whole
        progress.confirmation = nothing_to_confirm(outcome.findings, is_whole=is_whole)
        if not is_whole:
            return
        for experiment in find_experiments(outcome.findings, self._test.plan):
            if progress.experiment is not None:
                print_stderr(progress.confirmation.text)  # why the one before it has no result
            progress.experiment, progress.confirmation = experiment, None
            try:
                progress.confirmation = await self._try(experiment, outcome)
            except LinkgaugeError as error:  # such as a kernel without this congestion control
                progress.confirmation = failed_confirmation(experiment, str(error))
            else:
                break
        await self._send_bursts(outcome)

    async def _send_bursts(self, first: Outcome) -> None:
        """Measure a policer or shaper, whose numbers are the evidence of the first finding; say why if it fails."""
        progress, test = self._progress, self._test
        confirmation, far = progress.confirmation, self._far or test.peer
        is_wanted = asks_for_bursts(first.findings) and why_unavailable(test.peer, Feature.PATH_MTU) is None
        if confirmation is None or not is_wanted or self._stopper.received:
            return
        direction = first.findings[0].direction or test.plan.settings.direction
        print_stderr(f"confirming: bursts of UDP, {direction}")
        try:
            shape = await measure_shape(far, ShapeRequest(direction, binding=test.plan.socket))
        except LinkgaugeError as error:
            print_stderr(f"bursts show nothing: {error}")
            return
        progress.confirmation = with_shape(confirmation, shape)

    async def _try(self, experiment: Experiment, first: Outcome) -> Confirmation:
        """Return what an experiment says. Raises LinkgaugeError if it cannot be carried out."""
        test = self._test
        print_stderr(experiment.announce(test.plan))
        record = replace(test.record, group=f"{_GROUP_PREFIX}{first.run_id}", notices=())
        second = replace(test, plan=experiment.trial.apply_to(test.plan), record=record)
        with LiveLine(second.plan, str(test.peer), test.outputs.line_ns) as live:
            async with open_run_session(second, log=self._log, far_end=self._far) as session:
                self._progress.second = session
                await self._show(session, live)
        self._stopper.stop = None
        if session.outcome is None:
            return failed_confirmation(experiment, "nothing was measured")
        return judge_experiment(experiment, first.summary, session.outcome.summary, session.run_id)

    async def _show(self, session: RunSession, live: LiveLine) -> None:
        """Show the run's progress. Warnings are in the summary, but the user does not see them in JSON."""
        self._stopper.stop = session.stop
        test, count = self._test, 0
        async for event in session:
            live.show_intervals(session.intervals, session.meter)
            if isinstance(event, Warned) and test.outputs.is_for_programs:
                live.print_above(event.text)
            notices = session.notices[count:]
            for notice in notices:
                live.print_above(notice)
            count += len(notices)
            self._progress.printed += notices
            if test.outputs.as_json_stream:
                _emit_lines(session, event, notices)
        live.end_run()


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
