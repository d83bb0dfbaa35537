"""The load of other programs: the share of a core that the busiest thread of each used (/proc/PID/task, proc(5)).

A thread that uses a whole core cannot give TCP more data, whatever its other threads do.
"""

from collections.abc import Iterable
from typing import Final

from ..engine.host.sockets.socket_owners import read_thread_times
from ..engine.model.plan import SECOND_NS

_MOST_PROCESSES: Final = 32  # each file takes some twenty microseconds
_LEAST_NS: Final = SECOND_NS // 2  # the kernel counts in hundredths of a second


class ThreadLoads:
    """The loads between two measurements; a program that is seen for the first time has none yet."""

    def __init__(self) -> None:
        self._times: dict[int, tuple[dict[int, int], int]] = {}

    def measure(self, pids: Iterable[int], now_ns: int) -> dict[int, float]:
        """Return the busiest thread's share of a core by process, since it was last measured."""
        before, self._times = self._times, {}
        shares: dict[int, float] = {}
        for pid in list(dict.fromkeys(pids))[:_MOST_PROCESSES]:
            then, then_ns = before.get(pid, ({}, now_ns))
            if then and now_ns - then_ns < _LEAST_NS:
                self._times[pid] = then, then_ns
                continue
            times = read_thread_times(pid)
            self._times[pid] = times, now_ns
            rises = [times[thread] - then[thread] for thread in times.keys() & then.keys()]
            if rises:
                shares[pid] = max(rises) / (now_ns - then_ns)
        return shares
