"""The bytes of a connection to an HTTP server, with TLS or without: looked at, and taken as far as understood.

What follows a head belongs to whoever has the connection next, which may be a worker process.
"""

import asyncio
import contextlib
import hashlib
import os
import select
import socket
import ssl
from abc import ABC, abstractmethod
from typing import Final

from ..host.event_loop import wait_until_readable
from ..model.errors import PeerUnreachable, PeerUntrusted, explain_os_error
from ..model.peer import Peer
from ..model.shared_key import NO_ACCESS, constant_time_equal
from ..workloads.socket_io import NO_WAIT

TLS_DEADLINE_S: Final = 5.0
_PIECE_BYTES: Final = 16 * 1024
_TLS_PIECE_BYTES: Final = 256 * 1024


class Wire(ABC):
    """A connection: `sock` is its socket, for the kernel's figures."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    @abstractmethod
    async def peek(self) -> bytes:
        """Return the next bytes and leave them there; none at the end. Raises OSError."""

    @abstractmethod
    async def take(self, count: int) -> None:
        """Remove bytes that were peeked at."""

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send; raise OSError."""

    @abstractmethod
    def send_now(self, data: bytes) -> bool:
        """Send a few bytes without waiting; return whether that was possible. It is unless nothing gets through."""

    @abstractmethod
    def close(self) -> None:
        """Close this process's part of the connection."""


class PlainWire(Wire):
    """A connection without TLS, which may be shared with a worker."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._epoll: select.epoll | None = None

    def share(self) -> int:
        """Return a descriptor for another process, whose calls may block from now on.

        Both have the same file, so that what blocks for one blocks for both, and a loop that watches the descriptor
        itself would make the other's calls fail. An epoll leaves the file as it is.
        """
        if self._epoll is None and hasattr(select, "epoll"):
            self._epoll = select.epoll()
            self._epoll.register(self.sock, select.EPOLLIN | select.EPOLLRDHUP)
        return os.dup(self.sock.fileno())

    async def peek(self) -> bytes:
        """Return the next bytes and leave them there; none at the end. Raises OSError."""
        while True:
            await wait_until_readable(self._epoll or self.sock)
            with contextlib.suppress(BlockingIOError, InterruptedError):
                return self.sock.recv(_PIECE_BYTES, socket.MSG_PEEK | NO_WAIT)

    async def take(self, count: int) -> None:
        """Remove bytes that were peeked at."""
        while count:
            count -= len(self.sock.recv(count, NO_WAIT))

    async def send(self, data: bytes) -> None:
        """Send; raise OSError. The connection must not be shared yet."""
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    def send_now(self, data: bytes) -> bool:
        """Send a few bytes without waiting; return whether that was possible. It is unless nothing gets through."""
        try:
            return self.sock.send(data, NO_WAIT) == len(data)
        except OSError:
            return False

    def close(self) -> None:
        """Close this process's part of the connection."""
        if self._epoll is not None:
            self._epoll.close()
        self.sock.close()


class TlsWire(Wire):
    """A connection with TLS, whose bytes only this process can read and write."""

    def __init__(self, sock: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(sock)
        self._reader, self._writer = reader, writer
        self._buffer = b""

    async def peek(self) -> bytes:
        """Return the next bytes and leave them there; none at the end. Raises OSError."""
        if not self._buffer:
            self._buffer = await self._reader.read(_TLS_PIECE_BYTES)
        return self._buffer

    async def take(self, count: int) -> None:
        """Remove bytes that were peeked at."""
        self._buffer = self._buffer[count:]

    async def send(self, data: bytes) -> None:
        """Send; raise OSError."""
        self._writer.write(data)
        await self._writer.drain()

    def send_now(self, data: bytes) -> bool:
        """Send a few bytes behind what is queued."""
        self._writer.write(data)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._writer.transport.abort()
        self.sock.close()


async def start_tls(sock: socket.socket, peer: Peer) -> TlsWire:
    """Return a connection with TLS over a connected socket, which it closes, also if that fails.

    A peer with a fingerprint must have that certificate; without one, the authorities of this system decide.
    Raises PeerUntrusted for another certificate, PeerUnreachable if the server does not speak TLS.
    """
    fingerprint = (peer.access or NO_ACCESS).fingerprint
    context = ssl.create_default_context()
    if fingerprint is not None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # compared instead, below
    own = sock.dup()
    try:
        reader, writer = await asyncio.open_connection(
            sock=sock,
            ssl=context,
            server_hostname=peer.host.partition("%")[0],
            ssl_handshake_timeout=TLS_DEADLINE_S,
            limit=2 * _TLS_PIECE_BYTES,
        )
    except BaseException as error:
        own.close()
        sock.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            text = f"{peer} cannot be trusted: {error.verify_message}"
            raise PeerUntrusted(f"{text}; give --tls-fingerprint SHA256 of its certificate") from error
        if isinstance(error, OSError):
            why = error.reason if isinstance(error, ssl.SSLError) and error.reason else explain_os_error(error)
            raise PeerUnreachable(
                f"{peer} does not speak TLS: {why}; check the port, or leave out the s"
            ) from error
        raise
    wire = TlsWire(own, reader, writer)
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    actual = hashlib.sha256(certificate or b"").digest()
    if fingerprint is not None and not constant_time_equal(fingerprint, actual):
        wire.close()
        shown = actual.hex()
        text = f"{peer} cannot be trusted: its certificate's fingerprint is {shown}, not that of --tls-fingerprint"
        raise PeerUntrusted(text)
    return wire
