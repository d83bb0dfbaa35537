"""The comparison of stored runs with the first of them."""

from typing import Any

from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.run_comparison import compare_stored_runs, rate_points
from linkgauge.tui.services.stored_run import load_stored_run

FIRST, SHORT, CHANGED = "20261118-091200-a2b3", "20261119-221030-c4d5", "20261120-070000-e6f7"


def test_each_run_is_compared_with_the_first(world: Any, kept: RunLog) -> None:
    """Peer and preset are among the settings that differ, and only if they do."""
    runs = [load_stored_run(kept, kept.find(run_id)) for run_id in (FIRST, SHORT, CHANGED)]
    short, changed = compare_stored_runs(runs)
    names = [row.name for row in short.plan_rows]
    assert "peer" in names
    assert "preset" not in names
    assert "preset" in [row.name for row in changed.plan_rows]
    assert short.figure_rows


def test_the_rate_over_time_continues_through_a_change_of_settings(world: Any, kept: RunLog) -> None:
    """Both periods are there, in the order of time."""
    stored = load_stored_run(kept, kept.find(CHANGED))
    points = rate_points(stored)
    assert len(points) == sum(len(part) for period in stored.readings.periods for part in period.points.values())
    assert [point.at_s for point in points] == sorted(point.at_s for point in points)
