"""Cookies and ids of streams as stock programs have them."""

import pytest
from linkgauge.engine.iperf3.protocol.cookie_and_streams import COOKIE_BYTES, list_streams, make_cookie, stream_ids
from linkgauge.engine.model.directions import Direction


def test_a_cookie_is_what_stock_programs_make() -> None:
    """36 characters of base32 in small letters, and a NUL."""
    cookie = make_cookie()
    assert len(cookie) == COOKIE_BYTES
    assert cookie[-1] == 0
    assert set(cookie[:-1]) <= set(b"abcdefghijklmnopqrstuvwxyz234567")
    assert make_cookie() != cookie


@pytest.mark.parametrize(("count", "ids"), [(0, []), (1, [1]), (2, [1, 3]), (4, [1, 3, 4, 5])])
def test_no_stream_has_the_id_two(count: int, ids: list[int]) -> None:
    """Results are matched by these ids."""
    assert stream_ids(count) == ids


def test_the_senders_of_a_bidirectional_test_come_first() -> None:
    """Both ends tell them apart by their order alone."""
    out, in_ = Direction.OUT, Direction.IN
    assert list_streams(Direction.DUPLEX, 2) == [(1, out, 1), (3, out, 2), (4, in_, 1), (5, in_, 2)]
    assert list_streams(Direction.IN, 2) == [(1, in_, 1), (3, in_, 2)]
