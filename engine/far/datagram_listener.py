"""The UDP side of an endpoint's port: it challenges, checks cookies, and makes the sockets of UDP sessions.

It keeps nothing for an address that has not echoed its cookie, answers no stranger, and no answer is longer than
what it answers (protocol/datagram_handshake.py). A session has a socket of its own, with the same local address and
port, connected to the client: from then on the kernel passes the client's datagrams there.
"""

import asyncio
import contextlib
import logging
import os
import socket
import struct
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final, Protocol

from ..model.errors import AddressRefused, LinkgaugeError, explain_os_error
from ..model.limits import TokenBucket
from ..model.peer import unmap_ip_address
from ..protocol.datagram_handshake import (
    HELLO_BYTES,
    NO_COOKIE,
    AddressCookies,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from ..protocol.preamble import DataHello
from .admission import Admission
from .listener import format_host
from .status import LogEntry, LogSink

SocketAddress = tuple[Any, ...]

_TURN_DATAGRAMS: Final = 128  # at 6 to 9 µs each, before others have the loop's attention
_PAUSE_S: Final = 0.005  # after a full turn: a flood takes a fifth of a core, and the kernel drops the rest
_CHALLENGES_S: Final = 2_000
_BUFFER_BYTES: Final = 1 << 20
_MAX_RECENT: Final = 1_024
_MAX_ATTACHING: Final = 512
_DRAINED: Final = 256
_SECRET_BYTES: Final = 32
_IP_PKTINFO: Final = getattr(socket, "IP_PKTINFO", 8)  # ip(7)
_IPV4_INFO: Final = struct.Struct("@I4s4s")
_IPV6_INFO: Final = struct.Struct("@16sI")
_ANCILLARY_BYTES: Final = 128
_log = logging.getLogger(__name__)


class DatagramRun(Protocol):
    """The part of a run that takes its sessions' sockets."""

    @property
    def has_datagrams(self) -> bool:
        """Whether its sessions have UDP sockets."""
        ...

    async def attach_connection(self, sock: socket.socket, hello: DataHello) -> None:
        """Take over the connected socket of a session; raise LinkgaugeError where its token is not valid."""
        ...


class DatagramListener:
    """Serves the UDP port beside a listening TCP socket, from `open` to `close`.

    Args:
        registry: The endpoint's current runs by their tag.
        admission: The endpoint's limits and lists.
        log: Receives the entries of the event log.
    """

    def __init__(self, registry: Mapping[bytes, DatagramRun], admission: Admission, log: LogSink) -> None:
        self._registry = registry
        self._admission = admission
        self._log = log
        self._cookies = AddressCookies(os.urandom(_SECRET_BYTES))
        self._challenges = TokenBucket(_CHALLENGES_S, time.monotonic_ns())
        self._sock: socket.socket | None = None
        self._port = 0
        self._timer: asyncio.TimerHandle | None = None
        # Sessions whose hello has been taken: it may still be in the queue once or twice.
        self._recent: OrderedDict[bytes, SocketAddress] = OrderedDict()
        self._attaching: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether the port takes datagrams."""
        return self._sock is not None

    def open(self, listener: socket.socket) -> None:
        """Open the UDP port at the address and port of a listening TCP socket; log it where that is impossible."""
        address = listener.getsockname()
        try:
            self._sock = open_beside(listener)
        except OSError as error:
            reason = explain_os_error(error)
            self._log(
                LogEntry(
                    "no_udp",
                    f"UDP port {address[1]} cannot be opened: {reason}; tests with --workload udp are not possible",
                )
            )
            return
        self._port = address[1]
        asyncio.get_running_loop().add_reader(self._sock, self._read)
        _log.debug("UDP port %d is open", self._port)

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

    def _read(self) -> None:
        """Take in what has arrived. After a full turn the kernel keeps the rest, or drops it."""
        sock = self._sock
        if sock is None:
            return
        for _ in range(_TURN_DATAGRAMS):
            try:
                data, ancillary, _flags, source = sock.recvmsg(HELLO_BYTES + 1, _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.debug("UDP port: %r", error)
                continue
            self._handle(data, source, _local_host(ancillary))
        loop = asyncio.get_running_loop()
        loop.remove_reader(sock)
        self._timer = loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._timer = None
        if self._sock is not None:
            asyncio.get_running_loop().add_reader(self._sock, self._read)

    def _handle(self, data: bytes, source: SocketAddress, local_host: str | None) -> None:
        """Answer or take a datagram. A stranger gets no answer."""
        client = _client_of(source[0], *source[2:])
        limits = self._admission.limits
        if limits.deny or limits.allow:
            try:
                self._admission.check_address(client)
            except AddressRefused as error:
                self._reject(client, error.operator_text)
                return
        hello = decode_handshake(data)
        if not isinstance(hello, DatagramHello):
            self._reject(client, "a UDP datagram that opens no session")
            return
        header = hello.header
        run = self._registry.get(header.run_tag)
        if run is None or not run.has_datagrams:
            self._reject(client, "a UDP session of an unknown test")
            return
        plain = (client, source[1])  # the same for both forms of an IPv4 address
        if hello.cookie == NO_COOKIE:
            if self._challenges.take(time.monotonic_ns()):
                self._challenge(
                    DatagramChallenge(self._cookies.make(plain, header), header.token), source, local_host
                )
        elif not self._cookies.check(plain, hello):
            self._reject(client, "a UDP session with the cookie of another address")
        else:
            self._attach(run, header, source, local_host)

    def _reject(self, client: str, why: str) -> None:
        self._log(_rejection(client, why))

    def _challenge(self, challenge: DatagramChallenge, source: SocketAddress, local_host: str | None) -> None:
        if self._sock is not None:
            with contextlib.suppress(OSError):  # a lost one is asked for again
                self._sock.sendmsg([challenge.pack()], _source_control(local_host), 0, source)

    def _attach(self, run: DatagramRun, header: DataHello, source: SocketAddress, local_host: str | None) -> None:
        """Pass a socket for the session to its run, once."""
        key = header.pack()  # with the token: nobody without it can take the place of a session
        client = _client_of(source[0], *source[2:])
        taken_by = self._recent.get(key)
        if taken_by is not None:
            if taken_by != source:
                self._reject(client, "a UDP session that has another address already")
            return
        if len(self._attaching) >= _MAX_ATTACHING:
            return  # it is asked for again
        try:
            sock, strays = self._open_session(source, local_host)
        except OSError as error:
            self._reject(client, f"a UDP session could not be opened: {explain_os_error(error)}")
            return
        self._recent[key] = source
        while len(self._recent) > _MAX_RECENT:
            self._recent.popitem(last=False)
        task = asyncio.create_task(self._pass_on(run, header, sock, client))
        self._attaching.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._attaching.discard(task)
            sock.close()  # the run has its own descriptor, if any

        task.add_done_callback(end)
        for data, stray in strays:
            self._handle(data, stray, local_host)

    async def _pass_on(self, run: DatagramRun, header: DataHello, sock: socket.socket, client: str) -> None:
        try:
            await run.attach_connection(sock, header)
        except (LinkgaugeError, OSError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            self._reject(client, reason)

    def _open_session(
        self, source: SocketAddress, local_host: str | None
    ) -> tuple[socket.socket, list[tuple[bytes, SocketAddress]]]:
        """Return a socket that is connected to a client, and what others sent to it before it was."""
        host = unmap_ip_address(str(source[0]))
        is_ipv4 = ":" not in host
        family = socket.AF_INET if is_ipv4 else socket.AF_INET6
        address: SocketAddress = (host, source[1]) if is_ipv4 else source
        sock = socket.socket(family, socket.SOCK_DGRAM)
        strays: list[tuple[bytes, SocketAddress]] = []
        try:
            sock.setblocking(False)
            _share_port(sock)
            local = unmap_ip_address(local_host) if local_host is not None else ("" if is_ipv4 else "::")
            sock.bind((local, self._port) if is_ipv4 else (local, self._port, 0, *source[3:]))
            sock.connect(address)
            # Bound and not connected yet, it took the datagrams of all clients of this address.
            with contextlib.suppress(BlockingIOError, InterruptedError):
                while len(strays) < _DRAINED:
                    data, stray = sock.recvfrom(HELLO_BYTES + 1)
                    if stray != address:
                        strays.append((data, stray))
        except BaseException:
            sock.close()
            raise
        return sock, strays


@lru_cache(_MAX_RECENT)
def _client_of(host: str, *ipv6_fields: int) -> str:
    return format_host((host, 0, *ipv6_fields))


@lru_cache(_MAX_RECENT)
def _rejection(client: str, why: str) -> LogEntry:
    return LogEntry("udp_dropped", f"rejected: {why}", client=client)


def open_beside(listener: socket.socket) -> socket.socket:
    """Return a UDP socket at a listening TCP socket's address, port and families; raise OSError where taken."""
    sock = socket.socket(listener.family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        _share_port(sock)
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


def _share_port(sock: socket.socket) -> None:
    """Let the sockets of one user, and of nobody else, have the same port (socket(7), SO_REUSEPORT)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _local_host(ancillary: list[tuple[int, int, bytes]]) -> str | None:
    """Return the address of this host that a datagram was sent to; None where the kernel does not tell."""
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_IP and kind == _IP_PKTINFO and len(data) == _IPV4_INFO.size:
            return str(IPv4Address(_IPV4_INFO.unpack(data)[1]))
        if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO and len(data) == _IPV6_INFO.size:
            return str(IPv6Address(_IPV6_INFO.unpack(data)[0]))
    return None


def _source_control(local_host: str | None) -> list[tuple[int, int, bytes]]:
    """Return the control message that sends from this address; the route chooses the interface."""
    if local_host is None:
        return []
    if ":" in local_host:
        info = _IPV6_INFO.pack(IPv6Address(local_host).packed, 0)
        return [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, info)]
    return [(socket.IPPROTO_IP, _IP_PKTINFO, _IPV4_INFO.pack(0, IPv4Address(local_host).packed, bytes(4)))]
