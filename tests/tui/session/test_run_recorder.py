"""A run's record: from events that come one by one, or all at once."""

from pathlib import Path

from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.run_end import EndText, Reason
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.run_recorder import RunRecorder
from linkgauge.tui.session.run_spec import Judging, Record

from ..scripted_mesh import run_events


def recorder(log: RunLog | None) -> RunRecorder:
    """Return a recorder of a run of a group."""
    record = Record(label="one", group="many")
    return RunRecorder(Judging(), None, log=log, peer="db-02", record=record)


def test_a_run_that_comes_whole_is_in_the_log_like_one_that_came_event_by_event(tmp_path: Path) -> None:
    """The same events, the same document but for its id."""
    events = run_events(1e9)
    with RunLog.open(tmp_path) as log:
        whole, single = recorder(log), recorder(log)
        outcome = whole.record_whole(events, {"cell": {"near": "a"}})
        for event in events:
            log.append_event(single.run_id, event)
            single.meter.feed(event)
        single.meter.flush()
        assert single.finish({"cell": {"near": "a"}}).document == {**outcome.document, "run_id": single.run_id}
        assert tuple(log.events(whole.run_id)) == tuple(log.events(single.run_id)) == events
        row = log.find(whole.run_id)
    assert (row.peer, row.label, row.group, row.verdict, row.document) == (
        "db-02",
        "one",
        "many",
        "none",
        outcome.document,
    )
    assert row.reason is Reason.COMPLETED
    assert whole.outcome is outcome


def test_a_run_whose_end_is_missing_ends_as_abandoned() -> None:
    """Its host died in the middle of its report: what was measured stays, and is not judged."""
    events = [event for event in run_events(1e9) if not isinstance(event, Ended)]
    assert isinstance(events[-1], Sampled)
    outcome = recorder(None).record_whole(tuple(events))
    assert (outcome.summary.end.reason, outcome.summary.end.detail) == (
        Reason.FAILED,
        EndText.RUN_ABANDONED,
    )
    assert outcome.verdict.word == "none"
    assert outcome.findings == ()
