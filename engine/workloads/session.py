"""Session: base classes of all workloads, with their connection, counters and end, and the worker's buffers.

Sessions use readiness callbacks, not transports: one system call each time, into or out of a buffer that is
allocated once, with the counter stored right after it.
"""

import asyncio
import contextlib
import mmap
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal

from ..host.memory_file import create_memory_file
from ..host.tcp_info import TcpInfo, read_bytes_taken, read_tcp_info
from ..metering.shared_counters import (
    FIRST_TCP_WORD,
    UNKNOWN,
    WORDS_PER_SLOT,
    CounterField,
    SharedCounters,
    histogram_offset,
)
from ..model.counters.latency_histogram import bucket_of
from ..model.counters.session_counters import TCP_COUNTER_NAMES, TCP_COUNTERS
from ..model.errors import explain_resource_error
from ..model.plan import DEFAULT_SETTINGS, Mode, Settings
from .byte_budget import ByteBudget
from .byte_pace import SLOW_BIT_S, BytePace
from .socket_io import Poller, SocketThread
from .sockets import set_pacing, set_unsent_limit, unsent_limit_bytes

# One system call sends a whole block from the same piece of memory repeatedly: a piece stays in a core's own cache,
# and a block does not. On loopback, with a receiver that discards, blocks of 1 MiB cost both ends together 0.19
# ms/MiB out of pieces of 64 KiB, and 0.24 out of one piece (72 and 55 Gb/s), eight rounds of each in turn.
PIECE_BYTES: Final = 64 * 1024
RECEIVE_BYTES: Final = 1 << 20  # the smallest receive buffer of a worker
DISCARD_BYTES: Final = 4 << 20  # at once, of a receiver that writes none of them to its buffer
CLOSED_BY_PEER: Final = "closed by the other host"


def _open_payload_file(pieces: list[bytes]) -> int:
    """Return the descriptor of a file with the pieces, for sendfile(2); -1 if none can be created.

    A disk's file system keeps one write in one folio (ext4 on Linux 6.18), a memory file page by page, and much of
    the kernel's work is for each folio: on loopback 67 Gb/s out of an unlinked file and 60 out of a
    memory file, 16 rounds of each in turn.
    """
    import tempfile  # 10 ms, which most workers do not need

    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            for piece in pieces:
                file.write(piece)
            return os.dup(file.fileno())
    except OSError:  # no temporary folder, or no room in it
        with contextlib.suppress(OSError):
            return create_memory_file("linkgauge-payload", b"".join(pieces))
        return -1


class Payload:
    """The block that a worker sends: random bytes, generated once.

    `pieces` add up to the `block`, for one gathering write. `fd` is a file with the same bytes in sendfile mode,
    and -1 in the others. A compressor with a history shorter than a piece cannot compress them. A piece is all that
    it takes before a session reads `block` or `fd`: a worker without one has no use for them. The block begins with
    `head`, if the other end expects one.
    """

    def __init__(self, size_bytes: int, mode: Mode = Mode.COPY, head: bytes = b"") -> None:
        self.size_bytes = size_bytes
        whole, rest = divmod(size_bytes, PIECE_BYTES)
        piece = os.urandom(min(size_bytes, PIECE_BYTES))
        self.pieces = [piece] * whole + ([piece[:rest]] if rest else [])
        if head:
            self.pieces[0] = head + self.pieces[0][len(head) :]
        self._mode = mode
        self._block: bytes | None = None
        self._fd: int | None = None

    @property
    def block(self) -> bytes:
        """All bytes in one piece of memory, which all sessions of the worker share."""
        if self._block is None:
            self._block = b"".join(self.pieces)
        return self._block

    @property
    def fd(self) -> int:
        """The file in sendfile mode, and -1 in the others."""
        if self._fd is None:
            self._fd = _open_payload_file(self.pieces) if self._mode is Mode.SENDFILE else -1
        return self._fd

    def close(self) -> None:
        """Close the file."""
        if self._fd is not None and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def receive_buffer(mode: Mode, block_bytes: int) -> memoryview:
    """Return a worker's receive buffer. Nothing is written to one of `discard`, so its size takes no memory."""
    return allocate_buffer(max(DISCARD_BYTES if mode is Mode.DISCARD else RECEIVE_BYTES, block_bytes))


def allocate_buffer(size_bytes: int) -> memoryview:
    """Return a buffer that takes memory only once data is written to it; raise OSError if there is none."""
    return memoryview(mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Buffers, poller and transaction sizes that all sessions of a worker share.

    The block of `requests` holds `burst` requests. With `polls` a pair asks for messages instead of waiting.
    `pace_ns` is the pause of a latency probe, and 0 elsewhere. `unidentified` are the connections to listeners of
    these sessions that have shown no ticket, the oldest first.
    """

    payload: Payload
    buffer: memoryview
    mode: Mode
    requests: Payload
    poller: Poller
    request_bytes: int = 0
    response_bytes: int = 0
    burst: int = 1
    polls: bool = False
    pace_ns: int = 0
    unidentified: dict[Any, None] = field(default_factory=dict[Any, None])


def ignore_control(_sock: socket.socket, _data: bytes) -> None:
    """Leave a datagram that is not payload without an answer."""


def ignore_message(_opcode: int, _data: bytes) -> None:
    """Take no notice of a message between the payload."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """A session's slot in the counters. `on_lost(why)` is called once if the session ends unexpectedly.

    `budget` limits what the session starts: the bytes of a stream's sender, the responses of a requester.

    `on_message(opcode, data)` takes what a WebSocket carries between its payload.

    The others are for UDP: the session's secret, the settings, the loss goal of a search,
    `answer_control(sock, data)`, which answers a repeated datagram of the handshake, and whether datagrams of
    iperf3 have numbers of 64 bits.
    """

    counters: SharedCounters
    slot: int
    generation: int
    on_lost: Callable[[str], None]
    budget: ByteBudget | None = None
    secret: bytes = b""
    settings: Settings = DEFAULT_SETTINGS
    loss_goal: float = 0.0
    answer_control: Callable[[socket.socket, bytes], object] = ignore_control
    has_64bit_counters: bool = False
    on_message: Callable[[int, bytes], object] = ignore_message


_DELIVERY_COUNTER: Final = TCP_COUNTER_NAMES.index("delivery_bit_s")
_Role = Literal["sender", "receiver"]
_ROLES: Final[tuple[_Role, ...]] = ("sender", "receiver")
# By role, the position in the table of each TCP counter that it reports, and whether that is cumulative.
_REPORTED: Final = {
    role: tuple((n, counter.kind == "cumulative") for n, counter in enumerate(TCP_COUNTERS) if counter.end == role)
    for role in _ROLES
}


class Session(ABC):
    """A session's connection at one end: `start` it once, `refresh` it periodically, and `close` it.

    Subclasses implement `refresh` and `_start_io`. They report the end of the connection by `_lose` or `_end`.
    """

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
        self.last_received_ns = 0  # time of the last received segment, from the kernel
        self._on_lost = context.on_lost
        self._budget = context.budget
        self._closed = False
        self._is_alone = False
        self._socket_thread: SocketThread | None = None
        # A reopened session continues the counts of its last connection.
        slot = self._words[self._base : self._base + WORDS_PER_SLOT].tolist()
        self._earlier_counts = [0 if word == UNKNOWN else word for word in slot]
        for index, counter in enumerate(TCP_COUNTERS):
            if counter.end != self._role:
                self._store(FIRST_TCP_WORD + index, None)
        self._words[self._base + CounterField.OPEN_GENERATION] = context.generation + 1

    def start(self, *, is_alone: bool = False) -> None:
        """Let payload flow; `is_alone` if no other session shares the worker now."""
        self._is_alone = is_alone
        self.refresh()
        try:
            self._start_io()
        except (OSError, MemoryError) as error:
            self._end(explain_resource_error(error))

    def change_settings(self, settings: Settings) -> None:  # noqa: B027 - most sessions have nothing to change
        """Take over the new settings; they change nothing in an open session of TCP."""

    def stop_sending(self) -> None:  # noqa: B027 - transactions end with their connection
        """Send no further payload, and stay open for data on their way."""

    def finish_sending(self) -> None:
        """Send no further payload, and end this end's part of the connection if it is a stream."""
        self.stop_sending()

    def share_worker(self) -> None:
        """Move from a thread to the event loop: the worker has another session now."""
        self._is_alone = False

    def close(self) -> None:
        """Store the last counters, end the thread, if any, and abort the connection."""
        if self._closed:
            return
        self._closed = True
        self.refresh()  # before stop(), whose FIN counts as one acknowledged byte
        if self._socket_thread is not None:
            self._socket_thread.stop()
        if self._budget is not None:
            self._budget.settle(self._words[self._bytes_at])
        self._words[self._base + CounterField.OPEN_GENERATION] = 0
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()

    @abstractmethod
    def refresh(self) -> None:
        """Update the slot's TCP_INFO words."""

    @abstractmethod
    def _start_io(self) -> None:
        """Start a thread, or register a readiness callback."""

    def _lose(self, error: OSError | None) -> None:
        self._end(CLOSED_BY_PEER if error is None else explain_resource_error(error))

    def _handle_error(self, error: OSError) -> None:
        """End the session, unless the call only has to be repeated."""
        if not isinstance(error, BlockingIOError | InterruptedError):
            self._lose(error)

    def _end(self, why: str) -> None:
        if not self._closed:
            self.close()
            self._on_lost(why)

    def _note_last_received(self, info: TcpInfo) -> None:
        self.last_received_ns = time.monotonic_ns() - info.receive_idle_ms * 1_000_000

    def _check_for_end(self) -> None:
        """Read from a connection that carries nothing: both its end and any data end the session."""
        try:
            data = self._sock.recv(1)
        except OSError as error:
            self._handle_error(error)
            return
        if data:
            self._end("the other host sent unexpected data")
        else:
            self._lose(None)

    def _store(self, word: int, value: int | None) -> None:
        self._words[self._base + word] = UNKNOWN if value is None else value

    def _store_tcp(self, info: TcpInfo | None) -> None:
        """Store the TCP counters that this end reports; all of them are unknown without TCP_INFO."""
        words, base, before = self._words, self._base, self._earlier_counts
        for index, is_cumulative in _REPORTED[self._role]:
            value = None if info is None else info.counters[index]
            word = FIRST_TCP_WORD + index
            if value is not None and is_cumulative:
                value += before[word]
            words[base + word] = UNKNOWN if value is None else value


class SendingSession(Session):
    """A session that sends payload: it counts the bytes that the other end's kernel acknowledged."""

    _role = "sender"
    _unsent_margin: ClassVar[int] = 1

    def __init__(self, sock: socket.socket, context: SessionContext) -> None:
        super().__init__(sock, context)
        self._acked_at_start = read_bytes_taken(sock) or 0  # the handshake's may not be acknowledged yet
        self._handed_over = 0
        self._pace: BytePace | None = None  # of a slow session
        self._limits_unsent = False
        self._most_unsent_bytes = 0

    @property
    def most_unsent_bytes(self) -> int:
        """The bytes that may stay unsent; 0 if they are not limited."""
        return self._most_unsent_bytes

    def limit_unsent(self) -> None:
        """Keep little in the send buffer that has not been sent, in proportion to the rate, from now on."""
        self._limits_unsent = True

    def limit_rate(self, bit_s: int, interval_ns: int) -> None:
        """Limit the rate from now on. A slow session hands over small pieces, which the kernel spreads."""
        is_slow = bit_s < SLOW_BIT_S
        set_pacing(self._sock, bit_s + bit_s // 4 if is_slow else bit_s)  # with room to catch up
        self._pace = BytePace(bit_s, interval_ns, time.monotonic_ns()) if is_slow else None

    def refresh(self) -> None:
        """Store the acknowledged bytes and the sender's TCP_INFO."""
        info = read_tcp_info(self._sock)
        if info is None:
            # Without TCP_INFO, the bytes passed to the kernel: too many by the size of its buffer.
            carried = self._handed_over
        else:
            self._note_last_received(info)
            carried = self._handed_over if info.bytes_acked is None else info.bytes_acked - self._acked_at_start
            if self._limits_unsent:
                self._renew_unsent_limit(info.counters[_DELIVERY_COUNTER])
        self._words[self._bytes_at] = self._earlier_counts[CounterField.BYTES] + max(0, carried)
        self._store_tcp(info)

    def _renew_unsent_limit(self, delivery_bit_s: int | None) -> None:
        most_bytes = unsent_limit_bytes(delivery_bit_s, self._unsent_margin)
        if most_bytes != self._most_unsent_bytes:
            self._most_unsent_bytes = most_bytes
            set_unsent_limit(self._sock, most_bytes)


class ReceivingSession(Session):
    """A session that receives payload; round trips and windows are known at the sender only."""

    _role = "receiver"

    def refresh(self) -> None:
        """Store the receiver's TCP_INFO: out-of-order segments and buffer space."""
        info = read_tcp_info(self._sock)
        if info is not None:
            self._note_last_received(info)
        self._store_tcp(info)

    def _count(self, took_ns: int) -> None:
        """Count a transaction in the latency histogram."""
        self._words[self._latency_at + bucket_of(took_ns)] += 1
