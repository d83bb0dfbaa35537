"""The progress of a sweep: results so far, the current point, the time left; and the two lines that show it.

Pure: time comes from a clock that is passed in.
"""

from collections.abc import Callable, Iterable, Sequence

from textual.content import Content

from ....engine.results.sweep import Sweep, SweepPoint, SweepResult
from ...rendering.styles import KEY, MUTED
from ...text import numbers
from ...text.sweep import estimated_duration_ns, point_words, result_words


class SweepProgress:
    """The results and the state of a sweep.

    Call `start`, then `begin_point` and `end_point` for each run, then `finish`.
    """

    def __init__(self, sweep: Sweep, results: Iterable[SweepResult], clock: Callable[[], int]) -> None:
        self.sweep = sweep
        self.results = list(results)
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
        """Replace the results by those of the log; the runs that follow are timed from now."""
        self.results = list(results)
        self._started_ns, self._finished_runs = self._clock(), 0

    def begin_point(self, point: SweepPoint) -> None:
        """Note the point of the current run."""
        self._point = point

    def end_point(self, result: SweepResult | None) -> None:
        """Add the result of the current run; None if it measured nothing."""
        self._point = None
        self._finished_runs += 1
        if result is not None:
            self.results.append(result)

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
            (f"{numbers.sanitize(sweep.peer)}{preset}   {sweep.group}", MUTED),
        )

    def status(self) -> Content:
        """Return the line with the current point and the last result, or with the reason for the stop."""
        if self.problem is not None:
            return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(self.problem))
        if self.is_running:
            return self._running_status()
        if self.is_complete:
            return Content.assemble(("✓ ", "bold $text-success"), "every run is made")
        return Content.assemble(("◌ ", MUTED), "space goes on with what is left; what was measured is kept")

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
        return f", about {numbers.clock(left_ns)} left"
