"""The load of other programs: how much of the time the busiest thread of each ran, or waited for a core.

A thread that never waits for anything else cannot give TCP more data, whatever its other threads do. The kernel
counts both times in nanoseconds (/proc/PID/task/TID/schedstat, proc(5)).
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from ..engine.host.sockets.socket_owners import read_thread_times

_MOST_PROCESSES: Final = 32  # each file takes some twenty microseconds


class ThreadLoad(NamedTuple):
    """The shares of the time for which a thread ran on a core, and for which it was ready and had none."""

    running: float
    waiting: float


class ThreadLoads:
    """The loads between two measurements; a program that is seen for the first time has none yet."""

    def __init__(self) -> None:
        self._times: dict[int, tuple[dict[int, tuple[int, int]], int]] = {}

    def measure(self, pids: Iterable[int], now_ns: int) -> dict[int, ThreadLoad]:
        """Return the load of the busiest thread by process, since it was last measured."""
        before, self._times = self._times, {}
        loads: dict[int, ThreadLoad] = {}
        for pid in list(dict.fromkeys(pids))[:_MOST_PROCESSES]:
            times = read_thread_times(pid)
            self._times[pid] = times, now_ns
            then, then_ns = before.get(pid, ({}, now_ns))
            both = [(times[thread], then[thread]) for thread in times.keys() & then.keys()]
            if both and now_ns > then_ns:
                parts = [
                    [(now - was) / (now_ns - then_ns) for now, was in zip(*each, strict=True)] for each in both
                ]
                loads[pid] = max((ThreadLoad(*each) for each in parts), key=sum)
        return loads
