"""What the two protocols have in common: connections to one server, and the conversation with it around a test."""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import ClassVar, Final

from ..model.counters.samples import Sample
from ..model.directions import Direction
from ..model.errors import (
    ConnectionClosed,
    PeerNotLinkgauge,
    PeerUnreachable,
    RemoteProtocolError,
    ServerEnded,
    SilentPeer,
    explain_os_error,
)
from ..model.peer import Peer
from ..model.plan import Plan
from ..model.speed_server import SpeedServer
from ..near.connect import connect_tcp
from ..protocol.foreign.websocket_frames import Message
from ..workloads.session_handshake import ConnectTarget, connect_to_target
from ..workloads.sockets import prepare
from .http_connection import Answer, Headers, HttpConnection, request_head
from .http_wire import PlainWire, start_tls

_REDIRECTS: Final = range(300, 400)


class Connector:
    """Connections to one server: all of them go to the address that answered first."""

    def __init__(self, peer: Peer, server: SpeedServer, plan: Plan) -> None:
        self.peer, self._server, self._plan = peer, server, plan
        self._address: tuple[str | int, ...] = ()
        self._first_port = plan.client_port
        host = peer.host.partition("%")[0]
        place = f"[{host}]" if ":" in host else host
        self._authority = place if peer.port == server.usual_port else f"{place}:{peer.port}"

    async def find_address(self) -> socket.socket:
        """Return a socket connected to the first address that answers; raise PeerUnreachable."""
        sock = await connect_tcp(self.peer, self._plan.socket)
        try:
            self._address = sock.getpeername()
        except OSError as error:
            sock.close()
            raise PeerUnreachable(f"{self.peer} closed the connection at once") from error
        return sock

    async def open(self, number: int | None = None) -> HttpConnection:
        """Return another connection, with the socket options of the plan.

        Args:
            number: its place among those of the test, for its local port; None for one beside the test.

        Raises PeerUnreachable or PeerUntrusted.
        """
        port = None if self._first_port is None or number is None else self._first_port + number
        target = ConnectTarget.from_address("", self._address, port)
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        try:
            prepare(sock, None, self._plan.socket)
            await connect_to_target(sock, target, self._plan.socket)
        except OSError as error:
            sock.close()
            raise PeerUnreachable(f"no further connection to {self.peer}: {explain_os_error(error)}") from error
        except BaseException:
            sock.close()
            raise
        return await self.wrap(sock)

    def request_head(self, method: str, target: str, headers: Headers = ()) -> bytes:
        """Return a request to the server without its body."""
        return request_head(self._authority, method, target, headers)

    async def wrap(self, sock: socket.socket) -> HttpConnection:
        """Return the connection over a connected socket, with TLS if the server has it. Raises as `open`."""
        wire = await start_tls(sock, self.peer) if self._server.is_tls else PlainWire(sock)
        return HttpConnection(wire, self._authority)


class SpeedClient(ABC):
    """The conversation with a server of one protocol. Call `greet` first, and `close` at the end."""

    ends_tests: ClassVar[bool]
    """Whether the server ends each test itself, after a time of its own."""

    def __init__(self, connector: Connector, server: SpeedServer) -> None:
        self._connector, self._server = connector, server
        self._peer = connector.peer

    @abstractmethod
    async def greet(self, sock: socket.socket) -> None:
        """Check over a connected socket, which this owns now, that such a server is there; raise PeerError."""

    @abstractmethod
    async def open_session(self, flow: Direction, number: int | None) -> HttpConnection:
        """Return a connection whose payload may flow from now on; raise PeerError.

        `number` is its place among those of the test; None for one that replaces another.
        """

    @abstractmethod
    async def follow(self, connection: HttpConnection, flow: Direction, carried: Callable[[], int], /) -> None:
        """Converse on a session beside its payload until cancelled. `carried` returns its payload so far.

        Raises:
            ServerEnded: The server ends the test.
            ConnectionSpent: It wants another connection in place of this one.
            ConnectionClosed: The connection ended.
            RemoteProtocolError: The server sends what it must not.
        """

    @abstractmethod
    def message(self) -> tuple[bytes, int]:
        """Return the head of each message of an upload, and the size of its body."""

    async def ping(self) -> int:
        """Return the nanoseconds until an answer of a few bytes on a kept connection. Raises as `follow`."""
        raise NotImplementedError

    @property
    def ping_socket(self) -> socket.socket | None:
        """The socket of the pings."""
        return None

    def take_payload(self, data: bytes) -> None:  # noqa: B027 - most payload says nothing
        """Look at payload that was received by this process. Raises as `follow`."""

    def take_message(self, message: Message) -> None:  # noqa: B027 - only a WebSocket has messages
        """Take a message that a worker found between the payload. Raises as `follow`."""

    def far_sample(self, _sample: Sample) -> Sample | None:
        """Return the server's reports as a sample of the time of this end's; None without reports."""
        return None

    def find_discrepancies(self, _acknowledged_bytes: int) -> list[str]:
        """Return warnings about reports that contradict this kernel's count."""
        return []

    def say_goodbye(self, connection: HttpConnection) -> None:  # noqa: B027 - HTTP has no word for it
        """Tell the server that the test is over."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections that are not sessions."""

    @contextmanager
    def explained(self, moment: str) -> Generator[None]:
        """Raise a failure before the test as an error that names the peer and a remedy."""
        peer, kind = self._peer, self._server.protocol.server_name
        try:
            yield
        except SilentPeer as error:
            text = f"{peer} accepted the connection, but {error}; check that {kind} listens there"
            raise PeerUnreachable(text) from error
        except ConnectionClosed as error:
            raise PeerUnreachable(f"{peer} closed the connection {moment} ({error}); check the port") from error
        except ServerEnded as error:
            raise PeerNotLinkgauge(f"{peer} {error}") from error
        except RemoteProtocolError as error:
            raise PeerNotLinkgauge(f"{peer} is not {kind}: {error}; check the address") from error

    def refuse_redirect(self, answer: Answer) -> None:
        """Raise PeerNotLinkgauge for a redirect, which is never followed: the user decides where load goes."""
        if answer.status in _REDIRECTS:
            place = answer.header("location") or "nowhere"
            text = f"{self._peer} redirects to {place}, which is not followed; give that server's own address"
            raise PeerNotLinkgauge(text)
