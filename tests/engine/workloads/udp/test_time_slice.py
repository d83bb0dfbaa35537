"""The time slice of a sending thread, as the kernel has it."""

import ctypes
import os
import platform
import struct
import threading
from collections.abc import Callable
from typing import Final

import pytest
from linkgauge.engine.workloads.udp.time_slice import set_short_slice

_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")
_READ_CALLS: Final = {"x86_64": 315, "aarch64": 275, "riscv64": 275}
_MACHINE: Final = platform.machine()
_RELEASE: Final = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])

pytestmark = pytest.mark.skipif(
    _MACHINE not in _READ_CALLS or _RELEASE < (6, 12), reason="Linux has slices by request from 6.12 on"
)


def _in_thread(work: Callable[[], None]) -> tuple[int, int, int]:
    """Return policy, nice value and slice of a new thread after its work."""
    found: list[tuple[int, int, int]] = []

    def run() -> None:
        work()
        buffer = ctypes.create_string_buffer(_ATTRIBUTES.size)
        assert ctypes.CDLL(None).syscall(_READ_CALLS[_MACHINE], 0, buffer, len(buffer), 0) == 0
        _, policy, _, nice, _, slice_ns, _, _ = _ATTRIBUTES.unpack(buffer.raw)
        found.append((policy, nice, slice_ns))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_a_thread_asks_for_a_short_slice_and_gives_it_back() -> None:
    """Its policy and its nice value stay as they were."""
    usual = _in_thread(lambda: None)
    assert _in_thread(lambda: set_short_slice(is_short=True)) == (*usual[:2], 100_000)

    def there_and_back() -> None:
        set_short_slice(is_short=True)
        set_short_slice(is_short=False)

    assert _in_thread(there_and_back) == usual


def test_a_nice_and_a_batch_thread_stay_so() -> None:
    """A user who starts linkgauge with nice(1) means it."""

    def work() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, 5)
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        set_short_slice(is_short=True)

    assert _in_thread(work) == (os.SCHED_BATCH, 5, 100_000)


@pytest.mark.parametrize("machine", ["x86_64", "a machine without a number"])
def test_a_system_without_it_is_left_alone(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown machine, or a C library without syscall(2)."""
    usual = _in_thread(lambda: None)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    if machine == "x86_64":
        monkeypatch.delattr(os, "sched_getscheduler")
    assert _in_thread(lambda: set_short_slice(is_short=True))[2] == usual[2]
