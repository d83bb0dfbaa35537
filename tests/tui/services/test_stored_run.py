"""Runs of the log, rebuilt from their events."""

from dataclasses import replace
from typing import Any

from linkgauge.engine.model.events import Ended, Event, Started
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.services.stored_run import load_stored_run
from linkgauge.tui.state.instrument_values import Phase

SHORT, CHANGED = "20261119-221030-c4d5", "20261120-070000-e6f7"


class Recorder:
    """Consumer that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def feed(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)


def test_a_stored_run_has_its_verdict_its_readings_and_why_it_is_not_faster(world: Any, kept: RunLog) -> None:
    """The findings are made from the events if the document has none."""
    recorder = Recorder()
    stored = load_stored_run(kept, kept.find(SHORT), [recorder])
    assert (stored.outcome.run_id, stored.outcome.verdict.word) == (SHORT, "short")
    assert stored.outcome.findings
    assert stored.readings.elapsed_ns == 15 * SECOND_NS
    assert isinstance(recorder.events[0], Started)
    assert isinstance(recorder.events[-1], Ended)


def test_the_verdict_of_that_time_stands_although_the_pass_mark_has_changed(world: Any, kept: RunLog) -> None:
    """The words say that it is by another mark."""
    row = replace(kept.find(SHORT), verdict="pass")
    verdict = load_stored_run(kept, row).outcome.verdict
    assert verdict.word == "pass"
    assert "of that time" in verdict.text


def test_label_and_note_are_the_current_ones(world: Any, kept: RunLog) -> None:
    """A person may have written them long after the run."""
    kept.set_label(CHANGED, "renamed")
    kept.set_note(CHANGED, "ticket 4711")
    document = load_stored_run(kept, kept.find(CHANGED)).outcome.document
    assert (document["label"], document["note"]) == ("renamed", "ticket 4711")


def test_loopback_stands_in_for_a_preset_and_a_peer_that_are_gone(world: Any, kept: RunLog) -> None:
    """A run outlives the file of the preset that it was judged by."""
    row = replace(kept.find(SHORT), preset="removed", peer="not a peer:x")
    snapshot = load_stored_run(kept, row).snapshot(world.catalog)
    assert (snapshot.phase, snapshot.preset.id, snapshot.peer) == (Phase.DONE, "loopback", LOOPBACK)
    assert snapshot.peak is not None
    assert snapshot.peak.total is None
