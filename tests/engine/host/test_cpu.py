"""Cores: what /proc/stat says, and what that means for an interval."""

import sys
import time
from pathlib import Path

import pytest
from linkgauge.engine.host import cpu
from linkgauge.engine.host.cpu import parse_proc_stat, read_core_times, subtract_core_times
from linkgauge.engine.model.samples import CoreTimes

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


def test_time_that_steps_back_is_nothing_and_not_less() -> None:
    """Linux lets idle time do so."""
    assert subtract_core_times((CoreTimes(5, 5, 5, 5, 5),), (CoreTimes(4, 4, 4, 4, 4),)) == (
        CoreTimes(0, 0, 0, 0, 0),
    )
    assert CoreTimes(0, 0, 0, 0, 0).busy_fraction == 0.0


def test_cores_that_come_or_go_leave_the_interval_unknown() -> None:
    """So does a reading that is missing."""
    one = CoreTimes(1, 1, 1, 1, 1)
    assert subtract_core_times(None, (one,)) is None
    assert subtract_core_times((one,), None) is None
    assert subtract_core_times((one,), (one, one)) is None


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
