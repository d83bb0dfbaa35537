"""When the kernel received a datagram (SO_TIMESTAMPNS, socket(7)), on this host's monotonic clock.

The kernel's stamps are of the wall clock, which can be set. So the difference of both clocks is measured again and
again.
"""

import socket
import struct
import time
from collections.abc import Iterable
from typing import Final

from ...model.plan import SECOND_NS
from .socket_options import IS_LINUX, SO_TIMESTAMPNS

_CLOCK_SPAN_NS: Final = 20_000  # for three readings of clocks
_MOST_READINGS: Final = 8  # on a machine too busy for that span; the first comparison then takes the shortest
_TIMESPEC: Final = struct.Struct("@qq")


class ReceiveStamps:
    """Turns the kernel's stamps into times of the monotonic clock. Call `measure` several times a second.

    Attributes:
        offset_ns: How far the clock of the stamps is ahead of the monotonic one.
    """

    __slots__ = ("offset_ns",)

    def __init__(self) -> None:
        self.offset_ns = 0
        self.measure()

    def measure(self) -> None:
        """Note how far the clock of the kernel's stamps is from the monotonic one, which no adjustment steps."""
        readings: list[tuple[int, int]] = []
        for _ in range(_MOST_READINGS):
            before_ns = time.monotonic_ns()
            wall_ns = time.time_ns()
            span_ns = time.monotonic_ns() - before_ns
            readings.append((span_ns, wall_ns - before_ns - span_ns // 2))
            if span_ns < _CLOCK_SPAN_NS:  # otherwise this thread was held up in between
                self.offset_ns = readings[-1][1]
                return
        self.offset_ns = self.offset_ns or min(readings)[1]

    def read(self, ancillary: Iterable[tuple[int, int, bytes]], earliest_ns: int, now_ns: int) -> int:
        """Return when a datagram came, by its ancillary data; `now_ns` if these have no plausible time.

        A stamp before `earliest_ns` or after `now_ns` is from another setting of the wall clock.
        """
        for level, kind, data in ancillary:
            if kind == SO_TIMESTAMPNS and level == socket.SOL_SOCKET and len(data) >= _TIMESPEC.size:
                seconds, nanoseconds = _TIMESPEC.unpack_from(data)
                stamp_ns = seconds * SECOND_NS + nanoseconds
                if earliest_ns <= stamp_ns - self.offset_ns <= now_ns:
                    return stamp_ns - self.offset_ns
                self.measure()
        return now_ns


def request_stamps(sock: socket.socket) -> None:
    """Have the kernel stamp received datagrams, if the system can."""
    if IS_LINUX:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
