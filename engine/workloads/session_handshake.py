"""Open a data connection: handshake of both ends before payload, and the session object for it.

The near end connects, names the run and the session (DataHello) and waits for one byte from the far end's worker.
For `crr` both ends then agree on a listener (crr_handshake.py).
"""

import asyncio
import errno
import socket
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from ..model.directions import Direction, End, sender_of
from ..model.plan import Dialect, SocketOptions
from ..model.workload import Workload
from ..protocol.preamble import DATA_ACCEPTED, DATA_KIND, DataHello, encode_preamble
from ..protocol.tokens import Tickets
from . import sockets
from .crr_handshake import ListenerHandshake
from .crr_requester import OUT_OF_PORTS, CrrRequester
from .crr_responder import CrrResponder
from .probes.request_probe import ProbeRequester
from .registry import sessions_of
from .session import Session, SessionContext, WorkerResources

# For crr: the listening socket at the responding end, its address at the requesting end. None for the others.
CrrEndpoint = socket.socket | tuple[Any, ...] | None

_ONE_SEGMENT_BYTES: Final = 500
NOT_ACCEPTED: Final = (
    "the remote host did not accept the data connection; its log may say why, and all connections of a test must "
    "reach the same endpoint"
)


@dataclass(frozen=True, slots=True)
class Iperf3Format:
    """How datagrams go to and from an iperf3 program.

    Their headers have numbers of 64 bits or of 32, and those that do not fit the path's MTU may become fragments.
    """

    has_64bit_counters: bool = False
    allows_fragments: bool = False


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The part of a plan that is common to all sessions of a worker.

    With `iperf3` the other end is iperf3, with `program` another program. Each block that is sent begins with the
    bytes `head_hex`.
    """

    end: End
    workload: Workload
    options: SocketOptions
    iperf3: Iperf3Format | None = None
    program: Dialect | None = None
    head_hex: str = ""

    @property
    def dialect(self) -> Dialect:
        """The protocol of the two ends."""
        if self.program is not None:
            return self.program
        return Dialect.LINKGAUGE if self.iperf3 is None else Dialect.IPERF3

    def is_sender(self, direction: Direction) -> bool:
        """Return whether this end sends the payload of a single direction."""
        return sender_of(direction, self.workload) is self.end

    @property
    def session_options(self) -> SocketOptions:
        """The options of a session's connection: no transaction waits for Nagle's algorithm (RFC 896)."""
        return replace(self.options, nodelay=self.options.nodelay or self.workload.is_transactional)

    @property
    def local_options(self) -> SocketOptions:
        """The options of this end's further connections: source and device are the near end's."""
        return self.options if self.end is End.NEAR else replace(self.options, source=None, device=None)


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """One connection to open: its session, the generation of settings, its window and its secret."""

    direction: Direction
    session: int
    generation: int
    window_bytes: int | None
    secret_hex: str

    def make_tickets(self) -> Tickets:
        """Return the tokens of this session's connections."""
        return Tickets(bytes.fromhex(self.secret_hex))


@dataclass(frozen=True, slots=True)
class ConnectTarget:
    """The far end's address, and the run to name there.

    `ipv6_fields` are the flow information and the scope identifier of an IPv6 address, and empty for IPv4.
    `local_port` None leaves the choice to the kernel.
    """

    run_tag_hex: str
    host: str
    port: int
    ipv6_fields: tuple[int, ...] = ()
    local_port: int | None = None

    @classmethod
    def from_address(cls, run_tag_hex: str, address: tuple[Any, ...], local_port: int | None = None) -> Self:
        """Return the target at a socket address of either family."""
        return cls(run_tag_hex, *address[:2], ipv6_fields=address[2:], local_port=local_port)

    @property
    def family(self) -> socket.AddressFamily:
        """The address family."""
        return socket.AF_INET6 if self.ipv6_fields else socket.AF_INET

    @property
    def address(self) -> tuple[str | int, ...]:
        """The address as socket.connect takes it."""
        return (self.host, self.port, *self.ipv6_fields)


def hello_of(spec: SessionSpec, target: ConnectTarget) -> DataHello:
    """Return the near end's first bytes on the connection of a session: they name run and session."""
    return DataHello(
        run_tag=bytes.fromhex(target.run_tag_hex),
        token=spec.make_tickets().token(0),
        direction=spec.direction,
        session=spec.session,
        generation=spec.generation,
        window_bytes=spec.window_bytes,
    )


async def send_accepted(sock: socket.socket) -> None:
    """Far end: confirm to the near end that a worker has its connection."""
    await asyncio.get_running_loop().sock_sendall(sock, DATA_ACCEPTED)


async def connect(sock: socket.socket, spec: SessionSpec, target: ConnectTarget, options: SocketOptions) -> None:
    """Near end: connect, name run and session, and wait until the far end confirms."""
    loop = asyncio.get_running_loop()
    await connect_to_target(sock, target, options)
    hello = hello_of(spec, target)
    try:
        await loop.sock_sendall(sock, encode_preamble(DATA_KIND) + hello.pack())
        answer = await loop.sock_recv(sock, 1)
    except ConnectionError as error:
        raise OSError(NOT_ACCEPTED) from error
    if answer != DATA_ACCEPTED:
        raise OSError(NOT_ACCEPTED)


async def connect_to_target(sock: socket.socket, target: ConnectTarget, options: SocketOptions) -> None:
    """Near end: bind a socket to its source, and connect it; raise OSError with a remedy if that fails."""
    try:
        sockets.bind_source(sock, options, target.local_port)
        await sockets.connect(sock, target.address)
    except OSError as error:
        if target.local_port is not None and error.errno in {errno.EADDRINUSE, errno.EADDRNOTAVAIL}:
            raise OSError(f"local port {target.local_port} is in use; give another --cport") from error
        if error.errno == errno.EADDRNOTAVAIL:  # any source is bound already, so a port is missing
            raise OSError(OUT_OF_PORTS) from error
        raise
    if options.congestion is not None and sock.type == socket.SOCK_STREAM:
        # The route's own choice (ip-route(8), congctl) has replaced the socket's as it connected.
        sockets.set_congestion(sock, options.congestion)


async def negotiate_listener(sock: socket.socket, config: SessionConfig, spec: SessionSpec) -> CrrEndpoint:
    """Agree on the listener of `crr`: return it at the responding end, its address at the requesting end.

    Return None for the other workloads, which need no further connections. The requesting end connects once, so
    that an unreachable port, or another program's port, is reported before the run and before any payload.
    """
    if not config.workload.opens_connections:
        return None
    handshake = ListenerHandshake(sock, config.end, bytes.fromhex(spec.secret_hex))
    if config.is_sender(spec.direction):
        return await handshake.offer(spec.window_bytes, config.options)
    return await handshake.verify(config.local_options)


def create_session(
    sock: socket.socket,
    context: SessionContext,
    resources: WorkerResources,
    config: SessionConfig,
    spec: SessionSpec,
    crr_endpoint: CrrEndpoint,
) -> Session:
    """Return the session for an open connection; `start` it to let payload flow.

    Args:
        sock: The connection, after its handshake.
        context: The session's counters and its callback.
        resources: The buffers and sizes of the worker.
        config: The end, the workload and the socket options.
        spec: The command that opened the connection.
        crr_endpoint: The result of `negotiate_listener`. The session closes a listener.
    """
    is_sender = config.is_sender(spec.direction)
    if crr_endpoint is None:
        if resources.pace_ns and not is_sender:
            return ProbeRequester(sock, context, resources)
        types = sessions_of(config.workload, config.dialect)
        return (types.sender if is_sender else types.receiver)(sock, context, resources)
    tickets = spec.make_tickets()
    if isinstance(crr_endpoint, socket.socket):
        return CrrResponder(sock, context, resources, crr_endpoint, tickets)
    options = config.local_options
    if resources.request_bytes > _ONE_SEGMENT_BYTES:
        options = replace(options, nodelay=True)
    return CrrRequester(sock, context, resources, crr_endpoint, tickets, (spec.window_bytes, options))
