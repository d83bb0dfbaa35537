"""The pending connections of an endpoint: those that have not identified themselves and proved the key yet.

Whoever proves nothing has no privilege: where there are too many, the network that has the most of them loses its
oldest one. A client proves itself within a few round trips, so a crowd of silent connections keeps it out only if
it renews all places in less time. Nothing here waits for the other end of a connection.
"""

import asyncio
import contextlib
import logging
import socket
from typing import Final

from ..control.connection import ControlConnection
from ..model.errors import LimitReached
from ..model.peer import client_network
from ..protocol.messages import Refuse
from .clients.admission import Admission

_BUSY: Final = "it is busy: too many connections to it are waiting to be served; try again"
_log = logging.getLogger(__name__)


def busy_error(limit: int) -> LimitReached:
    """Return the error of a connection that makes room for others; the limit is that of pending connections."""
    return LimitReached(_BUSY, "pending", limit)


class UnprovedConnection:
    """An accepted connection that has not identified itself and proved the key yet.

    Set `task` to the task that serves it, `is_served` once that task owns the socket, and `control` once the
    connection is a control connection. `last_words` are sent where it makes room before that.
    """

    def __init__(self, sock: socket.socket, client: str) -> None:
        self.sock = sock
        self.client = client
        self.network = client_network(client)
        self.last_words = b""
        self.task: asyncio.Task[None] | None = None
        self.is_served = False
        self.control: ControlConnection | None = None

    def abort(self, why: LimitReached) -> None:
        """End the connection and tell its other end why, without waiting for it: TLS gets no alert."""
        if self.control is not None:
            self.control.try_send(Refuse(str(why), "limit"))
            asyncio.get_running_loop().call_soon(self.control.abort)  # uvloop writes at the end of a turn
        elif self.last_words:
            with contextlib.suppress(OSError):
                self.sock.send(self.last_words, socket.MSG_DONTWAIT)
        if self.task is not None:
            self.task.cancel()


class UnprovedConnections:
    """The pending connections of a service, by the network that counts as one client; the oldest of each first."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self._services: list[UnprovedConnections] = [self]  # whose connections are descriptors of the same process
        self._networks: dict[str, dict[UnprovedConnection, None]] = {}
        self._count = 0

    def beside(self) -> "UnprovedConnections":
        """Return places for another service: its connections take none of these."""
        other = UnprovedConnections(self.admission)
        self._services.append(other)
        other._services = self._services
        return other

    def __len__(self) -> int:
        return self._count

    @property
    def total(self) -> int:
        """The number of pending connections of all services."""
        return sum(map(len, self._services))

    def add(self, connection: UnprovedConnection) -> UnprovedConnection | None:
        """Add a connection; return the one that has made room for it, if it is one too many."""
        oldest = self.make_room() if self._count >= self.admission.limits.pending else None
        self._networks.setdefault(connection.network, {})[connection] = None
        self._count += 1
        return oldest

    def discard(self, connection: UnprovedConnection) -> None:
        """Remove a connection, if it is there."""
        own = self._networks.get(connection.network, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._networks[connection.network]

    def make_room(self) -> UnprovedConnection | None:
        """Abort and return the oldest connection of the network that has the most; None without any.

        Data connections that runs of its clients await do not count: they come at once, and as many as a run has.
        """
        awaited = self.admission.awaited_connections()
        unawaited = {network: len(own) - awaited[network] for network, own in self._networks.items()}
        if not unawaited:
            return None
        oldest = next(iter(self._networks[max(unawaited, key=unawaited.__getitem__)]))
        _log.debug("a connection of %s makes room; %d are pending", oldest.client, self._count)
        self.discard(oldest)
        oldest.abort(busy_error(self.admission.limits.pending))
        return oldest

    def release_descriptor(self) -> UnprovedConnection | None:
        """Make room at the service that has the most pending connections: all are descriptors of this process."""
        return max(self._services, key=len).make_room()
