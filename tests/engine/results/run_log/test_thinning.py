"""Thinning of the run log: the samples of a second become one, and what a reader computes from them stays."""

import contextlib
import random
import shutil
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.meter import Meter, replay
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, RunLog
from linkgauge.engine.results.run_log.stored_events import encode_event
from linkgauge.engine.results.run_log.thinning import Thinning

from ..drawn_runs import draw_run
from ..log_entries import DEADLINE_S, start_child
from ..log_lock import hold_lock

_EARLIER = Path(__file__).parents[1] / "data" / "earlier_version.sqlite3"
_TICK = SECOND_NS // 4


def _drawn(intervals: int, interval_ns: int = _TICK) -> list[Event]:
    """Return a run that lost its peer, with all its CPU times."""
    drawn = draw_run(
        random.Random(1),  # noqa: S311 (no secret)
        Plan(interval_ns=interval_ns, probe=True),
        intervals,
        reason=Reason.PEER_LOST,
        changes=3,
        disorder=0,
    )
    return [
        replace(event, sample=replace(event.sample, process_cpu_ns=9)) if isinstance(event, Sampled) else event
        for event in drawn
    ]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    """Return the events of a run of 67 s."""
    return _drawn(270)


def _save(log: RunLog, run_id: str, events: list[Event], *, is_over: bool = True) -> None:
    log.begin(run_id, "", "h")
    for event in events:
        log.append_event(run_id, event)
    if is_over:
        log.finish(run_id, "none", {})
    assert log.flush()


def _figures(meter: Meter) -> tuple[object, ...]:
    """Return what must not change; the drawn RTTs are all alike, so that the medians are too."""
    return meter.summary(), [
        period.sums.sent[flow].counters for period in meter.periods for flow in period.sums.sent
    ]


def _blocks(path: Path) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return connection.execute("SELECT * FROM blocks ORDER BY run_id, first").fetchall()


def _thinnable(log: RunLog) -> list[str]:
    return [run.run_id for run in log.thinnable_runs()]


def test_a_thinned_run_has_a_sample_a_second_and_the_same_figures(tmp_path: Path, events: list[Event]) -> None:
    """The file becomes smaller, what is not a sample stays, and a second time nothing is done."""
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", events)
        _save(log, "r2", events)
        before, size = _figures(replay(log.events("r1"))), log.used_bytes()
        assert _thinnable(log) == ["r1", "r2"]
        done = log.thin_all(["r1"])
        assert (done.runs, done.problems) == (1, ())
        assert 0 < done.freed_bytes == size - log.used_bytes()
        assert _figures(replay(log.events("r1"))) == before
        thinned = list(log.events("r1"))
        assert 130 < sum(isinstance(event, Sampled) for event in thinned) < 200
        others = [event for event in events if not isinstance(event, Sampled)]
        assert [event for event in thinned if not isinstance(event, Sampled)] == others
        assert list(log.events("r2")) == events
        assert _thinnable(log) == ["r2"]
        blocks = _blocks(log.path)
        assert log.thin_all(["r1"]) == Thinning()
        assert _blocks(log.path) == blocks


def test_what_has_no_detail_to_lose_stays_as_it_is(tmp_path: Path, events: list[Event]) -> None:
    """A run of less than a minute, one with a sample a second, and one that is still running."""
    with RunLog.open(tmp_path) as log:
        runs = {"short": _drawn(220), "slow": _drawn(270, SECOND_NS), "live": events[:-1]}
        for run_id, run in runs.items():
            _save(log, run_id, run, is_over=run_id != "live")
        assert log.is_any_running()
        assert "live" not in _thinnable(log)
        assert log.thin_all(list(runs)) == Thinning()
        assert {run_id: list(log.events(run_id)) for run_id in runs} == runs
        assert _thinnable(log) == []


_THIN = """
import sys
from pathlib import Path
from linkgauge.engine.results.run_log import RunLog, thinning
with RunLog.open(Path(sys.argv[1]), create=False) as log:
    thinning._WINDOW_EVENTS = 100
    windows = iter(range(1, 99))
    def wait(began: float) -> None:
        if next(windows) == int(sys.argv[2]):
            print("window", flush=True)
            sys.stdin.readline()
    thinning.pause_after = wait
    log.thin_all(["r1"])
"""


@pytest.mark.every
@pytest.mark.parametrize("windows", [pytest.param(1, marks=pytest.mark.every), 2])
def test_a_killed_process_loses_nothing_and_the_next_one_continues(tmp_path: Path, windows: int) -> None:
    """After each of the transactions, the run reads as the whole one does."""
    path = tmp_path / RUN_LOG_FILE_NAME
    run = _drawn(1_200)
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", run)
        before = _figures(replay(run))
        with start_child(_THIN, tmp_path, windows) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "window\n"
            child.send_signal(signal.SIGKILL)
            assert child.wait(DEADLINE_S) == -signal.SIGKILL
        left = list(log.events("r1"))
        assert len(left) < len(run)
        assert _figures(replay(left)) == before
        assert _thinnable(log) == ["r1"]
        assert log.thin_all(["r1"]).runs == 1
        assert _figures(replay(log.events("r1"))) == before
        assert len(list(log.events("r1"))) < len(left)
        assert _thinnable(log) == []
    _blocks(path)


def test_a_locked_log_stays_as_it_is_and_with_a_deadline_nobody_waits(tmp_path: Path, events: list[Event]) -> None:
    """The next call thins the rest."""
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", events)
        with hold_lock(log.path), pytest.raises(RunLogError, match="another process has locked it"):
            log.thin_all(["r1"], deadline=time.monotonic() + DEADLINE_S)
        assert list(log.events("r1")) == events
        assert log.thin_all(["r1"], deadline=time.monotonic() - 1) == Thinning()
        assert log.thin_all(["r1"], deadline=time.monotonic() + DEADLINE_S).runs == 1


@pytest.mark.parametrize(
    "damage",
    [
        "data = x'01ff'",
        "last = 'x'",
        pytest.param("data = zeroblob(99)", marks=pytest.mark.every),
        pytest.param("data = 7", marks=pytest.mark.every),
    ],
)
def test_a_damaged_run_is_named_and_its_block_stays_as_it_is(
    tmp_path: Path, events: list[Event], damage: str
) -> None:
    """The next run is thinned. Only a call without a deadline tries the damaged one again."""
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", events)
        _save(log, "r2", events)
        with contextlib.closing(sqlite3.connect(log.path)) as connection:
            last = "run_id = 'r1' AND first = (SELECT max(first) FROM blocks WHERE run_id = 'r1')"
            connection.execute(f"UPDATE blocks SET {damage} WHERE {last}")  # noqa: S608
            connection.commit()
        before = [block for block in _blocks(log.path) if block[0] == "r1"]
        done = log.thin_all(["r1", "r2"])
        assert done.runs == 1
        (problem,) = done.problems
        assert "run r1 in" in problem
        assert "is damaged" in problem
        assert [block for block in _blocks(log.path) if block[0] == "r1"] == before
        assert [run.run_id for run in log.thinnable_runs(with_damaged=False)] == []
        assert _thinnable(log) == ["r1"]
        assert log.thin_all(["r1"]).problems == (problem,)


def test_sums_too_large_to_be_read_again_are_not_written(tmp_path: Path, events: list[Event]) -> None:
    """Such as a damaged run can have: it is left as it is."""
    large = [
        replace(event, sample=replace(event.sample, process_cpu_ns=2**62)) if isinstance(event, Sampled) else event
        for event in events
    ]
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", large)
        assert len(log.thin_all(["r1"]).problems) == 1
        assert list(log.events("r1")) == large


def test_a_run_of_an_earlier_version_is_thinned_and_an_earlier_one_of_this_format_reads_it(
    tmp_path: Path, events: list[Event]
) -> None:
    """Its rows become blocks. The format is the same: new are a column of the list of runs, and journals."""
    path = tmp_path / RUN_LOG_FILE_NAME
    shutil.copy(_EARLIER, path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO runs (id, preset, peer, owner, reason) VALUES ('r1', '', 'h', '', 'peer_lost')"
        )
        rows = (("r1", number, encode_event(event)) for number, event in enumerate(events))
        connection.executemany("INSERT INTO events (run_id, seq, event) VALUES (?, ?, ?)", rows)
        connection.commit()
    with RunLog.open(tmp_path, create=False) as log:
        assert _thinnable(log) == ["r1"]
        assert log.thin_all(["r1"]).runs == 1
        assert _figures(replay(log.events("r1"))) == _figures(replay(events))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM events WHERE run_id = 'r1'").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        names = ["blocks", "events", "journal", "removals", "runs", "sqlite_sequence"]  # the last is SQLite's own
        assert [name for (name,) in tables] == names


def test_a_reader_is_told_that_a_run_was_thinned_meanwhile(tmp_path: Path) -> None:
    """Half of the samples and half of the merged ones would be a wrong sum."""
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", _drawn(300))
        reader = log.events("r1")
        next(reader)
        log.thin_all(["r1"])
        with pytest.raises(RunLogError, match="run r1 was thinned while it was read; try again"):
            list(reader)


@pytest.mark.every
def test_two_processes_do_not_thin_the_same_run_twice(tmp_path: Path) -> None:
    """The second one leaves it to the first, which is between two transactions."""
    run = _drawn(600)
    with RunLog.open(tmp_path) as log:
        _save(log, "r1", run)
        with start_child(_THIN, tmp_path, 1) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            assert child.stdout.readline() == "window\n"
            assert log.thin_all(["r1"]).runs == 1
            child.stdin.close()
            assert child.wait(DEADLINE_S) == 0
        assert _figures(replay(log.events("r1"))) == _figures(replay(run))
