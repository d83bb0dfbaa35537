"""The responding end of the crr workload: a listener for each session, one response on each connection.

A connection must begin with a valid ticket of the session. The process that accepts also responds: if an
endpoint accepted and passed each connection to a worker, loopback carried less than half as many transactions. It
closes right after its response: the last segment carries the FIN, and no connection is aborted.

A session that has its worker to itself is served by a thread that blocks in accept(2), five system calls for each
transaction; several sessions are served through the worker's poller (socket_io.py). With TCP_DEFER_ACCEPT the
request is there when the connection is. If it is not, or if there is no room for the response, the connection
waits in the poller, and no other connection waits for it.
"""

import contextlib
import errno
import logging
import socket
import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from socket import SocketType
from typing import Final

from ..protocol.tokens import TICKET_BYTES, Tickets
from . import sockets
from .session import ReceivingSession, SessionContext, WorkerResources
from .socket_io import JOIN_TIMEOUT_S, NO_WAIT, ReadyCallback, start_thread

_RESPONSE_FLAGS: Final = NO_WAIT | getattr(socket, "MSG_MORE", 0)  # the last segment waits for the FIN
_STREAM: Final = socket.SOCK_STREAM
_READ_BYTES: Final = 65_536
_BACKLOG: Final = 128
_DEFER_S: Final = 1
_UNREAD_MS: Final = 10_000  # the kernel then drops the bytes that the other end has not acknowledged
_MAX_UNIDENTIFIED: Final = 64  # of a worker: its sessions take three descriptors each, of 1,024 as a rule
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_SHUTDOWN_WAKES_ACCEPT: Final = sys.platform == "linux"
_log = logging.getLogger(__name__)


def open_listener(sock: socket.socket) -> socket.socket:
    """Return a listening socket on a free port of this end's address of a connection.

    It inherits no options; accepted connections inherit those that `sockets.set_options` sets on it.
    """
    listener = socket.socket(sock.family)
    try:
        listener.setblocking(False)
        listener.bind((sock.getsockname()[0], 0, *sock.getsockname()[2:]))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class CrrResponder(ReceivingSession):
    """Accepts a connection, reads the request, sends the response and closes.

    Args:
        sock: The session's own connection, which carries nothing; its end is the session's.
        context: The session's counters and its callback.
        resources: The worker's buffers, sizes and poller.
        listener: From `open_listener`; the session closes it.
        tickets: Each connection must begin with one that is valid.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: SessionContext,
        resources: WorkerResources,
        listener: socket.socket,
        tickets: Tickets,
    ) -> None:
        super().__init__(sock, context)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):  # not before: in the handshake the listener speaks first
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_S)
        self.block = memoryview(resources.payload.block)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted connections inherit it, and have it after their close
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        self.request_bytes = resources.request_bytes
        self.response_bytes = resources.response_bytes
        self.poller = resources.poller
        self.unidentified: dict[_PendingConnection, None] = resources.unidentified
        self._identified: _PendingConnection | None = None
        self._listener = listener
        # Not accept(): socket.socket around a connection takes 1.2 µs more.
        self._accept_fd: Callable[[], tuple[int, object]] = attrgetter("_accept")(listener)
        self._tickets = tickets
        self._max_read_bytes = min(self.request_bytes + 1, _READ_BYTES)
        self._lock = threading.Lock()  # tickets and counters: between the thread and the event loop's pending ones
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Close the listener, the connections without a whole response, and the session."""
        if not self._closed:
            self.poller.unwatch(self._listener.fileno())
            self._end_thread()
            self._listener.close()
            self._close_pending()
        super().close()

    def _end_thread(self) -> None:
        self._is_alone = False
        if self._thread is not None:
            with contextlib.suppress(OSError):  # wakes the thread
                self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_TIMEOUT_S)
            self._thread = None

    def _close_pending(self) -> None:
        for connection in list(self.unidentified):
            if connection.responder is self:
                connection.close()
        self.set_identified(None)

    def redeem(self, ticket: bytes) -> bool:
        """Return whether the ticket is valid. Each is accepted once, in increasing order."""
        with self._lock:
            return self._tickets.redeem(ticket)

    def set_identified(self, connection: "_PendingConnection | None") -> None:
        """Note the connection that has shown the newest ticket, and close the one before it.

        The requesting end has one connection at a time. A response that it does not read takes up megabytes of the
        kernel's memory, and a connection with a ticket does not give way to a stranger.
        """
        previous, self._identified = self._identified, connection
        if previous is not None and previous is not connection:
            previous.abort()

    def forget(self, connection: "_PendingConnection") -> None:
        """Forget a connection that is closed."""
        if self._identified is connection:
            self._identified = None

    def count_response(self) -> None:
        """Count a whole response."""
        with self._lock:
            self._words[self._bytes_at] += self.response_bytes

    def _start_io(self) -> None:
        self._loop.add_reader(self._sock, self._check_for_end)
        if self._is_alone and _SHUTDOWN_WAKES_ACCEPT:
            self._listener.setblocking(True)
            self._thread = start_thread(self._serve_in_thread, self._on_thread_done)
        else:
            self.poller.watch(self._listener.fileno(), self._make_accept_handler())

    def _serve_in_thread(self) -> None:
        serve_connection = self._make_server()
        while self._is_alone:
            connection = serve_connection()
            if connection is not None:
                self._loop.call_soon_threadsafe(self._continue, connection)

    def _continue(self, connection: "_PendingConnection") -> None:
        if self._closed:
            connection.close()
        else:
            connection.begin()

    def _on_thread_done(self, _result: None, error: OSError | None) -> None:
        """Continue on the event loop after the thread has made room or failed."""
        if self._closed:
            return
        self._thread = None
        if error is not None and error.errno in _EXHAUSTED:
            self._lose(error)
            return
        self._listener.setblocking(False)
        self.poller.watch(self._listener.fileno(), self._make_accept_handler())

    def _make_accept_handler(self) -> ReadyCallback:
        serve_connection = self._make_server()

        def accept(_events: int) -> None:
            try:
                connection = serve_connection()
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._lose(error)
                return  # otherwise the client has gone again
            if connection is not None:
                connection.begin()

        return accept

    def _make_server(self) -> "Callable[[], _PendingConnection | None]":
        """Return a function that accepts one connection and responds if it need not wait, the usual case.

        It returns the connection in all other cases, for the event loop to `begin`. Its variables are in a closure
        because each transaction runs it.
        """
        accept_fd, family, lock, redeem = self._accept_fd, self._listener.family, self._lock, self._tickets.redeem
        request_bytes, response_bytes, max_bytes = self.request_bytes, self.response_bytes, self._max_read_bytes
        response, words, bytes_at = self.block[: self.response_bytes], self._words, self._bytes_at

        def serve_connection() -> _PendingConnection | None:
            fd, _address = accept_fd()
            sock = SocketType(family, _STREAM, 0, fd)
            try:
                data = sock.recv(max_bytes, NO_WAIT)
            except (BlockingIOError, InterruptedError):
                return _PendingConnection(self, sock)
            except OSError:
                data = b""
            with lock:
                if len(data) != request_bytes or not redeem(data[:TICKET_BYTES]):
                    return _PendingConnection(self, sock, data)
                try:
                    sent = sock.send(response, _RESPONSE_FLAGS)
                except OSError:  # the next call reports it again
                    sent = 0
                if sent != response_bytes:
                    return _PendingConnection(self, sock, sent=sent)
                words[bytes_at] += response_bytes  # before the FIN, after which the other end counts
            sock.close()
            return None

        return serve_connection


class _PendingConnection:
    """An accepted connection that waits for its request or for room for its response."""

    __slots__ = ("_first", "_head", "_is_closed", "_is_watched", "_received", "_sock", "_unsent", "responder")

    def __init__(
        self, responder: CrrResponder, sock: SocketType, first: bytes | None = None, *, sent: int | None = None
    ) -> None:
        """Take over a connection.

        Args:
            responder: The session's end.
            sock: The connection.
            first: The bytes of its request that were read; none if it has ended.
            sent: The bytes of the response that were sent; None before its ticket was accepted.
        """
        self.responder = responder
        self._sock = sock
        self._first = first
        self._head: bytes | None = b"" if sent is None else None  # None once its ticket was accepted
        self._received = 0
        self._unsent = responder.response_bytes - (sent or 0)
        self._is_watched = self._is_closed = False
        if not NO_WAIT:
            sock.setblocking(False)

    def begin(self) -> None:
        """Continue the connection on the event loop."""
        if self._head is None:
            self.responder.set_identified(self)
            self._send()
        elif self._first is None:
            self._wait()
        else:
            self._add(self._first)

    def _read(self, _events: int) -> None:
        try:
            data = self._sock.recv(_READ_BYTES, NO_WAIT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self._add(data)

    def _add(self, data: bytes) -> None:
        """Add a part of the request, and respond once it is whole; no data is the end of the connection."""
        responder = self.responder
        self._received += len(data)
        if self._head is not None:
            self._head += data
            if len(self._head) >= TICKET_BYTES:
                if not responder.redeem(self._head[:TICKET_BYTES]):
                    _log.debug("a connection without a valid ticket is closed")
                    self.close()
                    return
                self._head = None
                responder.unidentified.pop(self, None)
                responder.set_identified(self)
        if not data or self._received > responder.request_bytes:
            self.close()
        elif self._received < responder.request_bytes:
            self._wait()
        else:
            self._send()

    def _send(self, _events: int = 0) -> None:
        """Send as much of the response as there is room for, and close after the last byte."""
        responder = self.responder
        try:
            while self._unsent:
                self._unsent -= self._sock.send(responder.block[: self._unsent], _RESPONSE_FLAGS)
        except (BlockingIOError, InterruptedError):
            self._is_watched = True
            responder.poller.watch(self._sock.fileno(), self._send, for_write=True)
            return
        except OSError:
            self.close()
            return
        responder.count_response()
        self.close()

    def _wait(self) -> None:
        """Wait for more of the request. If too many have no ticket yet, close the oldest of those."""
        if self._is_watched:
            return
        unidentified = self.responder.unidentified
        if self._head is not None:
            if len(unidentified) >= _MAX_UNIDENTIFIED:
                next(iter(unidentified)).close()
            unidentified[self] = None
        self._is_watched = True
        self.responder.poller.watch(self._sock.fileno(), self._read)

    def abort(self) -> None:
        """Close the connection, and drop the rest of its response in the kernel."""
        if not self._is_closed:
            sockets.abort_at_close(self._sock)
        self.close()

    def close(self) -> None:
        """Close the connection: with a FIN if all was read."""
        if self._is_closed:
            return
        self._is_closed = True
        self.responder.unidentified.pop(self, None)
        self.responder.forget(self)
        if self._is_watched:
            self.responder.poller.unwatch_closing(self._sock.fileno())
        self._sock.close()
