"""The far end's part in measuring a policer or shaper: it notes arrivals, and sends bursts on request.

It serves the socket of a session without sessions of payload, in the endpoint's own process. It sends to the
address that has echoed its cookie alone: bursts of bounded length, one at a time and each once, at no more than the
endpoint's limits of UDP. What arrives counts against the same limits.
"""

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ...bursts.burst_sender import SentBurst
from ...bursts.burst_socket import BurstSocket
from ...model.errors import LimitReached
from ...model.limits import Limits, TokenBucket
from ...protocol.burst_datagrams import (
    ARRIVALS_IN_DATAGRAM,
    BurstArrivals,
    BurstQuery,
    BurstRequest,
    BurstSent,
    decode_burst_datagram,
)
from ...workloads.datagram_handshake import accept_datagrams, answer_control_datagram
from ...workloads.session_handshake import SessionSpec
from ..datagram_limits import DatagramTraffic

_ANSWERS_S: Final = 4_000  # a list of 65,536 arrivals takes 469
_FREE_BIT_S: Final = 100 * 10**9  # no thread sends as much, so that it needs no pace
_log = logging.getLogger(__name__)


class BurstResponder:
    """Sends bursts and reports arrivals on a session's socket until `close`.

    Args:
        sock: The session's connected socket, which the responder closes.
        spec: The session.
        limits: The endpoint's limits.
        on_excess: Called once more arrives than the limits allow.
    """

    def __init__(
        self, sock: socket.socket, spec: SessionSpec, limits: Limits, on_excess: Callable[[LimitReached], None]
    ) -> None:
        self._spec = spec
        self._secret = bytes.fromhex(spec.secret_hex)
        self._limits = limits
        self._on_excess = on_excess
        now_ns = time.monotonic_ns()
        self._bucket = TokenBucket(_ANSWERS_S, now_ns)
        self._traffic = DatagramTraffic(limits, now_ns)
        self._sent = BurstSent(0, 0, 0, is_over=True)
        self._datagram_bytes = self._sent_bytes = 0
        self._socket = BurstSocket(sock, self._secret, self._handle)
        accept_datagrams(sock, spec)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def carried_bytes(self) -> tuple[int, int]:
        """The payload of all bursts so far: what has arrived, and what was sent."""
        return self._socket.receiver.payload_bytes, self._sent_bytes

    def _handle(self, data: bytes) -> None:
        if answer_control_datagram(self._socket.raw, data, self._spec):
            return
        datagram = decode_burst_datagram(data, self._secret)
        if datagram is None or not self._bucket.take(time.monotonic_ns()):
            return
        if isinstance(datagram, BurstRequest):
            self._begin(datagram)
        elif isinstance(datagram, BurstQuery):
            self._report(datagram)

    def _begin(self, request: BurstRequest) -> None:
        """Send a burst unless it was sent before, and tell what was sent of it."""
        if not request.is_allowed:
            return
        if request.burst > self._sent.burst and not self._socket.is_sending:
            self._sent = BurstSent(request.burst, 0, 0, is_over=False)
            self._datagram_bytes = request.datagram_bytes
            try:
                self._socket.send(request, self._note_sent, self._most_bit_s(request.datagram_bytes))
            except OSError as error:
                self._note_sent(None, error)
        if request.burst == self._sent.burst:
            self._socket.answer(self._sent.pack(self._secret))

    def _most_bit_s(self, datagram_bytes: int) -> int | None:
        limits = self._limits
        most_bit_s = min(limits.udp_rate_bit_s, limits.udp_packets_s * datagram_bytes * 8)
        return most_bit_s if most_bit_s < _FREE_BIT_S else None

    def _note_sent(self, burst: SentBurst | None, error: OSError | None) -> None:
        if error is not None:
            _log.debug("burst %s: %r", self._sent.burst, error)
        sent, dropped = (0, 0) if burst is None else (burst.sent, burst.dropped)
        self._sent = replace(self._sent, sent=sent, dropped=dropped, is_over=True)
        self._sent_bytes += (sent - dropped) * self._datagram_bytes

    def _report(self, query: BurstQuery) -> None:
        """Report a part of the arrivals; a burst of which nothing has come has none."""
        receiver = self._socket.receiver
        try:
            self._traffic.check(time.monotonic_ns(), receiver.payload_bytes, receiver.payload_datagrams)
        except LimitReached as error:
            self._on_excess(error)
            return
        if query.burst != receiver.burst:
            self._socket.answer(BurstArrivals(query.burst, 0, 0, 0).pack(self._secret))
            return
        total, start = len(receiver.places), query.offset
        if start > total:
            return
        end = start + ARRIVALS_IN_DATAGRAM
        part = tuple(zip(receiver.places[start:end], receiver.arrived_ns[start:end], strict=True))
        self._socket.answer(BurstArrivals(query.burst, total, receiver.unread, start, part).pack(self._secret))
