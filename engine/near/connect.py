"""Connection to a far end: start it if necessary, resolve, connect, shake hands.

Every failure becomes an error with a remedy.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult, handshake_as_near
from ..control.tls import start_tls
from ..far.loopback import embedded_endpoint
from ..host.description import describe_host
from ..host.event_loop import call_in_thread, connect_socket
from ..host.happy_eyeballs import Address, first_success, of_ip_version, resolve_addresses
from ..model.directions import End
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
from ..model.host_info import IPERF3_SOFTWARE, HostInfo
from ..model.ip_address import unmap_ip_address
from ..model.peer import Peer, SshSettings, format_ssh_address
from ..model.plan import SocketOptions
from ..ssh.ssh_far_end import PromptCallback, SshFarEnd, open_ssh_far_end
from .socket_option_checks import is_reachable

CONNECT_DEADLINE_S: Final = 5.0
_SLOW_CONNECT_S: Final = 1.0  # beyond the round trip of a satellite

FarEnd = Peer | SshFarEnd
"""A far end to connect to: the address of a peer, or a far end that ssh has started."""

CHECK_RUNS: Final = "check that its endpoint still runs, and try again"
CHECK_HAS_RESPONSIVENESS: Final = (
    "its linkgauge may be older than tests of latency under load: install the same version on both hosts"
)
CHECK_HAS_UDP: Final = "its linkgauge may be older than UDP tests: install the same version on both hosts"
_UNBOUND: Final = SocketOptions()
_OWN_SERVER: Final = ("linkgauge endpoint", "HOST:PORT")
_IPERF3_SERVER: Final = ("iperf3 -s", "iperf3://HOST:PORT")
_MAX_NAMED: Final = 4
_LONGEST_NAME: Final = 256
_SSH_PORT: Final = 22
_SSH_GREETING: Final = "'SSH-"  # RFC 4253, as an error quotes it
_log = logging.getLogger(__name__)


@contextmanager
def explained_errors(peer: FarEnd, kind: type[PeerError] = PeerError) -> Generator[None]:
    """Name the far end, and the remedy, if what it sends was changed on its way or makes no sense: a `kind`."""
    try:
        yield
    except ConnectionTampered as error:
        raise ConnectionTampered(f"{peer} cannot be used: {error}") from error
    except RemoteProtocolError as error:
        raise kind(f"{peer} cannot be understood: {error}; install the same version on both hosts") from error


@asynccontextmanager
async def open_far_end(peer: Peer, prompt: PromptCallback | None = None) -> AsyncGenerator[FarEnd]:
    """Bring up the far end of a loopback or ssh peer, and yield the far end to connect to.

    Any other peer is yielded as it is, without a check that it answers. `prompt` is as in `open_ssh_far_end`.
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
    """Return the facts of both ends of a connection to a peer; raise as `connect` does.

    Another program is not asked: an iperf3 server would take a connection for a test.
    """
    if isinstance(peer, Peer) and peer.is_foreign:
        return await _describe_route(peer)
    async with connect(peer) as (_control, ends):
        return ends


@asynccontextmanager
async def connect(
    peer: FarEnd, binding: SocketOptions = _UNBOUND
) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    """Connect to a peer and yield the control connection, after its handshake, with the facts of both ends.

    It takes at most 5 seconds. A far end that ssh has to start is started for this connection alone, and the login
    takes its own time. If a name has several addresses, the first one that answers is used. Addresses that data
    connections with the source and device of `binding` cannot reach are left out.
    Raises PeerUnreachable, PeerNotLinkgauge, PeerVersionMismatch, PeerRefused or PeerUntrusted.
    """
    async with AsyncExitStack() as stack:
        if isinstance(peer, Peer) and peer.ssh is not None:
            peer = await stack.enter_async_context(open_ssh_far_end(peer))
        yield await stack.enter_async_context(_open_connection(peer, binding))


@asynccontextmanager
async def _open_connection(
    peer: FarEnd, binding: SocketOptions
) -> AsyncGenerator[tuple[ControlConnection, HandshakeResult]]:
    control: ControlConnection | None = None
    attempts: _Attempts | None = None
    try:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                if isinstance(peer, Peer):
                    attempts = _Attempts(peer)
                    control = await _open_control(await attempts.connect(binding), peer)
                else:
                    control = peer.open_control()
                _log.debug("connected to %s", peer)
                with explained_errors(peer, PeerNotLinkgauge):
                    ends = await _shake_hands(control, peer)
        except TimeoutError as error:
            if attempts is not None and not attempts.is_connected:
                raise attempts.unreachable_error() from error
            is_greeted = control is not None and control.is_greeted
            raise _silence_error(
                peer, 0.0 if attempts is None else attempts.took_s, is_greeted=is_greeted
            ) from error
        yield control, ends
    finally:
        if control is not None:
            await control.aclose()


def _silence_error(peer: FarEnd, connected_s: float, *, is_greeted: bool) -> PeerError:
    """Return the error of a far end that has sent nothing more; its connection took `connected_s` to open."""
    if connected_s >= _SLOW_CONNECT_S:
        return PeerUnreachable(
            f"the link to {peer} is too slow or its queues are full: the connection took {connected_s:.1f} s to "
            f"open, and the handshake was not over after {CONNECT_DEADLINE_S:g} s; test while the link is idle"
        )
    if is_greeted:
        return PeerUnreachable(
            f"{peer} greeted and then sent nothing more for {CONNECT_DEADLINE_S:g} s; check that its host is not "
            "overloaded, or restart its endpoint"
        )
    if not isinstance(peer, Peer):
        return PeerUnreachable(f"{peer} did not answer over ssh within {CONNECT_DEADLINE_S:g} s")
    return PeerNotLinkgauge(
        f"{peer} accepted the connection but sent nothing for {CONNECT_DEADLINE_S:g} s; "
        f"check that `linkgauge endpoint` listens there, and that its host is not overloaded{_ssh_hint(peer)}"
    )


def _ssh_hint(peer: Peer, answer: str = "") -> str:
    """Return how to use a peer by ssh, if its port or its answer is that of an ssh server; else nothing."""
    is_server = _SSH_GREETING in answer
    if not is_server and peer.port != _SSH_PORT:
        return ""
    settings = SshSettings(port=None if peer.port == _SSH_PORT else peer.port)
    return f"; for a remote end by ssh, give {format_ssh_address(peer.host, settings)}"


async def _shake_hands(control: ControlConnection, peer: FarEnd) -> HandshakeResult:
    try:
        if isinstance(peer, Peer):
            return await handshake_as_near(control, peer)
        ends = await handshake_as_near(control, peer.peer)
        return replace(ends, notes=peer.data_path.notes, is_data_tunneled=peer.data_path.is_through_ssh)
    except PeerNotLinkgauge as error:
        hint = _ssh_hint(peer, str(error)) if isinstance(peer, Peer) else ""
        if control.machine.is_silent and not hint:  # the kernel of a flooded host resets connections, too
            text = f"{peer} closed the connection without a word; check the port, or try again if its host is busy"
            raise PeerNotLinkgauge(text) from error
        text = f"{peer} is not a linkgauge endpoint: {error}{hint or '; check the port'}"
        raise PeerNotLinkgauge(text) from error
    except PeerVersionMismatch as error:
        raise PeerVersionMismatch(f"{peer} cannot be used: {error}") from error
    except ConnectionClosed as error:
        raise PeerUnreachable(f"{peer} was lost during the handshake: {error}; {CHECK_RUNS}") from error


class _Attempts:
    """The addresses of a peer's name, and why connections to them have failed so far."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._addresses: list[Address] = []
        self._failures: dict[Address, OSError] = {}
        self.is_connected = False
        self.took_s = 0.0

    async def connect(self, binding: SocketOptions) -> socket.socket:
        """Return a socket connected to the first address that answers; raise PeerError if none does."""
        addresses = await resolve_peer(self._peer)
        began_s = time.monotonic()
        # If the binding leaves none, the error is about the binding, once the peer has answered.
        self._addresses = [each for each in addresses if is_reachable(binding, *each)] or addresses
        sock = await first_success(self._addresses, _connect_socket, socket.socket.close, self._failures)
        if sock is None:
            raise self.unreachable_error()
        self.is_connected, self.took_s = True, time.monotonic() - began_s
        return sock

    def unreachable_error(self) -> PeerUnreachable:
        """Return the error for the most telling failure: a refusal, then silence, then any other."""
        failure = min(self._failures.values(), key=_rank, default=None)
        has_unanswered = len(self._failures) < len(self._addresses) or not self._addresses
        tried = self._tried_addresses()
        if isinstance(failure, ConnectionRefusedError):
            text = f"nothing listens on {self._peer}{tried}; {_how_to_start(self._peer)}"
            return PeerUnreachable(f"{text}{_ssh_hint(self._peer)}")
        if failure is None or has_unanswered:
            return PeerUnreachable(
                f"no answer from {self._peer} in {CONNECT_DEADLINE_S:g} s{tried}; check that "
                f"the host is up and that every firewall on the way allows TCP port {self._peer.port}"
                f"{_ssh_hint(self._peer)}"
            )
        return PeerUnreachable(f"{self._peer} cannot be reached{tried}: {explain_os_error(failure)}")

    def _tried_addresses(self) -> str:
        names = list(dict.fromkeys(str(address[0]) for _, address in self._addresses))
        if len(names) <= 1:
            return ""
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        return f" (tried {', '.join(names[:_MAX_NAMED])}{more})"


def _how_to_start(peer: Peer) -> str:
    """Return the remedy if nothing listens at a peer's port."""
    if peer.speed is not None:
        return f"check that the {peer.speed.protocol.label} server runs there, or give its port after the host"
    program, form = _OWN_SERVER if peer.iperf3 is None else _IPERF3_SERVER
    return f"start `{program}` there, or give its port as {form}"


def _rank(error: OSError) -> int:
    """Return how far an attempt got: 0 to the host, 1 to silence, 2 nowhere."""
    if isinstance(error, ConnectionRefusedError):
        return 0
    return 1 if error.errno == errno.ETIMEDOUT else 2


async def _connect_socket(target: Address) -> socket.socket:
    family, address = target
    sock = socket.socket(family, socket.SOCK_STREAM)  # raises OSError if this host lacks the family
    try:
        sock.setblocking(False)
        await connect_socket(sock, address)
    except BaseException as error:
        _log.debug("no connection to %s: %r", address, error)
        sock.close()
        raise
    return sock


async def connect_tcp(peer: Peer, binding: SocketOptions) -> socket.socket:
    """Return a socket connected to the first address of a peer that answers within 5 seconds.

    It does not block. `binding` is as in `connect`. Raises PeerUnreachable.
    """
    attempts = _Attempts(peer)
    try:
        async with asyncio.timeout(CONNECT_DEADLINE_S):
            return await attempts.connect(binding)
    except TimeoutError as error:
        raise attempts.unreachable_error() from error


async def _open_control(sock: socket.socket, peer: Peer) -> ControlConnection:
    try:
        if peer.access is not None and peer.access.fingerprint is not None:
            return await start_tls(sock, peer, peer.access.fingerprint)
        loop = asyncio.get_running_loop()
        _transport, control = await loop.create_connection(lambda: ControlConnection(End.NEAR), sock=sock)
    except OSError as error:
        sock.close()
        raise PeerUnreachable(f"{peer} cannot be reached: {explain_os_error(error)}") from error
    except BaseException:
        sock.close()
        raise
    return control


async def resolve_peer(peer: Peer) -> list[Address]:
    """Return the addresses of a peer's name, from a thread: the resolver may block past every deadline."""
    try:
        addresses = await call_in_thread(lambda: resolve_addresses(peer.host, peer.port), name="resolver")
    except (OSError, UnicodeError) as error:
        _, _, zone = peer.host.partition("%")
        if zone:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise PeerUnreachable(f"{peer}: this machine has no interface {zone}; it has {names}") from error
        raise PeerUnreachable(
            f"{peer.host} does not resolve to an address; check the spelling, or give the address"
        ) from error
    addresses = of_ip_version(addresses, peer.only_ip)
    if not addresses:
        kind = "address" if peer.only_ip is None else f"IPv{peer.only_ip} address; leave out -{peer.only_ip}"
        raise PeerUnreachable(f"{peer} cannot be reached: it has no {kind}")
    return addresses


async def _describe_route(peer: Peer) -> HandshakeResult:
    """Return the facts of both ends by the route to another program, which receives nothing.

    Raises PeerUnreachable if its name does not resolve, or no route leads there.
    """
    failure: OSError | None = None
    for family, address in await resolve_peer(peer):
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect(address)
            except OSError as error:
                failure = error
            else:
                near = await describe_host(sock.getsockname(), sock.getpeername())
                remote = unmap_ip_address(str(sock.getpeername()[0]))
                return HandshakeResult(near, describe_server(peer), address=remote)
    reason = "it has no address" if failure is None else explain_os_error(failure)
    raise PeerUnreachable(f"{peer} cannot be reached: {reason}") from failure


def describe_server(peer: Peer) -> HostInfo:
    """Return the description of the host of another program: only its name is known."""
    program = IPERF3_SOFTWARE if peer.speed is None else peer.speed.protocol.value
    return HostInfo(peer.host[:_LONGEST_NAME], "unknown", 0, program, "unknown")
