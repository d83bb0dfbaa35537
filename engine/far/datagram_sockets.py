"""UDP sockets at the port of an endpoint: the one that takes hellos, and a connected one for each session."""

import contextlib
import socket
import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from ..model.peer import unmap_ip_address

SocketAddress = tuple[Any, ...]

ANCILLARY_BYTES: Final = 128
_BUFFER_BYTES: Final = 1 << 20
_MAX_STRAYS: Final = 256
_STRAY_BYTES: Final = 2_048
_IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)  # ip(7)
_IPV4_INFO: Final = struct.Struct("@I4s4s")
_IPV6_INFO: Final = struct.Struct("@16sI")


def open_beside(listener: socket.socket) -> socket.socket:
    """Return a UDP socket at a listening TCP socket's address, port and families; raise OSError where taken."""
    sock = socket.socket(listener.family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        share_port(sock)
        if listener.family == socket.AF_INET6:
            only = listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        sock.bind(listener.getsockname())
    except BaseException:
        sock.close()
        raise
    return sock


def open_connected(
    source: SocketAddress, local_host: str | None, port: int
) -> tuple[socket.socket, list[tuple[bytes, SocketAddress]]]:
    """Return a socket that is connected to a client, and what others sent to it before it was.

    Args:
        source: The client's address, as the listening socket reports it.
        local_host: The address of this host that the client sent to; None where the kernel does not tell.
        port: The port that the client sent to.

    Raises:
        OSError: The kernel has no such socket.
    """
    host = unmap_ip_address(str(source[0]))
    is_ipv4 = ":" not in host
    family = socket.AF_INET if is_ipv4 else socket.AF_INET6
    address: SocketAddress = (host, source[1]) if is_ipv4 else source
    sock = socket.socket(family, socket.SOCK_DGRAM)
    strays: list[tuple[bytes, SocketAddress]] = []
    try:
        sock.setblocking(False)
        share_port(sock)
        local = unmap_ip_address(local_host) if local_host is not None else ("" if is_ipv4 else "::")
        sock.bind((local, port) if is_ipv4 else (local, port, 0, *source[3:]))
        sock.connect(address)
        # Bound and not connected yet, it took the datagrams of all clients of this address.
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while len(strays) < _MAX_STRAYS:
                data, stray = sock.recvfrom(_STRAY_BYTES)
                if stray != address:
                    strays.append((data, stray))
    except BaseException:
        sock.close()
        raise
    return sock, strays


def share_port(sock: socket.socket) -> None:
    """Let the sockets of one user, and of nobody else, have the same port (socket(7), SO_REUSEPORT)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def local_host_of(ancillary: list[tuple[int, int, bytes]]) -> str | None:
    """Return the address of this host that a datagram was sent to; None where the kernel does not tell."""
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO and len(data) == _IPV4_INFO.size:
            return str(IPv4Address(_IPV4_INFO.unpack(data)[1]))
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO and len(data) == _IPV6_INFO.size:
            return str(IPv6Address(_IPV6_INFO.unpack(data)[0]))
    return None


def source_control(local_host: str | None) -> list[tuple[int, int, bytes]]:
    """Return the control message that sends from this address; the route chooses the interface."""
    if local_host is None:
        return []
    if ":" in local_host:
        info = _IPV6_INFO.pack(IPv6Address(local_host).packed, 0)
        return [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, info)]
    return [(socket.IPPROTO_IP, _IP_PKTINFO, _IPV4_INFO.pack(0, IPv4Address(local_host).packed, bytes(4)))]
