"""The run log: what is kept, how it is found again, and what is said when it cannot be kept."""

import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.events import (
    Changed,
    Ended,
    Event,
    Expectation,
    ExpectedRate,
    Opened,
    Reason,
    RunEnd,
    Sampled,
    Started,
    Warned,
)
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.socket_info import SocketInfo
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_log import RunLog, new_run_id
from linkgauge.engine.results.summary import Measurement

TICK = SECOND_NS // 4
HOST = HostInfo("a", "Linux", 2, "linkgauge 0.1.0", "uvloop")
STARTED = Started("2026-11-21T01:15:30Z", "db-02:5820", HOST, HOST, Plan(), Expectation())
ENDED = Ended(RunEnd(Reason.COMPLETED, "the time is up"))
DEADLINE_S = 20


def _sampled(index: int, bytes_: int = 1000, end: End = End.FAR) -> Sampled:
    session = SessionSample(Direction.OUT, 1, bytes_)
    return Sampled(Sample(end, index, (index + 1) * TICK, TICK, (session,)), Settings(), False)


def _every_kind() -> list[Event]:
    facts = SocketInfo(End.NEAR, Direction.OUT, 1, "cubic", 60_000, 1448, True, True, None)
    settings = Settings(Direction.DUPLEX, 5, 65_536)
    cores = (CoreTimes(1, 2, 3, 4, 5),)
    session = SessionSample(Direction.IN, 5, 2**60, 1, 2, 3, 4, 5, 6, 7)
    return [
        STARTED,
        Opened(facts),
        _sampled(0),
        Changed(TICK, settings, Expectation(total=ExpectedRate(10**9, "computed", "the wire"))),
        Sampled(Sample(End.NEAR, 1, 2 * TICK, TICK, (session,), cores, 9), settings, True),
        Warned("the window is smaller than asked for: 60 KiB, not 64 KiB – “granted”"),
        ENDED,
    ]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """Give a log in a directory that does not exist yet."""
    with RunLog.open(tmp_path / "data" / "linkgauge") as opened:
        yield opened


def _keep(log: RunLog, run_id: str, *events: Event, document: dict[str, object] | None = None) -> None:
    log.begin(run_id, "gbe-fd-1500", "db-02:5820")
    for event in events:
        log.add(run_id, event)
    if document is not None:
        log.finish(run_id, "pass", document)


def test_what_was_told_is_read_back_as_it_was(log: RunLog) -> None:
    """Every kind of event, in order, and what came out of the run."""
    _keep(log, "r1", *_every_kind(), document={"schema": 1, "run_id": "r1"})
    assert list(log.events("r1")) == _every_kind()
    (row,) = log.list_runs()
    assert (row.run_id, row.preset, row.peer, row.label) == ("r1", "gbe-fd-1500", "db-02:5820", None)
    assert (row.reason, row.detail, row.verdict) == (Reason.COMPLETED, "the time is up", "pass")
    assert (row.started_utc, row.document) == ("2026-11-21T01:15:30Z", {"schema": 1, "run_id": "r1"})
    assert not row.is_running


def test_a_log_that_is_opened_again_still_has_its_runs(tmp_path: Path) -> None:
    """Closing writes what is queued."""
    with RunLog.open(tmp_path) as log:
        _keep(log, "r1", *_every_kind(), document={})
    with RunLog.open(tmp_path) as again:
        assert len(list(again.events("r1"))) == len(_every_kind())


def test_runs_are_listed_with_the_newest_first(log: RunLog) -> None:
    """Also those of which nothing is known yet."""
    for run_id in ("b", "a", "c"):
        _keep(log, run_id)
    assert [row.run_id for row in log.list_runs()] == ["c", "a", "b"]


def test_a_long_run_is_read_in_order(log: RunLog) -> None:
    """More events than are read at once."""
    events = [_sampled(index) for index in range(600)]
    _keep(log, "r1", *events[:300])
    assert log.flush()
    for event in events[300:]:
        log.add("r1", event)
    assert list(log.events("r1")) == events


def test_a_run_is_found_by_the_beginning_of_its_id(log: RunLog) -> None:
    """Where no other one begins so; an id in full is found whatever else begins with it."""
    for run_id in ("20261121-011530-k3f9", "20261121-011530-k3f", "20261122-000000-aaaa"):
        _keep(log, run_id)
    assert log.find("20261122").run_id == "20261122-000000-aaaa"
    assert log.find("20261121-011530-k3f").run_id == "20261121-011530-k3f"
    with pytest.raises(RunLogError, match="2 runs begin with 20261121: 20261121-011530-k3f, 2026"):
        log.find("20261121")


@pytest.mark.parametrize("text", ["20261121-011530-k3f8", "%", "", "_" * 19, "\x1b[2J", "x" * 10_000])
def test_a_run_that_does_not_exist_is_said_with_the_remedy(log: RunLog, text: str) -> None:
    """Nothing in the text is a pattern, and nothing of it drives a terminal."""
    _keep(log, "20261121-011530-k3f9")
    with pytest.raises(RunLogError, match=r"there is no run .*`linkgauge runs list` shows them") as raised:
        log.find(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300
    assert ("did you mean 20261121-011530-k3f9" in str(raised.value)) == (text == "20261121-011530-k3f8")


def test_a_deleted_run_is_gone_with_its_events(log: RunLog) -> None:
    """The others stay."""
    _keep(log, "r1", *_every_kind(), document={})
    _keep(log, "r2", *_every_kind(), document={})
    log.delete("r1")
    assert [row.run_id for row in log.list_runs()] == ["r2"]
    assert list(log.events("r1")) == []
    assert len(list(log.events("r2"))) == len(_every_kind())
    with pytest.raises(RunLogError, match="there is no run 'r1'"):
        log.delete("r1")


def test_a_run_that_goes_on_is_not_deleted(log: RunLog) -> None:
    """Its process still lives: this one."""
    _keep(log, "r1", STARTED)
    assert log.list_runs()[0].is_running
    with pytest.raises(RunLogError, match="still goes on; stop it first"):
        log.delete("r1")


def test_nothing_is_taken_of_a_run_that_has_finished(log: RunLog) -> None:
    """Nor of one that never began."""
    _keep(log, "r1", *_every_kind(), document={})
    log.add("r1", Warned("late"))
    log.add("r2", Warned("stray"))
    log.finish("r2", "pass", {})
    assert len(list(log.events("r1"))) == len(_every_kind())
    assert [row.run_id for row in log.list_runs()] == ["r1"]
    assert log.problem is None


def test_text_that_could_not_be_read_back_is_made_to_fit(log: RunLog) -> None:
    """One over-long or broken text of a peer must not cost the whole run."""
    log.begin("r1", "p\udc80", "h\x1b:1", label="\x07")
    log.add("r1", Warned("x" * 100_000))
    log.add("r1", Warned("\udc80\x1b[2J"))
    log.add("r1", Ended(RunEnd(Reason.FAILED, "y\udc80" * 10_000)))
    warned, cleaned, _ended = log.events("r1")
    assert isinstance(warned, Warned)
    assert warned.text == "x" * 4000
    assert cleaned == Warned("��[2J")
    assert (log.list_runs()[0].preset, log.list_runs()[0].peer, log.list_runs()[0].label) == ("p�", "h�:1", "�")


def test_reading_leaves_no_trace_where_there_is_no_log(tmp_path: Path) -> None:
    """Who only lists runs makes no directory."""
    place = tmp_path / "data"
    with RunLog.open(place, create=False) as log:
        assert log.list_runs() == []
        assert list(log.events("r1")) == []
        with pytest.raises(RunLogError, match="there is no run"):
            log.find("r1")
    assert not place.exists()


def test_an_id_is_the_moment_in_utc_and_a_little_chance() -> None:
    """So that ids sort by time, wherever they were made."""
    tokyo = datetime(2026, 11, 21, 10, 15, 30, tzinfo=timezone(timedelta(hours=9)))
    chance = random.SystemRandom()
    made = [new_run_id(tokyo, chance) for _ in range(50)]
    assert len(set(made)) > 40
    assert all(re.fullmatch(r"20261121-011530-[2-9a-hj-km-np-z]{4}", run_id) for run_id in made)


# What can be wrong with the file.


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"a letter to a friend " * 100)


def _another_program_s(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE friends (name)")


def _newer(path: Path) -> None:
    RunLog.open(path.parent).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def _a_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_not_a_database, "file is not a database; it is no run log; move it away"),
        (_another_program_s, "is another program's database; choose another data directory"),
        (_newer, r"was made by a newer linkgauge \(its format is 99, this one reads 1\); upgrade"),
        (_a_directory, "unable to open database file; make it and its directory writable"),
    ],
)
def test_a_file_that_is_no_run_log_is_told_and_left_alone(
    tmp_path: Path, spoil: object, says: str, create: bool
) -> None:
    """With its path and what to do; nothing is written to it."""
    assert callable(spoil)
    path = tmp_path / "runs.sqlite3"
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(RunLogError, match=says) as raised:
        RunLog.open(tmp_path, create=create)
    assert str(path) in str(raised.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RunLogError, match=r"file/data: Not a directory; make it writable, or choose another"):
        RunLog.open(tmp_path / "file" / "data")
    with pytest.raises(RunLogError, match="Not a directory"):
        RunLog.open(tmp_path / "file" / "data", create=False)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Give a directory with a log in it that this process may read and not write."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        RunLog.open(place).close()
        (place / "runs.sqlite3").chmod(0o444)
        place.chmod(0o555)
        is_root = os.geteuid() == 0
        if is_root:
            try:
                os.seteuid(65_534)  # root may write anywhere
            except OSError:
                pytest.skip("root may write to a read-only directory, and cannot be anyone else here")
        try:
            yield place
        finally:
            if is_root:
                os.seteuid(0)
            place.chmod(0o755)


def test_a_read_only_directory_is_told(read_only: Path) -> None:
    """The run goes on without its log; whoever opens it decides that."""
    with pytest.raises(RunLogError, match="writable, or choose another data directory"):
        RunLog.open(read_only)
    with pytest.raises(RunLogError, match="make it writable, or choose another data directory"):
        RunLog.open(read_only / "missing")


def test_a_damaged_event_is_told_with_the_remedy(log: RunLog) -> None:
    """What was before it can be read; then where the damage is, and how to be rid of it."""
    _keep(log, "r1", STARTED, _sampled(0), ENDED)
    assert log.flush()
    with contextlib.closing(sqlite3.connect(log.path)) as connection:
        connection.execute('UPDATE events SET event = \'{"type":"Sampled"\' WHERE seq = 1')
        connection.commit()
    events = log.events("r1")
    assert next(events) == STARTED
    with pytest.raises(RunLogError, match=r"damaged at event 1: .*`linkgauge runs delete r1` takes it away"):
        next(events)


# What can go wrong while a run is written.


def test_a_disk_that_is_too_slow_holds_up_nobody(tmp_path: Path) -> None:
    """While another process keeps the file locked the queue fills up, and then the run is given up."""
    told: list[str] = []
    with RunLog.open(tmp_path, on_problem=told.append, capacity=8) as log:
        _keep(log, "r0", STARTED, ENDED, document={})
        assert log.flush()
        with contextlib.closing(sqlite3.connect(log.path, isolation_level=None)) as locked:
            locked.execute("BEGIN IMMEDIATE")
            _keep(log, "r1", *(_sampled(index) for index in range(100)), document={})
            assert log.problem is not None
            assert "is not kept from here on" in log.problem
            assert "the disk is too slow" in log.problem
            locked.execute("ROLLBACK")
        assert log.flush()
        kept = [event.sample.index for event in log.events("r1") if isinstance(event, Sampled)]
        assert kept == list(range(len(kept)))
        assert len(kept) < 30
        assert log.find("r1").document is None
        _keep(log, "r2", _sampled(0))
        assert len(list(log.events("r2"))) == 1
    assert len(told) == 1


def test_a_run_that_cannot_be_written_costs_no_other(log: RunLog) -> None:
    """Two runs of one id: the second is given up, the first and the next are whole."""
    _keep(log, "r1", STARTED, ENDED, document={})
    assert log.flush()
    _keep(log, "r1", STARTED, ENDED, document={"second": 1})
    _keep(log, "r2", STARTED, ENDED, document={})
    assert list(log.events("r1")) == [STARTED, ENDED]
    assert list(log.events("r2")) == [STARTED, ENDED]
    assert log.find("r1").document == {}
    assert log.problem is not None
    assert "UNIQUE" in log.problem


def _child(script: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *(str(argument) for argument in arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


_FULL_DISK = """
import resource, sys
from pathlib import Path
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.model.events import Warned

told = []
with RunLog.open(Path(sys.argv[1]), on_problem=told.append) as log:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    log.begin("r1", "p", "h:1")
    for number in range(200):
        log.add("r1", Warned(f"{number:4000}"))
        log.flush()
    log.finish("r1", "pass", {})
print(len(told), told[0])
"""


def test_a_disk_that_fills_up_ends_the_keeping_and_not_the_run(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk; what was kept until then can be read."""
    with _child(_FULL_DISK, tmp_path) as child:
        told, _ = child.communicate(timeout=DEADLINE_S)
        assert child.returncode == 0
    assert told.startswith("1 this run is not kept from here on: ")
    assert "or choose another data directory" in told
    with RunLog.open(tmp_path) as log:
        kept = [int(event.text) for event in log.events("r1") if isinstance(event, Warned)]
        assert 10 < len(kept) < 200
        assert kept == list(range(len(kept)))
        row = log.find("r1")
        assert (row.reason, row.is_running) == (None, False)


_WRITER = """
import sys
from pathlib import Path
from linkgauge.engine.model.plan import Direction, End, Plan, Settings
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.model.events import *
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.samples import *

host = HostInfo("a", "Linux", 2, "linkgauge", "uvloop")
with RunLog.open(Path(sys.argv[1])) as log:
    run_id = sys.argv[2]
    log.begin(run_id, "loopback", "h:1")
    log.add(run_id, Started("2026-11-21T01:15:30Z", "h:1", host, host, Plan(), Expectation()))
    for index in range(int(sys.argv[3])):
        sample = Sample(End.FAR, index, (index + 1) * 10, 10, (SessionSample(Direction.OUT, 1, 7),))
        log.add(run_id, Sampled(sample, Settings(), False))
    assert log.flush()
    print("written", flush=True)
    if len(sys.argv) > 4:
        sys.stdin.read()
    log.add(run_id, Ended(RunEnd(Reason.COMPLETED, "")))
"""


def test_a_run_that_is_killed_is_in_the_log_and_known_as_cut_off(tmp_path: Path) -> None:
    """What was written before a kill -9 is read back, and makes a summary."""
    command = [sys.executable, "-c", _WRITER, str(tmp_path), "r1", "40", "wait"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "written\n"
        with RunLog.open(tmp_path) as log:
            assert log.find("r1").is_running
            child.send_signal(signal.SIGKILL)
            assert child.wait(DEADLINE_S) == -signal.SIGKILL
            row = log.find("r1")
            assert not row.is_running
            assert (row.reason, row.verdict, row.document) == (None, None, None)
            summary = replay(log.events("r1")).summary()
            log.delete("r1")
            assert log.list_runs() == []
    assert summary.measured.out == Measurement(40 * 7, 400)
    assert "cut off" in summary.end.detail


def test_several_processes_write_into_one_log_at_once(tmp_path: Path) -> None:
    """Each makes the file if it is first, and each run is whole."""
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(_child(_WRITER, tmp_path, f"r{n}", 200)) for n in range(4)]
        for child in children:
            assert child.communicate(timeout=DEADLINE_S) == ("written\n", None)
            assert child.returncode == 0
    with RunLog.open(tmp_path) as log:
        assert sorted(row.run_id for row in log.list_runs()) == ["r0", "r1", "r2", "r3"]
        for row in log.list_runs():
            assert replay(log.events(row.run_id)).summary().measured.out == Measurement(200 * 7, 2000)
            assert row.reason is Reason.COMPLETED


def test_a_closed_log_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    """Also where a reader stopped half-way; closing twice is closing once."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list a process's descriptors")
    RunLog.open(tmp_path).close()
    threads, before = set(threading.enumerate()), len(list(descriptors.iterdir()))
    with RunLog.open(tmp_path) as log:
        assert set(threading.enumerate()) == threads
        _keep(log, "r1", *(_sampled(index) for index in range(300)))
        next(log.events("r1"))
        log.close()
    assert set(threading.enumerate()) == threads
    assert len(list(descriptors.iterdir())) == before
    log.begin("r2", "p", "h:1")
    assert set(threading.enumerate()) == threads
