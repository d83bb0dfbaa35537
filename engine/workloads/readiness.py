"""When the connections of a worker's transactions can be read or written.

Through one epoll of the worker's own (epoll(7)), which the event loop watches as one descriptor. What is ready is
dealt with in batches, and while there is something at least every millisecond the batches wait for each other in
that epoll: a turn of the event loop, its handle and its context are paid for once in a few milliseconds, not once
for each answer. A connection is put into it by one system call, and closing takes it out. Where a system has no
epoll, all goes through the event loop itself.
"""

import asyncio
import select
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final, Protocol

ReadyCallback = Callable[[int], None]

# In what is told to `on_ready`: the other end has sent all it is going to send, and its FIN is there.
PEER_CLOSED: Final = getattr(select, "EPOLLRDHUP", 0)
_TURN_NS: Final = 2_000_000  # the event loop has its channel and its clock to look after
_WAIT_S: Final = 0.001


class Poller(Protocol):
    """Calls back, with what is ready of a descriptor, for as long as it is."""

    def watch(self, fd: int, on_ready: ReadyCallback, *, for_write: bool = False) -> None:
        """Wait for something to read, or for room to write in; in place of what was waited for until now."""
        ...

    def unwatch(self, fd: int) -> None:
        """Stop, where it is watched."""
        ...

    def unwatch_closing(self, fd: int) -> None:
        """Stop, because this process closes it now and no other has it."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class _Epoll:
    """By an epoll, which forgets what is closed."""

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
            for fd, what in events:
                on_ready = watched.get(fd)
                if on_ready is not None:  # what came before it in the batch may have closed it
                    on_ready(what)
            if perf_counter_ns() > until_ns:
                return
            events = poll(_WAIT_S)


class _Loop:
    """By the event loop's own means."""

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
        """Have nothing to give back."""


def create_poller() -> Poller:
    """Return the best way there is on the running loop."""
    loop = asyncio.get_running_loop()
    return _Epoll(loop) if hasattr(select, "epoll") else _Loop(loop)
