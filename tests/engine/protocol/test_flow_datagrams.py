"""The datagrams of many flows: decoded as themselves, with a code over every byte, and bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.flow_datagrams import (
    ENTRIES_IN_DATAGRAM,
    MAX_FLOWS,
    MAX_SWEEPS,
    TWIN_EVERY,
    ArrivalQuery,
    FlowArrivals,
    FlowDatagram,
    FlowTrace,
    RoundOrder,
    RoundStatus,
    decode_flow_datagram,
    flow_number,
    is_twin,
    numbers_in,
    numbers_of_sweep,
    read_flow_header,
)
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER

SECRET = b"secret"
EXAMPLES: list[FlowDatagram] = [
    RoundOrder(3, 200, 256, 256_000, (1, 2, 7, MAX_FLOWS)),
    RoundStatus(3, 4, is_over=True),
    ArrivalQuery(3, 17, 250),
    FlowArrivals(3, 17, 225, 1, 2, 3, 0, tuple(range(225))),
    FlowTrace(17, is_on=True),
]


@pytest.mark.parametrize("datagram", EXAMPLES)
def test_each_datagram_is_decoded_as_itself_and_with_its_own_secret_alone(datagram: FlowDatagram) -> None:
    """And no other length is taken."""
    data = datagram.pack(SECRET)
    assert decode_flow_datagram(data, SECRET) == datagram
    assert decode_flow_datagram(data, b"other") is None
    assert decode_flow_datagram(data + b"\0", SECRET) is None
    assert decode_flow_datagram(data[:-1], SECRET) is None


@given(st.sampled_from(EXAMPLES), st.integers(0, 2_000), st.integers(1, 255))
def test_a_changed_byte_is_noticed(datagram: FlowDatagram, place: int, change: int) -> None:
    """Wherever it is."""
    data = bytearray(datagram.pack(SECRET))
    data[place % len(data)] ^= change
    assert decode_flow_datagram(bytes(data), SECRET) is None


@given(st.binary(max_size=200))
def test_other_bytes_are_none_of_them(data: bytes) -> None:
    """And never raise."""
    assert decode_flow_datagram(data, SECRET) is None
    assert read_flow_header(data, 7) is None


def test_a_list_longer_than_it_says_is_not_taken() -> None:
    """Nor one longer than a round may be."""
    entries = tuple(range(1, 20))
    assert decode_flow_datagram(FlowArrivals(1, 1, 18, 0, 0, 0, 0, entries).pack(SECRET), SECRET) is None
    assert decode_flow_datagram(FlowArrivals(1, 1, 10**6, 0, 0, 0, 0, entries).pack(SECRET), SECRET) is None
    long = tuple(range(ENTRIES_IN_DATAGRAM + 1))
    assert decode_flow_datagram(FlowArrivals(1, 1, 400, 0, 0, 0, 0, long).pack(SECRET), SECRET) is None


@pytest.mark.parametrize(
    "order",
    [
        RoundOrder(0, 200, 256, 256_000, (1,)),
        RoundOrder(1, MAX_SWEEPS + 1, 256, 256_000, (1,)),
        RoundOrder(1, 200, 10, 256_000, (1,)),
        RoundOrder(1, 200, 256, 1, (1,)),
    ],
)
def test_an_order_beyond_the_bounds_is_not_allowed(order: RoundOrder) -> None:
    """An end sends none of these."""
    assert not order.is_allowed


def test_each_eighth_sweep_has_a_second_datagram() -> None:
    """Numbers follow each other without a gap."""
    numbers = [number for sweep in range(40) for number in numbers_of_sweep(sweep)]
    assert numbers == list(range(numbers_in(40)))
    assert sum(map(is_twin, numbers)) == 40 // TWIN_EVERY


def test_a_header_names_round_and_number_and_needs_the_cookie() -> None:
    """A number that no round has is none."""
    data = PAYLOAD_HEADER.pack(flow_number(2, 9), 5, 7)
    assert read_flow_header(data, 7) == (2, 9, 5)
    assert read_flow_header(data, 8) is None
    assert read_flow_header(PAYLOAD_HEADER.pack(flow_number(99, 9), 5, 7), 7) is None
    assert read_flow_header(PAYLOAD_HEADER.pack(flow_number(1, 10**6), 5, 7), 7) is None
