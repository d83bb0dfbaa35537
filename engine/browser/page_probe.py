"""The latency probe of a page: a ping over its first WebSocket, which its script answers.

The time includes that of the page's own event loop, as the user of the page feels it. One ping is on its way at a
time. It goes into the counters as the probe of every run does, so that sampling, grade and findings are the same.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ..host.tcp_info import read_tcp_info
from ..metering.shared_counters import (
    WORDS_PER_SLOT,
    SharedCounters,
    histogram_offset,
    slot_index,
    tcp_counter_word,
)
from ..model.counters.latency_histogram import bucket_of
from ..model.counters.session_counters import TCP_COUNTER_NAMES
from ..model.directions import Direction
from ..model.plan import PROBE_SESSION

_PACE_S: Final = 0.02
_SLOT: Final = slot_index(Direction.OUT, PROBE_SESSION)
_RTT_WORD: Final = _SLOT * WORDS_PER_SLOT + tcp_counter_word("rtt_us")
_RTT: Final = TCP_COUNTER_NAMES.index("rtt_us")


class PageProbe:
    """Pings a page. Run `measure` in a task, and pass each answer to `answer`.

    Args:
        counters: The counters of the run.
        ping: Sends the ping of a number.
        sock: The socket of that WebSocket, which stays its owner's.
    """

    def __init__(
        self, counters: SharedCounters, ping: Callable[[int], Awaitable[None]], sock: socket.socket | None
    ) -> None:
        self._words = counters.words
        self._ping, self._sock = ping, sock
        self._number = 0
        self._sent_ns = 0
        self._answered = asyncio.Event()

    async def measure(self) -> None:
        """Ping until cancelled, each time after the answer and a pause."""
        while True:
            self._number += 1
            self._answered.clear()
            self._sent_ns = time.monotonic_ns()
            await self._ping(self._number)
            await self._answered.wait()
            self._store_rtt()
            await asyncio.sleep(_PACE_S)

    def answer(self, number: int) -> None:
        """Count the answer to a ping; one that was not asked for counts as none."""
        if number == self._number and not self._answered.is_set():
            took_ns = time.monotonic_ns() - self._sent_ns
            self._words[histogram_offset(_SLOT) + bucket_of(took_ns)] += 1
            self._answered.set()

    def _store_rtt(self) -> None:
        info = None if self._sock is None else read_tcp_info(self._sock)
        rtt_us = None if info is None else info.counters[_RTT]
        if rtt_us is not None:
            self._words[_RTT_WORD] = rtt_us
