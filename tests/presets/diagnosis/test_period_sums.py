"""The sums behind the evidence."""

import pytest
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.results.sums.sample_sum import ReceiverSum
from linkgauge.engine.results.sums.sender_sum import SenderSum
from linkgauge.presets.diagnosis.period_sums import FlowSums


@pytest.mark.parametrize(("is_unseen", "mss_bytes"), [(True, 1_428), (False, None)])
def test_the_receiver_has_the_segment_size_of_a_sender_without_one(is_unseen: bool, mss_bytes: int | None) -> None:
    """An iperf3 does not report its TCP; a kernel without this counter may have another size."""
    receiver = SocketInfo(End.NEAR, Direction.IN, 1, "cubic", None, 1_428, True, True, True)
    sums = FlowSums(Direction.IN, ReceiverSum(), SenderSum(), None, receiver, is_unseen)
    assert sums.mss_bytes == mss_bytes
