"""Groups of datagrams: every header of every size is as if it were written alone."""

import pytest
from linkgauge.engine.model.plan import MIN_DATAGRAM_BYTES
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER
from linkgauge.engine.workloads.udp.group import MAX_GROUP_BYTES, DatagramGroup, segments_in_group


@pytest.mark.parametrize("size", [MIN_DATAGRAM_BYTES, 25, 64, 508, 1_400, 1_452, 1_471, 9_000, 65_507])
def test_every_datagram_of_a_group_has_its_header(size: int) -> None:
    """Whole groups, parts of them and single datagrams, also if numbers exceed 32 bits."""
    group = DatagramGroup(size, segments_in_group(size), cookie=2**63 + 1)
    for first, count in ((0, group.count), (2**32 - 1, group.count), (2**40, 1), (7, max(1, group.count // 2))):
        data = group.stamp(first, count, 123_456_789_012_345)
        assert len(data) == count * size
        headers = [PAYLOAD_HEADER.unpack_from(data, index * size) for index in range(count)]
        assert headers == [(first + index, 123_456_789_012_345, 2**63 + 1) for index in range(count)]


def test_a_group_is_what_one_call_can_send() -> None:
    """At most 64 datagrams, and one UDP datagram's length."""
    assert segments_in_group(24) == 64
    assert segments_in_group(1_400) == MAX_GROUP_BYTES // 1_400
    assert segments_in_group(65_507) == 1
