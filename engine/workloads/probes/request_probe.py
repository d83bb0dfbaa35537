"""The latency probe: one small request at a time during a stream, at a fixed pace.

It has a worker to itself and sends from a thread that blocks in recv(2), as a lone pair of `rr` does: no event loop
stands between a response and the clock. On loopback beside one stream, on two cores that were busy with more than
that, rounds in turn: its p50 was 0.08 to 0.12 ms. In the stream's own worker at each end it was 0.7 to 2.5 ms: that
would measure the tester.
"""

import time
from time import perf_counter_ns
from typing import Final

from ...host.tcp_info import read_tcp_info
from ...metering.shared_counters import tcp_counter_word
from ...model.counters.latency_histogram import bucket_of
from ...model.plan import PROBE_PACE_NS, SECOND_NS
from ..request_response import RrRequester
from ..socket_io import SocketThread

PROBE_BYTES: Final = 1
_RTT_WORD: Final = tcp_counter_word("rtt_us")


class ProbeRequester(RrRequester):
    """Counts the latency of responses, and no bytes: they are not payload."""

    def refresh(self) -> None:
        """Store TCP's own round-trip time, for comparison with the measured one."""
        info = read_tcp_info(self._sock)
        self._store(_RTT_WORD, None if info is None else info.rtt_us)

    def _start_io(self) -> None:
        self._socket_thread = SocketThread(self._sock, self._probe_in_thread, self._resume, self._lose)

    def _probe_in_thread(self) -> bool:
        words, latency_at, request, buffer = self._words, self._latency_at, self._requests, self._buffer
        while True:
            began_ns = perf_counter_ns()
            self._sock.sendall(request)
            if not self._sock.recv_into(buffer, PROBE_BYTES):
                return False
            took_ns = perf_counter_ns() - began_ns
            words[latency_at + bucket_of(took_ns)] += 1
            time.sleep(max(0, PROBE_PACE_NS - took_ns) / SECOND_NS)
