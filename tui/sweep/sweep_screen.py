"""The screen of a sweep: its runs in progress or stored, the map, the plot, the best settings and the knees.

A background task carries out the runs and only posts messages; the handlers own all state. A run is in the log as
soon as it has ended, so a stopped sweep can be resumed.
"""

import logging
from asyncio import to_thread
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.message import Message
from textual.widgets import Static
from textual.worker import Worker

from ...engine.model.errors import LinkgaugeError
from ...engine.model.events import Event
from ...engine.model.peer import Peer
from ...engine.model.run_end import Reason
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ..gauges.plots.overlay_plot import OverlayPlot
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styles import KEY, MUTED, SERIES_STYLES
from ..kit.screens.base_screen import ActionScreen, internal_error_text
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import FeatureApp, StoredServices, app_of
from ..session.run_exports import ExportFormat
from ..session.run_session import RunSession
from ..words import numbers
from ..words.comparison import LETTERS
from .sweep_form import SweepForm
from .sweep_map import axis_of_plot, best_lines, failure_lines, knee_lines, map_lines, sweep_overlay
from .sweep_session import StoredSweeps, missing_points, run_points
from .sweep_words import estimated_duration_ns, point_words, result_words

_log = logging.getLogger(__name__)


class SweepProgress:
    """The results and the state of a sweep.

    Call `start`, then `begin_point` and `end_point` for each run, then `finish`.
    """

    def __init__(self, sweep: Sweep, results: Iterable[SweepResult], clock: Callable[[], int]) -> None:
        self.sweep = sweep
        self.results = list(results)
        self.failures: dict[SweepPoint, str] = {}
        self.problem: str | None = None
        self.is_running = False
        self.is_stopping = False
        self._point: SweepPoint | None = None
        self._clock = clock
        self._started_ns = 0
        self._finished_runs = 0

    @property
    def is_complete(self) -> bool:
        """Whether every point has a result."""
        return len(self.results) >= len(self.sweep.points)

    def start(self) -> None:
        """Begin, or resume, the runs that are left."""
        self.is_running, self.is_stopping, self.problem = True, False, None

    def load(self, results: Sequence[SweepResult]) -> None:
        """Replace the results by the log's; the runs that follow are timed from now."""
        self.results = list(results)
        self._started_ns, self._finished_runs = self._clock(), 0

    def begin_point(self, point: SweepPoint) -> None:
        """Note the point of the current run."""
        self._point = point

    def end_point(self, point: SweepPoint, result: SweepResult | None, detail: str = "") -> None:
        """Add the result of the current run; None if it measured nothing, and `detail` says why.

        A run that the user stopped has not failed.
        """
        self._point = None
        self._finished_runs += 1
        self.failures.pop(point, None)
        if result is not None:
            self.results.append(result)
        elif not self.is_stopping:
            self.failures[point] = detail

    def finish(self, problem: str | None) -> None:
        """Note that no run is in progress any more, and why if that is a problem."""
        self.is_running = self.is_stopping = False
        self._point, self.problem = None, problem

    def head(self) -> Content:
        """Return the line with the number of runs, the time left and the name of the sweep."""
        sweep = self.sweep
        preset = f", preset {sweep.preset}" if sweep.preset else ""
        runs = numbers.quantity(len(sweep.points), "run")
        return Content.assemble(
            ("linkgauge ", KEY),
            (" sweep  ", "bold"),
            f"{len(self.results)} of {runs}{self._time_left()}   ",
            (f"{sweep.group}   {numbers.sanitize(sweep.peer)}{preset}", MUTED),  # what --resume needs comes first
        )

    def status(self, key: str = "space") -> Content:
        """Return the line with the current point and the last result, or with the reason for the stop.

        `key` is the key that resumes the sweep.
        """
        if self.problem is not None:
            return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(self.problem))
        if self.is_running:
            return self._running_status()
        if self.is_complete:
            return Content.assemble(("✓ ", "bold $text-success"), "Sweep complete")
        if self.failures:
            failed = numbers.quantity(len(self.failures), "point")
            return Content.assemble(
                ("▲ ", "bold $text-warning"), f"{failed} failed; press {key} to run what is missing"
            )
        return Content.assemble(("◌ ", MUTED), f"Stopped. Finished runs are saved; press {key} to resume")

    def _running_status(self) -> Content:
        axes = self.sweep.varied_axes or ("sessions", "window_bytes")
        current = "starting" if self._point is None else point_words(self._point, axes)
        last = ""
        if self.results:
            newest = self.results[-1]
            last = f"   last: {point_words(newest.point, axes)}: {result_words(newest)}"
        return Content.assemble(
            ("● ", "$text-success"), ("stopping" if self.is_stopping else current, "bold"), (last, MUTED)
        )

    def _time_left(self) -> str:
        """Return about how long the rest takes, from the mean of the runs so far with their set-up."""
        runs_left = len(self.sweep.points) - len(self.results)
        if not self.is_running or not runs_left:
            return ""
        if self._finished_runs:
            left_ns = runs_left * (self._clock() - self._started_ns) // self._finished_runs
        else:
            left_ns = estimated_duration_ns(self.sweep, runs_left)
        return f", about {numbers.rough_time(left_ns)} left"


class SweepScreen(ActionScreen):
    """One sweep against one peer.

    Args:
        sweep: The points to run.
        services: The presets, and exports.
        sweeps: Stores the sweep and carries out its runs.
        peer: The far end.
        results: The results of a stored sweep; without them the runs start at once.

    Raises:
        PlanError: The preset of the sweep is unknown.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.SWEEP
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.SWEEP)
    DEFAULT_CSS = """
    SweepScreen {
        & OverlayPlot { height: 1fr; min-height: 6; }
        & #result {
            height: 1fr;
            padding: 0 1;
            border-top: solid $foreground 22%;
            scrollbar-size: 1 1;
        }
        & Static { height: auto; }
        & #map { width: auto; }
        &.-tiny OverlayPlot, &.-tiny #legend { display: none; }
    }
    """

    @dataclass
    class ResultsLoaded(Message):
        """The stored results are loaded; the runs that are left follow."""

        results: Sequence[SweepResult]

    @dataclass
    class PointStarted(Message):
        """The run of a point is open."""

        point: SweepPoint
        run: RunSession

    @dataclass
    class PointEnded(Message):
        """The run of a point has ended; `result` is None if it measured nothing."""

        point: SweepPoint
        result: SweepResult | None
        detail: str

    @dataclass
    class SweepStopped(Message):
        """No run is in progress any more: all are done, the sweep was stopped, or it failed."""

        problem: str | None = None

    def __init__(
        self,
        sweep: Sweep,
        services: StoredServices,
        sweeps: StoredSweeps,
        peer: Peer,
        results: Sequence[SweepResult] | None = None,
    ) -> None:
        super().__init__()
        self._sweep = sweep
        self._sweeps = sweeps
        self._export = services.export
        self._preset = None if sweep.preset is None else services.catalog.find(sweep.preset)
        self._peer = peer
        self._progress = SweepProgress(sweep, results or (), services.clock)
        self._starts_at_once = results is None
        self._is_closing = False
        self._run: RunSession | None = None

    def compose(self) -> ComposeResult:
        """Compose the progress, the plot, and the map with its conclusions."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        yield Static(id="legend", markup=False)
        yield OverlayPlot()
        with ScrollableContainer(id="result"):
            for name in ("best", "failures", "map", "knees"):
                yield Static(markup=False, id=name)
        yield self.footer()

    def on_mount(self) -> None:
        """Show the stored results, and start."""
        self.query_one("#result").focus()
        if self._starts_at_once:
            self._start()
        self._show()

    # Background work: it posts messages and changes no state.

    async def _carry_out(self) -> None:
        try:
            results = await to_thread(self._sweeps.begin, self._sweep)
            self.post_message(self.ResultsLoaded(results))
            await run_points(missing_points(self._sweep, results), self._open_run, self)
        except LinkgaugeError as error:
            self.post_message(self.SweepStopped(str(error)))
        else:
            self.post_message(self.SweepStopped())

    def _open_run(self, point: SweepPoint) -> AbstractAsyncContextManager[RunSession]:
        return self._sweeps.run_point(self._sweep, point, self._preset, self._peer)

    @property
    def is_stopping(self) -> bool:
        """Whether the user has stopped the sweep."""
        return self._progress.is_stopping

    def begin_point(self, point: SweepPoint, run: RunSession) -> None:
        """Post the run of a point."""
        self.post_message(self.PointStarted(point, run))

    def advance(self, _event: Event) -> None:
        """Nothing: the screen shows whole runs."""

    def end_point(self, point: SweepPoint, result: SweepResult | None, detail: str) -> None:
        """Post the result of a point."""
        self.post_message(self.PointEnded(point, result, detail))

    def _start(self) -> None:
        self._progress.start()
        self.run_worker(self._carry_out(), group="sweep", exclusive=True, exit_on_error=False)

    # Message handlers.

    @on(ResultsLoaded)
    def _load_results(self, message: ResultsLoaded) -> None:
        self._progress.load(message.results)
        self._show()

    @on(PointStarted)
    def _begin_point(self, message: PointStarted) -> None:
        _log.debug("run %s: %s", message.run.run_id, message.point)
        self._progress.begin_point(message.point)
        self._run = message.run
        if self._progress.is_stopping:  # the stop came while this run was being opened
            self._stop_run()
        self._show_progress()

    @on(PointEnded)
    def _end_point(self, message: PointEnded) -> None:
        self._run = None
        self._progress.end_point(message.point, message.result, message.detail)
        if message.result is None and not self._progress.is_stopping:
            self.notify(
                numbers.sanitize(f"{point_words(message.point)}: {message.detail}"),
                title="no result",
                severity="warning",
            )
        self._show()

    @on(SweepStopped)
    def _finish(self, message: SweepStopped) -> None:
        _log.debug("sweep %s stopped: %s", self._sweep.group, message.problem)
        self._run = None
        self._progress.finish(message.problem)
        if self._is_closing:
            app_of(self).pop_screen()
        else:
            self._show_progress()

    def task_failed(self, task: Worker[Any]) -> None:
        """End with the reason if the background task has failed."""
        if task.group == "sweep":
            self.post_message(self.SweepStopped(internal_error_text(task.error)))
        else:
            super().task_failed(task)

    def _show(self) -> None:
        """Draw everything from the results so far."""
        self._show_progress()
        results = self._progress.results
        overlay, legend = sweep_overlay(self._sweep, results, LETTERS)
        self.query_one(OverlayPlot).show(overlay)
        self.query_one("#legend", Static).update(_legend(legend, axis_of_plot(self._sweep)))
        failures = failure_lines(self._sweep, results, self._progress.failures)
        sections = {
            "best": best_lines(self._sweep, results),
            "failures": failures,
            "map": map_lines(self._sweep, results),
            "knees": knee_lines(self._sweep, results),
        }
        for name, text in sections.items():
            section = self.query_one(f"#{name}", Static)
            section.display = bool(text)
            section.update(Content("\n").join(text))

    def _show_progress(self) -> None:
        self.query_one("#head", Static).update(self._progress.head())
        self.query_one("#now", Static).update(self._progress.status(self.key_of("toggle_sweep")))

    def _stop_run(self) -> None:
        if self._run is not None:
            self._run.stop(Reason.INTERRUPTED, "the sweep was stopped")

    # Actions of the registry.

    def action_toggle_sweep(self) -> None:
        """Stop the sweep, or resume it."""
        if self._progress.is_running:
            self._progress.is_stopping = True
            self._stop_run()
        elif not self._progress.is_complete:
            self._start()
        self._show_progress()

    def action_export(self) -> None:
        """Export the runs; as HTML, the report of the sweep."""

        def export(run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
            if form == "html":
                return self._sweeps.write_report(self._sweep, path)
            return self._export(run_ids, form, path)

        prompt_export(self, [result.run_id for result in self._progress.results], export)

    def action_back(self) -> None:
        """Leave the screen; a sweep in progress is stopped first."""
        if not self._progress.is_running:
            app_of(self).pop_screen()
            return
        self._is_closing = True
        if not self._progress.is_stopping:
            self.action_toggle_sweep()


def open_new_sweep(
    app: FeatureApp, services: StoredServices, sweeps: StoredSweeps, peer: Peer, preset_id: str, direction: str
) -> None:
    """Open the form of a sweep, then the sweep.

    Args:
        app: Shows both.
        services: The presets, and exports.
        sweeps: Stores the sweep and carries out its runs.
        peer: The far end.
        preset_id: The preset that the form begins with.
        direction: The direction that the form begins with.
    """

    def open_sweep(sweep: Sweep | None) -> None:
        if sweep is not None:
            app.push_screen(SweepScreen(sweep, services, sweeps, peer))

    app.push_screen(SweepForm(services.catalog, peer.shown, preset_id, direction), open_sweep)


async def open_stored_sweep(
    screen: ActionScreen, services: StoredServices, sweeps: StoredSweeps, group: str
) -> None:
    """Open a stored sweep with its results; it can be resumed there. Show why it cannot be opened.

    Args:
        screen: The screen to return to.
        services: The presets, and exports.
        sweeps: Stores the sweep and carries out its runs.
        group: The name of the sweep in the run log.
    """
    try:
        sweep, results = await to_thread(sweeps.find, group)
        stored = SweepScreen(sweep, services, sweeps, Peer.parse(sweep.peer), results)
    except LinkgaugeError as error:
        screen.report(error, "sweep")
        return
    await app_of(screen).push_screen(stored)


def _legend(names: Sequence[str], axis: str) -> Content:
    """Return the name of each line, and at the end the name of the axis below them."""
    parts: list[tuple[str, str]] = []
    for name in names:
        parts += [(f"{name[0]} ", f"bold {SERIES_STYLES[name[0]]}"), (f"{name[2:]}   ", MUTED)]
    parts.append((f"over {axis}", MUTED))
    return Content.assemble(*parts)
