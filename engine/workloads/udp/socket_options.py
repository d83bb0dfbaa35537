"""The options of a UDP session's socket: groups, time stamps, drops, marks and the path's MTU (udp(7), ip(7)).

Every option that a system lacks is left out: datagrams then go one by one, or their counts are unknown.
"""

import contextlib
import socket
import struct
import sys
from typing import Final

from ...host.nics.nic import read_nic
from ...host.nics.rtnetlink import is_path_mtu_cached
from ...host.tcp_info import read_socket_memory
from ...model.plan import MIB, Mode, Settings, SocketOptions
from ..sockets import set_dscp

IS_LINUX: Final = sys.platform == "linux"
SOL_UDP: Final = 17
UDP_SEGMENT: Final = 103
UDP_GRO: Final = 104
SO_TIMESTAMPNS: Final = 35
_SO_RCVBUFFORCE: Final = 33
_SO_SNDBUFFORCE: Final = 32
_MEMORY_UNREAD: Final = 0  # SK_MEMINFO_RMEM_ALLOC
_MEMORY_DROPS: Final = 8  # SK_MEMINFO_DROPS, linux/sock_diag.h
_TIMEVAL: Final = struct.Struct("@ll")
IP_TOS: Final = 1
IPV6_TCLASS: Final = 67
TELL_WHOLE_SIZE: Final = getattr(socket, "MSG_TRUNC", 0)  # recv(2): also of what a small buffer cuts off
# linux/in.h and linux/in6.h; the socket module has no names for most of them.
_IP_MTU_DISCOVER: Final = 10
_IP_MTU: Final = 14
_IP_RECVERR: Final = 11
_IP_RECVTOS: Final = 13
_IPV6_MTU_DISCOVER: Final = 23
_IPV6_MTU: Final = 24
_IPV6_RECVERR: Final = 25
_IPV6_DONTFRAG: Final = 62
_IPV6_HOPLIMIT: Final = 52  # linux/in6.h
_TTL: Final = struct.Struct("@i")
_IPV6_RECVTCLASS: Final = 66
_PMTUDISC_DO: Final = 2
_PMTUDISC_PROBE: Final = 3
_HEADER_BYTES: Final = {socket.AF_INET: 20 + 8, socket.AF_INET6: 40 + 8}
_MIN_BUFFER_BYTES: Final = 4 * MIB
_MIN_SESSION_BUFFER_BYTES: Final = MIB // 4
_MAX_BUFFER_BYTES: Final = 256 * MIB
_FAST_BIT_S: Final = 5_000_000_000
_BUFFER_DIVISOR: Final = 8 * 20  # 50 ms of a rate in bit/s, in bytes
_LARGEST_PACKET_BYTES: Final = 9_000  # of datagrams whose size is chosen here; a loopback would hold 65,536
ANCILLARY_BYTES: Final = 256
QUALITY_DATAGRAMS_S: Final = 50_000  # in each direction


def set_up(sock: socket.socket, options: SocketOptions, *, allows_fragments: bool = False) -> None:
    """Set a session's socket up before its handshake; raise OSError if the kernel declines.

    Its packets are never fragmented unless `allows_fragments`, and the kernel reports the drops of its own queues
    (ENOBUFS).
    """
    sock.setblocking(False)
    if IS_LINUX:
        if not allows_fragments:
            forbid_fragments(sock)
        report_errors(sock)
    if options.dscp is not None:
        set_dscp(sock, options.dscp)


def forbid_fragments(sock: socket.socket, *, ignores_path: bool = False) -> None:
    """Set the bit that forbids fragments of a socket's packets.

    The kernel refuses packets beyond the path's MTU; with `ignores_path` only those beyond the interface's
    (IP_PMTUDISC_PROBE). Raises OSError if the kernel declines.
    """
    discovery = _PMTUDISC_PROBE if ignores_path else _PMTUDISC_DO
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, discovery)
        if ignores_path:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_DONTFRAG, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, discovery)


def report_errors(sock: socket.socket) -> None:
    """Have errors of a socket's packets wait in its error queue (IP_RECVERR)."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)


def header_bytes(sock: socket.socket) -> int:
    """Return the bytes of the headers of IP and UDP in each of a socket's packets."""
    return _HEADER_BYTES[socket.AddressFamily(sock.family)]


def datagram_size(settings: Settings, sock: socket.socket) -> int:
    """Return the UDP payload of each datagram: as the settings say, or as the path's MTU and a low rate allow."""
    if settings.datagram_bytes is not None:
        return settings.datagram_bytes
    largest, slow = largest_datagram(sock), settings.slow_datagram_bytes
    return largest if slow is None else min(largest, slow)


def mode_under(settings: Settings, sock: socket.socket, requested: Mode) -> Mode:
    """Return the mode of a session: datagrams go one by one at rates of which that takes a small part of a core."""
    if requested.is_for_datagrams:
        return requested
    rate = settings.rate_bit_s
    if rate is None or settings.searches_rate:
        return Mode.RATE
    is_slow = rate <= QUALITY_DATAGRAMS_S * datagram_size(settings, sock) * 8
    return Mode.QUALITY if is_slow else Mode.RATE


def set_up_sender(sock: socket.socket, rate_bit_s: int | None) -> None:
    """Give a sender's socket room for 5 ms of its rate: data that wait there are already stamped."""
    wanted = MIB if rate_bit_s is None else min(_MIN_BUFFER_BYTES, max(MIB // 4, rate_bit_s // (8 * 200)))
    _set_buffer(sock, socket.SO_SNDBUF, _SO_SNDBUFFORCE, wanted)


def receive_buffer_bytes(settings: Settings) -> int:
    """Return the receive buffer to ask for in each session: 50 ms of the rate, in all of them 4 to 256 MiB.

    Without a limit it is the buffer for 5 Gb/s. The other end names the rate: it must not take this host's memory.
    """
    whole = max(_MIN_BUFFER_BYTES, (settings.rate_bit_s or _FAST_BIT_S) // _BUFFER_DIVISOR)
    return max(_MIN_SESSION_BUFFER_BYTES, min(_MAX_BUFFER_BYTES, whole) // settings.sessions)


def set_up_receiver(sock: socket.socket, mode: Mode, settings: Settings) -> int:
    """Set a receiver's socket up, and return the bytes that its buffer was granted."""
    _set_buffer(sock, socket.SO_RCVBUF, _SO_RCVBUFFORCE, receive_buffer_bytes(settings))
    if IS_LINUX:
        with contextlib.suppress(OSError):  # Linux before 5.0 has no UDP_GRO
            sock.setsockopt(SOL_UDP, UDP_GRO, mode is Mode.RATE)
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVTCLASS, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
    granted = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    return granted // 2 if IS_LINUX else granted  # socket(7): Linux doubles the value


def _set_buffer(sock: socket.socket, option: int, force_option: int, size_bytes: int) -> None:
    """Ask for a buffer, beyond the system's limit if this process may (CAP_NET_ADMIN)."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)
    if IS_LINUX and sock.getsockopt(socket.SOL_SOCKET, option) < 2 * size_bytes:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, force_option, size_bytes)


def set_receive_timeout(sock: socket.socket, seconds: float) -> None:
    """Let a blocking receive end after a time, with BlockingIOError (SO_RCVTIMEO, socket(7))."""
    whole = int(seconds)
    timeout = _TIMEVAL.pack(whole, int((seconds - whole) * 1_000_000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout)


def set_segment(sock: socket.socket, datagram_bytes: int) -> bool:
    """Have the kernel cut sent groups into datagrams of this size; return whether it can (UDP_SEGMENT)."""
    if not IS_LINUX:
        return False
    try:
        sock.setsockopt(SOL_UDP, UDP_SEGMENT, datagram_bytes)
    except OSError:  # Linux before 4.18
        return False
    return True


def read_socket_drops(sock: socket.socket) -> int | None:
    """Return the packets for which the socket had no room; None if the system does not report them.

    The kernel counts a group (UDP_GRO) once.
    """
    memory = read_socket_memory(sock)
    return None if memory is None else memory[_MEMORY_DROPS]


def stays_within_host(sock: socket.socket) -> bool:
    """Return whether a connected socket's datagrams never leave this host: groups arrive as they were sent."""
    return IS_LINUX and sock.getsockname()[0] == sock.getpeername()[0]


def has_unread(sock: socket.socket) -> bool:
    """Return whether datagrams wait in a socket; False if the system does not report it."""
    memory = read_socket_memory(sock)
    return memory is not None and memory[_MEMORY_UNREAD] > 0


def read_path_mtu(sock: socket.socket) -> int | None:
    """Return the MTU of a connected socket's path, as far as the kernel knows it; None otherwise."""
    if not IS_LINUX:
        return None
    try:
        if sock.family == socket.AF_INET6:
            return sock.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU)
        return sock.getsockopt(socket.IPPROTO_IP, _IP_MTU)
    except OSError:
        return None


def explain_size(sock: socket.socket, datagram_bytes: int) -> str:
    """Return why a connected socket's datagram is too long: the interface, its route, or a router's report."""
    mtu = read_path_mtu(sock)
    text = f"a datagram of {datagram_bytes} bytes does not fit the path's MTU"
    if mtu is None:
        return text
    text += f" of {mtu} bytes"
    local, peer = sock.getsockname(), sock.getpeername()
    with contextlib.suppress(OSError, ValueError):
        ip = "ip -6" if sock.family == socket.AF_INET6 else "ip"
        nic = read_nic(local, peer)
        if is_path_mtu_cached(local, peer):
            text += (
                ", which a router has told the sending host and its cache keeps for minutes; if the path carries "
                f"more by now, `{ip} route flush cache` there forgets it"
            )
        elif nic is not None and nic.mtu_bytes is not None and nic.mtu_bytes > mtu:
            text += f", which the route of the sending host sets: see `{ip} route get {peer[0]}` there"
    return text


def largest_datagram(sock: socket.socket) -> int:
    """Return the UDP payload of the largest packet that the path carries whole, of at most 9,000 bytes.

    If the MTU is unknown, Ethernet's is assumed.
    """
    mtu = min(read_path_mtu(sock) or 1_500, _LARGEST_PACKET_BYTES)
    return mtu - header_bytes(sock)


def read_tos(sock: socket.socket) -> int:
    """Return the traffic class that a socket sends: DSCP and ECN."""
    if sock.family == socket.AF_INET6:
        return sock.getsockopt(socket.IPPROTO_IPV6, IPV6_TCLASS)
    return sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS)


def ttl_control(sock: socket.socket, ttl: int) -> tuple[int, int, bytes]:
    """Return the ancillary data with which one datagram goes out with a TTL, or a hop limit (ip(7), ipv6(7))."""
    if sock.family == socket.AF_INET6:
        return socket.IPPROTO_IPV6, _IPV6_HOPLIMIT, _TTL.pack(ttl)
    return socket.IPPROTO_IP, socket.IP_TTL, _TTL.pack(ttl)
