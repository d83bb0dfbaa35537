"""Groups of iperf3's datagrams: every header of every size is as if it were written alone."""

import struct

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.iperf3.datagram_group import Iperf3Group
from linkgauge.engine.workloads.udp.group import segments_in_group

NARROW, WIDE = struct.Struct(">III"), struct.Struct(">IIQ")
NOW_NS = 123_456_789_012_345
SECOND_NS = 10**9
STEPS = [  # first number, part of the group, time
    (0, 1.0, NOW_NS),
    (50, 0.5, NOW_NS + 1_000),
    (80, 1.0, NOW_NS + SECOND_NS),
    (2**32 - 20, 1.0, NOW_NS + 2 * SECOND_NS),
    (2**32 + 60, 1.0, NOW_NS + 2 * SECOND_NS),
    (2**40, 0.0, NOW_NS + 3 * SECOND_NS),
    (2**40 + 1, 1.0, NOW_NS + 3 * SECOND_NS),
]


@given(
    is_wide=st.sampled_from([False, True]),
    size=st.sampled_from([24, 25, 26, 64, 508, 1_400, 1_448, 1_460, 1_471, 9_000, 32_768, 65_507]),
)
def test_every_datagram_of_a_group_has_the_header_of_iperf3(size: int, is_wide: bool) -> None:
    """Whole groups, parts and single ones, when the second changes, and if numbers exceed 32 bits."""
    group = Iperf3Group(size, segments_in_group(size), has_64bit_counters=is_wide)
    header = WIDE if is_wide else NARROW
    for first, part, now_ns in STEPS:
        count = max(1, int(group.count * part))
        data = group.stamp(first, count, now_ns)
        assert len(data) == count * size
        seconds, microseconds = now_ns // 10**9, now_ns % 10**9 // 1_000
        numbers = [first + 1 + index for index in range(count)]
        if not is_wide:
            numbers = [number % 2**32 for number in numbers]
        headers = [header.unpack_from(data, index * size) for index in range(count)]
        assert headers == [(seconds, microseconds, number) for number in numbers]
