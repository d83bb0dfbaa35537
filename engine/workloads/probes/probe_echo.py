"""The echo of the other end's probes: once each, never longer, at a bounded rate, with this end's own times.

The kernel's time of arrival counts, so that a busy process adds no latency.
"""

import contextlib
import socket
import time
from collections.abc import Iterable
from typing import Final

from ...model.limits import TokenBucket
from ...protocol.probe_datagrams import decode_probe
from ...protocol.tokens import SerialWindow
from ..udp.receive_stamps import ReceiveStamps

_MEASURE_DATAGRAMS: Final = 10


class ProbeEcho:
    """Echoes the probes that come to a connected socket.

    Attributes:
        received: The number of different probes so far.

    Args:
        sock: The socket, whose datagrams have time stamps.
        secret: The secret of the probes' codes.
        echoes_s: The maximum of echoes a second.
        stamps: Reads the times of arrival.
    """

    def __init__(self, sock: socket.socket, secret: bytes, echoes_s: int, stamps: ReceiveStamps) -> None:
        self.received = 0
        self._sock, self._secret, self._stamps = sock, secret, stamps
        self._bucket = TokenBucket(echoes_s, time.monotonic_ns())
        self._window = SerialWindow()

    def allows(self, now_ns: int) -> bool:
        """Take a datagram from the rate; return whether it may be read."""
        return self._bucket.take(now_ns)

    def answer(self, data: bytes, ancillary: Iterable[tuple[int, int, bytes]], now_ns: int) -> bool:
        """Echo a probe, unless it was echoed before; return whether the data are a probe."""
        probe = decode_probe(data, self._secret)
        if probe is None:
            return False
        if self._window.take(probe.serial):
            if self.received % _MEASURE_DATAGRAMS == 0:
                self._stamps.measure()
            self.received += 1
            arrived_ns = self._stamps.read(ancillary, 0, now_ns)
            with contextlib.suppress(OSError):
                self._sock.send(probe.echo(arrived_ns, time.monotonic_ns()).pack(self._secret))
        return True
