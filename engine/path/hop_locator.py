"""Finds the hops between which packets become too long, by probes of two lengths with TTL 1 to N.

The way out is probed by this end. For the way in the other end sends the packets, and tells which routers have used
up their TTL. An earlier endpoint does not know that request: then nothing is found.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from ..model.directions import Direction
from ..model.ip_address import unmap_ip_address
from ..protocol.path_probe import (
    NarrowLink,
    PathDatagram,
    PathKind,
    decode_path_datagram,
    decode_quoted_path_datagram,
)
from ..workloads.udp.df_socket import DfSocket
from .narrow_link import NarrowLinkSearch

_WAIT_S: Final = 0.45
_TRIES: Final = 3
_HOP_TRIES: Final = 6  # a router that has just refused packets may send its next message of ICMP in a second only
_FIRST_SERIALS: Final = {Direction.OUT: 1 << 20, Direction.IN: 1 << 21}  # those of the search before are smaller


class HopLocator:
    """Locates the narrow link of one direction. It takes over the reading of the socket.

    Args:
        sock: The socket of the session.
        secret: The session's secret.
        direction: The direction.
    """

    def __init__(self, sock: DfSocket, secret: bytes, direction: Direction) -> None:
        self._sock, self._secret, self._is_out = sock, secret, direction is Direction.OUT
        self._serial = _FIRST_SERIALS[direction]
        self._sent: dict[int, tuple[int, bool]] = {}  # TTL and whether it was long, by serial
        self._search = NarrowLinkSearch()
        self._news = asyncio.Event()

    async def locate(self, short_bytes: int, long_bytes: int, refusing: str | None) -> NarrowLink | None:
        """Return the link that long packets do not pass; None if the hops do not tell.

        Args:
            short_bytes: The UDP payload of packets that pass.
            long_bytes: The UDP payload of packets that do not.
            refusing: The router that has reported the MTU.
        """
        self._sock.watch(self._read)
        search = self._search
        await self._probe(range(1, search.last_ttl + 1), short_bytes, is_long=False, tries=_TRIES)
        link = search.result(refusing)
        if link is None or (link.after_router is not None and link.after_router == refusing):
            return link
        for ttl in range(1, search.last_ttl):
            await self._probe([ttl], long_bytes, is_long=True, tries=_HOP_TRIES)
            if not search.is_answered(ttl, is_long=True):
                await self._probe(range(ttl + 1, search.last_ttl), long_bytes, is_long=True, tries=_TRIES)
                break
        return search.result(refusing)

    async def _probe(self, ttls: Sequence[int], size_bytes: int, *, is_long: bool, tries: int) -> None:
        """Send a probe with each TTL, and repeat those without an answer."""

        def unanswered() -> list[int]:
            return [ttl for ttl in ttls if not self._search.is_answered(ttl, is_long=is_long)]

        for _ in range(tries):
            for ttl in unanswered():
                self._send(ttl, size_bytes, is_long=is_long)
            if await self._wait(lambda: not unanswered()):
                return

    async def _wait(self, is_done: Callable[[], bool]) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                while not is_done():
                    await self._news.wait()
                    self._news.clear()
        return is_done()

    def _send(self, ttl: int, size_bytes: int, *, is_long: bool) -> None:
        self._serial += 1
        self._sent[self._serial] = ttl, is_long
        with contextlib.suppress(OSError):
            if self._is_out:
                self._sock.send(PathDatagram(PathKind.PROBE, self._serial, size_bytes).pack(self._secret), ttl)
            else:
                trace = PathDatagram(PathKind.TRACE, self._serial, size_bytes, ttl=ttl)
                self._sock.send(trace.pack(self._secret))

    def _read(self) -> None:
        self._sock.take_errors()
        for report in self._sock.take_expired():
            quoted = decode_quoted_path_datagram(report.quoted, self._secret)
            if self._is_out and quoted is not None and report.sender is not None:
                self._note_expired(quoted.serial, report.sender)
        while (data := self._sock.receive()) is not None:
            datagram = decode_path_datagram(data, self._secret)
            if datagram is not None:
                self._handle(datagram)

    def _handle(self, datagram: PathDatagram) -> None:
        if datagram.kind is PathKind.EXPIRED and not self._is_out and datagram.router is not None:
            self._note_expired(datagram.serial, datagram.router)
        elif datagram.kind is (PathKind.REACHED if self._is_out else PathKind.LARGE):
            sent = self._sent.get(datagram.serial)
            if sent is not None and not sent[1]:
                self._search.note_reached(sent[0])
                self._news.set()

    def _note_expired(self, serial: int, router: str) -> None:
        sent = self._sent.get(serial)
        if sent is not None:
            self._search.note_expired(sent[0], unmap_ip_address(router), is_long=sent[1])
            self._news.set()
