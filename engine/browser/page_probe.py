"""The latency probes of a page: a ping over its first WebSocket, and new connections, which its script answers.

The time includes that of the page's own event loop, as the user of the page feels it. One ping is on its way at a
time.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

from ..metering.shared_counters import (
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    probe_count_word,
    probe_histogram_offset,
)
from ..model.counters.latency_histogram import bucket_of
from ..near.foreign.hosted_probe import HostedProbe

_MOST_NEW: Final = 16
_ANSWER_S: Final = 3.0  # TCP repeats a lost packet after 1 s at the most, and once more after 3
_CONNECT_AT: Final = probe_histogram_offset(ProbeHistogram.CONNECT)
_ANSWER_AT: Final = probe_histogram_offset(ProbeHistogram.ANSWER)
_FAILED_AT: Final = probe_count_word(ProbeCount.HANDSHAKES_FAILED)


class PageProbe(HostedProbe):
    """Pings a page. Run `measure` in a task, and pass each answer to `answer`."""

    def __init__(self, counters: SharedCounters) -> None:
        super().__init__(counters)
        self._number = 0
        self._answered: asyncio.Future[int] | None = None  # with the time of the answer
        self._new = 0

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

    async def measure(self, ping: Callable[[int], Awaitable[None]], sock: socket.socket | None) -> None:
        """Ping until cancelled.

        Args:
            ping: Sends the ping of a number.
            sock: The socket of that WebSocket, which stays its owner's.
        """

        async def ask() -> int:
            self._number += 1
            answered = self._answered = asyncio.get_running_loop().create_future()
            sent_ns = time.monotonic_ns()
            await ping(self._number)
            return await answered - sent_ns

        await self.repeat(ask, lambda: sock)

    def answer(self, number: int) -> None:
        """Take the answer to a ping; one that was not asked for counts as none."""
        if number == self._number and self._answered is not None and not self._answered.done():
            self._answered.set_result(time.monotonic_ns())

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
