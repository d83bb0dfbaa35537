"""Bursts over a real socket: all of their datagrams, in order, with their stamps."""

import itertools
import time

from linkgauge.engine.bursts import burst_sender
from linkgauge.engine.bursts.burst_sender import send_burst
from linkgauge.engine.protocol.burst_datagrams import BurstRequest, read_burst_header

from .socket_pair import connected_sockets

COOKIE = 77


def test_a_burst_is_sent_whole_with_its_numbers_and_stamps() -> None:
    """First without a pace, then at one; each stamp is the time at which its datagram left."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        before_ns = time.monotonic_ns()
        sent = send_burst(sender, COOKIE, BurstRequest(5, 20, 10, 300, 2_400_000))
        after_ns = time.monotonic_ns()
        assert (sent.sent, sent.dropped) == (30, 0)
        headers = [read_burst_header(receiver.recv(2_048), COOKIE) for _ in range(30)]
    assert headers == [(5, place, stamp_ns) for place, stamp_ns in enumerate(sent.stamps_ns)]
    stamps = [before_ns, *sent.stamps_ns, after_ns]
    assert stamps == sorted(stamps)
    assert sent.stamps_ns[29] - sent.stamps_ns[20] >= 8_900_000  # 1 ms each


def test_a_limit_of_the_rate_holds_for_the_whole_burst() -> None:
    """Also if a higher pace is asked for."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        sent = send_burst(sender, COOKIE, BurstRequest(1, 10, 10, 125, 10**9), most_bit_s=1_000_000)
    assert sent.stamps_ns[19] - sent.stamps_ns[0] >= 17_000_000


def test_a_burst_ends_early_if_it_is_stopped_or_takes_too_long(monkeypatch) -> None:
    """What was sent by then is told."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        answers = itertools.chain([False, False], itertools.repeat(True))
        sent = send_burst(sender, COOKIE, BurstRequest(1, 200, 0, 100), is_stopped=lambda: next(answers))
        assert 0 < sent.sent < 200
        monkeypatch.setattr(burst_sender, "MAX_BURST_S", 0.01)
        slow = send_burst(sender, COOKIE, BurstRequest(2, 0, 1_000, 100, 1_000))
        assert slow.sent < 1_000


def test_a_receiver_that_is_not_there_yet_does_not_end_a_burst() -> None:
    """The kernel reports the refusal of one datagram with the next."""
    sender, receiver = connected_sockets()
    receiver.close()
    with sender:
        assert send_burst(sender, COOKIE, BurstRequest(1, 20, 0, 100)).sent == 20
