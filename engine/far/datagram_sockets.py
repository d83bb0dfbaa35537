"""UDP sockets at the port of an endpoint: the one that takes hellos, and a connected one for each session.

`DatagramService` is what the services of a UDP port have in common; each knows the hellos of its clients.
"""

import asyncio
import contextlib
import logging
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from ..model.errors import LinkgaugeError, explain_os_error
from ..model.ip_address import unmap_ip_address
from .status import LogEntry, LogSink

SocketAddress = tuple[Any, ...]

_TURN_DATAGRAMS: Final = 128  # at 6 to 9 µs each, before others have the loop's attention
_PAUSE_S: Final = 0.005  # after a full turn: a flood takes a fifth of a core, and the kernel drops the rest
_ANCILLARY_BYTES: Final = 128
_BUFFER_BYTES: Final = 1 << 20
_MAX_STRAYS: Final = 256
_STRAY_BYTES: Final = 2_048
_MAX_REJECTIONS: Final = 1_024  # whose entries of the log are at hand
_IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)  # ip(7)
_IPV4_INFO: Final = struct.Struct("@I4s4s")
_IPV6_INFO: Final = struct.Struct("@16sI")
_log = logging.getLogger(__name__)


class DatagramService(ABC):
    """A service of the UDP port beside a listening TCP socket, from `open` to `close`.

    Args:
        log: Receives the entries of the event log.
        max_bytes: What is read of a datagram.
        needing: The tests that are not possible without the port, for the log.
    """

    def __init__(self, log: LogSink, max_bytes: int, needing: str) -> None:
        self._log = log
        self._max_bytes = max_bytes
        self._needing = needing
        self._sock: socket.socket | None = None
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._attaching: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether the port takes datagrams."""
        return self._sock is not None

    def open(self, listener: socket.socket) -> None:
        """Open the port at a listening TCP socket's address and port; log it if that is impossible."""
        self._number = listener.getsockname()[1]
        try:
            self._sock = open_beside(listener)
        except OSError as error:
            text = f"UDP port {self._number} cannot be opened: {explain_os_error(error)}"
            self._log(LogEntry("no_udp", f"{text}; {self._needing} are not possible"))
            return
        asyncio.get_running_loop().add_reader(self._sock, self._read)
        _log.debug("UDP port %d is open", self._number)

    async def close(self) -> None:
        """Close the port, and end what has not been passed on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self._sock = None
        for task in self._attaching:
            task.cancel()
        await asyncio.gather(*self._attaching, return_exceptions=True)

    def _send(self, data: bytes, address: SocketAddress, local_host: str | None) -> None:
        """Send a datagram from an address of this host. It may be lost here as on its way."""
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.sendmsg([data], source_control(local_host), 0, address)

    def _read(self) -> None:
        """Take in what has arrived. After a full turn the kernel keeps the rest, or drops it."""
        sock = self._sock
        if sock is None:
            return
        for _ in range(_TURN_DATAGRAMS):
            try:
                data, ancillary, _flags, source = sock.recvmsg(self._max_bytes, _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.debug("UDP port: %r", error)
                continue
            self._handle(data, source, local_host_of(ancillary))
        loop = asyncio.get_running_loop()
        loop.remove_reader(sock)
        self._timer = loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._timer = None
        if self._sock is not None:
            asyncio.get_running_loop().add_reader(self._sock, self._read)

    @abstractmethod
    def _handle(self, data: bytes, source: SocketAddress, local_host: str | None) -> None:
        """Answer or take a datagram that was sent to an address of this host. A stranger gets no answer."""

    def _reject(self, client: str, why: str) -> None:
        self._log(_rejection(client, why))

    def _connect(
        self, source: SocketAddress, local_host: str | None, client: str
    ) -> tuple[socket.socket, list[tuple[bytes, SocketAddress]]] | None:
        """Return what `open_connected` does for this port; reject the client if that is impossible."""
        try:
            return open_connected(source, local_host, self._number)
        except OSError as error:
            self._reject(client, f"a UDP session could not be opened: {explain_os_error(error)}")
            return None

    def _pass_on(self, sock: socket.socket, client: str, attach: Callable[[], Awaitable[None]]) -> None:
        """Have `attach` take over a connected socket, in the background; reject the client if it raises."""
        task = asyncio.create_task(self._await_attached(attach, client))
        self._attaching.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._attaching.discard(task)
            sock.close()  # who took it over has a descriptor of its own

        task.add_done_callback(end)

    async def _await_attached(self, attach: Callable[[], Awaitable[None]], client: str) -> None:
        try:
            await attach()
        except (LinkgaugeError, OSError) as error:
            self._reject(client, explain_os_error(error) if isinstance(error, OSError) else str(error))


@lru_cache(_MAX_REJECTIONS)
def _rejection(client: str, why: str) -> LogEntry:
    return LogEntry("udp_dropped", f"rejected: {why}", client=client)


def open_beside(listener: socket.socket) -> socket.socket:
    """Return a UDP socket at a listening TCP socket's address, port and families; raise OSError if it is taken."""
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
        local_host: The address of this host that the client sent to; None if the kernel does not tell.
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
    """Let sockets of the same user alone have the same port (socket(7), SO_REUSEPORT)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def local_host_of(ancillary: list[tuple[int, int, bytes]]) -> str | None:
    """Return the address of this host that a datagram was sent to; None if the kernel does not tell."""
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
