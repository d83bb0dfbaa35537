"""The stream workload: one side of one TCP connection that carries payload as fast as it goes.

A session that has its worker to itself runs in a thread that blocks in sendmsg(2), sendfile(2) or recv(2): on
loopback 1 MiB blocks went at 55 Gb/s so, and at 46 by an event loop at both ends, 16 rounds of each in turn; with
one end so and the other by a loop, at 49. It goes over to the loop when it has company.
"""

import os
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from ..model.plan import Mode
from .session import PIECE_BYTES, ReceivingSession, SendingSession, SessionContext, WorkerResources
from .thread_io import SocketThread

# A sender of small blocks wakes the receiver for each of them. Where a session is so fast that this many bytes take
# but a fraction of a millisecond, waiting for them saves wake-ups: at blocks of 128 KiB on loopback, threads at
# both ends, 41 Gb/s at 0.35 ms/MiB with it, and 36 at 0.42 without, ten rounds of each in turn. A receiver that
# discards has little else to do: 0.17 ms/MiB with it in blocks of 1 MiB, and 0.23 without, eight rounds. One that
# copies such blocks out carried 0.96 of what it carries without.
_LOW_WATER_BYTES: Final = 512 * 1024
_LOW_WATER_BYTES_S: Final = 2_500_000_000  # 20 Gb/s: 0.2 ms at most
# What sendfile sends lies in a core's own cache, and what is received into beside it: 70 Gb/s where 512 KiB are
# read at once and 62 where 1 MiB are, twelve rounds in turn; where payload is copied, 48 and 55.
_BESIDE_PAGES_BYTES: Final = 512 * 1024
_NO_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)


class StreamSender(SendingSession):
    """Sends the same block of random bytes over and over, by copy or by sendfile."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        payload = resources.payload
        self._send: Callable[[], int] = partial(sock.sendmsg, payload.pieces)
        if payload.fd >= 0:
            self._send = partial(os.sendfile, self._fd, payload.fd, 0, payload.size_bytes)

    def _watch(self) -> None:
        if self._is_alone:
            self._blocking = SocketThread(self._sock, self._push_alone, self._resume, self._lose)
        else:
            self._resume()

    def _resume(self) -> None:
        self._loop.add_writer(self._sock, self._push)

    def _push_alone(self) -> bool:
        while self._is_alone:
            self._handed_over += self._send()
        return True

    def _push(self) -> None:
        try:
            self._handed_over += self._send()
        except OSError as error:
            self._failed(error)


class StreamReceiver(ReceivingSession):
    """Receives, counts, and drops what it got."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._whole = resources.buffer[: _BESIDE_PAGES_BYTES if resources.mode is Mode.SENDFILE else None]
        piece = resources.buffer[:PIECE_BYTES]
        self._pieces = [piece] * (len(resources.buffer) // PIECE_BYTES)
        self._flags = socket.MSG_TRUNC if resources.mode is Mode.DISCARD else 0
        self._may_wait = resources.mode is Mode.DISCARD or resources.payload.size_bytes < _LOW_WATER_BYTES
        self._waits = False
        self._counting = threading.Lock()  # between the thread and who looks after the low water
        self._seen = (time.monotonic_ns(), self._words[self._bytes_at])

    def refresh(self) -> None:
        """Wait for more at a time while the session is fast, and no longer than that."""
        super().refresh()
        if not self._may_wait or self._closed:
            return
        (since_ns, before), self._seen = self._seen, (time.monotonic_ns(), self._words[self._bytes_at])
        span_ns = max(1, self._seen[0] - since_ns)
        is_fast = (self._seen[1] - before) * 1_000_000_000 >= _LOW_WATER_BYTES_S * span_ns
        if is_fast != self._waits:
            self._waits = is_fast
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _LOW_WATER_BYTES if is_fast else 1)
            if not is_fast:
                self._pull()  # nobody is woken for what has come already

    def _watch(self) -> None:
        if self._is_alone:
            self._blocking = SocketThread(self._sock, self._pull_alone, self._resume, self._lose)
        else:
            self._resume()

    def _resume(self) -> None:
        self._loop.add_reader(self._sock, self._pull)

    def _pull_alone(self) -> bool:
        recv_into, buffer, flags = self._sock.recv_into, self._whole, self._flags
        words, bytes_at, counting = self._words, self._bytes_at, self._counting
        waiting = select.poll()
        waiting.register(self._fd, select.POLLIN)
        while self._is_alone:
            if self._waits:
                # recv(2) itself would wait on for as much as it meant to when it began, when that is long too much.
                waiting.poll()
            count = recv_into(buffer, 0, flags)
            if not count:
                return False
            with counting:
                words[bytes_at] += count
        return True

    def _pull(self) -> None:
        try:
            if self._flags:
                count = self._sock.recv_into(self._buffer, 0, self._flags | _NO_WAIT)
            else:
                count = self._sock.recvmsg_into(self._pieces, 0, _NO_WAIT)[0]
        except OSError as error:
            self._failed(error)
            return
        if count:
            with self._counting:
                self._words[self._bytes_at] += count
        else:
            self._lose(None)
