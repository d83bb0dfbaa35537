"""Datagrams with a code over all of their bytes."""

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.coded_datagrams import decode_coded, encode_coded

SECRET = b"secret of a session"
DECODERS = {b"A": bytes, b"B": bytes}


@given(st.binary(max_size=100), st.sampled_from(sorted(DECODERS)))
def test_a_body_arrives_as_it_was(body: bytes, kind: bytes) -> None:
    """Of each kind that the receiver knows."""
    assert decode_coded(encode_coded(SECRET, b"use", kind, body), SECRET, b"use", DECODERS) == body


@given(st.binary(max_size=100), st.data())
def test_no_changed_byte_and_no_part_is_accepted(body: bytes, data: st.DataObject) -> None:
    """The code is over all bytes, the head included."""
    datagram = encode_coded(SECRET, b"use", b"A", body)
    place = data.draw(st.integers(0, len(datagram) - 1))
    changed = bytearray(datagram)
    changed[place] ^= data.draw(st.integers(1, 255))
    assert decode_coded(bytes(changed), SECRET, b"use", DECODERS) is None
    assert decode_coded(datagram[:place], SECRET, b"use", DECODERS) is None


def test_another_secret_another_use_and_an_unknown_kind_are_refused() -> None:
    """A datagram of one exchange is none of another that has the same secret."""
    datagram = encode_coded(SECRET, b"use", b"A", b"body")
    assert decode_coded(datagram, b"other", b"use", DECODERS) is None
    assert decode_coded(datagram, SECRET, b"other", DECODERS) is None
    assert decode_coded(datagram, SECRET, b"use", {b"B": bytes}) is None
