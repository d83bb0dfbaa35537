"""The counters that both processes map: one writes, the other reads, and nothing remains of them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.metering.shared_counters import (
    MAX_WORKERS,
    UNKNOWN,
    WORDS_PER_SLOT,
    CounterField,
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    SlotReading,
    probe_count_word,
    probe_histogram_offset,
    slot_index,
    tcp_counter_word,
)
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.counters.session_counters import TCP_COUNTER_NAMES
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import MAX_SESSIONS

FLOWS = (Direction.OUT, Direction.IN)
WRITER = """
import sys
from linkgauge.engine.metering.shared_counters import SharedCounters
counters = SharedCounters(int(sys.argv[1]))
counters.words[1] = 2**63 + 5
counters.set_worker_cpu(3, 77)
"""


@pytest.fixture
def counters() -> Iterator[SharedCounters]:
    """Give a new block."""
    block = SharedCounters.create()
    yield block
    block.close()


def test_every_session_has_a_slot_of_its_own() -> None:
    """They fill the block from its start, 128 bytes each."""
    slots = [slot_index(flow, session) for session in range(1, MAX_SESSIONS + 1) for flow in FLOWS]
    assert slots == list(range(2 * MAX_SESSIONS))
    assert tcp_counter_word(TCP_COUNTER_NAMES[-1]) < WORDS_PER_SLOT
    assert WORDS_PER_SLOT * 8 % 64 == 0


def test_a_new_block_knows_of_no_session(counters: SharedCounters) -> None:
    """A slot that was never used is not a session with zero bytes."""
    assert all(counters.read(flow, n) is None for flow in FLOWS for n in (1, MAX_SESSIONS))
    assert [counters.used_sessions(flow) for flow in FLOWS] == [[], []]
    assert counters.total_bytes() == sum(counters.workers_cpu_ns()) == 0


def test_a_slot_tells_zero_from_unknown(counters: SharedCounters) -> None:
    """Zero was measured."""
    base = slot_index(Direction.IN, MAX_SESSIONS) * WORDS_PER_SLOT
    counters.words[base + CounterField.OPEN_GENERATION] = 1
    counters.words[base + CounterField.BYTES] = 2**60
    counters.words[base + tcp_counter_word("retransmits")] = UNKNOWN
    counters.words[base + tcp_counter_word("rtt_us")] = 90
    tcp = dict.fromkeys(TCP_COUNTER_NAMES, 0) | {"retransmits": None, "rtt_us": 90}
    assert counters.read(Direction.IN, MAX_SESSIONS) == SlotReading(
        Direction.IN, MAX_SESSIONS, True, 2**60, tuple(tcp.values())
    )
    assert counters.read(Direction.OUT, MAX_SESSIONS) is None
    assert [counters.used_sessions(flow) for flow in (Direction.OUT, Direction.IN)] == [[], [MAX_SESSIONS]]
    assert counters.total_bytes() == 2**60


def test_a_closed_session_keeps_its_bytes(counters: SharedCounters) -> None:
    """Its payload still counts."""
    counters.words[CounterField.BYTES] = 5
    slot = counters.read(Direction.OUT, 1)
    assert slot is not None
    assert (slot.is_open, slot.bytes) == (False, 5)
    assert counters.used_sessions(Direction.OUT) == [1]


def test_each_worker_has_its_own_cpu_time(counters: SharedCounters) -> None:
    """The last worker's word is within the block, and outside every slot."""
    for worker in range(MAX_WORKERS):
        counters.set_worker_cpu(worker, 10)
        counters.set_last_received(worker, 20 + worker)
    assert sum(counters.workers_cpu_ns()) == 10 * MAX_WORKERS
    assert counters.last_received_ns() == 19 + MAX_WORKERS
    assert counters.total_bytes() == 0
    assert not counters.used_sessions(Direction.OUT) + counters.used_sessions(Direction.IN)


def test_another_process_writes_and_this_one_reads(counters: SharedCounters) -> None:
    """It needs only the descriptor; the words outlive the writer."""
    command = [sys.executable, "-c", WRITER, str(counters.fd)]
    subprocess.run(command, pass_fds=[counters.fd], check=True, timeout=20)
    slot = counters.read(Direction.OUT, 1)
    assert slot is not None
    assert slot.bytes == 2**63 + 5
    assert sum(counters.workers_cpu_ns()) == 77


def test_the_block_has_no_name_and_is_gone_when_closed() -> None:
    """No file is left behind, and the descriptor is given back."""
    block = SharedCounters.create()
    fd = block.fd
    if Path("/proc/self/fd").is_dir():
        assert "deleted" in str(Path(f"/proc/self/fd/{fd}").readlink())
    assert not os.get_inheritable(fd)
    block.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_without_memfd_an_unlinked_file_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS: it has no name either."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    block = SharedCounters.create()
    try:
        assert os.fstat(block.fd).st_nlink == 0
        block.words[CounterField.BYTES] = 1
        assert block.total_bytes() == 1
    finally:
        block.close()


def test_the_probes_of_a_responsiveness_test_have_words_of_their_own(counters: SharedCounters) -> None:
    """They are behind all others: a probe writes into its own histogram only, and never counts as payload."""
    firsts = [probe_histogram_offset(histogram) for histogram in ProbeHistogram]
    for number, first in enumerate(firsts, 1):
        counters.words[first] = counters.words[first + BUCKET_COUNT - 1] = number
    for count in ProbeCount:
        counters.words[probe_count_word(count)] = 100 + count
    for number, histogram in enumerate(ProbeHistogram, 1):
        words = memoryview(counters.read_probe_histogram(histogram)).cast("Q").tolist()
        assert (words[0], words[-1], sum(words)) == (number, number, 2 * number)
    assert [counters.read_probe_count(count) for count in ProbeCount] == [100 + count for count in ProbeCount]
    assert not any(sum(counters.read_latency(flow, session)) for flow in FLOWS for session in (1, MAX_SESSIONS))
    assert not any(filter(None, counters.read_datagrams(FLOWS[1], MAX_SESSIONS)))
    assert counters.total_bytes() == 0
