"""The receiver of an iperf3 test's datagrams: the counts of linkgauge's own, from another header."""

import socket
from typing import Final

from ...iperf3.protocol.datagrams import header_of
from ...model.plan import SECOND_NS
from ...protocol.payload_datagrams import MAX_NUMBER
from ..session import SessionContext, WorkerResources
from ..udp.receiver import DatagramReceiver

_MICROSECOND_NS: Final = 1_000
_HALF: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


class Iperf3Receiver(DatagramReceiver):
    """Counts the datagrams of one sender, and sends nothing.

    Numbers begin at 1. Those of 32 bits begin again after four billion datagrams: they are taken for the nearest to
    the highest one so far.
    """

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._header = header_of(has_64bit_counters=context.has_64bit_counters)
        self._header_bytes = self._header.size
        self._is_wide = context.has_64bit_counters

    def _send_feedback(self) -> None:
        """Send nothing: iperf3 has no feedback."""

    def _count_group(self, size: int, segment: int, received_ns: int) -> None:
        seconds, microseconds, _counter = self._header.unpack_from(self._buffer)
        number = self._read_number(0)
        if number is None:
            self._invalid += -(-size // segment)
        else:
            stamp_ns = seconds * SECOND_NS + microseconds * _MICROSECOND_NS
            self._count_payload(number, stamp_ns, received_ns, size, segment)

    def _read_number(self, start: int) -> int | None:
        counter: int = self._header.unpack_from(self._buffer, start)[2]
        if self._is_wide:
            return counter - 1 if 0 < counter <= MAX_NUMBER else None
        highest = self._tracker.advanced
        number = highest + ((counter - 1 - highest + _HALF) & _MASK) - _HALF
        return number if number >= 0 else None
