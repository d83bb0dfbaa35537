"""The latency probes of a page: a ping over its first WebSocket, and new connections, which its script answers.

The time includes that of the page's own event loop, as the user of the page feels it. One ping is on its way at a
time. It goes into the counters as the probe of every run does, so that sampling, grade and findings are the same.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

from ..host.tcp_info import read_tcp_info
from ..metering.shared_counters import (
    WORDS_PER_SLOT,
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    histogram_offset,
    probe_count_word,
    probe_histogram_offset,
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
_MOST_NEW: Final = 16
_ANSWER_S: Final = 3.0  # TCP repeats a lost packet after 1 s at the most, and once more after 3
_CONNECT_AT: Final = probe_histogram_offset(ProbeHistogram.CONNECT)
_ANSWER_AT: Final = probe_histogram_offset(ProbeHistogram.ANSWER)
_FAILED_AT: Final = probe_count_word(ProbeCount.HANDSHAKES_FAILED)


def read_rtt_us(sock: socket.socket | None) -> int | None:
    """Return the kernel's round trip of a connection; before this end has sent, that is of its handshake."""
    info = None if sock is None else read_tcp_info(sock)
    return None if info is None else info.counters[_RTT]


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
        self._new = 0
        self._is_closed = False

    def close(self) -> None:
        """Count nothing any more: the counters are about to be closed."""
        self._is_closed = True

    @property
    def admits_new(self) -> bool:
        """Whether another new connection of the page may be measured."""
        return self._new < _MOST_NEW and not self._is_closed

    @contextmanager
    def new_connection(self) -> Generator[None]:
        """Count a new connection while the block lasts."""
        self._new += 1
        try:
            yield
        finally:
            self._new -= 1

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

    async def measure_new(self, handshake_us: int | None, ask: Callable[[], Awaitable[None]]) -> None:
        """Count a new connection of the page: its handshake, and the answer to the first message on it.

        Args:
            handshake_us: The round trip of its handshake, if the kernel knows it.
            ask: Sends a message, and returns when the page has answered.
        """
        asked_ns = time.monotonic_ns()
        try:
            async with asyncio.timeout(_ANSWER_S):
                await ask()
        except (TimeoutError, ConnectionError):
            if not self._is_closed:
                self._words[_FAILED_AT] += 1
            return
        if handshake_us is not None and not self._is_closed:
            self._words[_CONNECT_AT + bucket_of(handshake_us * 1_000)] += 1
            self._words[_ANSWER_AT + bucket_of(time.monotonic_ns() - asked_ns)] += 1

    def _store_rtt(self) -> None:
        rtt_us = read_rtt_us(self._sock)
        if rtt_us is not None:
            self._words[_RTT_WORD] = rtt_us
