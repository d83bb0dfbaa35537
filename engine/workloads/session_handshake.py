"""How a session is opened: what both ends say on its connection before payload, and which object then hosts it."""

import asyncio
import errno
import os
import socket
import struct
from dataclasses import dataclass, replace
from typing import Any, Final

from ..model.plan import Direction, End, SocketOptions, sender_of
from ..model.workload import Workload
from ..protocol.auth import Tickets
from ..protocol.preamble import DATA_ACCEPTED, DATA_KIND, DataHello, encode_preamble
from . import sockets
from .connect_request_response import OUT_OF_PORTS, CrrRequester, CrrResponder, open_listener
from .latency_probe import ProbeRequester
from .registry import sessions_of
from .session import Session, SessionContext, WorkerResources

Message = dict[str, Any]
_PORT: Final = struct.Struct(">H")
_NO_PORT: Final = 0  # in place of a port: there is none to listen on
_BESIDE_DEADLINE_S: Final = 5.0
_ONE_SEGMENT_BYTES: Final = 500


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """What a worker's sessions are opened with."""

    end: End
    workload: Workload
    options: SocketOptions

    def is_sender(self, direction: Direction) -> bool:
        """Return whether this end sends the payload of a single direction."""
        return sender_of(direction, self.workload) is self.end

    @property
    def session_options(self) -> SocketOptions:
        """The options of a session's connection: no transaction waits for Nagle's algorithm (RFC 896)."""
        return replace(self.options, nodelay=self.options.nodelay or self.workload.is_transactional)


def make_data_hello(message: Message) -> DataHello:
    """Return what a session says of itself, from the command that opens it."""
    return DataHello(
        run_tag=bytes.fromhex(message["run"]),
        token=make_tickets(message).token(0),
        direction=Direction(message["direction"]),
        session=message["session"],
        generation=message["generation"],
        window_bytes=message["window_bytes"],
    )


def make_tickets(message: Message) -> Tickets:
    """Return the tokens of the session that a command opens."""
    return Tickets(bytes.fromhex(message["secret"]))


async def send_accepted(sock: socket.socket) -> None:
    """Far: tell the near end that its connection is taken in."""
    await asyncio.get_running_loop().sock_sendall(sock, DATA_ACCEPTED)


async def connect(sock: socket.socket, message: Message, options: SocketOptions) -> None:
    """Near: connect, say whose the connection is, and wait until it is taken in."""
    loop = asyncio.get_running_loop()
    sockets.bind_source(sock, options)
    try:
        await loop.sock_connect(sock, tuple(message["address"]))
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:  # the source, if any, is bound already: it is a port that is missing
            raise OSError(OUT_OF_PORTS) from error
        raise
    await loop.sock_sendall(sock, encode_preamble(DATA_KIND) + make_data_hello(message).pack())
    if await loop.sock_recv(sock, 1) != DATA_ACCEPTED:
        raise OSError("the far end did not accept the data connection")


async def negotiate_listener(
    sock: socket.socket, config: SessionConfig, message: Message
) -> "socket.socket | tuple[Any, ...] | None":
    """Agree on where the connections of `crr` go: return the answering end's listener, or its address.

    None for the other workloads, which have no further connections. The asking end tries the address once,
    so that a port that cannot be reached is told before the run and not after a minute of it.
    """
    if not config.workload.opens_connections:
        return None
    if config.is_sender(Direction(message["direction"])):
        return await _be_met(sock, config, message)
    loop = asyncio.get_running_loop()
    told = b""
    while len(told) < _PORT.size:
        more = await loop.sock_recv(sock, _PORT.size - len(told))
        if not more:
            raise OSError("the other end closed before it said where it listens")
        told += more
    (port,) = _PORT.unpack(told)
    if port == _NO_PORT:
        raise OSError(f"at the {config.end.other} end {OUT_OF_PORTS}")
    peer = sock.getpeername()
    address = (peer[0], port, *peer[2:])
    await _try_once(sock.family, address, config)
    await loop.sock_sendall(sock, DATA_ACCEPTED)
    return address


async def _be_met(sock: socket.socket, opening: SessionConfig, message: Message) -> socket.socket:
    """Listen, say where, and wait until the asking end has been there."""
    loop = asyncio.get_running_loop()
    try:
        listener = open_listener(sock)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        # Told, not just closed: the near end hears of the reset connection before it hears why.
        await loop.sock_sendall(sock, _PORT.pack(_NO_PORT))
        raise OSError(f"at the {opening.end} end {OUT_OF_PORTS}") from error
    try:
        sockets.set_options(listener, message["window_bytes"], opening.options)
        host, port = listener.getsockname()[:2]
        await loop.sock_sendall(sock, _PORT.pack(port))
        answer = await loop.sock_recv(sock, 1)
    except BaseException:
        listener.close()
        raise
    if answer != DATA_ACCEPTED:
        listener.close()
        raise OSError(_unreachable(opening.end.other, host, port, "it gave up"))
    return listener


async def _try_once(family: int, address: tuple[Any, ...], opening: SessionConfig) -> None:
    with socket.socket(family) as sock:
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_BESIDE_DEADLINE_S):
                await asyncio.get_running_loop().sock_connect(sock, address)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise OSError(OUT_OF_PORTS) from error
            # asyncio puts words of its own into strerror.
            why = "no answer" if error.errno is None else os.strerror(error.errno)
            raise OSError(_unreachable(opening.end, address[0], address[1], why)) from error


def _unreachable(asking: End, host: str, port: int, why: str) -> str:
    other_way = Direction.IN if asking is End.NEAR else Direction.OUT
    return (
        f"the {asking} end cannot connect to the {asking.other} end's {host} port {port} ({why}): crr asks on new "
        f"connections to a port of its own; let a firewall at the {asking.other} end take connections from the "
        f"{asking} one, or ask the other way round with --direction {other_way}"
    )


def create_session(
    sock: socket.socket,
    context: SessionContext,
    resources: WorkerResources,
    config: SessionConfig,
    message: Message,
    listener_or_address: "socket.socket | tuple[Any, ...] | None",
) -> Session:
    """Return the session that an open connection now is."""
    is_sender = config.is_sender(Direction(message["direction"]))
    if listener_or_address is None:
        if resources.pace_ns and not is_sender:
            return ProbeRequester(sock, context, resources)
        types = sessions_of(config.workload)
        return (types.sender if is_sender else types.receiver)(sock, context, resources)
    tickets = make_tickets(message)
    if isinstance(listener_or_address, socket.socket):
        return CrrResponder(sock, context, resources, listener_or_address, tickets)
    options = config.options
    if config.end is End.FAR:  # source and device are the near end's
        options = replace(options, source=None, device=None)
    if resources.request_bytes > _ONE_SEGMENT_BYTES:
        options = replace(options, nodelay=True)
    return CrrRequester(sock, context, resources, listener_or_address, tickets, (message["window_bytes"], options))
