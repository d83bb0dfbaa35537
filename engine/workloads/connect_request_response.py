"""The answering end of the crr workload: listens on a port of the session's own, answers and closes.

It answers a connection that begins with a ticket of the session's, each ticket once. The process that accepts also
answers: where an endpoint accepted and handed each connection to a worker, loopback carried less than half as many
transactions. It closes right behind its answer: the answer's last segment carries the FIN, and no connection is
aborted.

A pair that has its worker to itself is answered by a thread that blocks in accept(2), five system calls for each
transaction; several through the worker's readiness (readiness.py). With TCP_DEFER_ACCEPT the request is there when
a connection is. Where it is not, or where there is no room for the answer, the connection waits in the readiness,
and keeps nobody else waiting.
"""

import contextlib
import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from socket import SocketType
from time import perf_counter_ns
from typing import Any, Final

from ..model.latency_histogram import bucket_of
from ..model.plan import SocketOptions
from ..protocol.auth import TICKET_BYTES, Tickets
from . import sockets
from .readiness import PEER_CLOSED, ReadyCallback
from .session import ReceivingSession, SessionContext, WorkerResources
from .thread_io import JOIN_TIMEOUT_S, start_thread

_NO_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
_ANSWER_FLAGS: Final = _NO_WAIT | getattr(socket, "MSG_MORE", 0)
_TCP_TYPE: Final = socket.SOCK_STREAM
_READ_BYTES: Final = 65_536
_BACKLOG: Final = 128
_DEFER_S: Final = 1
_MOST_WAITING: Final = 128  # of a session there is one at a time: all others are strangers' that say nothing
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_SHUTDOWN_WAKES: Final = sys.platform == "linux"  # whoever waits in accept(2)

_Step = Callable[[], None]


def open_listener(sock: socket.socket) -> socket.socket:
    """Return a listening socket on a free port of the address that a connection has at this end.

    It inherits nothing: `sockets.prepare` sets it up, and what it accepts is then set up alike.
    """
    listener = socket.socket(sock.family)
    try:
        listener.setblocking(False)
        if hasattr(socket, "TCP_DEFER_ACCEPT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _DEFER_S)
        listener.bind((sock.getsockname()[0], 0, *sock.getsockname()[2:]))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


class CrrResponder(ReceivingSession):
    """Accepts, reads a request, answers and closes."""

    def __init__(
        self,
        sock: socket.socket,
        context: SessionContext,
        resources: WorkerResources,
        listener: socket.socket,
        tickets: Tickets,
    ) -> None:
        super().__init__(sock, context)
        self.block = memoryview(resources.payload.block)
        self.request_bytes = resources.request_bytes
        self.response_bytes = resources.response_bytes
        self.poller = resources.poller
        self.pending: dict[_Answer, None] = {}  # the one that has waited longest is the first
        self._listener = listener
        # Not accept(): what socket.socket has on top of a connection takes 1.2 µs more.
        self._accept_fd: Callable[[], tuple[int, object]] = attrgetter("_accept")(listener)
        self._tickets = tickets
        self._whole = self.block[: self.response_bytes]
        self._most = min(self.request_bytes + 1, _READ_BYTES)
        self._lock = threading.Lock()  # between the thread and the event loop, which has what waits
        self._thread: threading.Thread | None = None

    def close(self) -> None:
        """Close the listener, what was accepted and is not answered, and the session."""
        if not self._closed:
            self.poller.unwatch(self._listener.fileno())
            self._end_thread()
            self._listener.close()
            for one in list(self.pending):
                one.close()
        super().close()

    def _end_thread(self) -> None:
        self._is_alone = False
        if self._thread is not None:
            with contextlib.suppress(OSError):  # wakes it
                self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_TIMEOUT_S)
            self._thread = None

    def redeem(self, ticket: bytes) -> bool:
        """Return whether a ticket is good, which it is once."""
        with self._lock:
            return self._tickets.redeem(ticket)

    def count_response(self) -> None:
        """Count an answer that was sent."""
        with self._lock:
            self._words[self._bytes_at] += self.response_bytes

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._look_for_end)
        if self._is_alone and _SHUTDOWN_WAKES:
            self._listener.setblocking(True)
            self._thread = start_thread(self._answer_alone, self._left_alone)
        else:
            self.poller.watch(self._listener.fileno(), self._accepting())

    def _answer_alone(self) -> None:
        answer = self._answering()
        while self._is_alone:
            step = answer()
            if step is not None:
                self._loop.call_soon_threadsafe(self._take_step, step)

    def _take_step(self, step: _Step) -> None:
        step()
        if self._closed:
            for one in list(self.pending):
                one.close()

    def _left_alone(self, _nothing: None, error: OSError | None) -> None:
        """Go on, on the event loop, when the thread has made room or failed."""
        if self._closed:
            return
        self._thread = None
        if error is not None and error.errno in _EXHAUSTED:
            self._lose(error)
            return
        self._listener.setblocking(False)
        self.poller.watch(self._listener.fileno(), self._accepting())

    def _accepting(self) -> ReadyCallback:
        answer = self._answering()

        def accept(_what: int) -> None:
            try:
                step = answer()
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._lose(error)
                return  # others: the client was gone again
            if step is not None:
                step()

        return accept

    def _answering(self) -> Callable[[], _Step | None]:
        """Return what accepts and answers where nothing has to be waited for, as is most often so.

        It returns what to do about everything else, and has in its closure what it needs: each transaction goes
        through here.
        """
        accept_fd, family, lock, redeem = self._accept_fd, self._listener.family, self._lock, self._tickets.redeem
        request_bytes, response_bytes, most = self.request_bytes, self.response_bytes, self._most
        whole, words, bytes_at = self._whole, self._words, self._bytes_at

        def answer() -> _Step | None:
            fd, _address = accept_fd()
            sock = SocketType(family, _TCP_TYPE, 0, fd)
            try:
                data = sock.recv(most, _NO_WAIT)
            except (BlockingIOError, InterruptedError):
                return _Answer(self, sock).wait
            except OSError:
                data = b""
            with lock:
                if len(data) != request_bytes or not redeem(data[:TICKET_BYTES]):
                    return partial(_Answer(self, sock).take, data)
                try:
                    sent = sock.send(whole, _ANSWER_FLAGS)
                except OSError:  # whatever it is, the next try meets it again
                    sent = 0
                if sent != response_bytes:
                    return _Answer(self, sock, sent).write
                words[bytes_at] += response_bytes  # first: the other end counts once it has the FIN
            sock.close()
            return None

        return answer


class _Answer:
    """One accepted connection that has to be waited for: its request is read, answered, and all is closed."""

    __slots__ = ("_got", "_head", "_owed", "_owner", "_sock")

    def __init__(self, owner: CrrResponder, sock: SocketType, sent: int = 0) -> None:
        self._owner = owner
        self._sock = sock
        self._head: bytes | None = b""
        self._got = 0
        self._owed = owner.response_bytes - sent
        if not _NO_WAIT:
            sock.setblocking(False)

    def _read(self, _what: int) -> None:
        try:
            data = self._sock.recv(_READ_BYTES, _NO_WAIT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        self.take(data)

    def take(self, data: bytes) -> None:
        """Take a piece of the request in, and answer once it is whole; nothing is the end."""
        owner = self._owner
        self._got += len(data)
        if self._head is not None:
            self._head += data
            if len(self._head) >= TICKET_BYTES:
                if not owner.redeem(self._head[:TICKET_BYTES]):
                    self.close()  # whoever else finds the port gets no answer
                    return
                self._head = None
        if not data or self._got > owner.request_bytes:
            self.close()
        elif self._got < owner.request_bytes:
            self.wait()
        else:
            self.write()

    def write(self, _what: int = 0) -> None:
        """Send as much of the answer as there is room for, and close behind it."""
        owner = self._owner
        try:
            while self._owed:
                self._owed -= self._sock.send(owner.block[: self._owed], _ANSWER_FLAGS)
        except (BlockingIOError, InterruptedError):
            owner.pending[self] = None
            owner.poller.watch(self._sock.fileno(), self.write, for_write=True)
            return
        except OSError:
            self.close()
            return
        owner.count_response()
        self.close()

    def wait(self) -> None:
        """Wait for more of the request; the session's own need little of that, so who waits longest gives way."""
        waiting = self._owner.pending
        if self not in waiting:
            if len(waiting) >= _MOST_WAITING:
                next(iter(waiting)).close()
            waiting[self] = None
            self._owner.poller.watch(self._sock.fileno(), self._read)

    def close(self) -> None:
        """Close the connection: with a FIN where all was read."""
        if self in self._owner.pending:
            del self._owner.pending[self]
            self._owner.poller.unwatch_closing(self._sock.fileno())
        self._sock.close()


# MERGED FROM engine/dataplane/connects:
# The asking end of the crr workload: a new connection for each request and its answer.
#
# The session's own connection carries nothing: it says that both ends are there. Beside it the answering end
# listens (accepts.py), on a port of its own that it tells the other over that connection.
#
# A pair that has its worker to itself asks from a thread with blocking sockets, as that of `rr` does: five system
# calls for each transaction, for one recv(2) waits for the whole answer and the FIN behind it (MSG_WAITALL).
#
# Several pairs ask through the worker's readiness (readiness.py): six system calls and a share of the waiting, for
# epoll(7) tells that the FIN is there. Handing each connection to uvloop cost fifteen, six of them epoll_ctl(2) and
# two ioctl(2): libuv tries a descriptor out, makes it non-blocking again, and takes it out before it is closed,
# which
# takes it out by itself. The connections are SocketType, the kernel's calls and nothing else: socket.socket on top
# of
# it takes 1.2 µs more to make and to close.
#
# The other end closes first, so TIME_WAIT stays there, where it takes up no port: the asking end never runs out of
# ports, however long it runs. A transaction ends when the asking end has read that FIN.

_STREAM: Final = socket.SOCK_STREAM
_NONBLOCKING: Final = _STREAM | getattr(socket, "SOCK_NONBLOCK", 0)
_IS_BORN_NONBLOCKING: Final = hasattr(socket, "SOCK_NONBLOCK")
_ALL: Final = socket.MSG_WAITALL
_PORT_TRIES: Final = 100
_PORT_PAUSE_S: Final = 0.001
_NOT_YET: Final = {errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN}

OUT_OF_PORTS: Final = (
    "no port is left for another connection; "
    'on Linux widen the range there: sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
)


class CrrRequester(ReceivingSession):
    """Connects, asks, reads to the end, and does it again; one connection at a time."""

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
        self._rest = bytes(resources.requests[TICKET_BYTES : resources.request_bytes])
        self._request = b""
        self._options = (options[0], sockets.drop_default_congestion(options[1], sock.family))
        self._is_plain = self._options == (None, SocketOptions())
        self._one: SocketType | None = None
        self._began_ns = 0
        self._got = 0
        self._unsent = 0
        self._thread: threading.Thread | None = None
        self._readiness = resources.poller

    def close(self) -> None:
        """End the transaction that is under way, uncounted, and the session."""
        thread, self._thread = self._thread, None
        self._is_alone = False
        if thread is not None:
            one = self._one
            if one is not None:
                with contextlib.suppress(OSError):  # wakes whoever waits for it
                    one.shutdown(socket.SHUT_RDWR)
            thread.join(JOIN_TIMEOUT_S)
        self._drop()
        super().close()

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._look_for_end)
        if self._is_alone:
            self._thread = start_thread(self._ask_alone, self._left_alone)
        else:
            self._begin()

    def _ask_alone(self) -> None:
        """Carry out transactions, waiting wherever there is something to wait for."""
        words, bytes_at, latency_at, clock = self._words, self._bytes_at, self._latency_at, perf_counter_ns
        family, address, buffer, response_bytes = self._family, self._address, self._buffer, self._response_bytes
        issue, rest, is_plain = self._tickets.issue, self._rest, self._is_plain
        request = issue() + rest
        while self._is_alone:
            began_ns = clock()
            self._one = sock = SocketType(family, _STREAM)
            try:
                if not is_plain:
                    self._set_up(sock)
                try:
                    sock.connect(address)
                except OSError as error:
                    self._connect_later(sock, error)
                sock.sendall(request)
                request = issue() + rest  # the next one, while the other end is at work
                # Room for more than the answer: the call returns once the FIN is there, and not before.
                got = count = sock.recv_into(buffer, 0, _ALL)
                while count and got < response_bytes:
                    count = sock.recv_into(buffer, 0, _ALL)
                    got += count
                took_ns = clock() - began_ns
            finally:
                sock.close()
            if got != response_bytes:
                if not self._is_alone:
                    return  # closed in the middle
                raise OSError(errno.EPROTO, f"an answer of {response_bytes} bytes came as one of {got}")
            words[latency_at + bucket_of(took_ns)] += 1
            words[bytes_at] += got

    def _connect_later(self, sock: SocketType, error: OSError) -> None:
        """Have a little patience where no port was free: the last one is, until its end is acknowledged."""
        for _ in range(_PORT_TRIES):
            if error.errno != errno.EADDRNOTAVAIL or not self._is_alone:
                raise error
            time.sleep(_PORT_PAUSE_S)
            try:
                sock.connect(self._address)
            except OSError as again:
                error = again
            else:
                return
        raise error

    def _left_alone(self, _nothing: None, error: OSError | None) -> None:
        """Go on, on the event loop, when the thread has made room or failed."""
        if self._closed or self._thread is None:
            return
        self._thread = self._one = None
        if error is None:
            self._begin()
        else:
            self._fail(error)

    def _drop(self) -> None:
        if self._one is not None:
            self._close_one(self._one)

    def _close_one(self, sock: SocketType) -> None:
        self._readiness.unwatch_closing(sock.fileno())
        sock.close()
        self._one = None

    def _set_up(self, sock: SocketType) -> None:
        sockets.set_options(sock, *self._options)
        sockets.bind_source(sock, self._options[1])

    def _begin(self) -> None:
        self._request = request = self._tickets.issue() + self._rest
        self._got, self._unsent = 0, len(request)
        self._began_ns = perf_counter_ns()
        try:
            self._one = sock = SocketType(self._family, _NONBLOCKING)
            if not _IS_BORN_NONBLOCKING:
                sock.setblocking(False)
            if not self._is_plain:
                self._set_up(sock)
            failed = sock.connect_ex(self._address)
        except OSError as error:
            self._fail(error)
            return
        if failed and failed not in _NOT_YET:
            self._fail(OSError(failed, os.strerror(failed)))
            return
        # On loopback the handshake is over by now, and a wait for it would be a wasted turn of the event loop.
        is_sent = self._send()
        if not self._closed:
            self._readiness.watch(sock.fileno(), self._ready, for_write=not is_sent)

    def _ready(self, what: int) -> None:
        if self._one is None:
            return
        if self._unsent:
            if self._send():
                self._readiness.watch(self._one.fileno(), self._ready)
        else:
            self._pull(self._one, what)

    def _fail(self, error: OSError) -> None:
        if error.errno == errno.EADDRNOTAVAIL:
            self._lose_saying(OUT_OF_PORTS)
        else:
            why = error.strerror or str(error)
            self._lose_saying(f"a connection to {self._address[0]} port {self._address[1]} failed: {why}")

    def _send(self) -> bool:
        """Send what is left of the request; return whether nothing is."""
        assert self._one is not None  # noqa: S101 - a transaction is under way
        try:
            self._unsent -= self._one.send(self._request[-self._unsent :])
        except OSError as error:
            if error.errno not in _NOT_YET:
                self._fail(error)
        return not self._unsent and not self._closed

    def _pull(self, sock: SocketType, what: int) -> None:
        count = 1
        try:
            while count:
                count = sock.recv_into(self._buffer)
                self._got += count
                if what & PEER_CLOSED and self._got == self._response_bytes:
                    break  # all of it, and the FIN is there
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        took_ns = perf_counter_ns() - self._began_ns
        if self._got != self._response_bytes:
            self._lose_saying(f"an answer of {self._response_bytes} bytes came as one of {self._got}")
            return
        self._close_one(sock)
        self._words[self._bytes_at] += self._got
        self._count(took_ns)
        self._begin()
