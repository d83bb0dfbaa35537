"""The command channel between an end's process and one of its workers: JSON lines over a socket pair.

A line may carry a descriptor (SCM_RIGHTS, unix(7)): that is how an accepted connection gets to a worker. When
either process is gone the other reads the end of the channel: a worker then ends, whatever happened.
"""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, Final

_READ_BYTES: Final = 65_536
_MAX_FDS: Final = 64

WorkerMessage = dict[str, Any]


class WorkerChannel:
    """One end of a channel on the running loop. `on_message(message, fd)` owns the descriptor it gets."""

    def __init__(
        self,
        sock: socket.socket,
        on_message: Callable[[WorkerMessage, int | None], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._on_message = on_message
        self._on_eof = on_eof
        self._pending: deque[tuple[bytes, int | None]] = deque()
        self._buffer = bytearray()
        self._fds: deque[int] = deque()
        self._closed = False
        sock.setblocking(False)
        self._loop.add_reader(sock, self._read)

    def send(self, message: WorkerMessage, fd: int | None = None) -> None:
        """Queue a line, with a descriptor where given: the channel closes that one once it is sent."""
        if self._closed:
            if fd is not None:
                os.close(fd)
            return
        line = json.dumps(message | {"fd": fd is not None}).encode() + b"\n"
        self._pending.append((line, fd))
        if len(self._pending) == 1:
            self._loop.add_writer(self._sock, self._write)
            self._write()

    def close(self) -> None:
        """Close the channel and every descriptor in it."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        for fd in [*self._fds, *(fd for _, fd in self._pending if fd is not None)]:
            os.close(fd)
        self._fds.clear()
        self._pending.clear()

    def _write(self) -> None:
        while self._pending and not self._closed:
            line, fd = self._pending[0]
            try:
                sent = self._sock.send(line) if fd is None else socket.send_fds(self._sock, [line], [fd])
            except BlockingIOError:
                return
            except OSError:  # the other process is gone; the reader says so
                self._loop.remove_writer(self._sock)
                return
            if fd is not None:
                os.close(fd)
            if sent < len(line):
                self._pending[0] = (line[sent:], None)
            else:
                self._pending.popleft()
        if not self._closed:
            self._loop.remove_writer(self._sock)

    def _read(self) -> None:
        try:
            data, fds, _flags, _address = socket.recv_fds(self._sock, _READ_BYTES, _MAX_FDS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        self._fds.extend(fds)
        if not data:
            self._loop.remove_reader(self._sock)
            self._on_eof()
            return
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if self._closed:
                return
            message = json.loads(line)
            # A descriptor is missing where this process was out of them: the message tells what it was for.
            fd = self._fds.popleft() if message.pop("fd") and self._fds else None
            self._on_message(message, fd)
