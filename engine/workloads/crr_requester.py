"""The requesting end of the crr workload: a new connection for each request and its response.

The session's own connection carries nothing: it shows that both ends are there. The responding end listens on
another port (crr_responder.py), which the session handshake has agreed on.

A session that has its worker to itself runs in a thread with blocking sockets, as rr does: five system calls for
each transaction, because one recv(2) waits for the whole response and the FIN after it (MSG_WAITALL).

Several sessions share the worker's poller (socket_io.py): six system calls and a share of the waiting, because
epoll(7) reports the FIN. Passing each connection to uvloop cost fifteen, six of them epoll_ctl(2) and two ioctl(2):
libuv tests a descriptor, makes it non-blocking again, and removes it before it is closed, though closing removes
it. The connections are SocketType, which has only the kernel's calls: socket.socket around it takes 1.2 µs
more to make and to close.

While this host has no way to the other one, because a cable is unplugged, the session's own connection and
all payload on open connections wait for it. A new connection fails at once, so that it is tried again for some
seconds, and the transaction takes as long as the link is away.

The other end closes first, so TIME_WAIT stays there, where it takes up no port: the requesting end never runs out
of ports, however long the run. A transaction ends when the requesting end has read that FIN.
"""

import contextlib
import errno
import os
import socket
import threading
import time
from socket import SocketType
from time import perf_counter_ns
from typing import Any, Final

from ..model.counters.latency_histogram import bucket_of
from ..model.plan import SocketOptions
from ..protocol.tokens import TICKET_BYTES, Tickets
from . import sockets
from .session import ReceivingSession, SessionContext, WorkerResources
from .socket_io import JOIN_TIMEOUT_S, PEER_CLOSED, start_thread

_STREAM: Final = socket.SOCK_STREAM
_IS_BORN_NONBLOCKING: Final = hasattr(socket, "SOCK_NONBLOCK")
_NONBLOCKING_STREAM: Final = _STREAM | getattr(socket, "SOCK_NONBLOCK", 0)
_WAIT_ALL: Final = socket.MSG_WAITALL
_CONNECT_TRIES: Final = 100
_CONNECT_PAUSE_S: Final = 0.001
_IN_PROGRESS: Final = {errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN}

OUT_OF_PORTS: Final = (
    "no port is left for another connection; "
    'on Linux widen the range: sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
)


# The transaction in progress is a part of it: an object for each would cost every connection.
class CrrRequester(ReceivingSession):
    """Connects, sends a request, reads to the end, and repeats; one connection at a time.

    Args:
        sock: The session's own connection.
        context: The session's counters and its callback.
        resources: The worker's buffers, sizes and poller.
        address: The listener of the responding end.
        tickets: Each request begins with the next one.
        options: The window and the options of each connection.
    """

    def __init__(
        self,
        sock: socket.socket,
        context: SessionContext,
        resources: WorkerResources,
        address: tuple[Any, ...],
        tickets: Tickets,
        options: tuple[int | None, SocketOptions],
    ) -> None:
        super().__init__(sock, context)
        self._family = sock.family
        self._address = address
        self._buffer = resources.buffer
        self._response_bytes = resources.response_bytes
        self._tickets = tickets
        self._request_body = memoryview(resources.requests.block)[TICKET_BYTES : resources.request_bytes]
        self._request = b""
        self._options = (options[0], sockets.drop_default_congestion(options[1], sock.family))
        self._has_options = self._options != (None, SocketOptions())
        self._connection: SocketType | None = None
        self._began_ns = 0
        self._received = 0
        self._unsent = 0
        self._thread: threading.Thread | None = None
        self._poller = resources.poller
        self._is_waiting = False  # for other sessions to give bytes of the budget back
        self._is_ending = False

    def refresh(self) -> None:
        """Store the counters, and continue if the budget has bytes again."""
        super().refresh()
        if self._is_waiting and not self._closed:
            self._begin()

    def close(self) -> None:
        """Close the session; a transaction in progress is not counted."""
        self._is_ending = True
        thread, self._thread = self._thread, None
        self._is_alone = False
        if thread is not None:
            connection = self._connection
            if connection is not None:
                with contextlib.suppress(OSError):  # wakes the thread
                    connection.shutdown(socket.SHUT_RDWR)
            thread.join(JOIN_TIMEOUT_S)
        if self._connection is not None:
            self._close_connection(self._connection)
        super().close()

    def _start_io(self) -> None:
        self._loop.add_reader(self._sock, self._check_for_end)
        if self._is_alone:
            self._thread = start_thread(self._run_in_thread, self._on_thread_done)
        else:
            self._begin()

    def _run_in_thread(self) -> None:
        """Carry out transactions with blocking calls while the session has its worker to itself."""
        words, bytes_at, latency_at, clock = self._words, self._bytes_at, self._latency_at, perf_counter_ns
        family, address, buffer, response_bytes = self._family, self._address, self._buffer, self._response_bytes
        issue, body, has_options = self._tickets.issue, self._request_body, self._has_options
        request, budget = issue() + body, self._budget
        while self._is_alone and (budget is None or budget.take_whole(response_bytes)):
            began_ns = clock()
            self._connection = sock = SocketType(family, _STREAM)
            try:
                if has_options:
                    self._set_options(sock)
                try:
                    sock.connect(address)
                except OSError as error:
                    self._retry_connect(sock, error)
                sock.sendall(request)
                request = issue() + body  # the next one, while the other end is at work
                # Room for more than the response: the call returns with the FIN, and not before.
                received = count = sock.recv_into(buffer, 0, _WAIT_ALL)
                while count and received < response_bytes:
                    count = sock.recv_into(buffer, 0, _WAIT_ALL)
                    received += count
                took_ns = clock() - began_ns
            finally:
                sock.close()
            if received != response_bytes:
                if not self._is_alone:
                    return  # closed during the transaction
                raise OSError(errno.EPROTO, f"a response has {received} bytes instead of {response_bytes}")
            words[latency_at + bucket_of(took_ns)] += 1
            words[bytes_at] += received

    def _retry_connect(self, sock: SocketType, error: OSError) -> None:
        """Retry if no port was free for a moment, or no link was there for some seconds; raise the last error.

        A port is free again once its last FIN is acknowledged.
        """
        began_ns = perf_counter_ns()
        tries = 0
        while not self._is_ending:
            if error.errno == errno.EADDRNOTAVAIL and tries < _CONNECT_TRIES:
                tries += 1
                time.sleep(_CONNECT_PAUSE_S)
            elif sockets.is_link_away(error, perf_counter_ns() - began_ns):
                time.sleep(sockets.LINK_PAUSE_S)
            else:
                break
            try:
                sock.connect(self._address)
            except OSError as next_error:
                error = next_error
            else:
                return
        raise error

    def _on_thread_done(self, _result: None, error: OSError | None) -> None:
        """Continue on the event loop after the thread has made room or failed."""
        if self._closed or self._thread is None:
            return
        self._thread = self._connection = None
        if error is None:
            self._begin()
        else:
            self._fail(error)

    def _close_connection(self, sock: SocketType) -> None:
        self._poller.unwatch_closing(sock.fileno())
        sock.close()
        self._connection = None

    def _set_options(self, sock: SocketType) -> None:
        sockets.set_options(sock, *self._options)
        sockets.bind_source(sock, self._options[1])

    def _begin(self, *, is_repeated: bool = False) -> None:
        """Begin a transaction on the event loop, or try its connection again."""
        if not is_repeated:
            self._is_waiting = self._budget is not None and not self._budget.take_whole(self._response_bytes)
            if self._is_waiting:
                return
            self._request = self._tickets.issue() + self._request_body
            self._received, self._unsent = 0, len(self._request)
            self._began_ns = perf_counter_ns()
        try:
            self._connection = sock = SocketType(self._family, _NONBLOCKING_STREAM)
            if not _IS_BORN_NONBLOCKING:
                sock.setblocking(False)
            if self._has_options:
                self._set_options(sock)
            failure = sock.connect_ex(self._address)
        except OSError as error:
            self._fail(error)
            return
        if failure and failure not in _IN_PROGRESS:
            self._fail_to_connect(OSError(failure, os.strerror(failure)))
            return
        # On loopback the handshake is over by now, and waiting for it would cost a turn of the event loop.
        is_sent = self._send()
        if self._connection is sock:  # otherwise it has failed
            self._poller.watch(sock.fileno(), self._on_ready, for_write=not is_sent)

    def _on_ready(self, events: int) -> None:
        if self._connection is None:
            return
        if self._unsent:
            if self._send():
                self._poller.watch(self._connection.fileno(), self._on_ready)
        else:
            self._receive(self._connection, events)

    def _fail_to_connect(self, error: OSError) -> None:
        """Try again in a moment if the link may return; end the session otherwise."""
        took_ns = perf_counter_ns() - self._began_ns
        is_unsent = self._unsent == len(self._request)
        if self._connection is None or not is_unsent or not sockets.is_link_away(error, took_ns):
            self._fail(error)
            return
        self._close_connection(self._connection)
        self._loop.call_later(sockets.LINK_PAUSE_S, self._repeat)

    def _repeat(self) -> None:
        if not self._closed:
            self._begin(is_repeated=True)

    def _fail(self, error: OSError) -> None:
        if error.errno == errno.EADDRNOTAVAIL:
            self._end(OUT_OF_PORTS)
        elif error.errno == errno.EMFILE:
            self._lose(error)
        else:
            why = error.strerror or str(error)
            self._end(f"a connection to {self._address[0]} port {self._address[1]} failed: {why}")

    def _send(self) -> bool:
        """Send the rest of the request; return whether all of it is sent."""
        assert self._connection is not None  # noqa: S101 - a transaction is in progress
        try:
            self._unsent -= self._connection.send(self._request[-self._unsent :])
        except OSError as error:
            if error.errno not in _IN_PROGRESS:
                self._fail_to_connect(error)
        return not self._unsent and not self._closed

    def _receive(self, sock: SocketType, events: int) -> None:
        count = 1
        try:
            while count:
                count = sock.recv_into(self._buffer)
                self._received += count
                if events & PEER_CLOSED and self._received == self._response_bytes:
                    break  # the whole response, and its FIN has arrived
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        took_ns = perf_counter_ns() - self._began_ns
        if self._received != self._response_bytes:
            self._end(f"a response has {self._received} bytes instead of {self._response_bytes}")
            return
        self._close_connection(sock)
        self._words[self._bytes_at] += self._received
        self._count(took_ns)
        self._begin()
