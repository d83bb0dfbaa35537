"""Cores: their times in /proc/stat, and how long a process waits for one."""

import os
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from linkgauge.engine.host import cpu
from linkgauge.engine.host.cpu import (
    RunQueueWait,
    find_cpu_quotas,
    parse_proc_stat,
    read_core_times,
    read_quota_wait,
    subtract_core_times,
)
from linkgauge.engine.model.counters.samples import CoreTimes

from ..cpu_quota import cpu_quota

TICK_NS = 10_000_000
STAT = """cpu  30 6 20 1000 50 4 10 8 3 1
cpu0 10 2 15 500 20 1 5 8 3 1
cpu1 20 4 5 500 30 3 5 0 0 0
intr 12345 6 7
ctxt 99
cpufreq 1 2 3
"""


def test_each_core_has_its_own_row() -> None:
    """Niced time is user time, interrupts count as softirq, waiting for a disk is idle, the sum is left out."""
    assert parse_proc_stat(STAT, TICK_NS) == (
        CoreTimes(12 * TICK_NS, 15 * TICK_NS, 6 * TICK_NS, 8 * TICK_NS, 520 * TICK_NS),
        CoreTimes(24 * TICK_NS, 5 * TICK_NS, 8 * TICK_NS, 0, 530 * TICK_NS),
    )


def test_a_text_without_cores_has_none() -> None:
    """A container may hide them."""
    assert parse_proc_stat("intr 1\n", TICK_NS) == ()
    assert parse_proc_stat("", TICK_NS) == ()


def test_what_a_core_did_is_the_difference_of_two_readings() -> None:
    """Busy is all but idle, and stolen time is busy."""
    (core,) = subtract_core_times((CoreTimes(1, 2, 3, 4, 5),), (CoreTimes(11, 22, 33, 44, 95),)) or ()
    assert core == CoreTimes(10, 20, 30, 40, 90)
    assert core.busy_ns == 100
    assert core.busy_fraction == pytest.approx(100 / 190)


def test_cores_that_come_or_go_leave_the_interval_unknown() -> None:
    """So does a reading that is missing."""
    unit = CoreTimes(1, 1, 1, 1, 1)
    assert subtract_core_times(None, (unit,)) is None
    assert subtract_core_times((unit,), None) is None
    assert subtract_core_times((unit,), (unit, unit)) is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc here")
def test_this_host_has_cores_whose_times_rise() -> None:
    """A tenth of a second of work shows up somewhere."""
    before = read_core_times()
    assert before
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    cores = subtract_core_times(before, read_core_times())
    assert cores is not None
    assert sum(core.busy_ns for core in cores) >= TICK_NS


def test_a_host_that_tells_nothing_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither /proc nor psutil: None, which is not 0 %."""
    monkeypatch.setattr(cpu, "_STAT", tmp_path / "stat")
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert read_core_times() is None


DEADLINE_S = 20.0
COMPETITOR = "import os\nos.sched_setaffinity(0, {int(os.environ['CORE'])})\nprint(flush=True)\nwhile True: pass"
WAITER = """
import os, time
from linkgauge.engine.host.cpu import RunQueueWait
os.sched_setaffinity(0, {int(os.environ["CORE"])})
wait = RunQueueWait()
before_ns, began = wait.read(), time.process_time()
while time.process_time() - began < 0.1:
    pass
print(wait.read() - before_ns)
"""


@pytest.mark.every
@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts waits in schedstat")
def test_a_worker_counts_the_time_for_which_another_process_has_its_core() -> None:
    """On a core with three competitors a tenth of a second of work waits for at least as long."""
    environment = {**os.environ, "CORE": str(max(os.sched_getaffinity(0)))}
    start = partial(subprocess.Popen, env=environment, stdout=subprocess.PIPE)
    competitors = [start([sys.executable, "-c", COMPETITOR]) for _ in range(3)]
    try:
        for competitor in competitors:
            assert competitor.stdout is not None
            assert competitor.stdout.readline()
        waited_ns, _ = start([sys.executable, "-c", WAITER]).communicate(timeout=DEADLINE_S)
    finally:
        for competitor in competitors:
            competitor.kill()
            competitor.communicate()
    assert int(waited_ns) >= 100_000_000


def test_a_wait_counts_threads_that_have_ended_and_is_unknown_where_the_kernel_counts_none(tmp_path: Path) -> None:
    """A session's thread ends with it, and its wait was the worker's."""

    def write(thread: str, text: str) -> None:
        (tmp_path / thread).mkdir(exist_ok=True)
        (tmp_path / thread / "schedstat").write_text(text, encoding="ascii")

    def read() -> int | None:
        wait._next_ns = 0
        return wait.read()

    wait = RunQueueWait(tmp_path)
    write("7", "100 10 1\n")
    write("8", "50 5 1\n")
    assert read() == 15
    shutil.rmtree(tmp_path / "8")
    write("7", "100 12 1\n")
    assert read() == 17
    write("7", "0 0 0\n")
    assert read() is None
    assert RunQueueWait(tmp_path / "missing").read() is None


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_container", [True, False])
def test_the_quotas_of_all_groups_around_a_process_count(
    tmp_path: Path, version: int, *, is_container: bool
) -> None:
    """In a container the mount shows a part of the hierarchy; a group without a quota has no part in it."""
    mount, process = tmp_path / "cgroup", tmp_path / "self"
    inner, process_path = mount / "service/worker", "/host/box/service/worker"
    inner.mkdir(parents=True)
    process.mkdir()
    root = "/host/box" if is_container else "/"
    if not is_container:
        process_path = "/service/worker"
    kind = "cgroup2 none rw" if version == 2 else "cgroup none rw,cpu,cpuacct"
    name, controllers = ("cpu.max", "") if version == 2 else ("cpu.cfs_quota_us", "cpu,cpuacct")
    (process / "mountinfo").write_text(
        f"24 1 0:22 / /proc rw - proc proc rw\n31 24 0:27 {root} {mount} rw,nosuid shared:4 - {kind}\n",
        encoding="ascii",
    )
    (process / "cgroup").write_text(f"7:memory:/elsewhere\n4:{controllers}:{process_path}\n", encoding="ascii")
    assert find_cpu_quotas(process) == ()
    for group, quota in ((mount / "service", "50000 100000"), (inner, "max 100000")):
        (group / name).write_text(quota if version == 2 else quota.split()[0].replace("max", "-1"), "ascii")
    (mount / "service/cpu.stat").write_text(
        "nr_periods 9\nthrottled_usec 70\n" if version == 2 else "nr_periods 9\nthrottled_time 70000\n", "ascii"
    )
    stats = find_cpu_quotas(process)
    assert stats == (mount / "service/cpu.stat",)
    assert read_quota_wait(stats) == 70_000
    (mount / "service/cpu.stat").write_text("nr_periods 9\n", "ascii")
    assert read_quota_wait(stats) is None
    assert read_quota_wait((tmp_path / "gone",)) is None


QUOTA = """
import sys, time
from linkgauge.engine.host.cpu import find_cpu_quotas, read_quota_wait
stats = find_cpu_quotas()
before_ns = read_quota_wait(stats)
while time.process_time() < float(sys.argv[1]):
    pass
time.sleep(0.1)
print(read_quota_wait(stats) - before_ns)
"""


@pytest.mark.every
def test_a_quota_of_the_kernel_is_seen_to_stop_a_process() -> None:
    """A tenth of a core stops a busy process for most of the time."""
    with cpu_quota(percent=10) as enter:
        printed = subprocess.run(
            [*enter, sys.executable, "-c", QUOTA, "0.3"], capture_output=True, text=True, check=True, timeout=60
        )
    assert int(printed.stdout) > 50_000_000
