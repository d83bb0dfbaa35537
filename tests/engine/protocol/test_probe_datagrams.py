"""The datagrams of the echoed probe: of one size, known by the session's secret, and bounded in their figures."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.payload_datagrams import CONTROL_MAGIC
from linkgauge.engine.protocol.probe_datagrams import (
    DATAGRAM_PROBE_BYTES,
    MAX_PROBE_NUMBER,
    EchoDatagram,
    ProbeDatagram,
    decode_echo,
    decode_probe,
)

SECRET = b"secret of a session"
NUMBERS = st.integers(0, MAX_PROBE_NUMBER)


@given(st.integers(1, MAX_PROBE_NUMBER), NUMBERS, NUMBERS, NUMBERS)
def test_probes_and_echoes_arrive_as_they_were_sent_and_are_of_one_size(
    serial: int, sent_ns: int, arrived_ns: int, answered_ns: int
) -> None:
    """An echo is never longer than its probe."""
    probe = ProbeDatagram(serial, sent_ns)
    echo = probe.echo(arrived_ns, answered_ns)
    assert decode_probe(probe.pack(SECRET), SECRET) == probe
    assert decode_echo(echo.pack(SECRET), SECRET) == echo == EchoDatagram(serial, sent_ns, arrived_ns, answered_ns)
    assert len(probe.pack(SECRET)) == len(echo.pack(SECRET)) == DATAGRAM_PROBE_BYTES


def test_neither_is_taken_for_the_other() -> None:
    """An end's own datagram cannot be sent back to it."""
    probe = ProbeDatagram(1, 2)
    assert decode_echo(probe.pack(SECRET), SECRET) is None
    assert decode_probe(probe.echo(0, 0).pack(SECRET), SECRET) is None


@pytest.mark.parametrize("secret", [b"", b"another session's"])
def test_without_the_secret_nothing_is_known(secret: bytes) -> None:
    """An attacker who forges an address has no code."""
    assert decode_probe(ProbeDatagram(1, 2).pack(secret), SECRET) is None
    assert decode_echo(EchoDatagram(1, 2, 3, 4).pack(secret), SECRET) is None


@pytest.mark.parametrize("numbers", [(0, 1, 0, 0), (1, MAX_PROBE_NUMBER + 1, 0, 0), (2**64 - 1, 1, 0, 0)])
def test_figures_out_of_range_are_refused_although_their_code_is_right(
    numbers: tuple[int, int, int, int],
) -> None:
    """The other end has the secret, and is not trusted either."""
    serial, *times = numbers
    assert decode_probe(ProbeDatagram(serial, times[0]).pack(SECRET), SECRET) is None
    assert decode_echo(EchoDatagram(serial, *times).pack(SECRET), SECRET) is None


def test_a_probe_has_no_times_of_the_far_end() -> None:
    """They would be echoed as if they were measured."""
    echo = EchoDatagram(1, 2, 3, 4).pack(SECRET)
    assert decode_probe(echo[: len(CONTROL_MAGIC) + 1] + b"P" + echo[len(CONTROL_MAGIC) + 2 :], SECRET) is None


@given(st.binary(max_size=2 * DATAGRAM_PROBE_BYTES), st.integers(0, DATAGRAM_PROBE_BYTES - 1), st.integers(1, 255))
def test_no_bytes_make_a_decoder_raise(data: bytes, place: int, change: int) -> None:
    """Neither any nor a probe with one byte changed."""
    valid = bytearray(ProbeDatagram(1, 2).pack(SECRET))
    valid[place] ^= change
    for each in (data, bytes(valid), CONTROL_MAGIC + data, struct.pack("<Q", 1) + data):
        assert decode_probe(each, SECRET) is None
        assert decode_echo(each, SECRET) is None
