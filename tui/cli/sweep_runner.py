"""`linkgauge sweep`, once its command line is read: the runs one after the other, and what they come to."""

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
    """A sweep as asked for, and what is to come out of it. In place of a preset there may be all, to pick from."""

    sweep: Sweep
    preset: Preset | Catalog | None
    peer: Peer
    variant: Variant = DEFAULT_VARIANT
    csv: Path | None = None
    report: Path | None = None
    as_json: bool = False


def run_sweep(asked: SweepJob) -> int:
    """Run what is still to be run of a sweep, and print all of it; return the exit status."""
    log = open_run_log(print_stderr)
    progress = _Progress(asked.sweep)
    try:
        if log is not None:
            progress.cells = load_results(log, asked.sweep)
        _run_rest(asked, log, progress)
    finally:
        if log is not None:
            log.close()
            if log.problem is not None:
                print_stderr(log.problem)
    _tell(replace(asked, sweep=progress.sweep), progress.cells)
    missing = len(asked.sweep.points) - len(progress.cells)
    if not missing:
        return PASS
    if log is not None:
        print_stderr(
            f"{numbers.quantity(missing, 'run')} not made; go on with: {PROGRAM} sweep --resume {asked.sweep.group}"
        )
    return INCOMPLETE


def _run_rest(asked: SweepJob, log: RunLog | None, progress: "_Progress") -> None:
    """Run the points that were not run yet; what goes wrong on the way ends it, and what was measured stays."""
    done = {cell.point for cell in progress.cells}
    todo = [point for point in asked.sweep.points if point not in done]
    if done and todo:
        print_stderr(f"{len(done)} of {len(asked.sweep.points)} runs are there already")
    if not todo:
        return
    try:
        run(_carry_out(asked, log, todo, progress))
    except LinkgaugeError as error:
        if not progress.cells:
            raise
        print_stderr(str(error))


class _Progress:
    """What was measured, and how long the rest will take; `sweep` has its preset once that is picked."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.cells: list[SweepResult] = []
        self._whole = len(sweep.points)
        self._axes = sweep.varied_axes or ("sessions", "window_bytes")
        self._started = time.monotonic()
        self._done = 0

    def add(self, cell: SweepResult) -> str:
        """Take a cell in; return the line that tells of it."""
        self.cells.append(cell)
        self._done += 1
        left = self._whole - len(self.cells)
        seconds = round((time.monotonic() - self._started) / self._done * left)
        rest = f", about {numbers.clock(seconds * 1_000_000_000)} left" if left else ""
        number = f"{len(self.cells)}/{self._whole}"
        return f"{number}  {point_words(cell.point, self._axes)}: {result_words(cell)}{rest}"


async def _carry_out(asked: SweepJob, log: RunLog | None, todo: Sequence[SweepPoint], progress: _Progress) -> None:
    base = asked.sweep.base
    stopper = RunStopper()
    with handle_signals(stopper.receive):
        try:
            async with ForkServerLease(), open_far_end(with_access(asked.peer)) as far, AsyncExitStack() as stack:
                # Only now: ssh may have asked something on the terminal.
                live = stack.enter_context(LiveLine(base, str(asked.peer)))
                sweeper = await _sweeper(asked, log, far, live)
                progress.sweep = sweeper.sweep
                for point in todo:
                    cell = await _run_point(sweeper, point, stopper, live)
                    if cell is None:
                        return
                    live.print_above(progress.add(cell))
        except asyncio.CancelledError:
            if not stopper.received:
                raise


async def _sweeper(asked: SweepJob, log: RunLog | None, far: FarEnd, live: LiveLine) -> SweepRunner:
    """Return what runs the points; the preset is picked before the first, and kept with the definition."""
    chosen = await choose_preset(asked.preset, asked.variant, far)
    for notice in chosen.notices:
        live.print_above(notice)
    sweep = asked.sweep if chosen.preset is None else replace(asked.sweep, preset=chosen.preset.id)
    if log is not None:
        save_sweep(sweep, chosen.variant)
    return SweepRunner(sweep, chosen.preset, asked.peer, log, far, chosen.variant)


async def _run_point(
    sweeper: SweepRunner, point: SweepPoint, stopper: RunStopper, live: LiveLine
) -> SweepResult | None:
    """Run one point; None where the sweep is to end."""
    if stopper.received:
        return None
    async with sweeper.run_point(point) as session:
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


def _tell(asked: SweepJob, cells: Sequence[SweepResult]) -> None:
    """Print the result, and write what was asked for."""
    sweep = replace(asked.sweep, peer=numbers.sanitize(asked.sweep.peer))
    if asked.as_json:
        emit_json(sweep_json(sweep, cells))
    elif cells:
        from .render.sweep import sweep_parts

        emit_rich(*sweep_parts(sweep, cells))
    else:
        print_stderr("interrupted before anything was measured")
    if asked.csv is not None:
        _write_csv(asked.csv, sweep, cells)
        print_stderr(f"rows written to {asked.csv}")
    if asked.report is not None and cells:
        from ..report.sweep_page import write_sweep_report

        write_sweep_report(asked.report, sweep, cells)
        print_stderr(f"report written to {asked.report}")


def _write_csv(path: Path, sweep: Sweep, cells: Sequence[SweepResult]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\r\n").writerows(csv_rows(sweep, cells))
    except OSError as error:
        raise RunLogError(f"cannot write {path}: {error.strerror or error}") from error
