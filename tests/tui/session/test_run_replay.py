"""A run of the log up to a moment."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, RunLog
from linkgauge.tui.readings.cockpit_snapshot import Phase
from linkgauge.tui.session.run_replay import RunReplay
from linkgauge.tui.session.stored_run import load_stored_run, moment_snapshot, stored_run

from ..stored_runs import CHANGED, RUN_IDS

EARLIER = Path(__file__).parents[2] / "engine" / "results" / "data" / "earlier_version.sqlite3"


@pytest.mark.every
@pytest.mark.parametrize("run_id", RUN_IDS)
def test_a_replay_ends_with_the_result_of_the_run_however_it_gets_there(history_log: RunLog, run_id: str) -> None:
    """Step by step, by jumps to and fro, and at once: the meter has seen the same events."""
    row = history_log.find(run_id)
    whole = load_stored_run(history_log, row).outcome
    for moments in ((), range(0, 40 * SECOND_NS, SECOND_NS // 3), (9 * SECOND_NS, 2 * SECOND_NS, 7 * SECOND_NS)):
        replay = RunReplay(history_log, row)
        for moment_ns in moments:
            replay.go_to(moment_ns)
            assert replay.elapsed_ns <= moment_ns
        replay.go_to_end()
        assert replay.is_over
        assert stored_run(replay).outcome == whole


def test_a_moment_shows_what_the_cockpit_showed_then(world: Any, history_log: RunLog) -> None:
    """The settings in force, the time, and no result yet."""
    replay = RunReplay(history_log, history_log.find(CHANGED))
    seen = []
    for moment_s in (5, 18):
        replay.go_to(moment_s * SECOND_NS)
        view = moment_snapshot(replay, world.catalog)
        assert (view.phase, view.summary, view.verdict) == (Phase.RUNNING, None, None)
        assert view.readings is not None
        seen.append((view.readings.elapsed_ns // SECOND_NS, view.settings.sessions))
    assert seen == [(5, 1), (18, 5)]


def test_a_run_of_an_earlier_version_and_a_run_without_samples_are_played(world: Any, tmp_path: Path) -> None:
    """The first has its end; the second has nothing else."""
    shutil.copy(EARLIER, tmp_path / RUN_LOG_FILE_NAME)
    with RunLog.open(tmp_path) as log:
        log.begin("20261128-000000-aaaa", "", "loopback")
        log.append_event("20261128-000000-aaaa", Ended(RunEnd(Reason.FAILED, "no worker")))
        log.finish("20261128-000000-aaaa", "none", {})
        log.flush()
        for row in log.list_runs():
            replay = RunReplay(log, row)
            for moment_s in range(20):
                replay.go_to(moment_s * SECOND_NS)
                moment_snapshot(replay, world.catalog)
            assert replay.is_over
            assert stored_run(replay).outcome.run_id == row.run_id
