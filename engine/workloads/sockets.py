"""Set up the socket of a data connection, and read back the options that the kernel granted."""

import asyncio
import contextlib
import errno
import os
import socket
import struct
import sys
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from socket import SocketType
from typing import Any, Final

from ..host.event_loop import connect_socket
from ..host.happy_eyeballs import resolvable
from ..host.tcp_info import read_tcp_info
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction, End
from ..model.plan import Mode, SocketOptions

# Linux keeps, and reports, twice the size asked for: half is for its own book-keeping (socket(7)).
_REPORTED_FACTOR: Final = 2 if sys.platform == "linux" else 1
_CONGESTION_CONTROLS: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_UNPACED: Final = ("cubic", "reno")
_SO_MAX_PACING_RATE: Final = 47  # asm-generic/socket.h; the socket module has no name for it
# Otherwise a test of latency under load would measure its own send buffers (draft-ietf-ippm-responsiveness-09).
_UNSENT_MS: Final = 5
_FIRST_UNSENT_BYTES: Final = 128 * 1024  # until the rate is known
_MIN_UNSENT_BYTES: Final = 16 * 1024
_MAX_UNSENT_BYTES: Final = 2**31 - 1
LINK_PAUSE_S: Final = 0.02  # between two tries to connect while the link is away
# Longer than the control connection may be silent (control/keepalive.py): a lost host is the better reason.
_LINK_PATIENCE_NS: Final = 5_000_000_000
_NO_ROUTE: Final = {errno.ENETUNREACH, errno.ENETDOWN}
UNREACHABLE: Final = _NO_ROUTE | {errno.EHOSTUNREACH, errno.EHOSTDOWN}
NOT_SENT: Final = UNREACHABLE | {errno.ENOBUFS}  # of a datagram: the route may return, the queue become shorter
_ABORT: Final = struct.pack("ii", 1, 0)


def is_link_away(error: OSError, waited_ns: int, *, is_reachable: bool = True) -> bool:
    """Return whether a connection failed for want of a link that may return, and has not waited for too long.

    `is_reachable` False if no connection to that port has succeeded yet: an unreachable host may be a firewall.
    """
    return waited_ns < _LINK_PATIENCE_NS and error.errno in (UNREACHABLE if is_reachable else _NO_ROUTE)


async def connect(sock: socket.socket, address: tuple[Any, ...], *, is_reachable: bool = True) -> None:
    """Connect a non-blocking socket; while the link is away, try again for some seconds."""
    began_ns = time.perf_counter_ns()
    while True:
        try:
            await connect_socket(sock, address)
        except OSError as error:
            if not is_link_away(error, time.perf_counter_ns() - began_ns, is_reachable=is_reachable):
                raise
            await asyncio.sleep(LINK_PAUSE_S)
        else:
            return


def prepare(sock: socket.socket, window_bytes: int | None, options: SocketOptions) -> None:
    """Set a data socket up, before it connects or once it is accepted; OSError if the kernel declines.

    Closing aborts (SO_LINGER 0): after the last sample the bytes in the buffers are of no use, and a slow link
    would carry them for seconds into the next run.
    """
    sock.setblocking(False)
    abort_at_close(sock)
    set_options(sock, window_bytes, options)


def abort_at_close(sock: SocketType) -> None:
    """Let the close of a socket reset the connection and drop unsent bytes (SO_LINGER, socket(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)


def set_options(sock: SocketType, window_bytes: int | None, options: SocketOptions) -> None:
    """Set a socket's buffers and options; OSError if the kernel declines. Accepted sockets inherit them."""
    if window_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, window_bytes)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes)
    if options.mss_bytes is not None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, options.mss_bytes)
    if options.nodelay:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if options.dscp is not None:
        set_dscp(sock, options.dscp)
    if options.congestion is not None:
        _set_congestion(sock, options.congestion)


def set_pacing(sock: SocketType, bit_s: int) -> None:
    """Limit the rate at which a socket sends; TCP spaces its packets itself, whatever the queueing discipline.

    Raises OSError if the system has no such option (socket(7), SO_MAX_PACING_RATE).
    """
    if sys.platform != "linux":
        raise OSError("this system does not limit the rate of a connection")
    bytes_s = max(1, bit_s // 8)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, bytes_s.to_bytes(8, sys.byteorder))
    except OSError:  # Linux before 4.20 has a word of 32 bits
        sock.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, struct.pack("I", min(bytes_s, 2**32 - 2)))


def unsent_limit_bytes(delivery_bit_s: int | None, margin: int = 1) -> int:
    """Return the bytes that a sender at a rate may keep unsent, to be ready for the next acknowledgement.

    `margin` is larger than 1 for a sender that may have to wait for its process.
    """
    if delivery_bit_s is None:
        return _FIRST_UNSENT_BYTES
    return max(_MIN_UNSENT_BYTES, margin * (delivery_bit_s // 8 * _UNSENT_MS // 1_000))


def set_unsent_limit(sock: SocketType, most_bytes: int) -> None:
    """Have a socket take no more while this much of its buffer is unsent (TCP_NOTSENT_LOWAT, tcp(7)).

    Nothing if the system has no such option.
    """
    with contextlib.suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, min(most_bytes, _MAX_UNSENT_BYTES))


def drop_default_congestion(options: SocketOptions, family: int) -> SocketOptions:
    """Return the options without a congestion control that is the default: it saves a system call a socket."""
    with contextlib.suppress(OSError), socket.socket(family) as sock:
        if options.congestion is not None and _congestion(sock) == options.congestion:
            return replace(options, congestion=None)
    return options


def bind_source(sock: SocketType, options: SocketOptions, port: int | None = None) -> None:
    """Bind a socket to the source address and device of the options, and to a local port, before it connects.

    Raises OSError if the system does not allow it.
    """
    if options.device is not None:
        if not hasattr(socket, "SO_BINDTODEVICE"):
            raise OSError("this system does not bind connections to an interface")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, options.device.encode() + b"\0")
    if port is not None:  # an earlier connection from it may still be in TIME_WAIT
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if options.source is not None:
        sock.bind(_cached_address(options.source, port or 0))
    elif port is not None:
        sock.bind(("", port))


def local_address(text: str, port: int) -> tuple[Any, ...]:
    """Return the socket address of an IP address of this machine; the interface after `%` becomes its scope.

    Raises OSError if this machine has no such interface.
    """
    host = resolvable(text)
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0][4]


_cached_address = lru_cache(local_address)  # crr binds each connection


def set_dscp(sock: SocketType, dscp: int) -> None:
    """Set the DSCP of a socket's packets (RFC 2474), without ECN marks."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2)
        # Packets to an IPv4 peer on a socket of both families take the other option.
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    else:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)


def _set_congestion(sock: SocketType, name: str) -> None:
    try:
        set_congestion(sock, name)
    except FileNotFoundError as error:
        available = ", ".join(available_congestion_controls())
        raise OSError(f"congestion control {name} is not available; that host has {available}") from error


def set_congestion(sock: SocketType, name: str) -> None:
    """Choose a congestion control, whose module the kernel loads; raise OSError if it refuses."""
    if not hasattr(socket, "TCP_CONGESTION"):
        raise OSError("this system has no choice of congestion control")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())


def available_congestion_controls() -> list[str]:
    """Return the congestion controls that are built in or loaded; empty if the system does not name them."""
    try:
        return _CONGESTION_CONTROLS.read_text(encoding="ascii").split()
    except OSError:
        return []


def unpaced_congestion() -> str | None:
    """Return a congestion control without pacing, or None for the kernel's default if none is known.

    bbr paces, which on loopback halves the rate that a machine can reach.
    """
    available = available_congestion_controls()
    return next((name for name in _UNPACED if name in available), None)


def granted_window(sock: socket.socket, *, is_sender: bool) -> int:
    """Return the granted send or receive buffer, in the unit of the requested size."""
    option = socket.SO_SNDBUF if is_sender else socket.SO_RCVBUF
    return sock.getsockopt(socket.SOL_SOCKET, option) // _REPORTED_FACTOR


def supported_mode(requested: Mode | None) -> Mode:
    """Return the requested mode if this system supports it, else copy.

    A container's filter of system calls may deny what the kernel supports.
    """
    if requested is None or sys.platform != "linux":
        return Mode.COPY
    is_denied = {Mode.SENDFILE: _is_sendfile_denied, Mode.DISCARD: _is_discard_denied}.get(requested)
    return Mode.COPY if is_denied is not None and is_denied() else requested


def _is_sendfile_denied() -> bool:
    try:
        os.sendfile(-1, -1, 0, 0)
    except OSError as error:
        return error.errno != errno.EBADF  # a filter answers before the kernel looks at the descriptors
    return False


def _is_discard_denied() -> bool:
    """Return whether bytes cannot be received without a copy; tested with a pair of sockets without data."""
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        try:
            one.recv_into(bytearray(1), 0, socket.MSG_TRUNC)
        except BlockingIOError:
            pass
        except OSError:
            return True
    return False


def read_socket_info(
    sock: socket.socket,
    end: End,
    direction: Direction,
    session: int,
    mode: Mode,
    granted_bytes: int | None = None,
) -> SocketInfo:
    """Return the options that the kernel granted an open data connection.

    Args:
        sock: The connection.
        end: This end.
        direction: The session's direction.
        session: The session's number.
        mode: How this end moves payload.
        granted_bytes: The window that the kernel granted, if one was requested.
    """
    info = read_tcp_info(sock)
    return SocketInfo(
        end=end,
        direction=direction,
        session=session,
        congestion=_congestion(sock),
        window_granted_bytes=granted_bytes,
        mss_bytes=None if info is None else info.mss_bytes,
        timestamps=None if info is None else info.timestamps,
        sack=None if info is None else info.sack,
        window_scaling=None if info is None else info.window_scaling,
        mode=mode,
    )


def _congestion(sock: socket.socket) -> str | None:
    if not hasattr(socket, "TCP_CONGESTION"):
        return None
    try:
        name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    except OSError:
        return None
    return name.split(b"\0")[0].decode("ascii", "replace")
