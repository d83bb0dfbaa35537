"""The connections of an endpoint that have not identified themselves and proved the key yet.

They have no privilege: if there are too many, the network that has the most of them loses its oldest one. A client
proves itself within a few round trips, so a crowd of silent connections keeps it out only if it renews all places
in less time. If a crowd has more networks than half of the places, the oldest connection of all makes room: a
client's network would be left a single place otherwise, and one stranger of that network would take it. Nothing
here waits for the other end of a connection.
"""

import asyncio
import contextlib
import logging
import socket
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from ..control.accepted_connection import Identification
from ..control.connection import ControlConnection
from ..model.errors import LimitReached, RequestDeclined
from ..model.ip_address import client_network
from ..protocol.messages import refusal_of
from .clients.admission import Admission

_BUSY: Final = "it is busy with unproved connections from your network; try again"
_DRAINED_BYTES: Final = 65_536
_log = logging.getLogger(__name__)

EncodeRefusal = Callable[[RequestDeclined], bytes]
"""Returns the bytes that tell the other end why its connection ends; none if it would not understand them."""


class UnprovedConnection:
    """An accepted connection that has not identified itself and proved the key yet.

    `serial` numbers the connections in the order of their acceptance. Set `identification` or `control` once there
    is one, and `encode_refusal` if the other end has read something already. `last_words` are sent if serving it
    fails.
    """

    def __init__(self, sock: socket.socket, client: str, encode_refusal: EncodeRefusal, serial: int = 0) -> None:
        self.sock = sock
        self.client = client
        self.network = client_network(client)
        self.encode_refusal = encode_refusal
        self.serial = serial
        self.last_words = b""
        self.task: asyncio.Task[None] | None = None
        self.is_served = False  # whether its task owns the socket
        self.identification: Identification | None = None
        self.control: ControlConnection | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def wait(self, on_readable: Callable[[], None], deadline_s: float, on_late: Callable[[], None]) -> None:
        """Call `on_readable` whenever there are bytes to read, and `on_late` after the deadline."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self.sock, on_readable)
        self._deadline = loop.call_later(deadline_s, on_late)

    def stop_waiting(self) -> None:
        """Call neither any more."""
        if self._deadline is not None:
            asyncio.get_running_loop().remove_reader(self.sock)
            self._deadline.cancel()
            self._deadline = None

    def abort(self, why: RequestDeclined) -> None:
        """End the connection and tell its other end why, without waiting for it: TLS gets no alert."""
        self.stop_waiting()
        if self.control is not None:
            self.control.try_send(refusal_of(why))
            asyncio.get_running_loop().call_soon(self.control.abort)  # uvloop writes at the end of a turn
        else:
            self.send_last(self.encode_refusal(why))
        if self.task is not None:
            self.task.cancel()
        else:
            self.sock.close()

    def send_last(self, words: bytes) -> None:
        """Send the last words, unless there is no room, and read what is there.

        A close with unread bytes would reset the connection, and the other end might not read the words.
        """
        with contextlib.suppress(OSError):
            if words:
                self.sock.send(words, socket.MSG_DONTWAIT)
                self.sock.recv(_DRAINED_BYTES, socket.MSG_DONTWAIT)


class UnprovedConnections:
    """The unproved connections of a service, by the network that counts as one client; the oldest of each first."""

    def __init__(self, admission: Admission, encode_refusal: EncodeRefusal, *, is_iperf3: bool = False) -> None:
        """Make places for `admission`. `encode_refusal` is for connections that have not been read from."""
        self._is_iperf3 = is_iperf3
        self.admission = admission
        self.encode_refusal = encode_refusal
        self._services: list[UnprovedConnections] = [self]  # whose connections are descriptors of the same process
        self._connections: dict[UnprovedConnection, None] = {}
        self._networks: dict[str, dict[UnprovedConnection, None]] = {}

    def for_iperf3(self, encode_refusal: EncodeRefusal) -> "UnprovedConnections":
        """Return places for the iperf3 service: its connections take none of these."""
        other = UnprovedConnections(self.admission, encode_refusal, is_iperf3=True)
        self._services.append(other)
        other._services = self._services
        return other

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def total(self) -> int:
        """The number of connections of all services."""
        return sum(map(len, self._services))

    def add_connection(self, connection: UnprovedConnection) -> UnprovedConnection | None:
        """Add a connection; return the one that has made room for it, if it is one too many."""
        oldest = self.make_room() if len(self._connections) >= self.admission.limits.pending else None
        self._networks.setdefault(connection.network, {})[connection] = None
        self._connections[connection] = None
        return oldest

    def discard(self, connection: UnprovedConnection) -> None:
        """Remove a connection, if it is there."""
        if connection in self._connections:
            del self._connections[connection]
            own = self._networks[connection.network]
            del own[connection]
            if not own:
                del self._networks[connection.network]

    def make_room(self) -> UnprovedConnection | None:
        """Abort and return the oldest connection of the network that has the most; None without any.

        With more networks than half of the places it is the oldest of all. Those that are awaited do not count.
        """
        if not self._connections:
            return None
        oldest = self._find_oldest()
        _log.debug("a connection of %s makes room; %d are unproved", oldest.client, len(self))
        self.discard(oldest)
        oldest.abort(LimitReached(_BUSY, "pending", self.admission.limits.pending))
        return oldest

    def _find_oldest(self) -> UnprovedConnection:
        """Return the connection that makes room."""
        awaited = self._count_awaited()
        if len(self._networks) > self.admission.limits.pending // 2:
            counting = (one for one in self._connections if len(self._networks[one.network]) > awaited[one.network])
            return next(counting, next(iter(self._connections)))
        unawaited = {network: len(own) - awaited[network] for network, own in self._networks.items()}
        return next(iter(self._networks[max(unawaited, key=unawaited.__getitem__)]))

    def _count_awaited(self) -> defaultdict[str, int]:
        """Return how many connections of each network may be data connections that runs of its clients await.

        These come at once, and as many as a run has. But a quarter of the places is never for them: a client
        may not open those that its runs await, and strangers at its address would have all places.
        """
        awaited = self.admission.awaited_connections(is_iperf3=self._is_iperf3)
        there = {network: min(count, len(self._networks.get(network, ()))) for network, count in awaited.items()}
        places = self.admission.limits.pending * 3 // 4
        total = max(places, sum(there.values()))
        return defaultdict(int, {network: count * places // total for network, count in there.items()})

    def abort_waiting(self, why: RequestDeclined) -> None:
        """Abort the connections that no task serves."""
        for own in list(self._networks.values()):
            for connection in [each for each in own if each.task is None]:
                self.discard(connection)
                connection.abort(why)

    def release_descriptor(self) -> UnprovedConnection | None:
        """Make room at the service that has the most connections: all are descriptors of this process."""
        return max(self._services, key=len).make_room()
