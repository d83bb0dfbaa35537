"""A sweep without the app: its runs one after the other, and its result as tables, JSON, CSV or a page."""

import asyncio
import csv
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ...engine.host.event_loop import run
from ...engine.model.errors import LinkgaugeError, RunLogError
from ...engine.model.peer import Peer
from ...engine.near.connect import FarEnd, open_far_end
from ...engine.results.run_log import RunLog
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ...engine.workers.fork_client import ForkServerLease
from ...presets.catalog import Catalog
from ...presets.preset import Preset
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..services.credentials import with_access
from ..services.run_log_access import open_run_log
from ..services.sweeps import SweepRunner, load_results, result_from_run, save_sweep
from ..text import numbers
from ..text.sweep import csv_rows, point_words, result_words, sweep_json
from .exit_status import INCOMPLETE, PASS
from .live_line import LiveLine
from .output import PROGRAM, emit_json, emit_rich, print_stderr
from .preset_option import choose_preset
from .signals import RunStopper, handle_signals


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A sweep and its outputs. With a catalog as preset, the one that fits the link is choice."""

    sweep: Sweep
    preset: Preset | Catalog | None
    peer: Peer
    variant: Variant = DEFAULT_VARIANT
    csv: Path | None = None
    report: Path | None = None
    as_json: bool = False


def run_sweep(job: SweepJob) -> int:
    """Run the missing points of a sweep and print the whole result; return the exit status."""
    log = open_run_log(print_stderr)
    progress = _Progress(job.sweep)
    try:
        if log is not None:
            progress.cells = load_results(log, job.sweep)
        _run_missing(job, log, progress)
    finally:
        if log is not None:
            log.close()
            if log.problem is not None:
                print_stderr(log.problem)
    _write_result(replace(job, sweep=progress.sweep), progress.cells)
    missing = len(job.sweep.points) - len(progress.cells)
    if not missing:
        return PASS
    if log is not None:
        print_stderr(
            f"{numbers.quantity(missing, 'run')} not made; go on with: {PROGRAM} sweep --resume {job.sweep.group}"
        )
    return INCOMPLETE


def _run_missing(job: SweepJob, log: RunLog | None, progress: "_Progress") -> None:
    """Run the points without a result. After the first result an error is printed and ends the sweep."""
    done = {cell.point for cell in progress.cells}
    todo = [point for point in job.sweep.points if point not in done]
    if done and todo:
        print_stderr(f"{len(done)} of {len(job.sweep.points)} runs are there already")
    if not todo:
        return
    try:
        run(_run_points(job, log, todo, progress))
    except LinkgaugeError as error:
        if not progress.cells:
            raise
        print_stderr(str(error))


class _Progress:
    """The results so far and the remaining time. `sweep` has its preset once that is choice."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.cells: list[SweepResult] = []
        self._total = len(sweep.points)
        self._axes = sweep.varied_axes or ("sessions", "window_bytes")
        self._started = time.monotonic()
        self._done = 0

    def add(self, cell: SweepResult) -> str:
        """Add a result; return its progress line."""
        self.cells.append(cell)
        self._done += 1
        left = self._total - len(self.cells)
        seconds = round((time.monotonic() - self._started) / self._done * left)
        rest = f", about {numbers.clock(seconds * 1_000_000_000)} left" if left else ""
        number = f"{len(self.cells)}/{self._total}"
        return f"{number}  {point_words(cell.point, self._axes)}: {result_words(cell)}{rest}"


async def _run_points(job: SweepJob, log: RunLog | None, todo: Sequence[SweepPoint], progress: _Progress) -> None:
    base = job.sweep.base
    stopper = RunStopper()
    with handle_signals(stopper.receive):
        try:
            async with ForkServerLease(), open_far_end(with_access(job.peer)) as far, AsyncExitStack() as stack:
                # Not earlier: ssh may ask for something on the terminal while it connects.
                live = stack.enter_context(LiveLine(base, str(job.peer)))
                runner = await _open_runner(job, log, far, live)
                progress.sweep = runner.sweep
                for point in todo:
                    cell = await _run_point(runner, point, stopper, live)
                    if cell is None:
                        return
                    live.print_above(progress.add(cell))
        except asyncio.CancelledError:
            if not stopper.received:
                raise


async def _open_runner(job: SweepJob, log: RunLog | None, far: FarEnd, live: LiveLine) -> SweepRunner:
    """Choose the preset, store it with the definition, and return the runner of the points."""
    choice = await choose_preset(job.preset, job.variant, far)
    for notice in choice.notices:
        live.print_above(notice)
    sweep = job.sweep if choice.preset is None else replace(job.sweep, preset=choice.preset.id)
    if log is not None:
        save_sweep(sweep, choice.variant)
    return SweepRunner(sweep, choice.preset, job.peer, log, far, choice.variant)


async def _run_point(
    runner: SweepRunner, point: SweepPoint, stopper: RunStopper, live: LiveLine
) -> SweepResult | None:
    """Run one point; return its result, None without one."""
    if stopper.received:
        return None
    async with runner.run_point(point) as session:
        stopper.run = session
        async for _event in session:
            for interval in session.intervals:
                live.show(interval, session.meter)
        stopper.run = None
    outcome = session.outcome
    cell = None if outcome is None else result_from_run(point, outcome.run_id, outcome.summary)
    if cell is None and not stopper.received and outcome is not None:
        live.print_above(f"{point_words(point)}: {outcome.summary.end.detail}")
    return cell


def _write_result(job: SweepJob, cells: Sequence[SweepResult]) -> None:
    """Print the result, and write the CSV file and the page of the job."""
    sweep = replace(job.sweep, peer=numbers.sanitize(job.sweep.peer))
    if job.as_json:
        emit_json(sweep_json(sweep, cells))
    elif cells:
        from .render.sweep import sweep_parts

        emit_rich(*sweep_parts(sweep, cells))
    else:
        print_stderr("interrupted before anything was measured")
    if job.csv is not None:
        _write_csv(job.csv, sweep, cells)
        print_stderr(f"rows written to {job.csv}")
    if job.report is not None and cells:
        from ..report.sweep_page import write_sweep_report

        write_sweep_report(job.report, sweep, cells)
        print_stderr(f"report written to {job.report}")


def _write_csv(path: Path, sweep: Sweep, cells: Sequence[SweepResult]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\r\n").writerows(csv_rows(sweep, cells))
    except OSError as error:
        raise RunLogError(f"cannot write {path}: {error.strerror or error}") from error
