"""Hellos and headers of UDP as stock programs have them."""

import pytest
from linkgauge.engine.iperf3.protocol.datagrams import (
    HEADER_32,
    HEADER_64,
    OLD_HELLO,
    header_of,
    is_reply,
    reply_to,
)


@pytest.mark.parametrize(
    ("hello", "reply"),
    [
        (bytes.fromhex("39383736"), "36373839"),
        (bytes.fromhex("15cd5b07"), "b168de3a"),
        (bytes.fromhex("36373839"), "b168de3a"),  # 3.12 to 3.16 on a host of the other byte order
        (b"", "b168de3a"),
    ],
)
def test_each_hello_has_its_reply(hello: bytes, reply: str) -> None:
    """Clients until 3.11 know only the old reply."""
    assert reply_to(hello).hex() == reply
    assert is_reply(reply_to(hello))


@pytest.mark.parametrize("data", [b"", b"987", b"98765", OLD_HELLO, bytes(12)])
def test_other_datagrams_are_no_reply(data: bytes) -> None:
    """Payload that comes early is not one, either."""
    assert not is_reply(data)


def test_a_header_has_wide_numbers_where_the_test_asks_for_them() -> None:
    """Big-endian, without padding."""
    assert header_of(has_64bit_counters=False) is HEADER_32
    assert header_of(has_64bit_counters=True) is HEADER_64
    assert HEADER_32.pack(1, 2, 3).hex() == "000000010000000200000003"
    assert HEADER_64.pack(1, 2, 3).hex() == "00000001000000020000000000000003"
