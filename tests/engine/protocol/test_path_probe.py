"""The datagrams that measure a path's MTU: as long as they say, with a code over every field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.path_probe import (
    MAX_UDP_BYTES,
    PATH_HEADER_BYTES,
    PathDatagram,
    PathKind,
    decode_path_datagram,
    decode_quoted_path_datagram,
)
from linkgauge.engine.protocol.payload_datagrams import CONTROL_MAGIC

SECRET = b"secret"


@pytest.mark.parametrize("kind", PathKind)
@pytest.mark.parametrize("router", [None, "192.0.2.1", "2001:db8::1"])
def test_each_datagram_is_decoded_as_itself_and_as_long_as_it_says(kind: PathKind, router: str | None) -> None:
    """PROBE and LARGE are padded to their length; no other length is taken."""
    datagram = PathDatagram(kind, 7, 1_400, router, 30 if kind is PathKind.TRACE else 0)
    data = datagram.pack(SECRET)
    assert len(data) == (1_400 if kind in {PathKind.PROBE, PathKind.LARGE} else PATH_HEADER_BYTES)
    assert decode_path_datagram(data, SECRET) == datagram
    assert decode_path_datagram(data, b"other") is None
    assert decode_path_datagram(data + b"\0", SECRET) is None
    assert decode_path_datagram(data[:-1], SECRET) is None


def test_the_longest_datagram_of_udp_is_possible() -> None:
    """And no longer one."""
    assert decode_path_datagram(PathDatagram(PathKind.PROBE, 1, MAX_UDP_BYTES).pack(SECRET), SECRET) is not None
    too_long = PathDatagram(PathKind.REQUEST, 1, MAX_UDP_BYTES + 100).pack(SECRET)
    assert decode_path_datagram(too_long, SECRET) is None


@given(st.integers(0, PATH_HEADER_BYTES - 1), st.integers(1, 255))
def test_a_changed_field_is_noticed(place: int, change: int) -> None:
    """Each byte of the header counts."""
    data = bytearray(PathDatagram(PathKind.REQUEST, 7, 9_000).pack(SECRET))
    data[place] ^= change
    assert decode_path_datagram(bytes(data), SECRET) is None


@given(st.binary(max_size=200))
def test_no_bytes_of_a_stranger_are_an_error(data: bytes) -> None:
    """Whatever arrives is such a datagram, or nothing."""
    assert decode_path_datagram(CONTROL_MAGIC + data, SECRET) is None


def test_a_quoted_beginning_is_enough_to_know_a_datagram_and_a_ttl_belongs_to_a_trace() -> None:
    """A router quotes some of a packet. The code covers all fields."""
    datagram = PathDatagram(PathKind.LARGE, 7, 1_400)
    quoted = datagram.pack(SECRET)[:PATH_HEADER_BYTES]
    assert decode_quoted_path_datagram(quoted, SECRET) == datagram
    assert decode_path_datagram(quoted, SECRET) is None
    assert decode_quoted_path_datagram(quoted[:-1], SECRET) is None
    assert decode_quoted_path_datagram(quoted, b"other") is None
    for wrong in (PathDatagram(PathKind.TRACE, 7, 1_400), PathDatagram(PathKind.REQUEST, 7, 1_400, ttl=3)):
        assert decode_path_datagram(wrong.pack(SECRET), SECRET) is None
