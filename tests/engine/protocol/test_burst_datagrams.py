"""The datagrams of bursts: each is read as it was written, and nothing else is one of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.burst_datagrams import (
    ARRIVALS_IN_DATAGRAM,
    MAX_BURST_BYTES,
    MAX_BURST_DATAGRAMS,
    MAX_BURSTS,
    BurstArrivals,
    BurstDatagram,
    BurstQuery,
    BurstRequest,
    BurstSent,
    burst_number,
    decode_burst_datagram,
    read_burst_header,
    read_burst_number,
)
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER

SECRET = b"s" * 32
ARRIVALS = tuple((n, 7 * n) for n in range(ARRIVALS_IN_DATAGRAM))
DATAGRAMS: list[BurstDatagram] = [
    BurstRequest(3, 100, 2_000, 1_472, 50_000_000),
    BurstSent(3, 2_100, 4, is_over=True),
    BurstQuery(9, 280),
    BurstArrivals(9, 500, 0, 280, ARRIVALS),
    BurstArrivals(1, 0, 2, 0),
]


@pytest.mark.parametrize("datagram", DATAGRAMS)
def test_a_datagram_is_read_as_it_was_written(datagram: BurstDatagram) -> None:
    """With the session's secret alone."""
    data = datagram.pack(SECRET)
    assert decode_burst_datagram(data, SECRET) == datagram
    assert decode_burst_datagram(data, b"other") is None
    assert len(data) <= 1_232  # of UDP in the smallest packet that every IPv6 path carries


@pytest.mark.parametrize("datagram", DATAGRAMS)
def test_a_changed_or_cut_datagram_is_none(datagram: BurstDatagram) -> None:
    """At any of its bytes."""
    data = datagram.pack(SECRET)
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 1
        assert decode_burst_datagram(bytes(changed), SECRET) is None
        assert decode_burst_datagram(data[:place], SECRET) is None
    assert decode_burst_datagram(data + b"\0", SECRET) is None


@given(st.binary(max_size=200))
def test_other_bytes_are_none(data: bytes) -> None:
    """They never raise."""
    assert decode_burst_datagram(data, SECRET) is None
    assert read_burst_header(data, 1 << 63) is None


def test_a_list_that_is_longer_than_it_says_is_none() -> None:
    """Nor one of more arrivals than a burst may have."""
    for each in (
        BurstArrivals(1, 10, 0, 5, ARRIVALS[:6]),
        BurstArrivals(1, MAX_BURST_DATAGRAMS + 1, 0, 0),
        BurstArrivals(1, 500, 0, 0, (*ARRIVALS, (1, 1))),
    ):
        assert decode_burst_datagram(each.pack(SECRET), SECRET) is None


def test_bursts_are_bounded() -> None:
    """In their number, their datagrams, their size and their bytes."""
    assert BurstRequest(1, 10, 0, 64).is_allowed
    assert BurstRequest(MAX_BURSTS, 0, MAX_BURST_DATAGRAMS, 64).is_allowed
    for wrong in (
        BurstRequest(0, 10, 0, 64),
        BurstRequest(MAX_BURSTS + 1, 10, 0, 64),
        BurstRequest(1, 0, 0, 64),
        BurstRequest(1, 10, 0, 63),
        BurstRequest(1, 10, 0, 9_001),
        BurstRequest(1, MAX_BURST_DATAGRAMS, 1, 64),
        BurstRequest(1, MAX_BURST_BYTES // 9_000 + 1, 0, 9_000),
    ):
        assert not wrong.is_allowed


def test_a_payload_header_names_burst_and_place() -> None:
    """With the session's cookie; a burst that nobody may ask for is none."""
    number = burst_number(7, 65_535)
    assert read_burst_number(number) == (7, 65_535)
    assert read_burst_header(PAYLOAD_HEADER.pack(number, 5, 99) + b"x", 99) == (7, 65_535, 5)
    assert read_burst_header(PAYLOAD_HEADER.pack(number, 5, 98), 99) is None
    assert read_burst_header(PAYLOAD_HEADER.pack(burst_number(MAX_BURSTS + 1, 0), 5, 99), 99) is None
