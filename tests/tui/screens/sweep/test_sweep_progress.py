"""The progress of a sweep and its two lines, without a screen."""

from typing import Any

import pytest
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.summary import Summary
from linkgauge.engine.results.sweep import Sweep, SweepResult
from linkgauge.tui.screens.sweep.sweep_progress import SweepProgress

SWEEP = Sweep(
    "sweep-20261121-014629-7f3a",
    "db-02",
    Plan(duration_ns=10 * SECOND_NS),
    (Direction.OUT,),
    (1, 2, 5, 10),
    (None,),
    (65_536,),
)


def plain(content: Any) -> str:
    """Return the text of a line with plain spaces."""
    return content.plain.replace("\u00a0", " ")


class Clock:
    """A clock that a test sets."""

    now_ns = 0

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ns


@pytest.fixture
def summary(world: Any) -> Summary:
    """Return the summary of a scripted run."""
    run = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan(duration_ns=10 * SECOND_NS))
    run.run_for(40, 9.3e9)
    run.end()
    meter = Meter()
    while not run.queue.empty():
        meter.feed(run.queue.get_nowait())
    meter.flush()
    return meter.summary()


def test_the_time_left_follows_from_the_mean_of_the_runs_so_far(summary: Summary) -> None:
    """Before the first run has ended it is estimated from the plan."""
    clock = Clock()
    progress = SweepProgress(SWEEP, (), clock)
    assert "about" not in plain(progress.head())
    progress.start()
    progress.load(())
    assert "0 of 4 runs, about " in plain(progress.head())
    progress.begin_point(SWEEP.points[0])
    clock.now_ns = 20 * SECOND_NS
    progress.end_point(SweepResult(SWEEP.points[0], "run-1", summary))
    assert "1 of 4 runs, about 01:00 left" in plain(progress.head())


def test_a_run_without_a_result_counts_only_for_the_time() -> None:
    """Its point is left to run."""
    clock = Clock()
    progress = SweepProgress(SWEEP, (), clock)
    progress.start()
    progress.load(())
    clock.now_ns = 10 * SECOND_NS
    progress.end_point(None)
    assert "0 of 4 runs, about 00:40 left" in plain(progress.head())


def test_the_status_names_the_current_point_and_the_last_result(summary: Summary) -> None:
    """Then that the sweep is stopping, and how to resume it."""
    progress = SweepProgress(SWEEP, [SweepResult(SWEEP.points[0], "run-1", summary)], Clock())
    progress.start()
    assert plain(progress.status()).startswith("● starting")
    progress.begin_point(SWEEP.points[1])
    assert plain(progress.status()).startswith(f"● {SWEEP.points[1].sessions} session")
    assert f"last: {SWEEP.points[0].sessions} session" in plain(progress.status())
    progress.is_stopping = True
    assert plain(progress.status()).startswith("● stopping")
    progress.finish(None)
    assert plain(progress.status()).startswith("◌ space goes on")


def test_a_problem_is_shown_until_the_next_start(summary: Summary) -> None:
    """A complete sweep shows neither."""
    progress = SweepProgress(SWEEP, (), Clock())
    progress.start()
    progress.finish("the far end is gone")
    assert plain(progress.status()) == "✗ the far end is gone"
    progress.start()
    for point in SWEEP.points:
        progress.end_point(SweepResult(point, "run", summary))
    progress.finish(None)
    assert progress.is_complete
    assert plain(progress.status()) == "✓ every run is made"
