"""What every workload's sessions share: their connection, their place in the counters, how they end.

Readiness callbacks rather than transports: one system call each time, into or out of a buffer that is made once,
with the counter stored right after it.
"""

import asyncio
import contextlib
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from ..host.memory_archive import create_memory_file
from ..host.tcp_info import TcpInfo, read_tcp_info
from ..metering.shared_counters import (
    FIRST_TCP_WORD,
    UNKNOWN,
    WORDS_PER_SLOT,
    CounterField,
    SharedCounters,
    histogram_offset,
)
from ..model.latency_histogram import bucket_of
from ..model.plan import Mode
from ..model.tcp_counters import TCP_COUNTERS
from ..protocol.session_failure import CLOSED_BY_PEER
from .readiness import Poller
from .thread_io import SocketThread

# One system call moves a whole block out of the same piece of memory again and again: a piece stays in a core's own
# cache where a block does not. On loopback, where the receiver discards, blocks of 1 MiB cost both ends together
# 0.19 ms/MiB out of pieces of 64 KiB, and 0.24 out of one piece (72 and 55 Gb/s), eight rounds of each in turn.
PIECE_BYTES: Final = 64 * 1024


def _pages(block: bytes) -> int:
    """Return a descriptor of pages with the block in them, for sendfile(2); -1 where there can be none.

    A disk's file system keeps what is written at once in one folio (ext4 on Linux 6.18), a memory file page by
    page, and much of the kernel's work is by the folio: on loopback 67 Gb/s out of an unlinked file and 60 out of a
    memory file, 16 rounds of each in turn.
    """
    import tempfile  # it takes 10 ms, of a worker that mostly starts without

    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(block)
            return os.dup(file.fileno())
    except OSError:  # no folder for it, no room in it
        with contextlib.suppress(OSError):
            return create_memory_file("linkgauge-payload", block)
        return -1


class Payload:
    """The block a worker sends: random bytes, made once.

    `pieces` add up to the `block`, for one gathering write; `fd` is a file with the same bytes, made where the
    mode is sendfile, and -1 elsewhere. No compressor that looks back less than a piece finds anything in them.
    """

    def __init__(self, size_bytes: int, mode: Mode = Mode.COPY) -> None:
        self.size_bytes = size_bytes
        whole, rest = divmod(size_bytes, PIECE_BYTES)
        piece = os.urandom(min(size_bytes, PIECE_BYTES))
        self.pieces = [piece] * whole + ([piece[:rest]] if rest else [])
        self.block = b"".join(self.pieces)
        self.fd = _pages(self.block) if mode is Mode.SENDFILE else -1

    def close(self) -> None:
        """Give the file back."""
        if self.fd >= 0:
            os.close(self.fd)


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """What all sessions of a worker share: buffers that are made once, and what a transaction is.

    `requests` holds as many requests as are in flight at once. Requests `pace_ns` apart are the probe's.
    """

    payload: Payload
    buffer: memoryview
    mode: Mode
    requests: memoryview
    poller: Poller
    request_bytes: int = 0
    response_bytes: int = 0
    burst: int = 1
    pace_ns: int = 0


@dataclass(frozen=True, slots=True)
class SessionContext:
    """Where a session counts, and whom it tells. `on_lost(why)` is called once where it ends by itself."""

    counters: SharedCounters
    slot: int
    generation: int
    on_lost: Callable[[str], None]


_Role = Literal["sender", "receiver"]
_ROLES: Final[tuple[_Role, ...]] = ("sender", "receiver")
# By role, the position in the table of each TCP counter that it reports, and whether that is cumulative.
_REPORTED: Final = {
    role: tuple((n, counter.is_cumulative) for n, counter in enumerate(TCP_COUNTERS) if counter.end == role)
    for role in _ROLES
}


class Session(ABC):
    """A session's connection at one end."""

    _role: ClassVar[_Role]

    def __init__(self, sock: socket.socket, context: SessionContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._fd = sock.fileno()
        self._words = context.counters.words
        self._base = context.slot * WORDS_PER_SLOT
        self._bytes_at = self._base + CounterField.BYTES
        self._latency_at = histogram_offset(context.slot)
        self.generation = context.generation
        self.last_received_ns = 0  # when anything came, as far as the kernel tells
        self._on_lost = context.on_lost
        self._closed = False
        self._is_alone = False
        self._blocking: SocketThread | None = None
        # A reopened session counts on from where its last connection left off.
        slot = self._words[self._base : self._base + WORDS_PER_SLOT].tolist()
        self._before = [0 if word == UNKNOWN else word for word in slot]
        for index, counter in enumerate(TCP_COUNTERS):
            if counter.end != self._role:
                self._store(FIRST_TCP_WORD + index, None)
        self._words[self._base + CounterField.OPEN_GENERATION] = context.generation + 1

    def start(self, *, is_alone: bool = False) -> None:
        """Let payload flow; `is_alone` where no other session shares the worker now."""
        self._is_alone = is_alone
        self.refresh()
        self._watch()

    def share_worker(self) -> None:
        """Make room for another session in this worker."""
        self._is_alone = False

    def close(self) -> None:
        """Take the last counters, end the thread, if there is one, and abort the connection."""
        if self._closed:
            return
        self._closed = True
        self.refresh()  # before the thread is woken: by a FIN, and whoever acknowledges one acknowledges a byte
        if self._blocking is not None:
            self._blocking.stop()
        self._words[self._base + CounterField.OPEN_GENERATION] = 0
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()

    @abstractmethod
    def refresh(self) -> None:
        """Bring the slot's TCP_INFO words up to date."""

    @abstractmethod
    def _watch(self) -> None:
        """Register the readiness callback."""

    def _lose(self, error: OSError | None) -> None:
        self._lose_saying(CLOSED_BY_PEER if error is None else error.strerror or str(error))

    def _failed(self, error: OSError) -> None:
        """End where a call failed for good; where there was only nothing to do for it, it is made again."""
        if not isinstance(error, BlockingIOError | InterruptedError):
            self._lose(error)

    def _lose_saying(self, why: str) -> None:
        if not self._closed:
            self.close()
            self._on_lost(why)

    def _hear(self, info: TcpInfo) -> None:
        self.last_received_ns = time.monotonic_ns() - info.receive_idle_ms * 1_000_000

    def _look_for_end(self) -> None:
        """Find out why there is something to read on a connection that carries nothing."""
        try:
            said = self._sock.recv(1)
        except OSError as error:
            self._failed(error)
            return
        if said:
            self._lose_saying("the other end said something where it has nothing to say")
        else:
            self._lose(None)

    def _store(self, word: int, value: int | None) -> None:
        self._words[self._base + word] = UNKNOWN if value is None else value

    def _store_tcp(self, info: TcpInfo | None) -> None:
        """Store the TCP counters that this end reports; all of them are unknown without TCP_INFO."""
        words, base, before = self._words, self._base, self._before
        for index, is_cumulative in _REPORTED[self._role]:
            value = None if info is None else info.counters[index]
            word = FIRST_TCP_WORD + index
            if value is not None and is_cumulative:
                value += before[word]
            words[base + word] = UNKNOWN if value is None else value


class SendingSession(Session):
    """A session at the end that sends payload: its bytes are those that the other end's kernel acknowledged."""

    _role = "sender"

    def __init__(self, sock: socket.socket, context: SessionContext) -> None:
        super().__init__(sock, context)
        info = read_tcp_info(sock)
        self._acked_at_start = 0 if info is None else info.bytes_acked or 0
        self._handed_over = 0

    def refresh(self) -> None:
        """Store what the other end's kernel acknowledged, and how the connection fares."""
        info = read_tcp_info(self._sock)
        if info is None:
            # Without TCP_INFO what was handed to the kernel is the best there is: too much by its buffer.
            carried = self._handed_over
        else:
            self._hear(info)
            carried = self._handed_over if info.bytes_acked is None else info.bytes_acked - self._acked_at_start
        self._words[self._bytes_at] = self._before[CounterField.BYTES] + max(0, carried)
        self._store_tcp(info)


class ReceivingSession(Session):
    """A session at the end that receives payload: round trips and windows are the sender's to know."""

    _role = "receiver"

    def refresh(self) -> None:
        """Store in which order packets come and how much is read; the rest is the other end's to know."""
        info = read_tcp_info(self._sock)
        if info is not None:
            self._hear(info)
        self._store_tcp(info)

    def _count(self, took_ns: int) -> None:
        """Count a transaction by how long it took."""
        self._words[self._latency_at + bucket_of(took_ns)] += 1
