"""The asking end of the crr workload: a new connection for each request and its answer.

The session's own connection carries nothing: it says that both ends are there. Beside it the answering end
listens (accepts.py), on a port of its own that it tells the other over that connection.

A pair that has its worker to itself asks from a thread with blocking sockets, as that of `rr` does: five system
calls for each transaction, for one recv(2) waits for the whole answer and the FIN behind it (MSG_WAITALL).

Several pairs ask through the worker's readiness (readiness.py): six system calls and a share of the waiting, for
epoll(7) tells that the FIN is there. Handing each connection to uvloop cost fifteen, six of them epoll_ctl(2) and
two ioctl(2): libuv tries a descriptor out, makes it non-blocking again, and takes it out before it is closed, which
takes it out by itself. The connections are SocketType, the kernel's calls and nothing else: socket.socket on top of
it takes 1.2 µs more to make and to close.

The other end closes first, so TIME_WAIT stays there, where it takes up no port: the asking end never runs out of
ports, however long it runs. A transaction ends when the asking end has read that FIN.
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

from ..auth import TICKET_BYTES, Tickets
from ..latency import bucket_of
from ..plan import SocketOptions
from . import sockets
from .blocking import JOIN_S, in_thread
from .readiness import ENDED
from .session import Place, ReceivingSession, Supplies

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
        self._one: SocketType | None = None
        self._began_ns = 0
        self._got = 0
        self._unsent = 0
        self._thread: threading.Thread | None = None
        self._readiness = supplies.readiness

    def close(self) -> None:
        """End the transaction that is under way, uncounted, and the session."""
        thread, self._thread = self._thread, None
        self._is_alone = False
        if thread is not None:
            one = self._one
            if one is not None:
                with contextlib.suppress(OSError):  # wakes whoever waits for it
                    one.shutdown(socket.SHUT_RDWR)
            thread.join(JOIN_S)
        self._drop()
        super().close()

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._look_for_end)
        if self._is_alone:
            self._thread = in_thread(self._ask_alone, self._left_alone)
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
        self._readiness.closing(sock.fileno())
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
            self._readiness.watch(sock.fileno(), self._ready, for_room=not is_sent)

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
                if what & ENDED and self._got == self._response_bytes:
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
