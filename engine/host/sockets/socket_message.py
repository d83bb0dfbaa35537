"""A socket as the kernel reports it: struct inet_diag_msg (linux/inet_diag.h) and attributes.

Pure. Thousands of messages come each second, so a message stays bytes, and its fields are read if they are needed.
"""

import socket
import struct
from typing import Final, NamedTuple

from ..nics.netlink import ATTRIBUTE, parse_attributes, text_of
from ..tcp_info import BYTES_MOVED, TcpInfo, parse_socket_memory, parse_tcp_info

MESSAGE_BYTES: Final = 72
"""The size of struct inet_diag_msg: family, state, timer, retransmits, id, expiry, queues, user, inode."""
ID_BYTES: Final = 48
INFO, VEGAS, CONGESTION, MEMORY = 2, 3, 4, 7
"""Attributes: struct tcp_info, the congestion control's own state, its name, and SO_MEMINFO."""
_BBR: Final = 16  # comes if VEGAS is asked for
_PORTS: Final = struct.Struct("!HH")
_COOKIE: Final = struct.Struct("=Q")
_PAIR: Final = struct.Struct("=II")
_COOKIE_AT, _QUEUES_AT, _OWNER_AT = 44, 56, 64
_BBR_INFO: Final = struct.Struct("=QI")  # the first fields of struct tcp_bbr_info
_BUFFER, _DROPS = 1, 8  # words of SO_MEMINFO (linux/sock_diag.h)
_MAPPED: Final = bytes(10) + b"\xff\xff"  # RFC 4291, 2.5.5.2
_STATES: Final = (
    "unknown",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "close",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
)  # by the kernel's number (net/tcp_states.h)


class SocketAddress(NamedTuple):
    """An address and a port. An IPv4 address in an IPv6 socket is an IPv4 address."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class BbrState(NamedTuple):
    """The model of a BBR congestion control: the path's rate and shortest round trip that it found."""

    bit_s: int
    min_rtt_us: int


class SocketMessage(NamedTuple):
    """One socket in `body`, a message without its header; `info_at` is the offset of its TCP_INFO, 0 without."""

    body: bytes
    info_at: int = 0

    @property
    def id(self) -> bytes:
        """Ports, addresses, bound interface and cookie, as a request names the socket.

        The kernel gives no cookie twice: the next connection with the same ports, or a socket that has the inode of
        an earlier one, has another id.
        """
        return self.body[4 : 4 + ID_BYTES]

    @property
    def cookie(self) -> int:
        """The kernel's own number of the socket, unique until the next boot."""
        cookie: int = _COOKIE.unpack_from(self.body, _COOKIE_AT)[0]
        return cookie

    @property
    def moved(self) -> bytes:
        """The words of TCP_INFO for the bytes acknowledged and received: they differ if any payload moved."""
        at = self.info_at
        return self.body[at + BYTES_MOVED.start : at + BYTES_MOVED.stop] if at else b""

    @property
    def family(self) -> int:
        """AF_INET or AF_INET6."""
        return self.body[0]

    @property
    def state(self) -> str:
        """The name of its state in TCP."""
        number = self.body[1]
        return _STATES[number] if number < len(_STATES) else _STATES[0]

    @property
    def queues(self) -> tuple[int, int]:
        """The bytes that its program has not read, and those that are not acknowledged (for UDP: not sent)."""
        received, sent = _PAIR.unpack_from(self.body, _QUEUES_AT)
        return received, sent

    @property
    def user_and_inode(self) -> tuple[int, int]:
        """The number of its user, and its inode in /proc/PID/fd. Inode 0 belongs to no process any more."""
        user, inode = _PAIR.unpack_from(self.body, _OWNER_AT)
        return user, inode

    @property
    def local(self) -> SocketAddress:
        """Its own address."""
        return SocketAddress(_address(self.body[0], self.body[8:24]), _PORTS.unpack_from(self.body, 4)[0])

    @property
    def remote(self) -> SocketAddress:
        """The address that it is connected to."""
        return SocketAddress(_address(self.body[0], self.body[24:40]), _PORTS.unpack_from(self.body, 4)[1])

    def attributes(self) -> dict[int, bytes]:
        """Return its attributes by kind."""
        return parse_attributes(self.body[MESSAGE_BYTES:])


class ConnectionReading(NamedTuple):
    """A TCP connection with all that the kernel reports of it."""

    message: SocketMessage
    info: TcpInfo
    congestion: str | None
    bbr: BbrState | None


def decode_connection(message: SocketMessage) -> ConnectionReading | None:
    """Return a decoded connection; None for a socket without TCP_INFO."""
    attributes = message.attributes()
    info = parse_tcp_info(attributes.get(INFO, b""), parse_socket_memory(attributes.get(MEMORY, b"")))
    if info is None:
        return None
    bbr, state = attributes.get(_BBR, b""), None
    if len(bbr) >= _BBR_INFO.size:
        byte_s, min_rtt_us = _BBR_INFO.unpack_from(bbr)
        state = BbrState(byte_s * 8, min_rtt_us)
    return ConnectionReading(message, info, text_of(attributes.get(CONGESTION)), state)


def read_drops(message: SocketMessage) -> tuple[int, int] | None:
    """Return how many packets a socket has dropped, and its receive buffer in bytes; None if unknown."""
    words = parse_socket_memory(message.attributes().get(MEMORY, b""))
    return None if words is None else (words[_DROPS], words[_BUFFER])


def find_info(body: bytes) -> int:
    """Return the offset of TCP_INFO in a message; 0 without."""
    offset = MESSAGE_BYTES
    while offset + ATTRIBUTE.size <= len(body):
        size, kind = ATTRIBUTE.unpack_from(body, offset)
        if kind == INFO:
            return offset + ATTRIBUTE.size
        offset += max((size + 3) & ~3, ATTRIBUTE.size)
    return 0


def _address(family: int, packed: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, packed[:4])
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)
