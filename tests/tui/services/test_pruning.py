"""Which runs are pruned: old ones, the oldest of a log that is too large, and none with a name."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Reason, RunEnd, Warned
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.pruning import plan_pruning

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
DAYS = (200, 100, 90, 10, 1)


def _fill(log: RunLog) -> list[str]:
    """Save a run of each age, about 25 kB large; return their ids, the oldest first."""
    run_ids = [f"{NOW - timedelta(days=days, minutes=1):%Y%m%d-%H%M%S}-aaaa" for days in DAYS]
    for place, run_id in enumerate(run_ids):
        log.begin(run_id, "", "h:1", label="before" if place == 1 else None)
        for number in range(60):
            log.add(run_id, Warned(" ".join(str(hash((place, number, k))) for k in range(100))))
        log.add(run_id, Ended(RunEnd(Reason.COMPLETED, "")))
        log.finish(run_id, "none", {})
    log.begin("20200101-000000-live", "", "h:1")
    assert log.flush()
    return run_ids


@pytest.mark.parametrize(
    ("keep_days", "kilobytes", "with_named", "chosen", "named"),
    [
        (90, None, False, [0, 2], 1),
        (90, None, True, [0, 1, 2], 0),
        (365, None, False, [], 0),
        (None, 100_000, False, [], 0),
        (None, 0, False, [0, 2, 3, 4], 1),
        (90, 0, True, [0, 1, 2, 3, 4], 0),
    ],
)
def test_the_oldest_runs_are_chosen(
    tmp_path: Path, keep_days: int | None, kilobytes: int | None, with_named: bool, chosen: list[int], named: int
) -> None:
    """Neither one with a label, unless that is requested, nor one that is still running, however old it is."""
    with RunLog.open(tmp_path) as log:
        run_ids = _fill(log)
        plan = plan_pruning(
            log,
            NOW,
            keep=None if keep_days is None else timedelta(days=keep_days),
            max_bytes=None if kilobytes is None else 1000 * kilobytes,
            with_named=with_named,
        )
        assert [row.run_id for row in plan.rows] == [run_ids[place] for place in chosen]
        assert plan.named == named
        assert (plan.size_bytes > 0) == bool(chosen)


def test_no_more_runs_are_chosen_than_the_size_needs(tmp_path: Path) -> None:
    """And after their deletion the log is as small as requested."""
    with RunLog.open(tmp_path) as log:
        run_ids = _fill(log)
        most = log.used_bytes() - 100_000
        plan = plan_pruning(log, NOW, keep=None, max_bytes=most, with_named=True)
        assert 1 < len(plan.rows) < len(run_ids)
        log.delete_all([row.run_id for row in plan.rows])
        assert log.used_bytes() <= most
