"""The control connection of an iperf3 test, at either end: states, documents and refusals over a connected socket.

One task reads and any may send. Every read has a deadline, and a length is checked before anything is allocated.
The caller owns the channel: `aclose` or `send_error` closes its socket.
"""

import asyncio
import contextlib
import logging
import socket
import struct
import sys
from typing import Any, Final

from ..model.errors import ConnectionClosed, LimitReached, SilentPeer, explain_os_error
from .protocol.json_bodies import LENGTH, decode_body, encode_body
from .protocol.states import State

_log = logging.getLogger(__name__)

_ERROR_WORDS: Final = struct.Struct(">ii")
_WORD: Final = struct.Struct(">i")
_READ_BYTES: Final = 65_536
_SEND_DEADLINE_S: Final = 5.0
_LINGER_S: Final = 1.0
_MAX_LINGER_BYTES: Final = 1 << 20
_GIVE_UP_MS: Final = 8_000  # of silence of the other host's kernel
_KEEPALIVE_IDLE_S: Final = 2
_KEEPALIVE_INTERVAL_S: Final = 1
_LOW_DELAY: Final = 0x10  # IPTOS_LOWDELAY (ip(7)), as for linkgauge's own control connection


class Iperf3Channel:
    """A control connection after its cookie, over a connected socket that does not block."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._sending = asyncio.Lock()
        self._is_closed = False
        self.peer_address: tuple[str | int, ...] = _address_of(sock.getpeername)
        self.local_address: tuple[str | int, ...] = _address_of(sock.getsockname)
        _prefer(sock)

    @property
    def socket(self) -> socket.socket:
        """The socket, to look at its counters; the channel alone reads, writes and closes it."""
        return self._sock

    @property
    def is_closed(self) -> bool:
        """Whether this end has closed the connection."""
        return self._is_closed

    async def read_state(self, deadline_s: float) -> State:
        """Return the next state.

        Raises:
            ConnectionClosed: The connection ended.
            SilentPeer: Nothing came within `deadline_s`.
            RemoteProtocolError: The state is unknown.
        """
        return State.from_byte((await self._read_exactly(1, deadline_s))[0])

    async def read_json(self, limit_bytes: int, deadline_s: float) -> object:
        """Return the next document, a value of any shape.

        Raises:
            ConnectionClosed: The connection ended.
            SilentPeer: The document was not complete within `deadline_s`.
            LimitReached: It is longer than `limit_bytes`.
            RemoteProtocolError: It is not JSON.
        """
        until = self._loop.time() + deadline_s
        (length,) = LENGTH.unpack(await self._read_exactly(LENGTH.size, deadline_s))
        if length > limit_bytes:
            text = f"a document of {length} bytes is over the limit of {limit_bytes}"
            raise LimitReached(text, "message_bytes", limit_bytes)
        return decode_body(await self._read_exactly(length, until - self._loop.time()))

    async def read_error_words(self, deadline_s: float) -> tuple[int | None, int | None]:
        """Return iperf3's number of an error and the system's, which follow SERVER_ERROR; None is missing.

        Old servers send only the first, or neither.
        """
        with contextlib.suppress(ConnectionClosed):
            await self._fill(_ERROR_WORDS.size, deadline_s)
        words: list[int | None] = []
        for start in (0, _WORD.size):
            data = bytes(self._buffer[start : start + _WORD.size])
            words.append(_WORD.unpack(data)[0] if len(data) == _WORD.size else None)
        self._buffer.clear()
        return words[0], words[1]

    async def send_cookie(self, cookie: bytes) -> None:
        """Send the first bytes of a connection."""
        await self._send(cookie)

    async def send_state(self, state: State) -> None:
        """Send a state; raise ConnectionClosed if the connection ended, or the other end does not read."""
        await self._send(state.wire_byte)

    async def send_json(self, document: dict[str, Any]) -> None:
        """Send a document; raise ConnectionClosed as `send_state`."""
        await self._send(encode_body(document))

    async def send_error(self, number: int, system_errno: int = 0) -> None:
        """Refuse or end the test by a number of iperf3, and close the connection."""
        with contextlib.suppress(ConnectionClosed):
            await self._send(State.SERVER_ERROR.wire_byte + _ERROR_WORDS.pack(number, system_errno))
        await self.aclose()

    async def aclose(self, linger_s: float = _LINGER_S) -> None:
        """Send what is queued, wait for the other end to close, `linger_s` at most, and close.

        Unread bytes would make the kernel send a reset, which discards the data that the other end has not read
        yet.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with contextlib.suppress(OSError, TimeoutError):
                self._sock.shutdown(socket.SHUT_WR)
                async with asyncio.timeout(linger_s):
                    left = _MAX_LINGER_BYTES
                    while left > 0 and (data := await self._loop.sock_recv(self._sock, _READ_BYTES)):
                        left -= len(data)
        finally:
            self._sock.close()

    def abort(self) -> None:
        """Close at once."""
        self._is_closed = True
        self._sock.close()

    async def _send(self, data: bytes) -> None:
        if self._is_closed:
            raise ConnectionClosed("this end closed the connection")
        try:
            async with asyncio.timeout(_SEND_DEADLINE_S), self._sending:
                await self._loop.sock_sendall(self._sock, data)
        except TimeoutError:
            raise SilentPeer("it does not read") from None
        except OSError as error:
            raise ConnectionClosed(explain_os_error(error)) from error

    async def _read_exactly(self, count: int, deadline_s: float) -> bytes:
        await self._fill(count, deadline_s)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    async def _fill(self, count: int, deadline_s: float) -> None:
        """Read until the buffer has `count` bytes. It grows with arriving bytes, never with an announced length."""
        if len(self._buffer) >= count:
            return
        try:
            async with asyncio.timeout(deadline_s):
                while len(self._buffer) < count:
                    data = await self._loop.sock_recv(self._sock, min(_READ_BYTES, count - len(self._buffer)))
                    if not data:
                        raise ConnectionClosed("it closed the connection")
                    self._buffer += data
        except TimeoutError as error:
            if error.errno is not None:  # ETIMEDOUT: its host is gone
                raise ConnectionClosed(explain_os_error(error)) from error
            raise SilentPeer(f"it sent nothing for {deadline_s:g} s") from None
        except OSError as error:
            _log.debug("the control connection of iperf3 ended: %s", error)
            raise ConnectionClosed(explain_os_error(error)) from error


def _prefer(sock: socket.socket) -> None:
    """Send bytes at once and before those of the test, and notice a host that is gone."""
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_IP, socket.IP_TOS, _LOW_DELAY),  # an IPv6 socket may carry IPv4
    ]
    if sock.family == socket.AF_INET6:
        options.append((socket.IPPROTO_IPV6, socket.IPV6_TCLASS, _LOW_DELAY))
    if sys.platform == "linux":
        options.append((socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_IDLE_S))
        options.append((socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S))
        options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _GIVE_UP_MS))
    for level, name, value in options:
        with contextlib.suppress(OSError):
            sock.setsockopt(level, name, value)


def _address_of(ask: Any) -> tuple[str | int, ...]:
    """Return a socket address, () if the other end has reset the connection."""
    with contextlib.suppress(OSError):
        return ask()
    return ()
