"""The counters that workers write and the process that draws reads: one block of shared memory for each end.

The block is an anonymous file (memfd_create(2), else an unlinked temporary file), so it has no name that could
be left behind: it is gone with the last process that maps it, however that process ended. Every field is an
aligned 64-bit word with a single writer, so reading needs no lock. Each slot has a latency histogram
(latency.py): 3.4 MB in all, of which a system gives only the pages that are counted in.
"""

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ..model.latency_histogram import BUCKET_COUNT
from ..model.plan import MAX_SESSIONS, MAX_WORKERS, PROBE_SESSION, Direction

UNKNOWN: Final = 2**64 - 1


class CounterField(IntEnum):
    """The words of one slot. What is counted only rises, over reopened connections too."""

    OPEN_GENERATION = 0  # 0 while no connection is open, else its generation plus one
    BYTES = 1  # received by the application, or acknowledged by the other end's kernel
    RETRANSMITS = 2
    BUSY_US = 3
    RWND_LIMITED_US = 4
    SNDBUF_LIMITED_US = 5
    RTT_US = 6
    CWND_BYTES = 7
    MSS_BYTES = 8
    BYTES_RETRANS = 9
    MIN_RTT_US = 10
    PACING_BIT_S = 11
    DELIVERY_BIT_S = 12
    PEER_WINDOW_BYTES = 13
    OUT_OF_ORDER = 14  # this one and the next are the receiver's
    RCV_SPACE_BYTES = 15


WORDS_PER_SLOT: Final = 16  # 128 bytes: two cache lines, so that workers do not share one
_SLOTS: Final = 2 * MAX_SESSIONS + 1  # the last one is the probe's
_CPU_BASE: Final = _SLOTS * WORDS_PER_SLOT
_WORKERS: Final = MAX_WORKERS + 1  # the last one hosts the probe
_HEARD_BASE: Final = _CPU_BASE + _WORKERS
_LATENCY_BASE: Final = _HEARD_BASE + _WORKERS
_SIZE_BYTES: Final = (_LATENCY_BASE + _SLOTS * BUCKET_COUNT) * 8
EMPTY_HISTOGRAM: Final = bytes(BUCKET_COUNT * 8)


def slot_index(direction: Direction, session: int) -> int:
    """Return the slot of a session (1 to 128) in a single direction; of the probe, which has one for itself."""
    if session == PROBE_SESSION:
        return 2 * MAX_SESSIONS
    return (session - 1) * 2 + (direction is Direction.IN)


def histogram_offset(slot: int) -> int:
    """Return the first word of a slot's latency histogram."""
    return _LATENCY_BASE + slot * BUCKET_COUNT


@dataclass(frozen=True, slots=True)
class SlotReading:
    """What one slot says at one moment; None is unknown."""

    direction: Direction
    session: int
    is_open: bool
    bytes: int
    retransmits: int | None
    busy_us: int | None
    rwnd_limited_us: int | None
    sndbuf_limited_us: int | None
    rtt_us: int | None
    cwnd_bytes: int | None
    mss_bytes: int | None
    bytes_retrans: int | None = 0
    min_rtt_us: int | None = 0
    pacing_bit_s: int | None = 0
    delivery_bit_s: int | None = 0
    peer_window_bytes: int | None = 0
    out_of_order: int | None = 0
    rcv_space_bytes: int | None = 0


class SharedCounters:
    """The mapped block. The creating end keeps `fd` open to hand it to workers; `close` gives all back."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE_BYTES)
        self.words = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls) -> "SharedCounters":
        """Make a new block, all zero; raise OSError where the system has no memory for it."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("linkgauge-counters", os.MFD_CLOEXEC)
        else:
            import tempfile  # not where it is not needed: it takes 10 ms of a worker's start

            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        try:
            os.ftruncate(fd, _SIZE_BYTES)
            return cls(fd)
        except OSError:
            os.close(fd)
            raise

    def close(self) -> None:
        """Unmap and close."""
        self.words.release()
        self._map.close()
        os.close(self.fd)

    def read(self, direction: Direction, session: int) -> SlotReading | None:
        """Return a slot; None where it was never used."""
        base = slot_index(direction, session) * WORDS_PER_SLOT
        words = self.words[base : base + len(CounterField)].tolist()
        if not any(words):
            return None
        known = [None if word == UNKNOWN else word for word in words]
        return SlotReading(
            direction, session, bool(words[CounterField.OPEN_GENERATION]), words[CounterField.BYTES], *known[2:]
        )

    def read_latency(self, direction: Direction, session: int) -> bytes:
        """Return the words of a slot's latency histogram."""
        first = histogram_offset(slot_index(direction, session)) * 8
        return self._map[first : first + BUCKET_COUNT * 8]

    def used_sessions(self, direction: Direction) -> list[int]:
        """Return the sessions of a single direction that are open, or have carried anything; ascending."""
        opened, carried = (
            self._all(direction, CounterField.OPEN_GENERATION),
            self._all(direction, CounterField.BYTES),
        )
        return [number for number, words in enumerate(zip(opened, carried, strict=True), 1) if any(words)]

    def total_bytes(self) -> int:
        """Return the bytes of all slots: a sign of life while the control connection is silent."""
        return sum(self.words[CounterField.BYTES : _CPU_BASE : WORDS_PER_SLOT].tolist())

    def flow_bytes(self, direction: Direction) -> int:
        """Return the bytes of all sessions of a single direction; the probe's are no payload."""
        return sum(self._all(direction, CounterField.BYTES))

    def _all(self, direction: Direction, field: CounterField) -> list[int]:
        first = slot_index(direction, 1) * WORDS_PER_SLOT + field
        return self.words[first : 2 * MAX_SESSIONS * WORDS_PER_SLOT : 2 * WORDS_PER_SLOT].tolist()

    def set_worker_cpu(self, worker: int, cpu_ns: int) -> None:
        """Store a worker's user and system time."""
        self.words[_CPU_BASE + worker] = cpu_ns

    def set_last_received(self, worker: int, when_ns: int) -> None:
        """Store when anything came on one of a worker's connections, be it an acknowledgement; monotonic."""
        self.words[_HEARD_BASE + worker] = when_ns

    def last_received_ns(self) -> int:
        """Return when anything came last on any connection; 0 where that is not known."""
        return max(self.words[_HEARD_BASE : _HEARD_BASE + _WORKERS].tolist())

    def worker_cpu_ns(self) -> int:
        """Return the user and system time of all workers together, those that ended included."""
        return sum(self.workers_cpu_ns())

    def workers_cpu_ns(self) -> list[int]:
        """Return the user and system time of each worker."""
        return self.words[_CPU_BASE : _CPU_BASE + _WORKERS].tolist()
