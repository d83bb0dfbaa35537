"""The writer of the run log: slow and full disks, runs that cannot be written, and its end."""

import contextlib
import sqlite3
import threading
from pathlib import Path

import pytest
from linkgauge.engine.model.events import (
    Sampled,
    Warned,
)
from linkgauge.engine.results.run_log import RunLog

from .log_entries import DEADLINE_S, ENDED, STARTED, sampled, start_child, write_run


def test_a_disk_that_is_too_slow_holds_up_nobody(tmp_path: Path) -> None:
    """While another process keeps the file locked the queue fills up, and then the run is given up."""
    told: list[str] = []
    with RunLog.open(tmp_path, on_problem=told.append, capacity=8) as log:
        write_run(log, "r0", STARTED, ENDED, document={})
        assert log.flush()
        with contextlib.closing(sqlite3.connect(log.path, isolation_level=None)) as locked:
            locked.execute("BEGIN IMMEDIATE")
            write_run(log, "r1", *(sampled(index) for index in range(100)), document={})
            assert log.problem is not None
            assert "is not saved from here on" in log.problem
            assert "the disk is too slow" in log.problem
            locked.execute("ROLLBACK")
        assert log.flush()
        kept = [event.sample.index for event in log.events("r1") if isinstance(event, Sampled)]
        assert kept == list(range(len(kept)))
        assert len(kept) < 30
        assert log.find("r1").document is None
        write_run(log, "r2", sampled(0))
        assert len(list(log.events("r2"))) == 1
    assert len(told) == 1


def test_a_run_that_cannot_be_written_costs_no_other(log: RunLog) -> None:
    """Two runs of one id: the second is given up, the first and the next are whole."""
    write_run(log, "r1", STARTED, ENDED, document={})
    assert log.flush()
    write_run(log, "r1", STARTED, ENDED, document={"second": 1})
    write_run(log, "r2", STARTED, ENDED, document={})
    assert list(log.events("r1")) == [STARTED, ENDED]
    assert list(log.events("r2")) == [STARTED, ENDED]
    assert log.find("r1").document == {}
    assert log.problem is not None
    assert "UNIQUE" in log.problem


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
    with start_child(_FULL_DISK, tmp_path) as child:
        told, _ = child.communicate(timeout=DEADLINE_S)
        assert child.returncode == 0
    assert told.startswith("1 this run is not saved from here on: ")
    assert "or choose another data directory" in told
    with RunLog.open(tmp_path) as log:
        kept = [int(event.text) for event in log.events("r1") if isinstance(event, Warned)]
        assert 10 < len(kept) < 200
        assert kept == list(range(len(kept)))
        row = log.find("r1")
        assert (row.reason, row.is_running) == (None, False)


def test_a_closed_log_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    """Also where a reader stopped half-way; closing twice is closing once."""
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("this system does not list a process's descriptors")
    RunLog.open(tmp_path).close()
    threads, before = set(threading.enumerate()), len(list(descriptors.iterdir()))
    with RunLog.open(tmp_path) as log:
        assert set(threading.enumerate()) == threads
        write_run(log, "r1", *(sampled(index) for index in range(300)))
        next(log.events("r1"))
        log.close()
    assert set(threading.enumerate()) == threads
    assert len(list(descriptors.iterdir())) == before
    log.begin("r2", "p", "h:1")
    assert set(threading.enumerate()) == threads
