"""The writer of the run log: slow and full disks, runs that cannot be written, and its end."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Sampled, Warned
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, RunLog

from ..day_of_samples import SAMPLES_A_DAY, samples
from ..log_entries import DEADLINE_S, ENDED, STARTED, sampled, start_child, write_run
from ..log_lock import hold_lock


def _numbers(log: RunLog, run_id: str) -> list[int]:
    return [event.sample.index for event in log.events(run_id) if isinstance(event, Sampled)]


@pytest.mark.parametrize(
    ("when", "kind"),
    [
        ("before the log is opened", "IMMEDIATE"),
        ("before the run", "EXCLUSIVE"),
        pytest.param("before the log is opened", "EXCLUSIVE", marks=pytest.mark.every),
        pytest.param("during the run", "EXCLUSIVE", marks=pytest.mark.every),
        ("during the run", "IMMEDIATE"),
    ],
)
def test_no_event_is_lost_while_another_process_has_locked_the_log(tmp_path: Path, kind: str, when: str) -> None:
    """They wait in memory, in order, even more of them than fit into the queue. The caller does not wait."""
    path = tmp_path / RUN_LOG_FILE_NAME
    problems: list[str] = []
    with RunLog.open(tmp_path) as log:
        write_run(log, "r0", STARTED, ENDED, document={})
    with contextlib.ExitStack() as stack:
        if when == "before the log is opened":
            lock = stack.enter_context(hold_lock(path, kind))
        log = stack.enter_context(RunLog.open(tmp_path, on_problem=problems.append))
        if when == "before the run":
            lock = stack.enter_context(hold_lock(path, kind))
        log.begin("r1", "gbe-fd-1500", "db-02:5820")
        log.append_event("r1", STARTED)
        for number in range(700):
            log.append_event("r1", sampled(number))
        if when == "during the run":
            assert log.flush()
            lock = stack.enter_context(hold_lock(path, kind))
        for number in range(700, 1_900):
            log.append_event("r1", sampled(number))
        log.append_event("r1", ENDED)
        log.finish("r1", "pass", {"schema": 1})
        assert not log.flush(0.0)
        assert [row.run_id for row in log.list_runs()][-1] == "r0"
        lock.release()
        assert log.flush()
        assert _numbers(log, "r1") == list(range(1_900))
        assert (log.find("r1").reason, log.find("r1").document) == (Reason.COMPLETED, {"schema": 1})
        assert (log.problem, problems) == (None, [])


def test_more_than_the_memory_may_hold_ends_the_recording_with_a_text(tmp_path: Path) -> None:
    """The beginning of the run is written all the same, without a gap; the next run is whole."""
    problems: list[str] = []
    with RunLog.open(tmp_path, on_problem=problems.append, max_waiting_bytes=100_000) as log:
        with hold_lock(log.path) as lock:
            log.begin("r1", "p", "h:1")
            for number in range(200):
                log.append_event("r1", Warned(f"{number:4000}"))
            log.finish("r1", "pass", {})
            assert not log.flush(0.5)
            lock.release()
        assert log.flush()
        texts = [int(event.text) for event in log.events("r1") if isinstance(event, Warned)]
        assert 10 < len(texts) < 100
        assert texts == list(range(len(texts)))
        assert log.find("r1").document is None
        write_run(log, "r2", sampled(0))
        assert _numbers(log, "r2") == [0]
    (problem,) = problems
    assert problem.startswith("this run is not saved from here on: ")
    assert "another process has locked it" in problem


@pytest.mark.every
@pytest.mark.parametrize(
    ("is_begun", "says"),
    [
        (False, "run r1 is not saved: "),
        (True, "run r1 is saved in part, without its result and its last 41 entries: "),
    ],
)
def test_what_is_still_locked_at_the_end_is_named(tmp_path: Path, is_begun: bool, says: str) -> None:
    """The log waits until its deadline, says so at once, and then what is missing. Nothing is written later."""
    waits: list[str] = []
    log = RunLog.open(tmp_path)
    if is_begun:
        write_run(log, "r1", sampled(0))
        assert log.flush()
    with hold_lock(log.path) as lock:
        if not is_begun:
            log.begin("r1", "p", "h:1")
        for number in range(1, 41):
            log.append_event("r1", sampled(number))
        log.append_event("r1", ENDED)
        log.finish("r1", "pass", {})
        log.close(waits.append, timeout_s=1.5)
        assert log.problem is not None
        assert log.problem.startswith(says)
        assert "another process has locked it; end that process" in log.problem
        (wait,) = waits
        assert "another process has locked it; waiting for up to 1.5 s" in wait
        lock.release()
    assert not any(thread.name == "linkgauge-runlog" for thread in threading.enumerate())
    with RunLog.open(tmp_path) as again:
        assert [row.run_id for row in again.list_runs()] == (["r1"] if is_begun else [])


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
        log.append_event("r1", Warned(f"{number:4000}"))
        log.flush()
    log.finish("r1", "pass", {})
print(len(told), told[0])
"""


def test_a_disk_that_fills_up_ends_the_keeping_and_not_the_run(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk; what was kept until then can be read."""
    with start_child(_FULL_DISK, tmp_path) as child:
        output, _ = child.communicate(timeout=DEADLINE_S)
        assert child.returncode == 0
    assert output.startswith("1 this run is not saved from here on: ")
    assert "or choose another data directory" in output
    with RunLog.open(tmp_path) as log:
        stored_numbers = [int(event.text) for event in log.events("r1") if isinstance(event, Warned)]
        assert 10 < len(stored_numbers) < 200
        assert stored_numbers == list(range(len(stored_numbers)))
        row = log.find("r1")
        assert (row.reason, row.is_running) == (None, False)


_SMALL_DISK = """
import sys
from pathlib import Path
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.model.events import Warned

with RunLog.open(Path(sys.argv[1])) as log:
    log.begin("r1", "p", "h:1")
    written = 0
    while log.problem is None:
        log.append_event("r1", Warned(f"{written:4000}"))
        assert log.flush()
        written += log.problem is None
    texts = [int(event.text) for event in log.events("r1")]
print(written, texts == list(range(written)), log.problem)
"""


def _can_mount() -> bool:
    command = ["/usr/bin/env", "unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(os.name != "posix" or not _can_mount(), reason="cannot mount a file system here")
def test_a_disk_that_is_really_full_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """A small file system of its own: every event that was written before can be read."""
    script = 'mount -t tmpfs -o size=900k none "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "-rm", "sh", "-c", script, "sh", tmp_path, sys.executable, _SMALL_DISK],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    written, is_whole, problem = done.stdout.split(" ", 2)
    assert int(written) > 20, done
    assert is_whole == "True"
    assert problem.startswith("this run is not saved from here on: ")
    assert "the disk is full; free space on it" in problem


_FAST_WRITER = """
import sys
from pathlib import Path
from linkgauge.engine.model.events import Warned
from linkgauge.engine.results.run_log import RunLog

with RunLog.open(Path(sys.argv[1])) as log:
    log.begin(sys.argv[2], "p", "h:1")
    number = 0
    while True:
        for _ in range(int(sys.argv[3])):
            log.append_event(sys.argv[2], Warned(str(number)))
            number += 1
        assert log.flush()
        print(number, flush=True)
"""


@pytest.mark.parametrize("batch", [1, 100, 513])
def test_kill_9_at_any_time_leaves_all_that_was_written(tmp_path: Path, batch: int) -> None:
    """Even between the rows and their block: no event is missing or repeated."""
    for run_id, lines in (("r1", 3), ("r2", 11)):
        with start_child(_FAST_WRITER, tmp_path, run_id, batch) as child:
            assert child.stdout is not None
            written = [int(child.stdout.readline()) for _ in range(lines)][-1]
            child.kill()
        with RunLog.open(tmp_path) as log:
            numbers = [int(event.text) for event in log.events(run_id) if isinstance(event, Warned)]
            assert len(numbers) >= written
            assert numbers == list(range(len(numbers)))
            assert not log.find(run_id).is_running


_DAY = [pytest.mark.every, pytest.mark.timeout(1800)]


@pytest.mark.every
@pytest.mark.parametrize(
    ("share", "has_probe", "is_locked"),
    [
        pytest.param(1 / 240, True, False, id="six minutes"),
        pytest.param(1 / 240, False, True, id="six minutes, locked"),
        pytest.param(1 / 24, True, True, id="an hour, locked", marks=_DAY),
        pytest.param(1 / 8, True, False, id="three hours", marks=_DAY),
    ],
)
def test_a_day_of_one_session_takes_60_megabytes_at_most(
    tmp_path: Path, share: float, has_probe: bool, is_locked: bool
) -> None:
    """On the disk, and in memory if another process has locked the log all day."""
    most = int(60e6 * share)
    count = int(SAMPLES_A_DAY * share)
    waiting = most + 1_000_000  # the newest are in no block yet
    with RunLog.open(tmp_path, max_waiting_bytes=waiting) as log, contextlib.ExitStack() as stack:
        lock = stack.enter_context(hold_lock(log.path)) if is_locked else None
        log.begin("r1", "p", "h:1")
        for number, event in enumerate(samples(count, has_probe=has_probe)):
            log.append_event("r1", event)
            if number % 10_000 == 9_999:
                log.flush(2 if is_locked else 120)  # samples come more slowly than a thread can write
        log.finish("r1", "pass", {})
        if lock is not None:
            lock.release()
        assert log.flush(60)
        assert log.problem is None
        assert log.used_bytes() < most
        assert sum(1 for _ in log.events("r1")) == count


def test_a_closed_log_leaves_no_thread_and_no_descriptor(tmp_path: Path) -> None:
    """Even if a reader stopped half-way. Closing twice is the same as closing once."""
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
