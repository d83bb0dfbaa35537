"""Measurement of a path's MTU, each direction by itself: the longest packet that arrives without fragmentation.

Datagrams of several lengths go out at once with DF set, which RFC 8899 calls packetization layer path MTU
discovery. If the kernel or a router refuses a length, it names an MTU, which is tried next. Lengths that only
disappear are narrowed down: a path that drops long packets and does not say so is a black hole, in which TCP
connections hang.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult
from ..control.key_proof import refusal_error
from ..model.directions import Direction
from ..model.errors import (
    ConnectionClosed,
    PeerError,
    PeerRefused,
    explain_os_error,
)
from ..model.peer import Peer
from ..model.plan import PROBE_SESSION, SECOND_NS, Plan, Settings, SocketOptions
from ..model.run_end import Reason, RunEnd
from ..model.workload import Workload
from ..path.hop_locator import HopLocator
from ..protocol.foreign.missing_features import Feature, why_unavailable
from ..protocol.messages import Finish, Open, Ready, Refuse, Stop
from ..protocol.path_probe import (
    MAX_UDP_BYTES,
    MIN_PATH_MTU_BYTES,
    DirectionMtu,
    MtuBound,
    PathDatagram,
    PathKind,
    PathMtu,
    decode_path_datagram,
)
from ..protocol.tokens import RunSecret
from ..workloads.datagram_handshake import connect_datagrams
from ..workloads.session_handshake import ConnectTarget, SessionSpec
from ..workloads.udp.df_socket import DfSocket, SizeError
from .connect import CHECK_HAS_UDP, FarEnd, connect, explained_errors

READY_DEADLINE_S: Final = 15.0
MEASURE_DEADLINE_S: Final = 40.0
_LOCATE_DEADLINE_S: Final = 10.0
_TRIES: Final = 3
_TRY_S: Final = 0.25
_CHECK_TRIES: Final = 6  # for the length above the result: a loss by chance must not decide
_ROUND_TRIPS: Final = 4
_FIRST_ROUND_TRIP_S: Final = 0.5  # before the first answer
_AT_ONCE: Final = 8
# MTUs of real links: jumbo frames, FDDI, Ethernet, and Ethernet less the headers of tunnels.
_COMMON_BYTES: Final = (9_000, 8_950, 8_500, 4_352, 1_500, 1_492, 1_480, 1_476, 1_460, 1_450, 1_440, 1_420, 1_400)
_UNBOUND: Final = SocketOptions()
PATH_PLAN: Final = Plan(Settings(rate_bit_s=1_000), Workload.UDP, duration_ns=SECOND_NS)
"""The test that the endpoint prepares for a path's datagrams. It never starts."""
_log = logging.getLogger(__name__)


class MtuSearch:
    """The search for one direction's MTU. Pure.

    Send packets of `next_lengths`, note the outcome of each, and repeat that until it returns none.
    """

    def __init__(self, least_bytes: int, most_bytes: int) -> None:
        self._least, self._most = least_bytes, most_bytes
        self._passed: int | None = None
        self._interface: int | None = None
        self._refused: dict[int, str] = {}  # the MTUs that routers reported, with their addresses
        self._lost = most_bytes + 1
        self._is_begun = False
        self._is_checked = False

    def next_lengths(self) -> list[int]:
        """Return the lengths to send next; none once the longest one that passes is known."""
        if not self._is_begun:
            self._is_begun = True
            return [self._least, self._most]
        if self._passed is None:
            return []
        low, high = self._passed, self._limit
        if high - low <= 1:
            return [high] if self.is_checking else []
        if high - 1 in {self._interface, *self._refused}:  # a router or the kernel says that this length passes
            return [high - 1]
        step = max(1, (high - low) // (_AT_ONCE + 1))
        even = list(range(low + step, high, step))[:_AT_ONCE]
        common = [length for mtu in _COMMON_BYTES for length in (mtu, mtu + 1) if low < length < high]
        return sorted({*even, *common[:_AT_ONCE]})

    @property
    def is_checking(self) -> bool:
        """Whether only loss bounds the result, and the length above it has not been tried by itself."""
        low, high = self._passed, self._limit
        is_explained = high - 1 in {self._interface, self._most, *self._refused}
        return low is not None and high - low <= 1 and not is_explained and not self._is_checked

    @property
    def _limit(self) -> int:
        """The shortest length that is known not to pass."""
        interface = self._most if self._interface is None else self._interface
        return min([self._lost, interface + 1, *(mtu + 1 for mtu in self._refused)])

    def is_known(self, length: int) -> bool:
        """Return whether it is known if packets of a length pass; the one that is being checked passes or not."""
        return length <= (self._passed or 0) or (length >= self._limit and not self.is_checking)

    def note_passed(self, length: int) -> None:
        """Note a packet that arrived: shorter packets and smaller MTUs do not matter any more."""
        self._passed = max(length, self._passed or 0)
        if self._lost <= length:  # it was lost by chance, or the path has changed
            self._lost = self._most + 1
        self._refused = {mtu: router for mtu, router in self._refused.items() if mtu >= length}

    def note_lost(self, length: int) -> None:
        """Note a packet that did not arrive, however often it was sent."""
        self._is_checked = self.is_checking and length == self._limit
        if length > (self._passed or 0):
            self._lost = min(self._lost, length)

    def note_error(self, error: SizeError) -> None:
        """Note an MTU that the sending kernel or a router reports."""
        if not max(self._least, self._passed or 0) <= error.mtu_bytes <= self._most:
            return
        if error.router is None:
            self._interface = error.mtu_bytes
        else:
            self._refused[error.mtu_bytes] = error.router

    def result(self, direction: Direction) -> DirectionMtu:
        """Return the result."""
        mtu, interface = self._passed, self._interface
        router = None if mtu is None else self._refused.get(mtu)
        if mtu is not None and mtu >= (self._most if interface is None else interface):
            return DirectionMtu(direction, mtu, interface, MtuBound.INTERFACE)
        bound = MtuBound.BLACK_HOLE if router is None else MtuBound.ROUTER
        return DirectionMtu(direction, mtu, interface, bound, router)


async def measure_path_mtu(
    peer: FarEnd, binding: SocketOptions = _UNBOUND, *, locates_hops: bool = False
) -> PathMtu:
    """Return the path MTU of both directions; raise PeerError if it cannot be measured.

    With `locates_hops`, also between which hops packets become too long: up to ten seconds more.
    """
    reason = why_unavailable(peer, Feature.PATH_MTU) if isinstance(peer, Peer) else None
    if reason is not None:
        raise PeerError(f"{peer}: {reason}")
    async with connect(peer, binding) as (control, ends):
        if ends.is_data_tunneled:
            raise PeerError(f"{peer}: --via-ssh cannot carry datagrams; leave it out")
        try:
            with explained_errors(peer):
                async with asyncio.timeout(READY_DEADLINE_S):
                    secret = await prepare_path_session(control, peer)
                async with (
                    asyncio.timeout(MEASURE_DEADLINE_S),
                    open_path_socket(control, secret, binding) as (sock, key),
                ):
                    path = await _Measurement(sock, key, control.ip_version, ends).measure(str(peer))
                    return await _with_links(path, sock, key) if locates_hops else path
        except ConnectionClosed as error:
            raise PeerError(f"{peer} ended the conversation: {error}; {CHECK_HAS_UDP}") from error
        except TimeoutError as error:
            raise PeerError(f"{peer}: the path MTU was not found in {MEASURE_DEADLINE_S:g} s; try again") from error
        except OSError as error:
            raise PeerError(f"{peer}: {explain_os_error(error)}") from error
        finally:
            control.try_send(Stop(RunEnd(Reason.STOPPED, "")))


async def _with_links(path: PathMtu, sock: DfSocket, secret: bytes) -> PathMtu:
    """Return the result with the hops between which packets become too long."""
    short_bytes = MIN_PATH_MTU_BYTES[path.ip_version] - sock.header_bytes
    located: list[DirectionMtu] = []
    for each in path.directions:
        link = None
        if each.bound is not MtuBound.INTERFACE and each.datagram_bytes is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOCATE_DEADLINE_S):
                    locator = HopLocator(sock, secret, each.direction)
                    link = await locator.locate(short_bytes, each.datagram_bytes + 1, each.router)
        located.append(replace(each, link=link))
    return PathMtu(path.peer, path.ip_version, *located)


async def prepare_path_session(control: ControlConnection, peer: FarEnd, plan: Plan = PATH_PLAN) -> RunSecret:
    """Let the endpoint prepare a test of UDP; return its secret. Raises PeerRefused."""
    control.try_send(Open(plan))
    while True:
        message = await control.receive()
        if isinstance(message, Ready):
            return control.derive_run_secret(bytes.fromhex(message.token))
        if isinstance(message, Refuse):
            raise refusal_error(peer, message)
        if isinstance(message, Finish):
            raise PeerRefused(f"{peer} ended the measurement before it began: {message.end.detail}")


@asynccontextmanager
async def open_path_socket(
    control: ControlConnection, secret: RunSecret, binding: SocketOptions
) -> AsyncGenerator[tuple[DfSocket, bytes]]:
    """Yield a socket over which the far end answers, and its session's secret."""
    sock, session_secret = await open_probe_socket(control, secret, binding)
    df_socket = DfSocket(sock)
    try:
        yield df_socket, session_secret
    finally:
        df_socket.close()


async def open_probe_socket(
    control: ControlConnection, secret: RunSecret, binding: SocketOptions
) -> tuple[socket.socket, bytes]:
    """Return the connected UDP socket of a test's probe, and its session's secret; raise OSError."""
    settings = (Direction.OUT, PROBE_SESSION, 0, None)
    session_secret = secret.session_secret(*settings)
    target = ConnectTarget.from_address(secret.run_tag.hex(), control.data_address)
    sock = socket.socket(target.family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        await connect_datagrams(sock, SessionSpec(*settings, session_secret.hex()), target, binding)
    except BaseException:
        sock.close()
        raise
    return sock, session_secret


class _Measurement:
    """The datagrams of one measurement, and their outcomes."""

    def __init__(self, sock: DfSocket, secret: bytes, ip_version: int, ends: HandshakeResult) -> None:
        self._sock = sock
        self._nics = {Direction.OUT: ends.near.nic, Direction.IN: ends.far.nic}
        self._secret = secret
        self._ip_version = ip_version
        self._serial = 0
        self._search = MtuSearch(0, 0)
        self._direction = Direction.OUT
        self._awaited: dict[int, int] = {}  # lengths by the serial of their datagrams
        self._news = asyncio.Event()
        self._round_trip_s = _FIRST_ROUND_TRIP_S

    async def measure(self, peer: str) -> PathMtu:
        """Measure both directions, one after the other."""
        self._sock.watch(self._read)
        results = [await self._measure(direction) for direction in Direction.DUPLEX.flows]
        return PathMtu(peer, self._ip_version, *results)

    async def _measure(self, direction: Direction) -> DirectionMtu:
        most_bytes = MAX_UDP_BYTES + self._sock.header_bytes
        self._direction = direction
        self._search = search = MtuSearch(MIN_PATH_MTU_BYTES[self._ip_version], most_bytes)
        while lengths := search.next_lengths():
            _log.debug("path MTU %s: lengths %s", direction, lengths)
            await self._try(lengths)
            await asyncio.sleep(0)  # the deadline holds for any answer of the other end
        nic = self._nics[direction]
        name = None if nic is None else nic.name
        return replace(search.result(direction), interface=name, header_bytes=self._sock.header_bytes)

    async def _try(self, lengths: list[int]) -> None:
        """Send packets of these lengths, repeat those without an answer, and note the outcome of each."""
        loop, search, open_lengths = asyncio.get_running_loop(), self._search, lengths
        self._awaited = {}
        for _ in range(_CHECK_TRIES if search.is_checking else _TRIES):
            began_s = loop.time()
            for length in open_lengths:
                self._send(length)
            wait_s = max(_TRY_S, _ROUND_TRIPS * self._round_trip_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    while open_lengths := [each for each in open_lengths if not search.is_known(each)]:
                        await self._news.wait()
                        self._news.clear()
            if not open_lengths:
                self._round_trip_s = min(self._round_trip_s, loop.time() - began_s)
                return
        for length in open_lengths:
            search.note_lost(length)

    def _send(self, length: int) -> None:
        self._serial += 1
        self._awaited[self._serial] = length
        size_bytes = length - self._sock.header_bytes
        kind = PathKind.PROBE if self._direction is Direction.OUT else PathKind.REQUEST
        self._sock.send(PathDatagram(kind, self._serial, size_bytes).pack(self._secret))
        self._take_errors()

    def _take_errors(self) -> None:
        for error in self._sock.take_errors():
            if self._direction is Direction.OUT:
                self._note_error(error)

    def _note_error(self, error: SizeError) -> None:
        _log.debug("path MTU %s: %s", self._direction, error)
        self._search.note_error(error)
        self._news.set()

    def _read(self) -> None:
        self._take_errors()
        while (data := self._sock.receive()) is not None:
            datagram = decode_path_datagram(data, self._secret)
            if datagram is not None and datagram.serial in self._awaited:
                self._handle(datagram)

    def _handle(self, datagram: PathDatagram) -> None:
        expected = PathKind.REACHED if self._direction is Direction.OUT else PathKind.LARGE
        length = datagram.size_bytes + self._sock.header_bytes
        if datagram.kind is expected and length == self._awaited[datagram.serial]:
            self._search.note_passed(length)
            self._news.set()
        elif datagram.kind is PathKind.TOO_LONG and self._direction is Direction.IN:
            self._note_error(SizeError(datagram.size_bytes, datagram.router))
