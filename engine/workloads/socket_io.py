"""Input and output of sessions: readiness callbacks if several share a worker, a thread for a single one.

The callbacks come from one epoll(7), which the event loop watches as one descriptor. Ready descriptors are handled
in batches, and while one is ready at least every millisecond, the poller waits for the next batch in that epoll. So
the cost of a turn of the event loop, of its handle and of its context comes once in a few milliseconds, not once
for each response. One system call adds a connection, and closing removes it. Systems without epoll use the event
loop.
"""

import asyncio
import contextlib
import select
import socket
import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

ReadyCallback = Callable[[int], None]

NO_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)
# Event bit for `ReadyCallback`: the other end's FIN has arrived.
PEER_CLOSED: Final = getattr(select, "EPOLLRDHUP", 0)
_TURN_NS: Final = 2_000_000  # then the event loop serves its command channel and its timers
_WAIT_S: Final = 0.001


class Poller(Protocol):
    """Calls back with the events of a descriptor while it is ready (level-triggered)."""

    def watch(self, fd: int, on_ready: ReadyCallback, *, for_write: bool = False) -> None:
        """Call `on_ready` when there is data to read or room to write; it replaces any earlier callback."""
        ...

    def unwatch(self, fd: int) -> None:
        """Stop watching a descriptor, if it is watched."""
        ...

    def unwatch_closing(self, fd: int) -> None:
        """Stop watching a descriptor that the caller closes next and that no other process has open."""
        ...

    def close(self) -> None:
        """Release the epoll."""
        ...


class _EpollPoller:
    """A poller with an epoll, which drops closed descriptors."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._watched: dict[int, ReadyCallback] = {}
        loop.add_reader(self._epoll.fileno(), self._turn)

    def watch(self, fd: int, on_ready: ReadyCallback, *, for_write: bool = False) -> None:
        events = select.EPOLLOUT if for_write else select.EPOLLIN | select.EPOLLRDHUP
        if fd in self._watched:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._watched[fd] = on_ready

    def unwatch(self, fd: int) -> None:
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def unwatch_closing(self, fd: int) -> None:
        self._watched.pop(fd, None)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _turn(self) -> None:
        poll, watched = self._epoll.poll, self._watched
        until_ns = perf_counter_ns() + _TURN_NS
        events = poll(0)
        while events:
            for fd, mask in events:
                on_ready = watched.get(fd)
                if on_ready is not None:  # a callback earlier in the batch may have closed it
                    on_ready(mask)
            if perf_counter_ns() > until_ns:
                return
            events = poll(_WAIT_S)


class _LoopPoller:
    """A poller with the event loop's own readers and writers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def watch(self, fd: int, on_ready: ReadyCallback, *, for_write: bool = False) -> None:
        self.unwatch(fd)
        (self._loop.add_writer if for_write else self._loop.add_reader)(fd, on_ready, 0)

    def unwatch(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)

    unwatch_closing = unwatch

    def close(self) -> None:
        """Do nothing: the event loop belongs to others."""


def create_poller() -> Poller:
    """Return the best poller of this system, on the running loop."""
    loop = asyncio.get_running_loop()
    return _EpollPoller(loop) if hasattr(select, "epoll") else _LoopPoller(loop)


JOIN_TIMEOUT_S: Final = 1.0
_POLL_NS: Final = 1_000_000  # over a longer round trip the time to wake up is a small part
_SO_BUSY_POLL: Final = 46  # asm-generic/socket.h
_BUSY_POLL_US: Final = 50


def polling_receive(sock: socket.socket) -> Callable[[memoryview], int]:
    """Return a `recv_into` of a blocking socket that asks for up to 1 ms before it waits.

    A core that sleeps takes time to wake up: between two cores of a virtual machine a transaction took 49 µs with
    waiting ends, and 6.2 µs with polling ones (docs/measuring.md). SO_BUSY_POLL (socket(7)) lets each question also
    look into the queue of the interface. It needs CAP_NET_ADMIN unless net.core.busy_read allows it.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SO_BUSY_POLL, _BUSY_POLL_US)
    recv_into = sock.recv_into

    def receive(buffer: memoryview) -> int:
        until_ns = perf_counter_ns() + _POLL_NS
        while True:
            try:
                return recv_into(buffer, 0, NO_WAIT)
            except BlockingIOError:
                if perf_counter_ns() > until_ns:
                    return recv_into(buffer)

    return receive


def start_thread(body: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]) -> threading.Thread:
    """Run `body` in a thread, then `on_done` with its result or its OSError on the running event loop.

    Raises OSError if the system gives no further thread.
    """
    call = asyncio.get_running_loop().call_soon_threadsafe

    def run() -> None:
        result: T | None = None
        error: OSError | None = None
        try:
            result = body()
        except OSError as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed
            call(on_done, result, error)

    thread = threading.Thread(target=run, daemon=True)
    begin_thread(thread)
    return thread


def begin_thread(thread: threading.Thread) -> None:
    """Start a thread; raise OSError if the system gives no further one."""
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError("no thread could be started; raise the limit of processes (ulimit -u)") from error


class SocketThread:
    """A thread that owns a session's socket until it returns the socket or the connection ends.

    Args:
        sock: The socket, which is blocking while the thread runs.
        body: Runs in the thread; returns True to continue on the event loop, False at the end of the connection.
        on_resume: Called on the event loop after True, when the socket is non-blocking again.
        on_lost: Called on the event loop after False, with None, or with the OSError that `body` raised.
    """

    def __init__(
        self,
        sock: socket.socket,
        body: Callable[[], bool],
        on_resume: Callable[[], None],
        on_lost: Callable[[OSError | None], None],
    ) -> None:
        self._sock = sock
        self._body = body
        self._on_resume = on_resume
        self._on_lost = on_lost
        self._is_stopped = False
        sock.setblocking(True)
        self._thread = start_thread(self._run, self._on_done)

    def stop(self) -> None:
        """End the thread by shutting the connection down; neither callback is called any more."""
        self._is_stopped = True
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_TIMEOUT_S)

    def _run(self) -> bool:
        continues = self._body()
        if continues:
            self._sock.setblocking(False)
        return continues

    def _on_done(self, continues: bool | None, error: OSError | None) -> None:
        if self._is_stopped:
            return
        if continues:
            self._on_resume()
        else:
            self._on_lost(error)
