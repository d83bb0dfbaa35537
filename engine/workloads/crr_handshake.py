"""The handshake about the listener of crr: its port, and the proof that the listener is the other end's.

A client could name the port of another host, at an address that several hosts share. So the listener proves itself
before anything is sent to it, once for each session:

    responder   port             on the session's own connection
    requester   nonce            on the same
    responder   its proof        on a connection that the requester has opened to the port
    requester   its answer       on the same, which proves the requester to the responder

The far end connects for any client, so its errors must not reveal the port's state: there is one text, at the end
of the deadline. The near end connects for its own user, who learns the reason at once.
"""

import asyncio
import errno
import logging
import os
import socket
import struct
from contextlib import suppress
from typing import Any, Final

from ..host.event_loop import read_exactly
from ..model.directions import Direction, End
from ..model.errors import explain_os_error
from ..model.plan import SocketOptions
from ..model.shared_key import constant_time_equal
from ..protocol.tokens import ListenerProof
from . import sockets
from .crr_requester import OUT_OF_PORTS
from .crr_responder import open_listener

VERIFY_DEADLINE_S: Final = 5.0
_PORT: Final = struct.Struct(">H")
_NO_PORT: Final = 0  # in place of a port: no listener could be opened
_NONCE_BYTES: Final = 16
_TURN_S: Final = 1.0  # for one connection, before the next one is accepted
_log = logging.getLogger(__name__)


class ListenerHandshake:
    """One end's part: `offer` at the responding end, `verify` at the requesting end.

    Args:
        sock: The session's own connection.
        end: This end.
        secret: The session's secret, which both ends have.
    """

    def __init__(self, sock: socket.socket, end: End, secret: bytes) -> None:
        self._sock = sock
        self._end = end
        self._secret = secret

    async def offer(self, window_bytes: int | None, options: SocketOptions) -> socket.socket:
        """Open a listener and return it once it has proved itself; raise OSError if it cannot."""
        loop = asyncio.get_running_loop()
        try:
            listener = open_listener(self._sock)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            # Without this message the near end would see a reset connection first, and the reason after it.
            await loop.sock_sendall(self._sock, _PORT.pack(_NO_PORT))
            raise OSError(f"{self._end.label}: {OUT_OF_PORTS}") from error
        host, port = listener.getsockname()[:2]
        is_verified = False
        try:
            sockets.set_options(listener, window_bytes, options)
            await loop.sock_sendall(self._sock, _PORT.pack(port))
            with suppress(EOFError):
                nonce = await read_exactly(self._sock, _NONCE_BYTES)
                is_verified = await self._prove(listener, ListenerProof(self._secret, nonce, port))
        finally:
            if not is_verified:
                listener.close()
        if not is_verified:
            raise OSError(_failure_text(self._end.other, host, port, "it gave up"))
        return listener

    async def _prove(self, listener: socket.socket, proof: ListenerProof) -> bool:
        """Send the proof to each connection; return whether the requesting end answered before it gave up."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[None] = loop.create_future()
        given_up = asyncio.create_task(loop.sock_recv(self._sock, 1))
        proving = asyncio.create_task(_prove_to_each(listener, proof, answered))
        try:
            await asyncio.wait({given_up, proving, answered}, return_when=asyncio.FIRST_COMPLETED)
            if proving.done():
                proving.result()
            return answered.done()
        finally:
            given_up.cancel()
            proving.cancel()
            await asyncio.gather(given_up, proving, return_exceptions=True)

    async def verify(self, options: SocketOptions) -> tuple[Any, ...]:
        """Return the listener's address once it has proved itself; raise OSError if it does not."""
        try:
            (port,) = _PORT.unpack(await read_exactly(self._sock, _PORT.size))
        except EOFError as error:
            raise OSError("the other host closed the connection before it named its port") from error
        if port == _NO_PORT:
            raise OSError(f"{self._end.other.label}: {OUT_OF_PORTS}")
        peer = self._sock.getpeername()
        address = (peer[0], port, *peer[2:])
        nonce = os.urandom(_NONCE_BYTES)
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + VERIFY_DEADLINE_S
        try:
            async with asyncio.timeout_at(deadline_s):
                await loop.sock_sendall(self._sock, nonce)
                await _verify_at(address, ListenerProof(self._secret, nonce, port), options)
        except (OSError, EOFError) as error:
            _log.debug("listener %s is not verified: %r", address, error)
            if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
                raise OSError(OUT_OF_PORTS) from error
            why = _explain(error)
            if self._end is End.FAR:
                why = "nothing there proved to be linkgauge"
                await asyncio.sleep(deadline_s - loop.time())
            raise OSError(_failure_text(self._end, address[0], port, why)) from error
        return address


async def _prove_to_each(listener: socket.socket, proof: ListenerProof, answered: "asyncio.Future[None]") -> None:
    """Send the proof on each connection until one of them answers.

    One at a time, or for a second: the first connection of the session must not be taken for one of these.
    """
    loop = asyncio.get_running_loop()

    async def prove(sock: socket.socket) -> None:
        with sock, suppress(OSError, EOFError):
            sock.setblocking(False)
            await loop.sock_sendall(sock, proof.of_listener)
            answer = await read_exactly(sock, len(proof.of_requester))
            if constant_time_equal(proof.of_requester, answer) and not answered.done():
                answered.set_result(None)

    tasks: set[asyncio.Task[None]] = set()
    try:
        while not answered.done():
            sock, _address = await loop.sock_accept(listener)
            task = asyncio.create_task(prove(sock))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.wait({task}, timeout=_TURN_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _verify_at(address: tuple[Any, ...], proof: ListenerProof, options: SocketOptions) -> None:
    """Connect to the listener, and answer its proof; raise OSError or EOFError if it is not one."""
    with socket.socket(socket.AF_INET6 if len(address) > len(("host", "port")) else socket.AF_INET) as sock:
        sock.setblocking(False)
        sockets.bind_source(sock, options)
        await sockets.connect(sock, address, is_reachable=False)
        if not constant_time_equal(proof.of_listener, await read_exactly(sock, len(proof.of_listener))):
            raise EOFError("a wrong proof")
        await asyncio.get_running_loop().sock_sendall(sock, proof.of_requester)


def _explain(error: OSError | EOFError) -> str:
    if isinstance(error, EOFError):
        return "another program answers there"
    return "no answer" if error.errno is None else explain_os_error(error)


def _failure_text(requester: End, host: str, port: int, why: str) -> str:
    other_way = Direction.IN if requester is End.NEAR else Direction.OUT
    asking, answering = f"the {requester.label} host", f"the {requester.other.label} one"
    return (
        f"{asking} cannot connect to {host} port {port} of {answering} ({why}); crr opens connections to a port of "
        f"its own: let a firewall of {answering} accept them, or give --direction {other_way}"
    )
