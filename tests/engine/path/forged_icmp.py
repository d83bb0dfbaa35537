"""Messages of ICMP about a datagram that a connected UDP socket has sent, as anybody who sees it can forge them."""

import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from linkgauge.engine.lab.namespaces import set_namespace, unshare

_ICMP: Final = {4: (socket.IPPROTO_ICMP, 1), 6: (socket.IPPROTO_ICMPV6, 58)}
_TOO_LONG: Final = {4: (3, 4), 6: (2, 0)}  # type and code: RFC 1191, RFC 8201
_TIME_EXCEEDED: Final = {4: (11, 0), 6: (3, 0)}


_CLONE_NEWNET: Final = 0x4000_0000  # linux/sched.h


@contextmanager
def own_loopback() -> Iterator[None]:
    """Have the sockets that are made in a block use a loopback of their own; needs root and iproute2.

    The kernel keeps a forged MTU for ten minutes: on the machine's loopback it would be that of every other test.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(_CLONE_NEWNET)
        try:
            subprocess.run([shutil.which("ip") or "", "link", "set", "lo", "up"], check=True, timeout=20)
            yield
        finally:
            set_namespace(home)
    finally:
        os.close(home)


class ForgedIcmp:
    """Sends messages about the datagrams from `source` to `target`, both as getsockname has them. Needs root."""

    def __init__(self, source: tuple[str, int], target: tuple[str, int]) -> None:
        self._version = 6 if ":" in source[0] else 4
        self._ends = source[:2], target[:2]
        family, protocol = (socket.AF_INET6 if self._version == 6 else socket.AF_INET), _ICMP[self._version][0]
        self._sock = socket.socket(family, socket.SOCK_RAW, protocol)

    def too_long(self, mtu_bytes: int) -> None:
        """Say that a datagram was too long for a link with this MTU."""
        self._send(*_TOO_LONG[self._version], mtu_bytes, b"")

    def time_exceeded(self, payload: bytes) -> None:
        """Say that the TTL of the datagram with this payload was used up."""
        self._send(*_TIME_EXCEEDED[self._version], 0, payload)

    def close(self) -> None:
        """Close the socket."""
        self._sock.close()

    def _send(self, kind: int, code: int, info: int, payload: bytes) -> None:
        (source, port), (target, other_port) = self._ends
        udp = struct.pack(">HHHH", port, other_port, 8 + len(payload), 0) + payload
        if self._version == 6:
            addresses = (socket.inet_pton(socket.AF_INET6, each) for each in (source, target))
            quoted = struct.pack(">IHBB", 6 << 28, len(udp), socket.IPPROTO_UDP, 1) + b"".join(addresses)
            message = struct.pack(">BBHI", kind, code, 0, info) + quoted + udp
        else:
            head = (0x45, 0, 20 + len(udp), 0, 0x4000, 1, socket.IPPROTO_UDP, 0)
            quoted = struct.pack(">BBHHHBBH", *head) + b"".join(map(socket.inet_aton, (source, target)))
            message = struct.pack(">BBHI", kind, code, 0, info & 0xFFFF) + quoted + udp
            message = message[:2] + struct.pack(">H", _checksum(message)) + message[4:]
        self._sock.sendto(message, (source, 0))


def _checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071; the kernel computes that of ICMPv6 itself."""
    total = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    total += data[-1] << 8 if len(data) % 2 else 0
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
