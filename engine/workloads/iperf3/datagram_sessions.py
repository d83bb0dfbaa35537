"""The sessions of an iperf3 test's datagrams: linkgauge's own, with another header, and nothing comes back."""

import errno
import socket
from typing import Final

from ...iperf3.protocol.datagrams import header_of
from ...model.plan import SECOND_NS
from ...protocol.payload_datagrams import MAX_NUMBER
from ..session import SessionContext, WorkerResources
from ..udp.group import StampedGroup
from ..udp.receiver import DatagramReceiver
from ..udp.sender import DatagramSender
from ..udp.socket_options import header_bytes, read_path_mtu
from .datagram_group import Iperf3Group

_NEVER_NS: Final = 1 << 63
_DEFAULT_MTU_BYTES: Final = 1_500
_MICROSECOND_NS: Final = 1_000
_HALF: Final = 1 << 31
_MASK: Final = (1 << 32) - 1


class Iperf3Sender(DatagramSender):
    """Sends datagrams with iperf3's header at the rate of the settings; a port that is closed ends it (ICMP)."""

    _has_feedback = False

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        self._has_64bit_counters = context.has_64bit_counters
        super().__init__(sock, context, resources)
        self._feedback_ns = _NEVER_NS

    def _start_io(self) -> None:
        super()._start_io()
        self._feedback_ns = _NEVER_NS

    def _make_group(self, datagram_bytes: int, count: int) -> StampedGroup:
        return Iperf3Group(datagram_bytes, count, has_64bit_counters=self._has_64bit_counters)

    def _fits_group(self, datagram_bytes: int) -> bool:
        """Return whether such datagrams go whole: the kernel makes no fragments of a group's."""
        mtu_bytes = read_path_mtu(self._sock) or _DEFAULT_MTU_BYTES
        return datagram_bytes + header_bytes(self._sock) <= mtu_bytes

    def _survives(self, error: OSError, count: int) -> bool:
        is_too_large = error.errno in {errno.EINVAL, errno.EMSGSIZE}
        if is_too_large and self._is_grouped and not self._fits_group(self._group.datagram_bytes):
            self._adopt_in_thread()  # a router has reported a smaller MTU
            return True
        return super()._survives(error, count)

    def _take_datagram(self, data: bytes) -> None:
        """Ignore it: a receiver of iperf3 sends nothing."""


class Iperf3Receiver(DatagramReceiver):
    """Counts the datagrams of one sender, and sends nothing.

    Numbers begin at 1. Those of 32 bits begin again after four billion datagrams: they are read as the nearest to
    the highest one so far.
    """

    _is_own_sender = False

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
