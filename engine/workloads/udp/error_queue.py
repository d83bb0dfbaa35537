"""The error queue of a UDP socket (IP_RECVERR, ip(7)): what the kernel and routers report about its packets.

A report has the number of an error, the message of ICMP behind it, the address of its sender, and what that message
quotes of the packet's payload. If the socket has time stamps, so have its reports.
"""

import errno
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final

from ..socket_io import NO_WAIT
from .receive_stamps import ReceiveStamps

_ERROR_QUEUE: Final = getattr(socket, "MSG_ERRQUEUE", 0)
_IP_RECVERR: Final = 11  # linux/in.h
_IPV6_RECVERR: Final = 25  # linux/in6.h
_REPORT_TYPES: Final = {(socket.IPPROTO_IP, _IP_RECVERR), (socket.IPPROTO_IPV6, _IPV6_RECVERR)}
_REPORT: Final = struct.Struct("@IBBBBII")  # sock_extended_err, linux/errqueue.h; the sender's address follows
_ORIGIN_LOCAL: Final = 1
_TIME_EXCEEDED: Final = {(2, 11), (3, 3)}  # by origin: type 11 of ICMP (RFC 792), type 3 of ICMPv6 (RFC 4443)
_ADDRESSES: Final = {int(socket.AF_INET): slice(4, 8), int(socket.AF_INET6): slice(8, 24)}  # within a sockaddr
_MAX_REPORTS: Final = 64  # read at once
_ANCILLARY_BYTES: Final = 512
_QUOTED_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """A report about a packet that this host sent.

    `sender` is the address of the router or host that reports it; None is this host's own kernel. `info` is the MTU
    if the packet was too long. `quoted` is the beginning of its payload, which may be empty.
    """

    number: int
    is_time_exceeded: bool
    info: int
    sender: str | None
    quoted: bytes
    arrived_ns: int

    @property
    def is_too_long(self) -> bool:
        """Whether the packet was longer than an interface or a link allows."""
        return self.number == errno.EMSGSIZE


def read_error_queue(
    sock: socket.socket, stamps: ReceiveStamps | None = None, now_ns: int = 0
) -> tuple[list[ErrorReport], OSError | None]:
    """Return the reports in a socket's error queue, and the error that ended the reading.

    Args:
        sock: The socket, which does not block.
        stamps: Reads the time of a report's arrival; None leaves it at `now_ns`.
        now_ns: The time now, by the monotonic clock.
    """
    reports: list[ErrorReport] = []
    for _ in range(_MAX_REPORTS):
        try:
            quoted, ancillary, _flags, _address = sock.recvmsg(
                _QUOTED_BYTES, _ANCILLARY_BYTES, _ERROR_QUEUE | NO_WAIT
            )
        except BlockingIOError:
            break
        except OSError as error:
            return reports, error
        arrived_ns = now_ns if stamps is None else stamps.read(ancillary, 0, now_ns)
        reports += [
            _decode(data, quoted, arrived_ns)
            for level, kind, data in ancillary
            if (level, kind) in _REPORT_TYPES and len(data) >= _REPORT.size
        ]
    return reports, None


def _decode(data: bytes, quoted: bytes, arrived_ns: int) -> ErrorReport:
    number, origin, kind, _code, _pad, info, _more = _REPORT.unpack_from(data)
    is_time_exceeded = (origin, kind) in _TIME_EXCEEDED
    sender = None if origin == _ORIGIN_LOCAL else _read_address(data[_REPORT.size :])
    return ErrorReport(number, is_time_exceeded, info, sender, quoted, arrived_ns)


def _read_address(data: bytes) -> str | None:
    """Return the address of a sockaddr; None if it has none."""
    family = int.from_bytes(data[:2], sys.byteorder)
    place = _ADDRESSES.get(family)
    return None if place is None or len(data) < place.stop else socket.inet_ntop(family, data[place])
