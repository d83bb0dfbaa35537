"""The answers of each hop in windows of time, as they come in; a path trace is made of them. Pure.

Windows begin with the first probe. When payload begins to flow, the windows of the idle link end, and others begin.
A long run has longer windows: once there are too many, each two under load become one.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from ..model.counters.path_trace import (
    MAX_ANSWER_NS,
    MAX_HOPS,
    MAX_MTU_BYTES,
    MAX_MTUS,
    MAX_ROUTERS,
    MAX_WINDOWS,
    WINDOW_NS,
    HopTrace,
    MtuReport,
    PathTrace,
)
from ..model.directions import End

_MAX_IDLE_WINDOWS: Final = 20  # 8 s
_MAX_LOADED_WINDOWS: Final = MAX_WINDOWS - _MAX_IDLE_WINDOWS
_MAX_COUNTED_ROUTERS: Final = 16


@dataclass(slots=True)
class _Window:
    """The probes of one hop that were sent in a window."""

    sent: int = 0
    answered: int = 0
    least_ns: int | None = None

    def add(self, other: "_Window") -> None:
        """Add another one of the same time, or the one that follows."""
        self.sent += other.sent
        self.answered += other.answered
        known = [each for each in (self.least_ns, other.least_ns) if each is not None]
        self.least_ns = min(known, default=None)


@dataclass(slots=True)
class _Hop:
    windows: dict[int, _Window] = field(default_factory=dict[int, _Window])
    routers: Counter[str] = field(default_factory=Counter[str])

    def window(self, number: int) -> _Window:
        return self.windows.setdefault(number, _Window())

    def trace(self, numbers: range) -> HopTrace:
        windows = [self.windows.get(number) or _Window() for number in numbers]
        return HopTrace(
            tuple(router for router, _count in self.routers.most_common(MAX_ROUTERS)),
            tuple(window.sent for window in windows),
            tuple(window.answered for window in windows),
            tuple(window.least_ns for window in windows),
        )


class HopWindows:
    """Takes what is sent and what comes back. Numbers of windows are below 0 before payload flows.

    Args:
        began_ns: The time now, by the clock of all other times.
    """

    def __init__(self, began_ns: int) -> None:
        self._began_ns = began_ns
        self._loaded_ns: int | None = None
        self._idle = 0
        self._window_ns = WINDOW_NS
        self._hops: dict[int, _Hop] = {}
        self._mtus: dict[str, int] = {}
        self._received = _Hop()
        self.reached_ttl: int | None = None

    def begin_load(self, now_ns: int) -> None:
        """End the windows of the idle link: payload flows from now on."""
        if self._loaded_ns is None:
            self._idle = self._idle_number(now_ns - 1) + 1
            for hop in self._all:
                hop.windows = {number - self._idle: window for number, window in hop.windows.items()}
            self._loaded_ns = now_ns

    def note_sent(self, ttl: int, now_ns: int) -> None:
        """Note a probe."""
        self._hops.setdefault(ttl, _Hop()).window(self._number(now_ns)).sent += 1

    def note_answer(self, ttl: int, router: str, sent_ns: int, took_ns: int) -> None:
        """Note the answer to a probe that was sent at `sent_ns`, after a round trip; a late one is lost."""
        if took_ns > MAX_ANSWER_NS:
            return
        hop = self._hops.setdefault(ttl, _Hop())
        hop.window(self._number(sent_ns)).add(_Window(0, 1, max(0, took_ns)))
        if router in hop.routers or len(hop.routers) < _MAX_COUNTED_ROUTERS:
            hop.routers[router] += 1

    def note_received(self, now_ns: int) -> None:
        """Note a probe of the other end that arrived."""
        self._received.window(self._number(now_ns)).sent += 1

    def note_mtu(self, router: str, mtu_bytes: int) -> None:
        """Note a router's report of the link behind it. ICMPv6 has 32 bits for it, and anybody can send them."""
        if 0 < mtu_bytes <= MAX_MTU_BYTES and (router in self._mtus or len(self._mtus) < MAX_MTUS):
            self._mtus[router] = mtu_bytes

    def trace(self, end: End, now_ns: int) -> PathTrace:
        """Return the trace so far, without the window that has not ended."""
        if self._loaded_ns is None:
            self.begin_load(now_ns)
        first = min((min(hop.windows, default=0) for hop in self._all), default=0)
        numbers = range(min(0, first), max(0, self._number(now_ns)))
        last = self.reached_ttl or max((ttl for ttl, hop in self._hops.items() if hop.routers), default=0)
        hops = [self._hop(ttl).trace(numbers) for ttl in range(1, min(last, MAX_HOPS) + 1)]
        received = self._received.trace(numbers).sent
        mtus = tuple(MtuReport(router, mtu) for router, mtu in self._mtus.items())
        return PathTrace(
            end, -numbers.start, self._window_ns, tuple(hops), self.reached_ttl is not None, received, mtus
        )

    def _hop(self, ttl: int) -> _Hop:
        """Return a hop. The other end has all probes with a TTL that is not used up on the way."""
        is_end = ttl == self.reached_ttl
        hops = [hop for each, hop in self._hops.items() if each == ttl or (is_end and each > ttl)]
        whole = _Hop()
        for hop in hops:
            whole.routers.update(hop.routers)
            for number, window in hop.windows.items():
                whole.window(number).add(window)
        return whole

    @property
    def _all(self) -> list[_Hop]:
        return [*self._hops.values(), self._received]

    def _number(self, at_ns: int) -> int:
        if self._loaded_ns is None or at_ns < self._loaded_ns:
            return self._idle_number(at_ns) - self._idle
        while (at_ns - self._loaded_ns) // self._window_ns >= _MAX_LOADED_WINDOWS:
            self._join_pairs()
        return (at_ns - self._loaded_ns) // self._window_ns

    def _idle_number(self, at_ns: int) -> int:
        return min(_MAX_IDLE_WINDOWS - 1, max(0, at_ns - self._began_ns) // WINDOW_NS)

    def _join_pairs(self) -> None:
        self._window_ns *= 2
        for hop in self._all:
            joined: dict[int, _Window] = {}
            for number, window in sorted(hop.windows.items()):
                place = number if number < 0 else number // 2
                if place in joined:
                    joined[place].add(window)
                else:
                    joined[place] = window
            hop.windows = joined
