"""The counters of an end's workers: a block of shared memory, written by them and read by the sampler.

The block is an anonymous file, so its name cannot remain: it disappears with the last process that
maps it, however that process ends. Every field is an aligned 64-bit word with a single writer, so reading needs no
lock. It holds, in this order:

    a slot for each session in each direction, and one for the probe
    the CPU time of each worker
    the time for which each worker waited for a core
    the time at which each worker last received anything
    the bytes that each session of a run with a limit has claimed
    a latency histogram for each slot (3.4 MB in all, of which the system allocates only the pages in use)
    the counters of datagrams for each slot
    the counts and latency histograms of the probes of a responsiveness test
"""

import mmap
import os
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ..host.memory_file import create_memory_file
from ..model.counters.latency_histogram import BUCKET_COUNT
from ..model.counters.session_counters import DATAGRAM_COUNTER_NAMES, TCP_COUNTER_NAMES
from ..model.directions import Direction
from ..model.plan import MAX_SESSIONS, MAX_WORKERS, PROBE_SESSION

UNKNOWN: Final = 2**64 - 1


class CounterField(IntEnum):
    """The first words of a slot; the TCP counters follow in the order of their table.

    Cumulative words only rise, over reopened connections too.
    """

    OPEN_GENERATION = 0  # 0 while no connection is open, else its generation plus one
    BYTES = 1  # received by the application, or acknowledged by the other end's kernel


class ProbeHistogram(IntEnum):
    """The histograms of the probes of a responsiveness test: of handshakes, and of echoed datagrams."""

    CONNECT = 0
    ANSWER = 1
    ROUND_TRIP = 2
    RISE_OUT = 3
    RISE_IN = 4


class ProbeCount(IntEnum):
    """The words that these probes count in. They only rise."""

    HANDSHAKES_FAILED = 0
    DATAGRAMS_SENT = 1


FIRST_TCP_WORD: Final = len(CounterField)
_USED_WORDS: Final = FIRST_TCP_WORD + len(TCP_COUNTER_NAMES)
_CACHE_LINE_WORDS: Final = 8
WORDS_PER_SLOT: Final = -(-_USED_WORDS // _CACHE_LINE_WORDS) * _CACHE_LINE_WORDS  # so that workers share no line
_SLOTS: Final = 2 * MAX_SESSIONS + 1  # the last one is the probe's
_CPU_BASE: Final = _SLOTS * WORDS_PER_SLOT
_WORKERS: Final = MAX_WORKERS + 1  # the last one hosts the probe
_WAIT_BASE: Final = _CPU_BASE + _WORKERS
_LAST_RECEIVED_BASE: Final = _WAIT_BASE + _WORKERS
_CLAIMS_BASE: Final = _LAST_RECEIVED_BASE + _WORKERS
_LATENCY_BASE: Final = _CLAIMS_BASE + 2 * MAX_SESSIONS
_DATAGRAM_BASE: Final = _LATENCY_BASE + _SLOTS * BUCKET_COUNT
_DATAGRAM_WORDS: Final = -(-len(DATAGRAM_COUNTER_NAMES) // _CACHE_LINE_WORDS) * _CACHE_LINE_WORDS
_PROBE_BASE: Final = _DATAGRAM_BASE + _SLOTS * _DATAGRAM_WORDS
_PROBE_HISTOGRAM_BASE: Final = _PROBE_BASE + _CACHE_LINE_WORDS
_SIZE_BYTES: Final = (_PROBE_HISTOGRAM_BASE + len(ProbeHistogram) * BUCKET_COUNT) * 8
EMPTY_HISTOGRAM: Final = bytes(BUCKET_COUNT * 8)


def tcp_counter_word(name: str) -> int:
    """Return the word of a slot that holds a TCP counter."""
    return FIRST_TCP_WORD + TCP_COUNTER_NAMES.index(name)


def slot_index(direction: Direction, session: int) -> int:
    """Return the slot of a session (1 to 128) in a single direction; or of the probe."""
    if session == PROBE_SESSION:
        return 2 * MAX_SESSIONS
    return (session - 1) * 2 + (direction is Direction.IN)


def histogram_offset(slot: int) -> int:
    """Return the first word of a slot's latency histogram."""
    return _LATENCY_BASE + slot * BUCKET_COUNT


def datagram_offset(slot: int) -> int:
    """Return the first word of a slot's counters of datagrams, which follow the order of their table."""
    return _DATAGRAM_BASE + slot * _DATAGRAM_WORDS


def probe_histogram_offset(histogram: ProbeHistogram) -> int:
    """Return the first word of a histogram of a responsiveness test's probes."""
    return _PROBE_HISTOGRAM_BASE + histogram * BUCKET_COUNT


def probe_count_word(count: ProbeCount) -> int:
    """Return the word of a count of these probes."""
    return _PROBE_BASE + count


@dataclass(frozen=True, slots=True)
class SlotReading:
    """The content of a slot at one moment; `tcp` has the TCP counters in their table's order, None is unknown."""

    direction: Direction
    session: int
    is_open: bool
    bytes: int
    tcp: tuple[int | None, ...]


class SharedCounters:
    """The mapped block. The creating end keeps `fd` open for its workers to inherit; `close` frees it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _SIZE_BYTES)
        self.words = memoryview(self._map).cast("Q")

    @classmethod
    def create(cls) -> "SharedCounters":
        """Make a new block, all zero; raise OSError if the system has no memory for it."""
        fd = create_memory_file("linkgauge-counters")
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
        """Return a slot; None if it was never used."""
        base = slot_index(direction, session) * WORDS_PER_SLOT
        words = self.words[base : base + _USED_WORDS].tolist()
        if not any(words):
            return None
        generation, bytes_, *tcp = words
        known = tuple([None if word == UNKNOWN else word for word in tcp])
        return SlotReading(direction, session, bool(generation), bytes_, known)

    def read_latency(self, direction: Direction, session: int) -> bytes:
        """Return the words of a slot's latency histogram."""
        first = histogram_offset(slot_index(direction, session)) * 8
        return self._map[first : first + BUCKET_COUNT * 8]

    def read_probe_histogram(self, histogram: ProbeHistogram) -> bytes:
        """Return the words of a histogram of a responsiveness test's probes."""
        first = probe_histogram_offset(histogram) * 8
        return self._map[first : first + BUCKET_COUNT * 8]

    def read_probe_count(self, count: ProbeCount) -> int:
        """Return a count of these probes."""
        return self.words[probe_count_word(count)]

    def read_datagrams(self, direction: Direction, session: int) -> tuple[int | None, ...]:
        """Return a slot's counters of datagrams in their table's order, None is unknown."""
        first = datagram_offset(slot_index(direction, session))
        words = self.words[first : first + len(DATAGRAM_COUNTER_NAMES)].tolist()
        return tuple([None if word == UNKNOWN else word for word in words])

    def used_sessions(self, direction: Direction) -> list[int]:
        """Return the sessions of a single direction that are open, or have carried anything; ascending."""
        opened, carried = (self._all(direction, field) for field in CounterField)
        return [number for number, words in enumerate(zip(opened, carried, strict=True), 1) if any(words)]

    def total_bytes(self) -> int:
        """Return the bytes of all slots: a sign of life while the control connection is silent."""
        return sum(self.words[CounterField.BYTES : _CPU_BASE : WORDS_PER_SLOT].tolist())

    def flow_bytes(self, direction: Direction) -> int:
        """Return the bytes of all sessions of a single direction; the probe's bytes are not payload."""
        return sum(self._all(direction, CounterField.BYTES))

    def _all(self, direction: Direction, field: CounterField) -> list[int]:
        first = slot_index(direction, 1) * WORDS_PER_SLOT + field
        return self.words[first : 2 * MAX_SESSIONS * WORDS_PER_SLOT : 2 * WORDS_PER_SLOT].tolist()

    def claims(self, direction: Direction) -> memoryview:
        """Return the words of a single direction's claims, by session; release them before `close`."""
        first = _CLAIMS_BASE + MAX_SESSIONS * (direction is Direction.IN)
        return self.words[first : first + MAX_SESSIONS]

    def set_worker_cpu(self, worker: int, cpu_ns: int) -> None:
        """Store a worker's user and system time."""
        self.words[_CPU_BASE + worker] = cpu_ns

    def workers_cpu_ns(self) -> list[int]:
        """Return the user and system time of each worker, those that ended included."""
        return self.words[_CPU_BASE : _CPU_BASE + _WORKERS].tolist()

    def set_worker_wait(self, worker: int, wait_ns: int | None) -> None:
        """Store the time for which a worker was ready to run and had no core; None is unknown."""
        self.words[_WAIT_BASE + worker] = UNKNOWN if wait_ns is None else wait_ns

    def workers_wait_ns(self) -> list[int | None]:
        """Return how long each worker waited for a core, without the probe's worker: it carries no payload."""
        words = self.words[_WAIT_BASE : _WAIT_BASE + MAX_WORKERS].tolist()
        return [None if word == UNKNOWN else word for word in words]

    def set_last_received(self, worker: int, when_ns: int) -> None:
        """Store the monotonic time of a worker's last received packet, acknowledgements included."""
        self.words[_LAST_RECEIVED_BASE + worker] = when_ns

    def last_received_ns(self) -> int:
        """Return the time of the last received packet on any connection; 0 if it is unknown."""
        return max(self.words[_LAST_RECEIVED_BASE : _LAST_RECEIVED_BASE + _WORKERS].tolist())
