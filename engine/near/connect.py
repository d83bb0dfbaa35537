"""Reaching a far end: name, connection, greeting; every failure is told in words with what to do."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult, handshake_as_near
from ..control.tls import start_tls
from ..host.blocking_calls import call_in_thread
from ..model.errors import (
    ConnectionClosed,
    PeerError,
    PeerNotLinkgauge,
    PeerUnreachable,
    PeerVersionMismatch,
    RemoteProtocolError,
)
from ..model.host_info import HostInfo
from ..model.peer import Peer
from ..model.plan import End
from ..ssh.session import SshFarEnd, open_ssh_far_end

CONNECT_DEADLINE_S: Final = 5.0

FarEnd = Peer | SshFarEnd
"""What can be connected to: a peer, or one that ssh has started already."""

_Address = tuple[int, tuple[Any, ...]]


async def query_host_info(peer: FarEnd) -> HostInfo:
    """Return who answers at a peer, within 5 seconds; raise PeerError where no endpoint does."""
    return (await query_ends(peer)).far


async def query_ends(peer: FarEnd) -> HandshakeResult:
    """Return who is at both ends of a connection to a peer, as `probe` does."""
    async with connect(peer) as (_link, ends):
        return ends


@asynccontextmanager
async def connect(peer: FarEnd) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    """Give a control connection to a peer that has been greeted, and who is at its ends.

    Within 5 seconds; raises PeerUnreachable, PeerNotLinkgauge, PeerVersionMismatch, PeerRefused or
    PeerUntrusted. A far end that
    ssh has to start first is started for this connection alone, and takes the time that logging in takes.
    """
    async with AsyncExitStack() as stack:
        if isinstance(peer, Peer) and peer.ssh is not None:
            peer = await stack.enter_async_context(open_ssh_far_end(peer))
        yield await stack.enter_async_context(_connected(peer))


@asynccontextmanager
async def _connected(peer: FarEnd) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    link: ControlConnection | None = None
    try:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                link = await _reach(peer) if isinstance(peer, Peer) else peer.open_control()
                ends = await _greet(link, peer)
        except TimeoutError as error:
            raise _too_late(peer, connected=link is not None) from error
        yield link, ends
    finally:
        if link is not None:
            await link.aclose()


def _too_late(peer: FarEnd, *, connected: bool) -> PeerError:
    if not isinstance(peer, Peer):
        return PeerUnreachable(f"{peer} no longer answers through its ssh within {CONNECT_DEADLINE_S:g} s")
    if connected:
        return PeerNotLinkgauge(
            f"{peer} accepts the connection but says nothing in {CONNECT_DEADLINE_S:g} s: "
            "is it really `linkgauge endpoint` that listens there?"
        )
    return PeerUnreachable(
        f"no answer from {peer} in {CONNECT_DEADLINE_S:g} s; is the host up, "
        f"and does every firewall on the way let TCP port {peer.port} through?"
    )


async def _greet(link: ControlConnection, peer: FarEnd) -> HandshakeResult:
    try:
        if isinstance(peer, Peer):
            return await handshake_as_near(link, peer)
        ends = await handshake_as_near(link, peer.peer)
        return replace(ends, notes=peer.data_path.notes, is_data_tunneled=peer.data_path.is_through_ssh)
    except PeerNotLinkgauge as error:
        raise PeerNotLinkgauge(f"{peer} is not a linkgauge endpoint: {error}; check the port") from error
    except PeerVersionMismatch as error:
        raise PeerVersionMismatch(
            f"{peer} cannot be used: {error}; install the same version on both ends"
        ) from error
    except RemoteProtocolError as error:
        raise PeerNotLinkgauge(
            f"{peer} cannot be understood: {error}; install the same version on both ends"
        ) from error
    except ConnectionClosed as error:
        raise PeerUnreachable(f"{peer} did not greet back: {error}") from error


async def _reach(peer: Peer) -> ControlConnection:
    loop = asyncio.get_running_loop()
    addresses = await _resolve(peer)
    problem: OSError = OSError("it has no address")
    for family, address in addresses:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # a name may have an address of a family that this host lacks
            problem = error
            continue
        try:
            sock.setblocking(False)
            # A dead address leaves time for the next one: IPv6 without a route is common.
            share = None if address == addresses[-1][1] else CONNECT_DEADLINE_S / 2
            async with asyncio.timeout(share):
                await loop.sock_connect(sock, address)
            if peer.access is not None and peer.access.fingerprint is not None:
                return await start_tls(sock, peer, peer.access.fingerprint)
            _transport, link = await loop.create_connection(lambda: ControlConnection(End.NEAR), sock=sock)
        except OSError as error:
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return link
    if isinstance(problem, ConnectionRefusedError):
        raise PeerUnreachable(
            f"nothing listens on {peer}; start `linkgauge endpoint` there, or give its port as HOST:PORT"
        ) from problem
    raise PeerUnreachable(f"{peer} cannot be reached: {problem.strerror or problem}") from problem


async def _resolve(peer: Peer) -> list[_Address]:
    """Look a name up; the resolver may take far longer than a person waits."""

    def look_up() -> list[_Address]:
        infos = socket.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _type, _protocol, _name, address in infos]

    try:
        return await call_in_thread(look_up, name="resolver")
    except (OSError, UnicodeError) as error:
        raise PeerUnreachable(
            f"{peer.host} does not resolve to an address ({error}); check the spelling, or give the address"
        ) from error
