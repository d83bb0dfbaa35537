"""Acceptance of the connections to a listening socket. It waits for none of their other ends."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any, Final

from ..model.errors import (
    AddressRefused,
    ConnectionClosed,
    LimitReached,
    LinkgaugeError,
    RequestDeclined,
    explain_resource_error,
)
from ..model.run_end import EndText
from .listener import format_host
from .status import LogEntry, LogSink, rejection
from .unproved_connections import UnprovedConnection, UnprovedConnections

_ACCEPT_PAUSE_S: Final = 0.2
_ACCEPTED_IN_TURN: Final = 8  # with a full backlog, others would have no turn
_OUT_OF_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_DESCRIPTOR: Final = "it has too many open files for another connection; raise its limit (ulimit -n)"
_SPARES: Final = 4
_MAX_REFUSALS: Final = 64  # at once; each may take as long as a client takes to read the reason
_LEAVING_S: Final = 0.3
_DRAINED_BYTES: Final = 65_536

Service = Coroutine[Any, Any, None]
Refuse = Callable[[socket.socket, RequestDeclined], Awaitable[None]]
"""Sends a client the reason of its refusal, and returns once the client has read it, or after a deadline."""


class Acceptor:
    """Accepts connections from `open` to `close`, and has each served by a task of its own once it is identified.

    Args:
        listener: The listening socket, which `close` closes.
        unproved: The connections that have not identified themselves, of this listener.
        log: Receives the entries of the event log.
        serve: Is called when a connection has bytes to read, until it returns the coroutine that serves it. The
            coroutine sets `is_served` before its first await, and owns the socket then. LinkgaugeError drops the
            connection.
        refuse: Refuses a connection. The socket is closed afterwards.
        track: Takes each task that may go on after `close`.
    """

    def __init__(
        self,
        listener: socket.socket,
        unproved: UnprovedConnections,
        log: LogSink,
        serve: Callable[[UnprovedConnection], Service | None],
        refuse: Refuse,
        track: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._listener = listener
        self._unproved = unproved
        self._log = log
        self._serve = serve
        self._refuse = refuse
        self._track = track
        self._serials = count(1)
        self._refusals: set[asyncio.Task[None]] = set()
        self._leaving: dict[socket.socket, asyncio.TimerHandle] = {}
        self._spares: list[int] = []  # descriptors to release when clients are to be refused and none is free
        self._recovery: asyncio.Task[None] | None = None
        self._is_open = False

    def open(self) -> None:
        """Start accepting."""
        self._listener.setblocking(False)
        self._spares = [_open_spare() for _ in range(_SPARES)]
        self._is_open = True
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def close(self) -> None:
        """Stop accepting, and close the listening socket and the connections that no task serves."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._listener)
        if self._recovery is not None:
            self._recovery.cancel()
            await asyncio.wait([self._recovery])
        self._listener.close()
        self._unproved.abort_waiting(RequestDeclined(EndText.FAR_SHUTDOWN.value))
        for sock in list(self._leaving):
            self._close_leaving(sock)
        for fd in self._spares:
            os.close(fd)
        self._spares.clear()

    def _accept(self) -> None:
        """Accept connections, and wait for none of the other ends: a slow one would keep all others out."""
        for number in range(_ACCEPTED_IN_TURN):
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except (OSError, MemoryError) as error:
                # Out of descriptors, or the client has gone already: the next connection may succeed. Without a
                # free descriptor the kernel says so even if nothing waits; the first time, something does.
                if number == 0:
                    asyncio.get_running_loop().remove_reader(self._listener)
                    self._recovery = asyncio.create_task(self._recover(error))
                return
            self._admit(sock, address)

    def _admit(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        """Have an accepted connection identified, unless its address is refused."""
        client = format_host(address)
        try:
            self._unproved.admission.check_address(client)
        except AddressRefused as error:
            self._log(rejection(client, error))
            self._turn_away(sock, error)
            return
        sock.setblocking(False)
        self._add(UnprovedConnection(sock, client, self._unproved.encode_refusal, next(self._serials)))

    def _add(self, connection: UnprovedConnection) -> None:
        oldest = self._unproved.add_connection(connection)
        if oldest is not None:
            text = "rejected: it made room for newer connections before it had proved anything"
            self._log(LogEntry("dropped", text, client=oldest.client, limit="pending"))
        connection.wait(
            partial(self._read, connection),
            self._unproved.admission.limits.handshake_s,
            partial(self._expire, connection),
        )

    def _read(self, connection: UnprovedConnection) -> None:
        """Have a connection that has bytes identified; once it is, serve it by a task."""
        try:
            service = self._serve(connection)
        except (LinkgaugeError, OSError) as error:
            self._unproved.discard(connection)
            connection.stop_waiting()
            self._leave(connection)
            if not isinstance(error, ConnectionClosed):  # a client that only looks whether anybody is there
                self._log(rejection(connection.client, error))
            return
        if service is not None:
            connection.stop_waiting()
            self._start(connection, service)

    def _start(self, connection: UnprovedConnection, service: Service) -> None:
        connection.task = asyncio.create_task(service)

        def end(_task: asyncio.Task[None]) -> None:
            self._unproved.discard(connection)
            connection.task = None  # a cancelled task leads to its frames, and they lead here: a cycle
            if not connection.is_served:  # the task was cancelled before its start
                connection.sock.close()

        connection.task.add_done_callback(end)
        self._track(connection.task)

    def _expire(self, connection: UnprovedConnection) -> None:
        """Drop a connection that has not identified itself in time."""
        seconds = self._unproved.admission.limits.handshake_s
        error = LimitReached(f"nothing received for {seconds} s", "handshake_s", seconds)
        self._unproved.discard(connection)
        if connection.identification is not None and connection.identification.has_greeted:
            connection.abort(error)
            self._log(rejection(connection.client, error))
            return
        connection.stop_waiting()
        connection.sock.close()
        text = f"rejected: nothing received for {seconds} s (limit handshake_s)"
        self._log(LogEntry("dropped", text, client=connection.client))

    def _leave(self, connection: UnprovedConnection) -> None:
        """Send a connection its last words, and close it once the other end has closed, or after a deadline.

        If many are leaving, close it at once. A close with unread bytes would reset the connection.
        """
        sock, words = connection.sock, connection.last_words
        connection.send_last(words)
        if not words or len(self._leaving) >= _MAX_REFUSALS:
            sock.close()
            return
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        loop = asyncio.get_running_loop()
        self._leaving[sock] = loop.call_later(_LEAVING_S, self._close_leaving, sock)
        loop.call_soon(self._drain_leaving, sock)  # uvloop still uses the descriptor until this turn ends

    def _drain_leaving(self, sock: socket.socket) -> None:
        if sock in self._leaving:
            asyncio.get_running_loop().add_reader(sock, self._read_leaving, sock)

    def _read_leaving(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(_DRAINED_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close_leaving(sock)

    def _close_leaving(self, sock: socket.socket) -> None:
        self._leaving.pop(sock).cancel()
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    def _turn_away(
        self, sock: socket.socket, why: RequestDeclined, on_end: Callable[[], None] = lambda: None
    ) -> None:
        """Refuse a connection in the background; if many are being refused, only close it."""
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

    async def _recover(self, error: OSError | MemoryError) -> None:
        """Go on accepting after an error: with a descriptor that is free again, or after a pause."""
        is_full = isinstance(error, MemoryError) or error.errno in _OUT_OF_ROOM
        if not is_full or not await self._release_descriptor():
            reason = explain_resource_error(error)
            self._log(LogEntry("not_accepted", f"a connection could not be accepted: {reason}"))
            await asyncio.sleep(_ACCEPT_PAUSE_S)
        if self._is_open:
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def _release_descriptor(self) -> bool:
        """Abort an unproved connection; without one, refuse the next client. Return whether either was possible."""
        oldest = self._unproved.release_descriptor()
        if oldest is not None:
            if oldest.task is not None:
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
        if not self._is_open:
            return
        with contextlib.suppress(OSError):
            self._spares.append(_open_spare())


def _open_spare() -> int:
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
