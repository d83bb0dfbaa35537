"""Notes when the datagrams of a burst arrive, by the kernel's own times of their arrival.

Both ends have one, on the socket of a session. It keeps the newest burst only, and in it no more than a burst may
have.
"""

import socket
import time
from array import array
from typing import Final

from ..protocol.burst_datagrams import MAX_ARRIVAL_NS, MAX_BURST_DATAGRAMS, read_burst_header
from ..workloads.udp.receive_stamps import ReceiveStamps
from ..workloads.udp.socket_options import read_socket_drops

RECEIVE_BYTES: Final = 9_216
ANCILLARY_BYTES: Final = 128
TURN_DATAGRAMS: Final = 256
"""Datagrams that one call of a reader takes, so that others have their turn."""


class BurstReceiver:
    """The arrivals of the newest burst on a socket, whose kernel stamps what it receives.

    Attributes:
        burst: The number of the newest burst; 0 before the first one.
        places: The place of each arrival in the burst, in the order of arrival.
        arrived_ns: When each came, after the first one.
        stamps_ns: When each was sent, by its sender's clock.
        payload_bytes: The payload of all bursts so far.
        payload_datagrams: The datagrams of all bursts so far.
    """

    def __init__(self, sock: socket.socket, cookie: int) -> None:
        """Note arrivals on a socket, with the cookie of its payload."""
        self._sock = sock
        self._cookie = cookie
        self._stamps = ReceiveStamps()
        self._drops_before = self._drops_seen = read_socket_drops(sock) or 0
        self._first_ns = 0
        self.burst = 0
        self.places, self.arrived_ns, self.stamps_ns = array("I"), array("I"), array("Q")
        self.payload_bytes = self.payload_datagrams = 0

    def begin(self, burst: int) -> None:
        """Forget the last burst, and wait for another one."""
        self.burst = burst
        self.places, self.arrived_ns, self.stamps_ns = array("I"), array("I"), array("Q")
        self._drops_before = self._drops_seen
        self._stamps.measure()

    def take(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> bool:
        """Note a datagram if it belongs to a burst of the session; return whether it does."""
        header = read_burst_header(data, self._cookie)
        if header is None:
            return False
        burst, place, stamp_ns = header
        self.payload_bytes += len(data)
        self.payload_datagrams += 1
        if burst > self.burst:
            self.begin(burst)
        if burst < self.burst or len(self.places) >= MAX_BURST_DATAGRAMS:
            return True
        now_ns = time.monotonic_ns()
        at_ns = self._stamps.read(ancillary, 0, now_ns)
        if not self.places:
            self._first_ns = at_ns
        arrived_ns = max(0, at_ns - self._first_ns)
        if arrived_ns <= MAX_ARRIVAL_NS:
            self.places.append(place)
            self.arrived_ns.append(arrived_ns)
            self.stamps_ns.append(stamp_ns)
        return True

    @property
    def unread(self) -> int:
        """The datagrams that found no room in the socket since this was last asked before the burst."""
        self._drops_seen = max(self._drops_seen, read_socket_drops(self._sock) or 0)
        return self._drops_seen - self._drops_before
