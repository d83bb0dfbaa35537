"""Connections of other programs in the run log, and what the readers of the log make of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.events import Changed, Ended, Started
from linkgauge.engine.model.plan import SECOND_NS, Dialect
from linkgauge.engine.model.run_end import EndText, Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog, RunQuery
from linkgauge.observe.observation import Observation, Status
from linkgauge.tui.observe import observed_records
from linkgauge.tui.observe.observed_records import LEFT, ObservedRecords
from linkgauge.tui.session.run_exports import export_runs
from linkgauge.tui.session.run_replay import RunReplay
from linkgauge.tui.session.stored_run import compare_stored_runs, read_stored_run
from linkgauge.tui.words.run_line import run_line
from linkgauge.tui.words.summary import headline, plan_text

from .example_observations import SLOW_READER
from .watched_connection import KEY, NAME, Watched


@pytest.fixture
def log(tmp_path: Path) -> RunLog:
    """Return a run log."""
    return RunLog.open(tmp_path)


def save_all(log: RunLog, label: str | None = None) -> ObservedRecords:
    """Return what saves every connection."""
    return ObservedRecords(lambda: log, label=label, saves_all=True)


def test_an_entry_reads_as_a_run_with_the_last_result_in_place_of_a_verdict(log: RunLog) -> None:
    """History, replay, comparison, JSON and CSV; the name of a program is the text of another."""
    records, watched = save_all(log, "hunt"), Watched()
    for _ in range(3):
        records.take(watched.look())
    records.take(watched.look(status=Status.IDLE))
    records.end_all(LEFT)
    (record,) = records.ended
    with log:
        stored = read_stored_run(log, record.run_id)
        document = stored.outcome.document
        assert (document["dialect"], document["verdict"], document["label"], document["far"]) == (
            *("observed", "none", "hunt"),
            None,
        )
        assert document["observed"]["status"] == "limited"
        assert [each["code"] for each in document["why"]] == ["receive-window"]
        assert document["measured"]["out"]["mbit_s"] == pytest.approx(8.0)
        assert document["tcp"]["mode"] is None
        summary = stored.outcome.summary
        assert (summary.dialect, plan_text(summary)) == (
            Dialect.OBSERVED,
            "observed out for 4.0\N{NO-BREAK SPACE}s",
        )
        assert headline(summary, stored.outcome.verdict).text == SLOW_READER.text
        line = run_line(log.find(record.run_id))
        assert (line.test, line.short_test, line.verdict_words) == ("observed →", "obs →", "limited")
        assert "\x1b" not in line.program
        assert "\x1b" not in str(document["observed"])
        assert compare_stored_runs([stored, stored])
        path = export_runs(log, [record.run_id], "csv", log.path.with_suffix(".csv"))
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 2 * 16


def test_a_replay_judges_as_the_live_observation_did(log: RunLog) -> None:
    """By the needless retransmits, too, which its samples have; the end has the stored findings."""
    records, watched = save_all(log), Watched()
    for _ in range(4):
        records.take(watched.look())
    records.end_all(LEFT)
    with log:
        replay = RunReplay(log, log.find(records.ended[0].run_id))
        replay.go_to(3 * SECOND_NS)
        evidence = replay.diagnosis.recent_evidence()
        assert evidence is not None
        assert evidence.is_observed
        assert (evidence.flows[0].needless, evidence.flows[0].retransmits) == (12, 0)
        assert all(each.trial is None for each in replay.diagnosis.current_findings)


def test_samples_count_from_the_start_of_the_entry(log: RunLog) -> None:
    """The user has watched the connection for some time already."""
    records, watched = ObservedRecords(lambda: log), Watched()
    for _ in range(3):
        records.take(watched.look())
    assert not records.saved_keys
    assert records.start(watched.look().connections[0])
    assert records.saved_keys == {KEY}
    records.take(watched.look())
    record = records.stop(KEY)
    assert record is not None
    assert record.outcome is not None
    assert record.outcome.summary.elapsed_ns == 2 * SECOND_NS
    assert records.stop(KEY) is None
    log.close()


def test_a_main_direction_that_stays_another_one_is_a_change(log: RunLog) -> None:
    """One observation of answers is none."""
    records, watched = save_all(log), Watched()
    for sends in (True, True, False, True, False, False, False):
        records.take(watched.look(sends=sends))
    records.end_all(LEFT)
    with log:
        changes = [e for e in log.events(records.ended[0].run_id) if isinstance(e, Changed)]
        assert [each.settings.direction for each in changes] == [Direction.IN]
        summary = read_stored_run(log, records.ended[0].run_id).outcome.summary
        assert [period.settings.direction for period in summary.periods] == [Direction.OUT, Direction.IN]
        assert summary.measured.in_ is not None
        assert summary.measured.in_.bit_s == pytest.approx(8_000_000)


@pytest.mark.parametrize("vanish", [lambda seen: replace(seen, connections=()), None])
def test_an_entry_ends_with_its_connection(
    log: RunLog, vanish: Callable[[Observation], Observation] | None
) -> None:
    """It is gone, or its last row says so."""
    records, watched = save_all(log), Watched()
    records.take(watched.look())
    last = watched.look(status=Status.ENDED)
    records.take(last if vanish is None else vanish(last))
    (record,) = records.ended
    with log:
        end = list(log.events(record.run_id))[-1]
        assert end == Ended(RunEnd(Reason.COMPLETED, EndText.CONNECTION_ENDED.value))
        assert log.find(record.run_id).verdict == "none"


def test_only_connections_with_a_result_are_saved_and_not_more_than_the_limit(
    log: RunLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy server opens thousands."""
    monkeypatch.setattr(observed_records, "MAX_RECORDS", 2)
    records = save_all(log)
    records.take(Watched().look(status=Status.NEW))
    assert not records.saved_keys
    several = [Watched(KEY._replace(cookie=number)).look() for number in range(3)]
    rows = tuple(each.connections[0] for each in several)
    records.take(replace(several[0], connections=rows))
    assert (len(records.saved_keys), records.is_full) == (2, True)
    log.close()


def test_without_a_run_log_nothing_is_saved() -> None:
    """The caller is told."""
    records, watched = ObservedRecords(lambda: None), Watched()
    assert not records.start(watched.look().connections[0])
    records.take(watched.look())
    assert not records.saved_keys


def test_an_entry_that_was_cut_off_is_still_an_observed_connection(log: RunLog) -> None:
    """The process died: there is no document."""
    records, watched = save_all(log), Watched()
    records.take(watched.look())
    with log:
        (entry,) = log.read_entries(log.find_runs(RunQuery()))
        started = next(iter(log.events(entry.run_id)))
        assert isinstance(started, Started)
        assert started.observed is not None
        assert started.observed.remote == NAME.remote
        assert "\x1b" not in (started.observed.program or "")
        assert read_stored_run(log, entry.run_id).outcome.summary.dialect is Dialect.OBSERVED
