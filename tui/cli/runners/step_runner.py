"""A check of a UDP rate by steps without the app: a run for each step, their table, and one verdict."""

import signal
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from random import SystemRandom
from typing import Any, Final

from ....engine.host.event_loop import run
from ....engine.model.errors import LinkgaugeError
from ....engine.model.events import Warned
from ....engine.near.connect import FarEnd, open_far_end
from ....engine.results.json_stream import end_line
from ....engine.results.run_log import RunLog, new_run_id
from ....engine.workers.fork_client import ForkServerLease
from ....presets.rate_steps import (
    STEP_PERCENTS,
    RateStep,
    StepGoals,
    judge_step,
    judge_steps,
    step_settings,
    steps_json,
)
from ....presets.verdict import Verdict
from ...session.credentials import with_access
from ...session.pruning import thin_old_runs
from ...session.run_recorder import Outcome
from ...session.run_session import RunSession, open_run_session
from ...session.run_spec import RunSpec, complete_spec
from ..live_line import LiveLine
from ..output import emit_json, emit_json_line, emit_rich, print_stderr, write_in_background
from ..render.rate_steps import step_line, step_parts
from ..termination import RunStopper, exit_status, run_exit_status
from .recording import end_unmeasured, error_lines, open_recording

_GROUP_PREFIX: Final = "steps-"


class _Steps:
    """The steps of a check so far, with the newest result and the first one that did not pass."""

    def __init__(self, goals: StepGoals) -> None:
        self.goals = goals
        self.steps: list[RateStep] = []
        self.newest: Outcome | None = None
        self.bad: Outcome | None = None

    def add_step(self, percent: int, rate_bit_s: int, outcome: Outcome) -> RateStep:
        """Add the result of a step."""
        step = judge_step(percent, rate_bit_s, outcome.run_id, outcome.summary, self.goals)
        self.steps.append(step)
        self.newest = outcome
        if self.bad is None and step.word != "pass":
            self.bad = outcome
        return step

    @property
    def verdict(self) -> Verdict:
        """The verdict of all steps."""
        return judge_steps(self.steps, self.goals)

    def document(self, outcome: Outcome) -> dict[str, Any]:
        """Return the document of the newest run with the verdict of all steps, and the steps themselves."""
        return {**outcome.document, "verdict": self.verdict.word, **steps_json(self.steps, self.goals)}


def run_steps(test: RunSpec, goals: StepGoals) -> int:
    """Run a test at each step of its rate and print the result; return the exit status."""
    write_in_background()
    progress, stopper = _Steps(goals), RunStopper()
    with open_recording() as log:
        try:
            with error_lines(as_json_stream=test.outputs.as_json_stream):
                run(_run_steps(test, log, progress, stopper))
        except LinkgaugeError as error:
            if progress.newest is None:
                raise
            print_stderr(str(error))
    return _finish(test, progress, stopper.first)


def _finish(test: RunSpec, progress: _Steps, number: signal.Signals | None) -> int:
    outcome = progress.newest
    if outcome is None:
        return end_unmeasured(number, as_json_stream=test.outputs.as_json_stream)
    if test.outputs.as_json:
        emit_json(progress.document(outcome))
    elif test.outputs.as_json_stream:
        emit_json_line(end_line(progress.document(outcome), run_id=outcome.run_id))
    else:
        findings = () if progress.bad is None else progress.bad.findings
        emit_rich(*step_parts(progress.steps, goals=progress.goals, verdict=progress.verdict, findings=findings))
    if number is not None:
        return exit_status(None, number)
    thin_old_runs()
    return run_exit_status(replace(outcome.result, verdict=progress.verdict.word), is_judged=True)


async def _run_steps(test: RunSpec, log: RunLog | None, progress: _Steps, stopper: RunStopper) -> None:
    with stopper.in_force():
        async with ForkServerLease(), open_far_end(with_access(test.peer)) as far, AsyncExitStack() as stack:
            # Not earlier: ssh may ask for something on the terminal while it connects.
            live = stack.enter_context(LiveLine(test.plan, str(test.peer), test.outputs.line_ns))
            spec = await complete_spec(test, far)
            for notice in spec.record.notices:
                live.print_above(notice)
            runner = _StepRunner(spec, far, log, live)
            for percent in STEP_PERCENTS:
                if not stopper.received:
                    await runner.run_step(percent, progress, stopper)


class _StepRunner:
    """Runs the steps of a check against one far end; the run log has them as one group."""

    def __init__(self, test: RunSpec, far: FarEnd, log: RunLog | None, live: LiveLine) -> None:
        """Prepare the steps.

        Args:
            test: The test of the whole rate, with its preset.
            far: The far end, which is up.
            log: The run log to write to; None for runs that are not stored.
            live: The line that shows the progress.
        """
        group = f"{_GROUP_PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}"
        self._test = replace(test, record=replace(test.record, group=group, notices=()))
        self._far, self._log, self._live = far, log, live

    async def run_step(self, percent: int, progress: _Steps, stopper: RunStopper) -> None:
        """Run one step and add its result.

        Args:
            percent: The share of that rate.
            progress: The steps so far.
            stopper: Stops the run at a signal.
        """
        plan = self._test.plan
        settings = step_settings(plan.settings, percent)
        step = replace(self._test, plan=replace(plan, settings=settings))
        async with open_run_session(step, log=self._log, far_end=self._far) as session:
            stopper.stop = session.stop
            await self._show(session, progress)
        stopper.stop = None
        if session.outcome is not None and settings.rate_bit_s is not None:
            self._live.print_above(step_line(progress.add_step(percent, settings.rate_bit_s, session.outcome)))

    async def _show(self, session: RunSession, progress: _Steps) -> None:
        has_lines = self._test.outputs.as_json_stream
        if has_lines and progress.newest is not None:  # the last of these lines has all steps
            emit_json_line(end_line(progress.newest.document, run_id=progress.newest.run_id))
        async for event in session:
            self._live.show_intervals(session.intervals, session.meter)
            if isinstance(event, Warned) and (has_lines or self._test.outputs.as_json):
                self._live.print_above(event.text)
            for line in session.json_lines(event) if has_lines else ():
                if line["type"] != "end":
                    emit_json_line(line)
        self._live.end_run()
