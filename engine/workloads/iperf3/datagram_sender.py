"""The sender of an iperf3 test's datagrams: nothing comes back, and the test's end or a closed port stops it."""

import errno
import socket
from typing import Final

from ..session import SessionContext, WorkerResources
from ..udp.group import StampedGroup
from ..udp.sender import DatagramSender
from ..udp.socket_options import header_bytes, read_path_mtu
from .datagram_group import Iperf3Group

_NEVER_NS: Final = 1 << 63
_DEFAULT_MTU_BYTES: Final = 1_500


class Iperf3Sender(DatagramSender):
    """Sends datagrams with iperf3's header at the rate of the settings; a port that is closed ends it (ICMP)."""

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
            self._adopt_settings()  # a router has told of a smaller MTU
            return True
        return super()._survives(error, count)

    def _take_datagram(self, data: bytes) -> None:
        """Ignore it: a receiver of iperf3 sends nothing."""
