"""Sweeps: built from typed values, stored, run point by point, and resumed after a break.

Each run of a sweep is in the run log like any other run, with the sweep's name as its group. The definition is a
small file next to the log. Together they give the results so far.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, Protocol

from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError
from ...engine.model.events import Event
from ...engine.model.peer import Peer
from ...engine.model.plan import Mode, Plan, SocketOptions
from ...engine.model.run_end import Reason
from ...engine.model.serialization import decode, encode
from ...engine.results.confidence import SERIES_INTERVAL_NS
from ...engine.results.meter import replay
from ...engine.results.run_log import RunLog, RunRecord, new_run_id
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ...presets.auto_select import NO_PRESET
from ...presets.catalog import Catalog
from ...presets.preset import DocumentSweep, Preset
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..session.run_exports import check_report_path, generate_report
from ..session.run_session import RunSession, StartRun
from ..session.run_spec import Judging, Record, RunSpec
from ..session.storage import DefinitionStore
from ..words import parsing

DEFAULT_SECONDS: Final = "3"
GROUP_PREFIX: Final = "sweep-"
"""The beginning of every sweep's name."""

_STORE: Final = DefinitionStore("sweep", "sweeps", GROUP_PREFIX)
_VARIANT_KEY: Final = "link_options"


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """A sweep as typed. An axis that is None has the values of the figure, or a single default value."""

    window: str | None = None
    sessions: str | None = None
    message_size: str | None = None
    direction: str | None = None
    figure: str | None = None
    seconds: str = DEFAULT_SECONDS
    congestion: str | None = None
    mode: Mode | None = None

    def build_sweep(self, catalog: Catalog, peer: str, preset: str | None) -> Sweep:
        """Return the definition; without `preset`, with the figure's. Raises PlanError for a wrong value."""
        figure = None if self.figure is None else find_figure(catalog, self.figure)
        base = Plan(
            duration_ns=parsing.duration_ns(self.seconds),
            interval_ns=SERIES_INTERVAL_NS,
            mode=self.mode,
            socket=SocketOptions(congestion=self.congestion),
        )
        windows = (None,) if figure is None else figure.window_bytes
        messages = (base.block_bytes,) if figure is None else figure.message_bytes
        directions = (Direction.OUT,) if figure is None else (Direction(figure.direction),)
        return Sweep(
            group=f"{GROUP_PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}",
            peer=peer,
            base=base,
            directions=directions if self.direction is None else parsing.direction_values(self.direction),
            sessions=(1,) if self.sessions is None else parsing.session_values(self.sessions),
            windows=windows if self.window is None else parsing.window_values(self.window),
            messages=messages if self.message_size is None else parsing.message_values(self.message_size),
            preset=preset or (None if figure is None else figure.preset),
            figure=None if figure is None else figure.id,
        )


def find_figure(catalog: Catalog, text: str) -> DocumentSweep:
    """Return a document's experiment by its id, with or without the word figure in it. Raises PlanError."""
    for figure in catalog.sweeps:
        if text.strip().lower() in {figure.id, _short_name(figure)}:
            return figure
    raise PlanError("figure", repr(text), f"there is {', '.join(figure_names(catalog))}")


def figure_names(catalog: Catalog) -> list[str]:
    """Return the short names of the documents' experiments: `hp-1`."""
    return [_short_name(figure) for figure in catalog.sweeps]


def _short_name(figure: DocumentSweep) -> str:
    return figure.id.replace("-figure-", "-")


def save_sweep(sweep: Sweep, variant: Variant = DEFAULT_VARIANT) -> None:
    """Write the definition of a sweep and the options of its link. Raises RunLogError."""
    _STORE.save(sweep.group, {**encode(sweep), _VARIANT_KEY: encode(variant)})


def find_sweep(text: str) -> tuple[Sweep, Variant]:
    """Return the stored sweep of a name, or of the beginning of one, and the options of its link.

    Raises PlanError unless exactly one sweep matches, and RunLogError for a definition that cannot be read.
    """
    return _STORE.find(text, _read_sweep)


def _read_sweep(document: Any) -> tuple[Sweep, Variant]:
    options = document.pop(_VARIANT_KEY, None)
    return decode(Sweep, document), DEFAULT_VARIANT if options is None else decode(Variant, options)


def load_results(log: RunLog, sweep: Sweep) -> list[SweepResult]:
    """Return the results so far: for each point its newest run that ended regularly."""
    points = set(sweep.points)
    results: dict[SweepPoint, SweepResult] = {}
    for row, reason in _ended_runs(log, sweep):
        if not reason.is_regular:
            continue
        summary = replay(log.events(row.run_id)).summary()
        point = SweepPoint.from_plan(summary.plan)
        if summary.is_whole and point in points and point not in results and summary.measured.total is not None:
            results[point] = SweepResult(point, row.run_id, summary)
    return list(results.values())


def load_failures(log: RunLog, sweep: Sweep) -> dict[SweepPoint, str]:
    """Return why points have no result: the detail of each one's newest failed run, if the log has it.

    A run that the user stopped has not failed.
    """
    failures: dict[SweepPoint, str] = {}
    for row, reason in _ended_runs(log, sweep):
        if reason.is_regular or reason is Reason.INTERRUPTED:
            continue
        point = SweepPoint.from_plan(replay(log.events(row.run_id)).summary().plan)
        failures.setdefault(point, row.detail or reason.value)
    return failures


def _ended_runs(log: RunLog, sweep: Sweep) -> Iterator[tuple[RunRecord, Reason]]:
    """Yield the runs of a sweep that have ended, the newest one first, and why they ended."""
    for row in log.runs_of_group(sweep.group):
        if row.reason is not None:
            yield row, row.reason


class SweepObserver(Protocol):
    """Receiver of a sweep's progress. For each point: `begin_point`, `advance` after each event, `end_point`."""

    @property
    def is_stopping(self) -> bool:
        """Whether no further point may begin."""
        ...

    def begin_point(self, point: SweepPoint, run: RunSession) -> None:
        """Note the run of a point; its events follow."""
        ...

    def advance(self, event: Event, /) -> None:
        """Note an event of the current run."""
        ...

    def end_point(self, point: SweepPoint, result: SweepResult | None, detail: str) -> None:
        """Note the end of the current run; without a result, `detail` says why."""
        ...


async def run_points(
    points: Iterable[SweepPoint],
    open_run: Callable[[SweepPoint], AbstractAsyncContextManager[RunSession]],
    observer: SweepObserver,
) -> None:
    """Run the points one after the other, until the observer is stopping.

    A run that breaks off does not end the sweep: its point has no result, and can be run again later. An error at
    the opening of a run does end it, because the next point would fail likewise. Raises LinkgaugeError for that.
    """
    for point in points:
        if observer.is_stopping:
            return
        async with open_run(point) as run:
            observer.begin_point(point, run)
            async for event in run:
                observer.advance(event)
            summary = run.meter.summary()
        is_complete = summary.is_whole and summary.measured.total is not None
        result = SweepResult(point, run.run_id, summary) if is_complete else None
        observer.end_point(point, result, summary.end.detail)


def missing_points(sweep: Sweep, results: Iterable[SweepResult]) -> list[SweepPoint]:
    """Return the points without a result, in the order of the sweep."""
    done = {result.point for result in results}
    return [point for point in sweep.points if point not in done]


class StoredSweeps:
    """The stored sweeps, and the runs of one. Every method may raise LinkgaugeError.

    Args:
        log: Has their runs.
        start_run: Starts a run.
        variant_of: Returns the link options that were selected with a preset.
    """

    def __init__(self, log: RunLog, start_run: StartRun, variant_of: Callable[[str | None], Variant]) -> None:
        self._log = log
        self._start_run = start_run
        self._variant_of = variant_of
        self._variants: dict[str, Variant] = {}

    def begin(self, sweep: Sweep) -> Sequence[SweepResult]:
        """Store the definition, unless it is stored already; return the results so far. Called in a thread."""
        try:
            _, variant = find_sweep(sweep.group)
        except PlanError:
            variant = self._variant_of(sweep.preset)
            save_sweep(sweep, variant)
        self._variants[sweep.group] = variant
        return load_results(self._log, sweep)

    def find(self, group: str) -> tuple[Sweep, Sequence[SweepResult]]:
        """Return a stored sweep and its results so far. Called in a thread."""
        sweep, _ = find_sweep(group)
        return sweep, load_results(self._log, sweep)

    def run_point(
        self, sweep: Sweep, point: SweepPoint, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[RunSession]:
        """Return the context of a point's run."""
        variant = self._variants.get(sweep.group, DEFAULT_VARIANT)
        judging = Judging(None if preset is NO_PRESET else preset, variant)
        return self._start_run(RunSpec(point.to_plan(sweep.base), peer, judging, Record(group=sweep.group)))

    def write_report(self, sweep: Sweep, path: Path) -> Path:
        """Write the HTML page of a sweep in a separate process; return its path. Called in a thread."""
        check_report_path(path)
        generate_report(self._log, ["linkgauge.tui.report.sweep_page", sweep.group, str(path)])
        return path
