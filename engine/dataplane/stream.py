"""The stream workload: one side of one TCP connection that carries payload as fast as it goes."""

import os
import socket
import time
from typing import Final

from ..plan import Mode
from .session import PIECE_BYTES, Place, ReceivingSession, SendingSession, Supplies

# A sender of small blocks wakes the receiver for each of them. Where a session is so fast that this many bytes take
# but a fraction of a millisecond, waiting for them saves wake-ups: at blocks of 128 KiB on loopback both ends
# together took 0.24 ms/MiB without and 0.20 to 0.22 with it, ten rounds of each in turn.
_LOW_WATER_BYTES: Final = 512 * 1024
_LOW_WATER_BYTES_S: Final = 2_500_000_000  # 20 Gb/s: 0.2 ms at most


class StreamSender(SendingSession):
    """Sends the same block of random bytes over and over, by copy or by sendfile."""

    def __init__(self, sock: socket.socket, place: Place, supplies: Supplies) -> None:
        super().__init__(sock, place)
        self._payload = supplies.payload
        self._push = self._push_pages if supplies.mode is Mode.SENDFILE else self._push_pieces

    def _watch(self) -> None:
        self._loop.add_writer(self._sock, self._push)

    def _push_pieces(self) -> None:
        try:
            self._handed_over += self._sock.sendmsg(self._payload.pieces)
        except OSError as error:
            self._failed(error)

    def _push_pages(self) -> None:
        try:
            self._handed_over += os.sendfile(self._fd, self._payload.fd, 0, self._payload.size_bytes)
        except OSError as error:
            self._failed(error)


class StreamReceiver(ReceivingSession):
    """Receives, counts, and drops what it got."""

    def __init__(self, sock: socket.socket, place: Place, supplies: Supplies) -> None:
        super().__init__(sock, place)
        self._buffer = supplies.buffer
        piece = supplies.buffer[:PIECE_BYTES]
        self._pieces = [piece] * (len(supplies.buffer) // PIECE_BYTES)
        self._pull = self._pull_nothing if supplies.mode is Mode.DISCARD else self._pull_pieces
        self._may_wait = supplies.payload.size_bytes < _LOW_WATER_BYTES
        self._waits = False
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
        self._loop.add_reader(self._sock, self._pull)

    def _pull_pieces(self) -> None:
        try:
            count = self._sock.recvmsg_into(self._pieces)[0]
        except OSError as error:
            self._failed(error)
            return
        self._received(count)

    def _pull_nothing(self) -> None:
        try:
            count = self._sock.recv_into(self._buffer, 0, socket.MSG_TRUNC)
        except OSError as error:
            self._failed(error)
            return
        self._received(count)

    def _received(self, count: int) -> None:
        if count:
            self._words[self._bytes_at] += count
        else:
            self._lose(None)
