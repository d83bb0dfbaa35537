"""Runs of the log, rebuilt from their events."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.readings.cockpit_snapshot import Phase
from linkgauge.tui.session.run_exports import export_runs
from linkgauge.tui.session.stored_run import (
    compare_stored_runs,
    load_stored_run,
    rate_points,
    read_stored_run,
)
from linkgauge.tui.words.summary import end_words

from ...engine.results.iperf3_runs import INTERVALS, iperf3_run, reported, total
from ..stored_runs import CHANGED, FIRST, SHORT


def test_a_stored_run_has_its_verdict_its_readings_and_why_it_is_not_faster(
    world: Any, history_log: RunLog
) -> None:
    """The findings are made from the events if the document has none."""
    stored = load_stored_run(history_log, history_log.find(SHORT))
    assert (stored.outcome.run_id, stored.outcome.verdict.word) == (SHORT, "short")
    assert stored.outcome.findings
    assert stored.readings.elapsed_ns == 15 * SECOND_NS
    assert stored.outcome.started is not None
    assert stored.outcome.summary.end.reason is Reason.COMPLETED
    assert stored.readings.traces.session_sums.sessions


def test_the_verdict_of_that_time_stands_although_the_pass_mark_has_changed(
    world: Any, history_log: RunLog
) -> None:
    """The words say that it is by another mark."""
    row = replace(history_log.find(SHORT), verdict="pass")
    verdict = load_stored_run(history_log, row).outcome.verdict
    assert verdict.word == "pass"
    assert "of that run" in verdict.text


def test_label_and_note_are_the_current_ones(world: Any, history_log: RunLog) -> None:
    """The user may have written them long after the run."""
    history_log.set_label(CHANGED, "renamed")
    history_log.set_note(CHANGED, "ticket 4711")
    document = load_stored_run(history_log, history_log.find(CHANGED)).outcome.document
    assert (document["label"], document["note"]) == ("renamed", "ticket 4711")


def test_loopback_stands_in_for_a_preset_and_a_peer_that_are_gone(world: Any, history_log: RunLog) -> None:
    """A run outlives the file of the preset that it was judged by."""
    row = replace(history_log.find(SHORT), preset="removed", peer="not a peer:x")
    snapshot = load_stored_run(history_log, row).snapshot(world.catalog)
    assert (snapshot.phase, snapshot.preset.id, snapshot.peer) == (Phase.DONE, "loopback", LOOPBACK)
    assert snapshot.peak is not None
    assert snapshot.peak.total is None


def test_a_run_without_its_first_event_is_damaged(history_log: RunLog, tmp_path: Path) -> None:
    """Its samples do not say what they belong to."""
    with RunLog.open(tmp_path) as log:
        log.begin("r1", "", "db-02:5820")
        for event in islice(history_log.events(SHORT), 1, None):
            log.append_event("r1", event)
        assert log.flush()
        with pytest.raises(RunLogError, match="its beginning is missing; `linkgauge runs delete r1`"):
            load_stored_run(log, log.find("r1"))


def test_each_run_is_compared_with_the_first(world: Any, history_log: RunLog) -> None:
    """Peer and preset are among the settings that differ, and only if they do."""
    runs = [load_stored_run(history_log, history_log.find(run_id)) for run_id in (FIRST, SHORT, CHANGED)]
    short, changed = compare_stored_runs(runs)
    names = [name for _, name, *_ in short.rows]
    assert "peer" in names
    assert "preset" not in names
    assert "preset" in [name for _, name, *_ in changed.rows]
    assert "out Mb/s" in names
    assert [column.title for column in changed.columns] == ["", "", "A", "C", ""]
    assert changed.title == "C compared with A"


def test_the_rate_over_time_continues_through_a_change_of_settings(world: Any, history_log: RunLog) -> None:
    """Both periods are there, in the order of time."""
    stored = load_stored_run(history_log, history_log.find(CHANGED))
    points = rate_points(stored)
    assert len(points) == sum(len(part) for period in stored.readings.periods for part in period.points.values())
    assert [point.at_s for point in points] == sorted(point.at_s for point in points)


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_a_stored_run_against_an_iperf3_has_the_figures_of_its_results(tmp_path: Path, workload: Workload) -> None:
    """Session by session, and with the words of its report and the rows of its CSV."""
    parts = [total(Direction.OUT, n, 11_000_000, received=11_000, lost=100, jitter_ns=7_000) for n in (1, 2)]
    events = iperf3_run(Direction.OUT, sessions=2, workload=workload, totals=reported(*parts))
    with RunLog.open(tmp_path) as log:
        log.begin("r1", "", "iperf3://db-02:5201")
        for event in events:
            log.append_event("r1", event)
        log.finish("r1", "none", {})
        assert log.flush()
        stored = load_stored_run(log, log.find("r1"))
        measured = stored.outcome.summary.measured.out
        assert measured is not None
        assert (measured.bytes, measured.counted_by) == (22_000_000, "receiver")
        sums = stored.readings.traces.session_sums.sessions
        assert [sums[Direction.OUT, n].bytes for n in (1, 2)] == [11_000_000, 11_000_000]
        known = sums[Direction.OUT, 1].datagrams
        assert known is not None
        assert (known.lost_percent, known.jitter_ns) == (100 / 111, 7_000)
        rows = export_runs(log, ["r1"], "csv", tmp_path / "rows.csv").read_text()
        assert rows.count(",sender") == 3 * INTERVALS


def test_a_run_in_progress_is_still_running_and_neither_done_nor_failed(world: Any, tmp_path: Path) -> None:
    """Its process is alive; the figures are those so far."""
    script = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan(duration_ns=30 * SECOND_NS))
    script.run_for(8, 9.3e8)
    with RunLog.open(tmp_path) as log:
        log.begin("r1", script.preset.id, "db-02")
        while not script.queue.empty():
            log.append_event("r1", script.queue.get_nowait())
        assert log.flush()
        stored = read_stored_run(log, "r1")
    assert stored.row.is_running
    assert stored.snapshot(world.catalog).phase is Phase.RUNNING
    assert end_words(stored.outcome.summary.end) == "still running"
    assert stored.outcome.verdict.word == "none"
    assert "still running, after" in stored.outcome.verdict.text
