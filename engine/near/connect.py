"""Connection to a far end: start it where necessary, resolve, connect, shake hands.

Every failure becomes an error that says what to do.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult, handshake_as_near
from ..control.tls import start_tls
from ..far.loopback import embedded_endpoint
from ..host.event_loop import call_in_thread, connect_socket
from ..model.errors import (
    ConnectionClosed,
    ConnectionTampered,
    PeerError,
    PeerNotLinkgauge,
    PeerUnreachable,
    PeerVersionMismatch,
    RemoteProtocolError,
    explain_os_error,
)
from ..model.host_info import HostInfo
from ..model.peer import Peer
from ..model.plan import End
from ..ssh.session import PromptCallback, SshFarEnd, open_ssh_far_end

CONNECT_DEADLINE_S: Final = 5.0

FarEnd = Peer | SshFarEnd
"""A far end to connect to: the address of a peer, or a far end that ssh has started."""

_Address = tuple[int, tuple[Any, ...]]
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_far_end(peer: Peer, prompt: PromptCallback | None = None) -> AsyncGenerator[FarEnd]:
    """Bring up the far end of a loopback or ssh peer, and yield what to connect to.

    Any other peer is yielded as it is, without a look whether it answers. `prompt` is as in `open_ssh_far_end`.
    Raises PeerError or WorkerError if the far end does not come up.
    """
    if peer.is_loopback:
        async with embedded_endpoint() as embedded:
            yield embedded
    elif peer.ssh is not None:
        async with open_ssh_far_end(peer, prompt) as started:
            yield started
    else:
        yield peer


async def query_host_info(peer: FarEnd) -> HostInfo:
    """Return the facts of a peer's host, within 5 seconds; raise PeerError if no endpoint answers."""
    return (await query_ends(peer)).far


async def query_ends(peer: FarEnd) -> HandshakeResult:
    """Return the facts of both ends of a connection to a peer; raise as `connect` does."""
    async with connect(peer) as (_control, ends):
        return ends


@asynccontextmanager
async def connect(peer: FarEnd) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    """Connect to a peer and yield the control connection, after its handshake, with the facts of both ends.

    It takes at most 5 seconds. A far end that ssh has to start is started for this connection alone, and the login
    takes its own time. Raises PeerUnreachable, PeerNotLinkgauge, PeerVersionMismatch, PeerRefused or PeerUntrusted.
    """
    async with AsyncExitStack() as stack:
        if isinstance(peer, Peer) and peer.ssh is not None:
            peer = await stack.enter_async_context(open_ssh_far_end(peer))
        yield await stack.enter_async_context(_open_connection(peer))


@asynccontextmanager
async def _open_connection(peer: FarEnd) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    control: ControlConnection | None = None
    try:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                control = await _connect_socket(peer) if isinstance(peer, Peer) else peer.open_control()
                _log.debug("connected to %s", peer)
                ends = await _shake_hands(control, peer)
        except TimeoutError as error:
            raise _timeout_error(peer, connected=control is not None) from error
        yield control, ends
    finally:
        if control is not None:
            await control.aclose()


def _timeout_error(peer: FarEnd, *, connected: bool) -> PeerError:
    if not isinstance(peer, Peer):
        return PeerUnreachable(f"{peer} did not answer over ssh within {CONNECT_DEADLINE_S:g} s")
    if connected:
        return PeerNotLinkgauge(
            f"{peer} accepted the connection but sent nothing for {CONNECT_DEADLINE_S:g} s; "
            "check that `linkgauge endpoint` listens there"
        )
    return PeerUnreachable(
        f"no answer from {peer} in {CONNECT_DEADLINE_S:g} s; check that "
        f"the host is up and that every firewall on the way allows TCP port {peer.port}"
    )


async def _shake_hands(control: ControlConnection, peer: FarEnd) -> HandshakeResult:
    try:
        if isinstance(peer, Peer):
            return await handshake_as_near(control, peer)
        ends = await handshake_as_near(control, peer.peer)
        return replace(ends, notes=peer.data_path.notes, is_data_tunneled=peer.data_path.is_through_ssh)
    except PeerNotLinkgauge as error:
        raise PeerNotLinkgauge(f"{peer} is not a linkgauge endpoint: {error}; check the port") from error
    except PeerVersionMismatch as error:
        raise PeerVersionMismatch(f"{peer} cannot be used: {error}") from error
    except ConnectionTampered as error:
        raise ConnectionTampered(f"{peer} cannot be used: {error}") from error
    except RemoteProtocolError as error:
        raise PeerNotLinkgauge(
            f"{peer} cannot be understood: {error}; install the same version on both hosts"
        ) from error
    except ConnectionClosed as error:
        raise PeerUnreachable(f"{peer} did not answer the greeting: {error}") from error


async def _connect_socket(peer: Peer) -> ControlConnection:
    loop = asyncio.get_running_loop()
    addresses = await _resolve(peer)
    problem: OSError | None = None
    for family, address in addresses:
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # a name may have an address of a family that this host lacks
            problem = error
            continue
        try:
            sock.setblocking(False)
            # An address that does not answer leaves time for the next one: IPv6 without a route is common.
            deadline_s = None if address == addresses[-1][1] else CONNECT_DEADLINE_S / 2
            async with asyncio.timeout(deadline_s):
                await connect_socket(sock, address)
            if peer.access is not None and peer.access.fingerprint is not None:
                return await start_tls(sock, peer, peer.access.fingerprint)
            _transport, control = await loop.create_connection(lambda: ControlConnection(End.NEAR), sock=sock)
        except OSError as error:
            _log.debug("%s does not accept a connection: %s", address, error)
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return control
    if isinstance(problem, ConnectionRefusedError):
        raise PeerUnreachable(
            f"nothing listens on {peer}; start `linkgauge endpoint` there, or give its port as HOST:PORT"
        ) from problem
    raise PeerUnreachable(
        f"{peer} cannot be reached: {explain_os_error(problem) if problem else 'it has no address'}"
    ) from problem


async def _resolve(peer: Peer) -> list[_Address]:
    """Return the addresses of a peer's name, from a thread: the resolver may block past every deadline."""

    def look_up() -> list[_Address]:
        infos = socket.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM)
        return [(family, address) for family, _type, _protocol, _name, address in infos]

    try:
        return await call_in_thread(look_up, name="resolver")
    except (OSError, UnicodeError) as error:
        _, _, zone = peer.host.partition("%")
        if zone:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise PeerUnreachable(f"{peer}: this machine has no interface {zone}; it has {names}") from error
        raise PeerUnreachable(
            f"{peer.host} does not resolve to an address; check the spelling, or give the address"
        ) from error
