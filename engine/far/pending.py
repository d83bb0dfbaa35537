"""The pending connections of an endpoint: those that have not identified themselves yet. The oldest make room.

A linkgauge client identifies itself at once, so a crowd of silent connections cannot keep it out. Nothing here
waits for the other end of a connection.
"""

import asyncio
import logging
import socket
from typing import Final

from ..control.connection import ControlConnection
from ..model.peer import client_network

_ADDRESS_PART: Final = 4  # one address may have a quarter of them
_log = logging.getLogger(__name__)


class PendingConnection:
    """An accepted connection that has not identified itself and proved the key yet.

    Set `task` to the task that serves it, `is_served` once that task owns the socket, and `control` once the
    connection is a control connection.
    """

    def __init__(self, sock: socket.socket, client: str) -> None:
        self.sock = sock
        self.client = client
        self.network = client_network(client)
        self.task: asyncio.Task[None] | None = None
        self.is_served = False
        self.control: ControlConnection | None = None

    def abort(self) -> None:
        """End the connection at once: no TLS alert is sent, and no answer is awaited."""
        if self.control is not None:
            self.control.abort()
        if self.task is not None:
            self.task.cancel()


class PendingConnections:
    """All pending connections, by the network that counts as one client; the oldest of each first."""

    def __init__(self) -> None:
        self._networks: dict[str, dict[PendingConnection, None]] = {}
        self._known: set[str] = set()  # of these networks, the ones with a client
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, connection: PendingConnection, limit: int, *, is_known: bool) -> None:
        """Add a connection, and abort the oldest one of its network, or of all, where it is one too many.

        One network may have a quarter of `limit`. With `is_known` there is a client in it, whose data connections
        arrive at once: it may have all of them, and strangers make room first.
        """
        own = self._networks.get(connection.network, {})
        if not is_known and len(own) >= max(1, limit // _ADDRESS_PART):
            self._abort_oldest(own)
        elif self._count >= limit:
            self.make_room()
        self._networks.setdefault(connection.network, {})[connection] = None
        (self._known.add if is_known else self._known.discard)(connection.network)
        self._count += 1

    def discard(self, connection: PendingConnection) -> None:
        """Remove a connection, if it is there."""
        own = self._networks.get(connection.network, {})
        if connection in own:
            del own[connection]
            self._count -= 1
            if not own:
                del self._networks[connection.network]
                self._known.discard(connection.network)

    def make_room(self) -> PendingConnection | None:
        """Abort and return the oldest connection of the network that has the most; None without any.

        Networks with a client come last. They are few: each client has its limits.
        """
        strangers = (own for network, own in self._networks.items() if network not in self._known)
        most = max(strangers, key=len, default=None) or max(self._networks.values(), key=len, default=None)
        return None if most is None else self._abort_oldest(most)

    def _abort_oldest(self, connections: dict[PendingConnection, None]) -> PendingConnection:
        oldest = next(iter(connections))
        _log.debug("a connection of %s makes room; %d are pending", oldest.client, self._count)
        self.discard(oldest)
        oldest.abort()
        return oldest
