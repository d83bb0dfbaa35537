"""The stream workload: one side of one TCP connection that carries payload as fast as it goes."""

import os
import socket

from ..plan import Mode
from .session import PIECE_BYTES, Place, ReceivingSession, SendingSession, Supplies


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
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)

    def _push_pages(self) -> None:
        try:
            self._handed_over += os.sendfile(self._fd, self._payload.fd, 0, self._payload.size_bytes)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)


class StreamReceiver(ReceivingSession):
    """Receives, counts, and drops what it got."""

    def __init__(self, sock: socket.socket, place: Place, supplies: Supplies) -> None:
        super().__init__(sock, place)
        self._buffer = supplies.buffer
        piece = supplies.buffer[:PIECE_BYTES]
        self._pieces = [piece] * (len(supplies.buffer) // PIECE_BYTES)
        self._pull = self._pull_nothing if supplies.mode is Mode.DISCARD else self._pull_pieces

    def _watch(self) -> None:
        self._loop.add_reader(self._sock, self._pull)

    def _pull_pieces(self) -> None:
        try:
            count = self._sock.recvmsg_into(self._pieces)[0]
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        self._received(count)

    def _pull_nothing(self) -> None:
        try:
            count = self._sock.recv_into(self._buffer, 0, socket.MSG_TRUNC)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        self._received(count)

    def _received(self, count: int) -> None:
        if count:
            self._words[self._bytes_at] += count
        else:
            self._lose(None)
