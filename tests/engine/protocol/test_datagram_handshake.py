"""The datagrams that open a UDP session: what is decoded, what a cookie is valid for, and that none amplifies."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.protocol.datagram_handshake import (
    ACCEPTED_BYTES,
    CHALLENGE_BYTES,
    HELLO_BYTES,
    AddressCookies,
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    HandshakeDatagram,
    decode_handshake,
)
from linkgauge.engine.protocol.payload_datagrams import CONTROL_MAGIC
from linkgauge.engine.protocol.preamble import DataHello

HEADER = DataHello(b"r" * 16, b"t" * 16, Direction.IN, 2, 3, None)
HELLO = DatagramHello(HEADER, b"c" * 16)
ALL = (HELLO, DatagramChallenge(b"c" * 16, b"t" * 16), DatagramAccepted.of_session(b"secret"))
SOURCE = ("192.0.2.7", 4711)


@pytest.mark.parametrize("datagram", ALL)
def test_each_datagram_is_decoded_as_itself_and_never_in_part(datagram: HandshakeDatagram) -> None:
    """Neither a byte less nor one more, and of no other version."""
    data = datagram.pack()
    assert decode_handshake(data) == datagram
    assert not any(decode_handshake(data[:length]) for length in range(len(data)))
    assert decode_handshake(data + b"\0") is None
    assert decode_handshake(data[:8] + b"\x63" + data[9:]) is None


@given(st.binary(max_size=100), st.sampled_from([b"", CONTROL_MAGIC, HELLO.pack()[:10]]))
def test_no_bytes_of_a_stranger_are_an_error(data: bytes, head: bytes) -> None:
    """Whatever arrives is a datagram of the handshake, or nothing."""
    decode_handshake(head + data)


@given(st.integers(0, HELLO_BYTES - 1), st.integers(0, 255))
def test_a_changed_hello_has_no_valid_cookie(place: int, value: int) -> None:
    """Of the header and the cookie each byte counts."""
    cookies = AddressCookies(b"own secret")
    data = bytearray(DatagramHello(HEADER, cookies.make(SOURCE, HEADER)).pack())
    is_changed = data[place] != value
    data[place] = value
    hello = decode_handshake(bytes(data))
    assert hello is None or (isinstance(hello, DatagramHello) and cookies.check(SOURCE, hello) is not is_changed)


@pytest.mark.parametrize("source", [("192.0.2.8", 4711), ("192.0.2.7", 4712), ("2001:db8::7", 4711)])
def test_a_cookie_is_valid_for_one_address_and_port(source: tuple[str, int]) -> None:
    """Whoever claims another address needs the cookie that was sent there."""
    cookies = AddressCookies(b"own secret")
    hello = DatagramHello(HEADER, cookies.make(SOURCE, HEADER))
    assert cookies.check(SOURCE, hello)
    assert not cookies.check(source, hello)
    assert not AddressCookies(b"another").check(SOURCE, hello)
    assert not cookies.check(SOURCE, replace(hello, header=replace(HEADER, session=1)))


def test_no_answer_is_longer_than_a_hello() -> None:
    """A false source address gets fewer bytes than were sent in its name."""
    assert [len(each.pack()) for each in ALL] == [HELLO_BYTES, CHALLENGE_BYTES, ACCEPTED_BYTES]
    assert max(CHALLENGE_BYTES, ACCEPTED_BYTES) <= HELLO_BYTES


def test_an_acceptance_proves_the_secret_of_its_session() -> None:
    """Of no other session, and of no other generation."""
    accepted = DatagramAccepted.of_session(b"secret")
    assert accepted.proves(b"secret")
    assert not accepted.proves(b"other secret")


def test_no_payload_datagram_can_be_taken_for_one_of_control() -> None:
    """Payload begins with a little-endian number below 2**62."""
    assert int.from_bytes(CONTROL_MAGIC, "little") >= 2**62
