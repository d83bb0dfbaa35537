"""Acceptance of the connections to a listening socket. It waits for none of their other ends."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from ..model.errors import AddressRefused, RequestDeclined, explain_resource_error
from .listener import format_host
from .status import LogEntry, LogSink
from .unproved_connections import UnprovedConnection, UnprovedConnections

_ACCEPT_PAUSE_S: Final = 0.2
_OUT_OF_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_DESCRIPTOR: Final = "it has too many open files for another connection; raise its limit (ulimit -n)"
_SPARES: Final = 4
_MAX_REFUSALS: Final = 64  # at once; each may take as long as a client takes to read the reason

Refuse = Callable[[socket.socket, RequestDeclined], Awaitable[None]]
"""Sends a client the reason of its refusal, and returns once the client has read it, or after a deadline."""


class Acceptor:
    """Accepts connections from `open` to `close`, and has each served by a task of its own.

    Args:
        listener: The listening socket, which `close` closes.
        pending: The connections that have not identified themselves, of this listener.
        log: Receives the entries of the event log.
        serve: Serves a connection, and sets its `is_served` before its first await. It owns the socket then.
        refuse: Refuses a connection. The socket is closed afterwards.
        track: Takes each task that may go on after `close`.
    """

    def __init__(
        self,
        listener: socket.socket,
        pending: UnprovedConnections,
        log: LogSink,
        serve: Callable[[UnprovedConnection], Coroutine[Any, Any, None]],
        refuse: Refuse,
        track: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._listener = listener
        self._pending = pending
        self._log = log
        self._serve = serve
        self._refuse = refuse
        self._track = track
        self._refusals: set[asyncio.Task[None]] = set()
        self._spares: list[int] = []  # descriptors to release when clients are to be refused and none is free
        self._task: asyncio.Task[None] | None = None

    def open(self) -> None:
        """Start accepting."""
        self._listener.setblocking(False)
        self._spares = [_open_spare() for _ in range(_SPARES)]
        self._task = asyncio.create_task(self._accept())

    async def close(self) -> None:
        """Stop accepting, and close the listening socket."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self._listener.close()
        for fd in self._spares:
            os.close(fd)
        self._spares.clear()

    async def _accept(self) -> None:
        """Accept connections. It waits for none of the other ends: whoever is slow would keep all others out."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(self._listener)
            except (OSError, MemoryError) as error:
                # Out of descriptors, or the client has gone already: the next connection may succeed.
                is_full = isinstance(error, MemoryError) or error.errno in _OUT_OF_ROOM
                if not is_full or not await self._release_descriptor():
                    self._log(
                        LogEntry(
                            "not_accepted",
                            f"a connection could not be accepted: {explain_resource_error(error)}",
                        )
                    )
                    await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            client = format_host(address)
            try:
                self._pending.admission.check_address(client)
            except AddressRefused as error:
                self._log(LogEntry("refused", f"rejected: {error.operator_text}", client=client, limit=error.limit))
                self._turn_away(sock, error)
                continue
            self._serve_pending(UnprovedConnection(sock, client))
            await asyncio.sleep(0)  # a full backlog never makes sock_accept wait: others would have no turn

    def _serve_pending(self, connection: UnprovedConnection) -> None:
        oldest = self._pending.add(connection)
        if oldest is not None:
            text = "rejected: it made room for newer connections before it had proved anything"
            self._log(LogEntry("dropped", text, client=oldest.client, limit="pending"))
        connection.task = asyncio.create_task(self._serve(connection))

        def end(_task: asyncio.Task[None]) -> None:
            self._pending.discard(connection)
            connection.task = None  # a cancelled task leads to its frames, and they lead here: a cycle
            if not connection.is_served:  # the task was cancelled before its start
                connection.sock.close()

        connection.task.add_done_callback(end)
        self._track(connection.task)

    def _turn_away(
        self, sock: socket.socket, why: RequestDeclined, on_end: Callable[[], None] = lambda: None
    ) -> None:
        """Refuse a connection in the background; where many are being refused, only close it."""
        if len(self._refusals) >= _MAX_REFUSALS:
            sock.close()
            on_end()
            return
        task = asyncio.ensure_future(self._refuse(sock, why))
        self._refusals.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._refusals.discard(task)
            sock.close()
            on_end()

        task.add_done_callback(end)
        self._track(task)

    async def _release_descriptor(self) -> bool:
        """Abort a pending connection; without one, refuse the next client. Return whether either was possible."""
        oldest = self._pending.release_descriptor()
        if oldest is not None and oldest.task is not None:
            await asyncio.wait([oldest.task], timeout=_ACCEPT_PAUSE_S)  # its descriptor is free after that
            return True
        if not self._spares:
            return False
        os.close(self._spares.pop())
        try:
            sock, _address = self._listener.accept()
        except OSError:
            self._renew_spare()
        else:
            self._turn_away(sock, RequestDeclined(_NO_DESCRIPTOR), self._renew_spare)
        return True

    def _renew_spare(self) -> None:
        if self._task is None:  # closed meanwhile
            return
        with contextlib.suppress(OSError):
            self._spares.append(_open_spare())


def _open_spare() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
