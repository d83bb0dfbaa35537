"""When a connection that lives for one transaction can be read or written.

Through an epoll of one's own (epoll(7)) that the event loop watches as one descriptor, for as long as there are
transactions: a connection is put into it by one system call, and closing takes it out. Where a system has no epoll,
through the event loop itself.
"""

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Protocol


class Readiness(Protocol):
    """Calls back while the connection that is watched is ready; one at a time."""

    def watch(self, sock: socket.socket, *, for_room: bool) -> None:
        """Wait for something to read, or for room to write in."""
        ...

    def forget(self, sock: socket.socket) -> None:
        """Stop, because it is to be closed at once, or watched for something else."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


class _Epoll:
    """By an epoll, which forgets what is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._for_room = False
        loop.add_reader(self._epoll.fileno(), on_ready)

    def watch(self, sock: socket.socket, *, for_room: bool) -> None:
        self._epoll.register(sock, select.EPOLLOUT if for_room else select.EPOLLIN)
        self._for_room = for_room

    def forget(self, sock: socket.socket) -> None:
        if self._for_room:  # it may be watched again; what is read to its end is closed
            self._epoll.unregister(sock)
            self._for_room = False

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


class _Loop:
    """By the event loop's own means."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready

    def watch(self, sock: socket.socket, *, for_room: bool) -> None:
        (self._loop.add_writer if for_room else self._loop.add_reader)(sock, self._on_ready)

    def forget(self, sock: socket.socket) -> None:
        self._loop.remove_reader(sock)
        self._loop.remove_writer(sock)

    def close(self) -> None:
        """Have nothing to give back."""


def readiness(loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> Readiness:
    """Return the best way there is here."""
    return _Epoll(loop, on_ready) if hasattr(select, "epoll") else _Loop(loop, on_ready)
