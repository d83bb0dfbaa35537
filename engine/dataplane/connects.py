"""The crr workload: a new connection for each request and its answer.

The session's own connection carries nothing: it says that both ends are there. Beside it the answering end
listens, on a port of its own that it tells the other over that connection, and answers a connection that begins
with a ticket of the session's, each ticket once. The process that accepts also answers: where an endpoint accepted
and handed each connection to a worker, loopback carried less than half as many transactions.

A pair that has its worker to itself asks from a thread with blocking sockets, as that of `rr` does: five system
calls for each transaction, for one recv(2) waits for the whole answer and the FIN behind it (MSG_WAITALL).

Several pairs ask from the event loop, through an epoll of each pair's own: seven system calls and a share of the
waiting. Handing each connection to uvloop cost fifteen, six of them epoll_ctl(2) and two ioctl(2): libuv tries a
descriptor out, makes it non-blocking again, and takes it out before it is closed, which takes it out by itself.

The answering end closes, right behind its answer: the answer's last segment carries the FIN, and TIME_WAIT
stays at that end, where it takes up no port. So the asking end never runs out of ports, however long it runs, and
no connection is aborted. A transaction ends when the asking end has read that FIN.
"""

import contextlib
import errno
import os
import socket
import threading
from time import perf_counter_ns
from typing import Any, Final

from ..auth import TICKET_BYTES, Tickets
from ..plan import SocketOptions
from . import sockets
from .readiness import Readiness, readiness
from .session import Place, ReceivingSession, Supplies

_NO_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
_ANSWER_FLAGS: Final = _NO_WAIT | getattr(socket, "MSG_MORE", 0)
_NONBLOCKING: Final = socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0)
_IS_BORN_NONBLOCKING: Final = hasattr(socket, "SOCK_NONBLOCK")
_ALL: Final = socket.MSG_WAITALL
_READ_BYTES: Final = 65_536
_BACKLOG: Final = 128
_DEFER_S: Final = 1
_MOST_WAITING: Final = 128  # of a session there is one at a time: all others are strangers' that say nothing
_JOIN_S: Final = 1.0
_NOT_YET: Final = {errno.EAGAIN, errno.EINPROGRESS, errno.ENOTCONN}

OUT_OF_PORTS: Final = (
    "no port is left for another connection; "
    'on Linux widen the range there: sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
)


def listen_beside(sock: socket.socket) -> socket.socket:
    """Return a listening socket on a free port of the address that a connection has at this end.

    It inherits nothing: `sockets.prepare` sets it up, and what it accepts is then set up alike. With
    TCP_DEFER_ACCEPT it accepts a connection when the request is there: one wake-up less for each.
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


class ConnectAsker(ReceivingSession):
    """Connects, asks, reads to the end, and does it again; one connection at a time."""

    def __init__(
        self,
        sock: socket.socket,
        place: Place,
        supplies: Supplies,
        address: tuple[Any, ...],
        tickets: Tickets,
        options: tuple[int | None, SocketOptions],
    ) -> None:
        super().__init__(sock, place)
        self._family = sock.family
        self._address = address
        self._buffer = supplies.buffer
        self._response_bytes = supplies.response_bytes
        self._tickets = tickets
        self._rest = bytes(supplies.requests[TICKET_BYTES : supplies.request_bytes])
        self._request = b""
        self._options = (options[0], sockets.spared(options[1], sock.family))
        self._is_plain = self._options == (None, SocketOptions())
        self._one: socket.socket | None = None
        self._began_ns = 0
        self._got = 0
        self._unsent = 0
        self._thread: threading.Thread | None = None
        self._readiness: Readiness | None = None

    def close(self) -> None:
        """End the transaction that is under way, uncounted, and the session."""
        thread, self._thread = self._thread, None
        self._is_alone = False
        if thread is not None:
            one = self._one
            if one is not None:
                with contextlib.suppress(OSError):  # wakes whoever waits for it
                    one.shutdown(socket.SHUT_RDWR)
            thread.join(_JOIN_S)
        self._drop()
        if self._readiness is not None:
            self._readiness.close()
            self._readiness = None
        super().close()

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._look_for_end)
        if self._is_alone:
            self._thread = threading.Thread(target=self._run_alone, daemon=True)
            self._thread.start()
        else:
            self._begin()

    def _run_alone(self) -> None:
        error: OSError | None = None
        try:
            while self._is_alone:
                self._ask_once()
        except OSError as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._loop.call_soon_threadsafe(self._left_alone, error)

    def _ask_once(self) -> None:
        """Carry out one transaction, waiting wherever there is something to wait for."""
        began_ns = perf_counter_ns()
        with socket.socket(self._family) as sock:
            self._one = sock
            if not self._is_plain:
                self._set_up(sock)
            sock.connect(self._address)
            sock.sendall(self._tickets.issue() + self._rest)
            # Room for more than the answer: the call returns once the FIN is there, and not before.
            got = count = sock.recv_into(self._buffer, 0, _ALL)
            while count and got < self._response_bytes:
                count = sock.recv_into(self._buffer, 0, _ALL)
                got += count
            took_ns = perf_counter_ns() - began_ns
            self._one = None
        if not self._is_alone and got != self._response_bytes:
            return  # closed in the middle
        if got != self._response_bytes:
            raise OSError(errno.EPROTO, f"an answer of {self._response_bytes} bytes came as one of {got}")
        self._words[self._bytes_at] += got
        self._count(took_ns)

    def _left_alone(self, error: OSError | None) -> None:
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

    def _close_one(self, sock: socket.socket) -> None:
        if self._readiness is not None:
            self._readiness.forget(sock)
        sock.close()
        self._one = None

    def _set_up(self, sock: socket.socket) -> None:
        sockets.set_options(sock, *self._options)
        sockets.bind_source(sock, self._options[1])

    def _begin(self) -> None:
        self._began_ns = perf_counter_ns()
        self._request = self._tickets.issue() + self._rest
        self._got, self._unsent = 0, len(self._request)
        try:
            self._one = sock = socket.socket(self._family, _NONBLOCKING)
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
        if self._closed:
            return
        if self._readiness is None:
            self._readiness = readiness(self._loop, self._ready)
        self._readiness.watch(sock, for_room=not is_sent)

    def _ready(self) -> None:
        if self._one is None:
            return
        if self._unsent:
            self._connected()
        else:
            self._pull()

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

    def _connected(self) -> None:
        if self._send() and self._one is not None and self._readiness is not None:
            self._readiness.forget(self._one)
            self._readiness.watch(self._one, for_room=False)

    def _pull(self) -> None:
        sock = self._one
        assert sock is not None  # noqa: S101 - a transaction is under way
        count = 1
        try:
            while count:
                count = sock.recv_into(self._buffer)
                self._got += count
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


class ConnectAnswerer(ReceivingSession):
    """Accepts, reads a request, answers and closes."""

    def __init__(
        self, sock: socket.socket, place: Place, supplies: Supplies, listener: socket.socket, tickets: Tickets
    ) -> None:
        super().__init__(sock, place)
        self.listener = listener
        self.tickets = tickets
        self.block = memoryview(supplies.payload.block)
        self.request_bytes = supplies.request_bytes
        self.response_bytes = supplies.response_bytes
        self.loop = self._loop
        self.waiting: dict[_Answer, None] = {}  # the one that has waited longest is the first

    def close(self) -> None:
        """Close the listener, what was accepted and is not answered, and the session."""
        if not self._closed:
            self._loop.remove_reader(self.listener)
            self.listener.close()
            for one in list(self.waiting):
                one.close()
        super().close()

    def answered(self) -> None:
        """Count an answer that was sent."""
        self._words[self._bytes_at] += self.response_bytes

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._look_for_end)
        self._loop.add_reader(self.listener, self._accept)

    def _accept(self) -> None:
        try:
            sock, _address = self.listener.accept()
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM}:
                self._lose(error)
            return  # others: the client was gone again
        _Answer(self, sock).read()


class _Answer:
    """One accepted connection: its request is read, answered, and all is closed. Most need no waiting."""

    __slots__ = ("_got", "_head", "_owed", "_owner", "_sock")

    def __init__(self, owner: ConnectAnswerer, sock: socket.socket) -> None:
        self._owner = owner
        self._sock = sock
        self._head: bytes | None = b""
        self._got = 0
        self._owed = owner.response_bytes
        if not _NO_WAIT:
            sock.setblocking(False)

    def read(self) -> None:
        """Read as much of the request as is there."""
        owner = self._owner
        try:
            data = self._sock.recv(_READ_BYTES, _NO_WAIT)
        except (BlockingIOError, InterruptedError):
            self._wait()
            return
        except OSError:
            data = b""
        self._got += len(data)
        if self._head is not None:
            self._head += data
            if len(self._head) >= TICKET_BYTES:
                if not owner.tickets.redeem(self._head[:TICKET_BYTES]):
                    self.close()  # whoever else finds the port gets no answer
                    return
                self._head = None
        if not data or self._got > owner.request_bytes:
            self.close()
        elif self._got < owner.request_bytes:
            self._wait()
        else:
            self.write()

    def write(self) -> None:
        """Send as much of the answer as there is room for, and close behind it."""
        owner = self._owner
        try:
            while self._owed:
                self._owed -= self._sock.send(owner.block[: self._owed], _ANSWER_FLAGS)
        except (BlockingIOError, InterruptedError):
            owner.waiting[self] = None
            owner.loop.remove_reader(self._sock)
            owner.loop.add_writer(self._sock, self.write)
            return
        except OSError:
            self.close()
            return
        owner.answered()
        self.close()

    def _wait(self) -> None:
        waiting = self._owner.waiting
        if self not in waiting and len(waiting) >= _MOST_WAITING:
            next(iter(waiting)).close()
        waiting[self] = None
        self._owner.loop.add_reader(self._sock, self.read)

    def close(self) -> None:
        """Close the connection: with a FIN where all was read."""
        if self in self._owner.waiting:
            del self._owner.waiting[self]
            with contextlib.suppress(OSError):
                self._owner.loop.remove_reader(self._sock)
                self._owner.loop.remove_writer(self._sock)
        self._sock.close()
