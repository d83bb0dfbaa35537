"""The first bytes of a connection: of fixed size, and never more than a protocol error."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.model.plan import (
    DATAGRAM_PROBE_SESSION,
    HANDSHAKE_PROBE_SESSION,
    MAX_SESSIONS,
    MAX_WINDOW_BYTES,
    MIN_WINDOW_BYTES,
    PROBE_SESSION,
)
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    DATA_KIND,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    decode_preamble,
    describe_other_protocol,
    encode_preamble,
)

PROBES = (PROBE_SESSION, HANDSHAKE_PROBE_SESSION, DATAGRAM_PROBE_SESSION)
FLOWS = st.sampled_from([Direction.OUT, Direction.IN])
SESSIONS = st.integers(1, MAX_SESSIONS)
WINDOWS = st.none() | st.integers(MIN_WINDOW_BYTES, MAX_WINDOW_BYTES)
TOKENS = st.binary(min_size=16, max_size=16)


@pytest.mark.parametrize("kind", [CONTROL_KIND, DATA_KIND])
def test_a_preamble_says_its_version_and_kind(kind: bytes) -> None:
    """It has one size for both kinds, so that nothing past it is read."""
    assert len(encode_preamble(kind)) == PREAMBLE_BYTES
    assert decode_preamble(encode_preamble(kind)) == (PROTOCOL_VERSION, kind)


@given(st.binary(min_size=PREAMBLE_BYTES, max_size=PREAMBLE_BYTES))
def test_bytes_that_are_no_preamble_are_none(data: bytes) -> None:
    """Any 12 bytes are a preamble or None, never an exception."""
    found = decode_preamble(data)
    assert found is None or data == b"linkgauge" + bytes([found[0]]) + found[1] + b"\n"


@given(st.builds(DataHello, TOKENS, TOKENS, FLOWS, SESSIONS, st.integers(0, 2**32 - 1), WINDOWS))
def test_what_a_data_connection_says_of_itself_arrives(hello: DataHello) -> None:
    """Always in the same number of bytes."""
    assert len(hello.pack()) == DATA_HELLO_BYTES
    assert DataHello.unpack(hello.pack()) == hello


@given(st.binary(min_size=DATA_HELLO_BYTES, max_size=DATA_HELLO_BYTES))
def test_a_data_connections_garbage_is_at_most_a_protocol_error(data: bytes) -> None:
    """What is accepted is within the limits that every session has."""
    try:
        hello = DataHello.unpack(data)
    except RemoteProtocolError:
        return
    assert 1 <= hello.session <= MAX_SESSIONS or (hello.session in PROBES and hello.direction is Direction.OUT)
    assert hello.window_bytes is None or MIN_WINDOW_BYTES <= hello.window_bytes <= MAX_WINDOW_BYTES


@pytest.mark.parametrize("session", PROBES)
def test_probes_are_of_the_near_end_alone(session: int) -> None:
    """It asks, and so their direction is out; no other number beyond the sessions is one."""
    hello = DataHello(bytes(16), bytes(16), Direction.OUT, session, 7, None)
    assert DataHello.unpack(hello.pack()) == hello
    for other in (replace(hello, direction=Direction.IN), replace(hello, session=MAX_SESSIONS + 1)):
        with pytest.raises(RemoteProtocolError, match="no possible session"):
            DataHello.unpack(other.pack())


@pytest.mark.parametrize("window", [1, MIN_WINDOW_BYTES - 1, MAX_WINDOW_BYTES + 1, 2**32 - 1])
def test_a_data_connection_cannot_ask_for_a_window_that_a_plan_cannot(window: int) -> None:
    """The limits of a plan hold for who comes without one."""
    with pytest.raises(RemoteProtocolError, match="impossible window"):
        DataHello.unpack(DataHello(bytes(16), bytes(16), Direction.OUT, 1, 0, window).pack())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x40", "TLS"),
        (b"\x15\x03", "TLS"),
        (b"GET / HTTP/1.1\r\n", "HTTP ('GET / HTTP/1.1')"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH ('SSH-2.0-OpenSSH_9.2')"),
        (b"220 mail.example ESMTP\r\n", "SMTP or FTP ('220 mail.example ESMTP')"),
        (b"EHLO x\r\n", "SMTP ('EHLO x')"),
        (b"\xff\x00\xff@\x80", "something other than linkgauge"),
        ("\ufffd\ufffd@".encode(), "something other than linkgauge"),
        (b"ab\x1b[31m" + b"c" * 50, "something other than linkgauge ('ab')"),
        (b"", "something other than linkgauge"),
    ],
)
def test_what_another_program_sends_is_named_or_quoted(data: bytes, text: str) -> None:
    """A person who has mistaken a port learns what listens there."""
    assert describe_other_protocol(data) == text


@given(st.binary(max_size=100))
def test_a_description_of_other_bytes_is_short_and_printable(data: bytes) -> None:
    """Whatever arrives, a terminal minds nothing of it."""
    text = describe_other_protocol(data)
    assert text.isascii()
    assert text.isprintable()
    assert len(text) < 80
