"""The latency probe of a run whose own process asks the far end, because no worker could.

It goes into the counters as the probe of every run does, so that sampling, grade and findings are the same.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from ...host.tcp_info import TcpInfo, read_tcp_info
from ...metering.shared_counters import (
    WORDS_PER_SLOT,
    SharedCounters,
    histogram_offset,
    slot_index,
    tcp_counter_word,
)
from ...model.counters.latency_histogram import bucket_of
from ...model.directions import Direction
from ...model.plan import PROBE_SESSION

_PACE_S: Final = 0.02
_SLOT: Final = slot_index(Direction.OUT, PROBE_SESSION)
_RTT_WORD: Final = _SLOT * WORDS_PER_SLOT + tcp_counter_word("rtt_us")


def read_handshake_us(sock: socket.socket | None) -> int | None:
    """Return the shortest round trip of a new connection, that of its handshake: with TLS more have followed."""
    info = _read_info(sock)
    return None if info is None else info.min_rtt_us or info.rtt_us


def _read_info(sock: socket.socket | None) -> TcpInfo | None:
    return None if sock is None else read_tcp_info(sock)


class HostedProbe:
    """Counts round trips, one at a time."""

    def __init__(self, counters: SharedCounters) -> None:
        self._words = counters.words
        self._is_closed = False

    def close(self) -> None:
        """Count nothing any more: the counters are about to be closed."""
        self._is_closed = True

    async def repeat(
        self, ask: Callable[[], Awaitable[int]], find_socket: Callable[[], socket.socket | None]
    ) -> None:
        """Ask until cancelled, each time after the answer and a pause.

        Args:
            ask: Returns after the answer, with the nanoseconds that it took.
            find_socket: Returns the socket of the last question, whose kernel has a round trip as well.
        """
        while True:
            took_ns = await ask()
            if self._is_closed:
                return
            self._words[histogram_offset(_SLOT) + bucket_of(took_ns)] += 1
            info = _read_info(find_socket())
            if info is not None and info.rtt_us is not None:
                self._words[_RTT_WORD] = info.rtt_us
            await asyncio.sleep(_PACE_S)
