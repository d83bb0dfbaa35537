"""Streams: payload in each mode, by a thread or by the event loop."""

import pytest
from linkgauge.engine.model.counters.session_counters import TCP_COUNTER_NAMES
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Mode
from linkgauge.engine.workloads.byte_pace import SLOW_BIT_S
from linkgauge.engine.workloads.session import PIECE_BYTES, allocate_buffer
from linkgauge.engine.workloads.sockets import set_pacing, unsent_limit_bytes
from linkgauge.engine.workloads.stream import BufferTrial

from ..tcp_pair import only_linux
from ..waiting import until
from .stream_pair import StreamPair

pytestmark = only_linux
MANY_BYTES = 4 << 20


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.is_for_datagrams])
async def test_payload_flows_in_each_mode_and_is_counted_at_both_ends(mode: Mode, is_alone: bool) -> None:
    """The sender counts the bytes that the receiver's kernel acknowledged."""
    pair = StreamPair(mode)
    pair.receiver.start(is_alone=is_alone)
    pair.sender.start(is_alone=is_alone)
    await until(lambda: pair.received_bytes >= MANY_BYTES)
    pair.sender.refresh()
    slot = pair.counters.read(Direction.OUT, 1)
    assert slot is not None
    assert slot.bytes >= MANY_BYTES // 2
    assert pair.lost == []
    pair.close()


async def test_a_session_in_a_thread_continues_on_the_event_loop() -> None:
    """When its worker gets another session."""
    pair = StreamPair()
    pair.receiver.start(is_alone=True)
    pair.sender.start(is_alone=True)
    await until(lambda: pair.received_bytes >= MANY_BYTES)
    pair.receiver.share_worker()
    pair.sender.share_worker()
    reached = pair.received_bytes
    await until(lambda: pair.received_bytes >= reached + 4 * MANY_BYTES)
    assert pair.lost == []
    pair.close()


@pytest.mark.parametrize(("whole_bytes_s", "expected_bytes"), [(12e9, 4 * PIECE_BYTES), (9e9, PIECE_BYTES)])
def test_a_fast_receiver_keeps_the_memory_that_was_faster(whole_bytes_s: float, expected_bytes: int) -> None:
    """Of several intervals with each: one in which the machine stood still does not decide."""
    trial = BufferTrial(allocate_buffer(4 * PIECE_BYTES))
    for number in range(6):
        assert not trial.is_over
        trial.add_interval(3e9 if number < 2 else whole_bytes_s if len(trial.pieces) == 1 else 10e9)
    assert trial.is_over
    assert len(trial.pieces[0]) == expected_bytes


def test_a_slow_receiver_tries_no_memory() -> None:
    """What it reads into makes no difference there."""
    trial = BufferTrial(allocate_buffer(4 * PIECE_BYTES))
    for _ in range(20):
        trial.add_interval(1e9)
    assert len(trial.pieces) == 4
    assert not trial.is_over


def unsent_bytes(pair: StreamPair) -> int:
    """Return the unsent bytes in a sender's socket."""
    pair.sender.refresh()
    slot = pair.counters.read(Direction.OUT, 1)
    assert slot is not None
    unsent = slot.tcp[TCP_COUNTER_NAMES.index("unsent_bytes")]
    assert unsent is not None
    return unsent


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_sender_with_a_limit_keeps_little_unsent(is_alone: bool) -> None:
    """On a slow link its buffer would hold seconds of payload."""
    held: list[int] = []
    for is_limited in (False, True):
        pair = StreamPair()
        set_pacing(pair.sender._sock, 8_000_000)
        if is_limited:
            pair.sender.limit_unsent()
        pair.receiver.start(is_alone=is_alone)
        pair.sender.start(is_alone=is_alone)
        await until(lambda pair=pair: pair.received_bytes >= 400_000)
        held.append(unsent_bytes(pair))
        assert pair.lost == []
        pair.close()
    unlimited, limited = held
    assert 0 < limited <= 2 * unsent_limit_bytes(None)
    assert unlimited > 2 * limited


async def test_a_limit_of_what_is_unsent_stops_no_stream() -> None:
    """It is renewed by the rate at which the sender delivers, and payload flows on."""
    pair = StreamPair()
    pair.sender.limit_unsent()
    pair.receiver.start()
    pair.sender.start()
    for reached in range(MANY_BYTES, 8 * MANY_BYTES, MANY_BYTES):
        await until(lambda reached=reached: pair.received_bytes >= reached)
        pair.sender.refresh()
    assert pair.lost == []
    pair.close()


def test_what_may_be_unsent_is_5_ms_of_the_rate_and_some_packets() -> None:
    """Less than 16 KiB would cost system calls, and save a slow link nothing that matters."""
    assert unsent_limit_bytes(None) == 128 * 1024
    assert unsent_limit_bytes(10_000_000) == 16 * 1024
    assert unsent_limit_bytes(8_000_000_000) == 5_000_000


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_slow_sender_hands_over_small_pieces(is_alone: bool) -> None:
    """Loopback's packets of 64 KB would take 8 s each at this rate, and the first ten would go at once."""
    pair = StreamPair()
    pair.sender.limit_rate(64_000, SECOND_NS // 4)
    pair.receiver.start(is_alone=is_alone)
    pair.sender.start(is_alone=is_alone)
    seen: set[int] = set()
    await until(lambda: seen.add(pair.received_bytes) or len(seen) > 5)
    assert max(seen) <= 8_000
    assert pair.lost == []
    pair.close()


async def test_a_sender_becomes_slow_and_fast_again_while_it_sends() -> None:
    """More sessions come to share the rate, and end."""
    pair = StreamPair()
    pair.receiver.start()
    pair.sender.start()
    await until(lambda: pair.received_bytes >= MANY_BYTES)
    for rate in (50_000_000, 2 * SLOW_BIT_S, 80_000_000, 40_000_000):
        pair.sender.limit_rate(rate, SECOND_NS // 4)
        reached = pair.received_bytes
        await until(lambda reached=reached: pair.received_bytes >= reached + (1 << 20))
    assert pair.lost == []
    pair.close()
