"""A sweep without the app: its runs one after the other, and its result as tables, JSON, CSV or a page."""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace

from ....engine.host.event_loop import run
from ....engine.model.errors import LinkgaugeError
from ....engine.model.events import Event
from ....engine.near.connect import FarEnd, open_far_end
from ....engine.results.run_log import RunLog
from ....engine.results.sweep import Sweep, SweepPoint, SweepResult
from ....engine.workers.fork_client import ForkServerLease
from ...session.credentials import with_access
from ...session.pruning import thin_old_runs
from ...session.run_session import RunSession, open_run_session
from ...session.run_spec import Outputs, Record, RunSpec, complete_spec
from ...sweep.sweep_session import load_failures, load_results, missing_points, run_points, save_sweep
from ...sweep.sweep_words import csv_rows, point_words, result_words, sweep_end_json, sweep_json, sweep_start_json
from ...words import numbers
from ..live_line import LiveLine
from ..output import (
    PROGRAM,
    emit_json,
    emit_json_line,
    emit_rich,
    noted_if_unwritten,
    print_stderr,
    write_csv_file,
    write_in_background,
)
from ..termination import PASS, RunStopper, exit_status
from .recording import error_lines, open_recording


def run_sweep(sweep: Sweep, spec: RunSpec) -> int:
    """Run the missing points of a sweep and print the whole result; return the exit status.

    Args:
        sweep: the sweep, with the plan that its points change.
        spec: what its runs have in common, and the outputs of the sweep.
    """
    as_json_stream = spec.outputs.as_json_stream
    write_in_background()
    progress, stopper = _Progress(sweep), RunStopper()
    with open_recording() as log, error_lines(as_json_stream=as_json_stream):
        if log is not None:
            progress.cells = load_results(log, sweep)
            progress.failures = load_failures(log, sweep)
        if as_json_stream:
            emit_json_line(sweep_start_json(sweep, progress.cells))
        _run_missing(spec, log, progress, stopper)
    _write_result(spec.outputs, progress)
    missing = len(sweep.points) - len(progress.cells)
    if not missing:
        thin_old_runs()
        return PASS
    if log is not None:
        print_stderr(
            f"{numbers.quantity(missing, 'run')} missing; to continue: {PROGRAM} sweep --resume {sweep.group}"
        )
    return exit_status(None, stopper.first)


def _run_missing(spec: RunSpec, log: RunLog | None, progress: "_Progress", stopper: RunStopper) -> None:
    """Run the points without a result. After the first result an error is printed and ends the sweep."""
    todo = missing_points(progress.sweep, progress.cells)
    if progress.cells and todo:
        print_stderr(f"{len(progress.cells)} of {len(progress.sweep.points)} runs are done already")
    if not todo:
        return
    try:
        run(_run_points(spec, log, todo, progress, stopper))
    except LinkgaugeError as error:
        if not progress.cells:
            raise
        print_stderr(str(error))


class _Progress:
    """The results so far, and their lines above the live line. `sweep` has its preset once that is chosen."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.cells: list[SweepResult] = []
        self.failures: dict[SweepPoint, str] = {}
        self._axes = sweep.varied_axes or ("sessions", "window_bytes")
        self._started = time.monotonic()
        self._done = 0

    def add_result(self, cell: SweepResult) -> str:
        """Add a result; return its progress line."""
        self.cells.append(cell)
        self._done += 1
        total = len(self.sweep.points)
        remaining = total - len(self.cells)
        seconds = round((time.monotonic() - self._started) / self._done * remaining)
        rest = f", about {numbers.rough_time(seconds * 1_000_000_000)} left" if remaining else ""
        return f"{len(self.cells)}/{total}  {point_words(cell.point, self._axes)}: {result_words(cell)}{rest}"


class _LiveProgress:
    """The observer of a sweep: shows each run in the live line, and stops it at a signal."""

    def __init__(self, progress: _Progress, live: LiveLine, stopper: RunStopper, *, has_lines: bool) -> None:
        self._progress, self._live, self._stopper, self._has_lines = progress, live, stopper, has_lines
        self._run: RunSession | None = None

    @property
    def is_stopping(self) -> bool:
        return self._stopper.received > 0

    def begin_point(self, point: SweepPoint, run: RunSession) -> None:  # noqa: ARG002 (the line shows its figures)
        self._run, self._stopper.stop = run, run.stop

    def advance(self, event: Event) -> None:
        if self._run is None:
            return
        self._live.show_intervals(self._run.intervals, self._run.meter)
        for line in self._run.json_lines(event) if self._has_lines else ():
            emit_json_line(line)

    def end_point(self, point: SweepPoint, result: SweepResult | None, detail: str) -> None:
        self._stopper.stop = None
        if result is not None:
            self._live.print_above(self._progress.add_result(result))
        elif not self.is_stopping:
            self._progress.failures[point] = detail
            self._live.print_above(f"{point_words(point)}: {numbers.sanitize(detail)}")


async def _run_points(
    spec: RunSpec, log: RunLog | None, todo: Sequence[SweepPoint], progress: _Progress, stopper: RunStopper
) -> None:
    base = progress.sweep.base
    with stopper.in_force():
        async with ForkServerLease(), open_far_end(with_access(spec.peer)) as far, AsyncExitStack() as stack:
            # Not earlier: ssh may ask for something on the terminal while it connects.
            live = stack.enter_context(LiveLine(base, str(spec.peer)))
            each = await _with_preset(spec, log, far, live, progress)

            def open_run(point: SweepPoint) -> AbstractAsyncContextManager[RunSession]:
                return open_run_session(replace(each, plan=point.to_plan(base)), log=log, far_end=far)

            observer = _LiveProgress(progress, live, stopper, has_lines=spec.outputs.as_json_stream)
            await run_points(todo, open_run, observer)


async def _with_preset(
    spec: RunSpec, log: RunLog | None, far: FarEnd, live: LiveLine, progress: _Progress
) -> RunSpec:
    """Return what each run is to be, once the preset is chosen and stored with the definition of the sweep."""
    chosen = await complete_spec(spec, far)
    for notice in chosen.record.notices:
        live.print_above(notice)
    if chosen.judging.preset_id is not None:
        progress.sweep = replace(progress.sweep, preset=chosen.judging.preset_id)
    if log is not None:
        save_sweep(progress.sweep, chosen.judging.variant)
    # The files belong to the whole sweep, and so do the notices.
    return replace(chosen, record=Record(group=progress.sweep.group), outputs=Outputs())


def _write_result(outputs: Outputs, progress: _Progress) -> None:
    """Print the result with the points that failed, and write the CSV file and the page."""
    cells, failures = progress.cells, progress.failures
    sweep = replace(progress.sweep, peer=numbers.sanitize(progress.sweep.peer))
    if outputs.as_json:
        emit_json(sweep_json(sweep, cells))
    elif outputs.as_json_stream:
        emit_json_line(sweep_end_json(sweep, cells))
    elif cells:
        from ..render.sweep import sweep_parts

        emit_rich(*sweep_parts(sweep, cells, failures))
    else:
        print_stderr("interrupted before anything was measured")
    if outputs.csv is not None:
        write_csv_file(outputs.csv, csv_rows(sweep, cells))
    if outputs.report is not None and cells:
        from ...report.sweep_page import write_sweep_report

        with noted_if_unwritten(outputs.report):
            write_sweep_report(outputs.report, sweep, cells, failures)
            print_stderr(f"report written to {outputs.report}")
