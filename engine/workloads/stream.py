"""The stream workload: the sender and the receiver of one TCP connection at full speed.

A session that has its worker to itself runs in a thread that blocks in sendmsg(2), sendfile(2) or recv(2): on
loopback 1 MiB blocks went at 55 Gb/s so, and at 46 by an event loop at both ends, 16 rounds of each in turn; with
one end so and the other by a loop, at 49. It moves to the event loop when the worker gets another session.
"""

import contextlib
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Final

from ..model.plan import SECOND_NS, Mode
from .session import PIECE_BYTES, ReceivingSession, SendingSession, SessionContext, WorkerResources
from .socket_io import NO_WAIT, SocketThread

# A sender of small blocks wakes the receiver for each block. If a session is so fast that this many bytes take
# but a fraction of a millisecond, poll for them saves wake-ups: at blocks of 128 KiB on loopback, threads at
# both ends, 41 Gb/s at 0.35 ms/MiB with it, and 36 at 0.42 without, ten rounds of each in turn. One that copies
# blocks of 1 MiB out carried 0.96 of its rate without. A receiver that discards has little else to do, and waits
# for more: with 1 MiB, of which all that has come goes at once, it took 25.7 ms/GB and its sender 60.2; with 512
# KiB 37.9 and 64.3, eleven rounds of each in turn.
_LOW_WATER_BYTES: Final = 512 * 1024
_DISCARD_LOW_WATER_BYTES: Final = 1024 * 1024
_LOW_WATER_BYTES_S: Final = 2_500_000_000  # 20 Gb/s: 0.2 or 0.4 ms at most
_TRIES: Final = 3  # of each memory


class StreamSender(SendingSession):
    """Sends the same block of random bytes repeatedly, by copy or by sendfile."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        payload = resources.payload
        self._payload = payload
        self._is_waiting = False  # for other sessions to give bytes of the budget back
        self._is_stopping = False
        self._is_finishing = False
        self._has_thread = self._has_begun = False
        self._unsent_bytes = 0  # of a block that was taken from the budget
        self._send: Callable[[], int] = partial(sock.sendmsg, payload.pieces)
        if payload.fd >= 0:
            self._send = partial(os.sendfile, self._fd, payload.fd, 0, payload.size_bytes)

    def refresh(self) -> None:
        """Store the counters, and continue if the budget has bytes again."""
        if self._is_finishing:  # the end of the stream counts as an acknowledged byte
            return
        super().refresh()
        if self._is_waiting and not self._closed:
            self._resume()

    def limit_rate(self, bit_s: int, interval_ns: int) -> None:
        """Send at most at this rate from now on."""
        was_fast = self._pace is None
        super().limit_rate(bit_s, interval_ns)
        if self._pace is not None:
            self._is_alone = False
            if was_fast and self._has_begun and not self._has_thread:
                self._resume()

    def _start_io(self) -> None:
        self._has_begun = True
        if self._is_alone and self._pace is None:
            body = self._send_in_thread if self._budget is None else self._send_budget_in_thread
            self._has_thread = True
            self._socket_thread = SocketThread(self._sock, body, self._resume, self._lose)
        else:
            self._resume()

    def stop_sending(self) -> None:
        """Send no further block. A thread ends after its block, or with the connection."""
        self._is_stopping = True
        self._is_alone = False
        if not self._has_thread:
            self._loop.remove_writer(self._sock)

    def finish_sending(self) -> None:
        """Send no further block, and end the stream behind the data on their way. Its counts stay as they are."""
        self._is_finishing = True
        self.stop_sending()
        if not self._has_thread:
            self._end_stream()

    def _end_stream(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def _resume(self) -> None:
        self._is_waiting = self._has_thread = False
        if self._is_stopping:
            if self._is_finishing:
                self._end_stream()
            return
        if self._pace is not None:
            self._loop.remove_writer(self._sock)
            self._send_in_pieces()
            return
        self._loop.add_writer(self._sock, self._send_once if self._budget is None else self._send_budget_once)

    def _send_in_pieces(self) -> None:
        """Send the bytes that are due at the pace of a slow session, and continue later."""
        pace = self._pace
        if self._closed or self._is_stopping:
            return
        if pace is None:  # it is fast now
            self._resume()
            return
        try:
            due = pace.due(time.monotonic_ns())
            while due and (sent := self._send_piece(due)):
                pace.take(sent)
                due -= sent
        except OSError as error:
            self._handle_error(error)
        if not self._closed:
            self._loop.call_later(pace.wait_ns / SECOND_NS, self._send_in_pieces)

    def _send_piece(self, most: int) -> int:
        """Send at most this many bytes of the block, and of the budget; return how many the kernel took."""
        if not self._unsent_bytes:
            size = self._payload.size_bytes
            self._unsent_bytes = size if self._budget is None else self._budget.take(size)
        count = min(most, self._unsent_bytes)
        sent = self._sock.send(memoryview(self._payload.block)[:count]) if count else 0
        self._unsent_bytes -= sent
        self._handed_over += sent
        return sent

    def _send_in_thread(self) -> bool:
        while self._is_alone:
            self._handed_over += self._send()
        return True

    def _send_once(self) -> None:
        try:
            self._handed_over += self._send()
        except OSError as error:
            self._handle_error(error)

    def _send_budget_in_thread(self) -> bool:
        while self._is_alone and self._send_budget():
            pass
        return True

    def _send_budget_once(self) -> None:
        try:
            if not self._send_budget():
                self._is_waiting = True
                self._loop.remove_writer(self._sock)
        except OSError as error:
            self._handle_error(error)

    def _send_budget(self) -> bool:
        """Send a block, the rest of one, or as much as the budget allows; return False if that is nothing.

        Each session carries whole blocks but for the last: some receivers count only those.
        """
        budget, payload = self._budget, self._payload
        if not self._unsent_bytes and budget is not None:
            self._unsent_bytes = budget.take(payload.size_bytes)
        count = self._unsent_bytes
        if not count:
            return False
        if count == payload.size_bytes:
            sent = self._send()
        elif payload.fd >= 0:
            sent = os.sendfile(self._fd, payload.fd, 0, count)
        else:
            sent = self._sock.send(memoryview(payload.block)[:count])
        self._unsent_bytes = count - sent
        self._handed_over += sent
        return True


def receive_pieces(buffer: memoryview) -> list[memoryview]:
    """Return pieces that add up to the size of a buffer and are all the same memory, for one scattering read.

    As where payload is sent, a piece stays in a core's own cache, and the buffer does not. On loopback one
    session received out of a file 75 Gb/s into 512 KiB and 92 into such pieces, eleven rounds of each in turn. For
    copied payload it depends on the machine: BufferTrial.
    """
    return [buffer[:PIECE_BYTES]] * (len(buffer) // PIECE_BYTES)


class BufferTrial:
    """Tries which memory takes copied payload faster: the whole buffer, or one piece of it repeatedly.

    On one two-core machine loopback carried 55 Gb/s into the whole buffer and 61 into pieces, on another 97 and 85
    (`linkgauge run loopback --mode copy --block 1M`, rounds in turn). So the first intervals of a fast session use
    both in turn. A slow session is left with pieces: there it makes no difference.
    """

    def __init__(self, buffer: memoryview) -> None:
        self._choices = (receive_pieces(buffer), [buffer])
        self._rates: tuple[list[float], list[float]] = ([], [])
        self._chosen = 0
        self.is_over = False

    @property
    def pieces(self) -> list[memoryview]:
        """The memory for the next interval."""
        return self._choices[self._chosen]

    def add_interval(self, bytes_s: float) -> None:
        """Take the rate of the last interval."""
        if bytes_s < _LOW_WATER_BYTES_S:
            return
        self._rates[self._chosen].append(bytes_s)
        self.is_over = all(len(rates) == _TRIES for rates in self._rates)
        self._chosen = int(median(self._rates[1]) > median(self._rates[0])) if self.is_over else 1 - self._chosen


class StreamReceiver(ReceivingSession):
    """Receives and counts bytes, and drops them."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context)
        self._buffer = resources.buffer
        self._is_discarding = resources.mode is Mode.DISCARD
        self._low_water_bytes = _DISCARD_LOW_WATER_BYTES if self._is_discarding else _LOW_WATER_BYTES
        self._can_wait = self._is_discarding or resources.payload.size_bytes < _LOW_WATER_BYTES
        self._trial = BufferTrial(resources.buffer)
        self._pieces = self._trial.pieces
        self._is_trying = resources.mode is Mode.COPY and not self._can_wait
        self._has_low_water = False
        self._count_lock = threading.Lock()  # between the thread and refresh()
        self._last_reading = (time.monotonic_ns(), self._words[self._bytes_at])

    def refresh(self) -> None:
        """Raise the low-water mark while the session is fast, and lower it afterwards, or go on with the trial."""
        super().refresh()
        if self._closed or not (self._can_wait or self._is_trying):
            return
        bytes_s = self._read_rate()
        is_fast = bytes_s >= _LOW_WATER_BYTES_S
        if self._is_trying:
            self._trial.add_interval(bytes_s)
            self._pieces, self._is_trying = self._trial.pieces, not self._trial.is_over
        elif is_fast != self._has_low_water:
            self._has_low_water = is_fast
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self._low_water_bytes if is_fast else 1)
            if not is_fast:
                self._receive_once()  # bytes that have arrived already wake nothing

    def _read_rate(self) -> float:
        """Return the bytes a second since the last call."""
        (since_ns, before), now = self._last_reading, (time.monotonic_ns(), self._words[self._bytes_at])
        self._last_reading = now
        return (now[1] - before) * SECOND_NS / max(1, now[0] - since_ns)

    def _start_io(self) -> None:
        if self._is_alone:
            self._socket_thread = SocketThread(self._sock, self._receive_in_thread, self._resume, self._lose)
        else:
            self._resume()

    def _resume(self) -> None:
        self._loop.add_reader(self._sock, self._receive_once)

    def _receive_in_thread(self) -> bool:
        receive = self._receive
        words, bytes_at, lock = self._words, self._bytes_at, self._count_lock
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while self._is_alone:
            if self._has_low_water:
                # recv(2) itself keeps waiting for the mark of its beginning, even after that was lowered.
                poll.poll()
            count = receive(0)
            if not count:
                return False
            with lock:
                words[bytes_at] += count
        return True

    def _receive(self, flags: int) -> int:
        if self._is_discarding:
            return self._sock.recv_into(self._buffer, 0, socket.MSG_TRUNC | flags)
        return self._sock.recvmsg_into(self._pieces, 0, flags)[0]

    def _receive_once(self) -> None:
        try:
            count = self._receive(NO_WAIT)
        except OSError as error:
            self._handle_error(error)
            return
        if count:
            with self._count_lock:
                self._words[self._bytes_at] += count
        else:
            self._lose(None)
