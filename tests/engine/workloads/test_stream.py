"""Streams: payload in each mode, by a thread or by the event loop."""

import pytest
from linkgauge.engine.model.plan import Direction, Mode

from ..tcp_pair import only_linux
from .stream_pair import StreamPair

pytestmark = only_linux
MANY_BYTES = 4 << 20


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("mode", [mode for mode in Mode if not mode.is_for_datagrams])
async def test_payload_flows_in_each_mode_and_is_counted_at_both_ends(mode: Mode, is_alone: bool) -> None:
    """The sender counts what the receiver's kernel acknowledged."""
    pair = StreamPair(mode)
    pair.receiver.start(is_alone=is_alone)
    pair.sender.start(is_alone=is_alone)
    await pair.until(lambda: pair.received_bytes >= MANY_BYTES)
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
    await pair.until(lambda: pair.received_bytes >= MANY_BYTES)
    pair.receiver.share_worker()
    pair.sender.share_worker()
    reached = pair.received_bytes
    await pair.until(lambda: pair.received_bytes >= reached + 4 * MANY_BYTES)
    assert pair.lost == []
    pair.close()
