"""The probe's own end of its connection: asks for little, one thing at a time, and not more often than its pace.

It has a worker to itself, and asks from a thread that blocks in recv(2), as a lone pair of `rr` does: neither the
streams' event loops nor its own stand between an answer and the clock. On loopback beside one stream, on two cores
that were busy with more than that, rounds in turn: its p50 was 0.08 to 0.12 ms so, and 0.7 to 2.5 ms in the
stream's own worker at each end, where it would measure the tester.
"""

import time
from time import perf_counter_ns
from typing import Final

from ..host.tcp_info import read_tcp_info
from ..metering.shared_counters import tcp_counter_word
from ..model.latency_histogram import bucket_of
from ..model.plan import SECOND_NS
from .request_response import RrRequester
from .thread_io import SocketThread

PROBE_BYTES: Final = 1
PROBE_PACE_NS: Final = SECOND_NS // 100
_RTT_WORD: Final = tcp_counter_word("rtt_us")


class ProbeRequester(RrRequester):
    """Counts how long answers take, and no bytes: nothing of it is payload."""

    def refresh(self) -> None:
        """Store the round trip as this end's TCP has it, to stand beside what was measured."""
        info = read_tcp_info(self._sock)
        self._store(_RTT_WORD, None if info is None else info.rtt_us)

    def _watch(self) -> None:
        self._blocking = SocketThread(self._sock, self._ask_paced, self._resume, self._lose)

    def _ask_paced(self) -> bool:
        words, latency_at, request, buffer = self._words, self._latency_at, self._requests, self._buffer
        while True:
            began_ns = perf_counter_ns()
            self._sock.sendall(request)
            if not self._sock.recv_into(buffer, PROBE_BYTES):
                return False
            took_ns = perf_counter_ns() - began_ns
            words[latency_at + bucket_of(took_ns)] += 1
            time.sleep(max(0, PROBE_PACE_NS - took_ns) / SECOND_NS)
