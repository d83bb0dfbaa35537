"""Samples of a connection: differences of two readings of one socket, in the shapes of a run."""

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.connection_track import RECENT_NS, ConnectionTrack

from .made_sockets import INTERVAL_NS, MSS, Socket
from .tracked import evidence_of, follow

STEP = 250_000


def test_the_rate_is_that_of_acknowledged_payload() -> None:
    """This host sends: the far end is unknown, and the sender's counts stand in."""
    evidence = evidence_of(follow(lambda n: Socket(acked=n * STEP, busy_us=n * 250_000)))
    assert evidence.bit_s == pytest.approx(8_000_000)
    assert (evidence.unseen_end, evidence.is_observed) == (End.FAR, True)
    flow = evidence.flows[0]
    assert (flow.busy, flow.congestion, flow.mss_bytes) == (1.0, "cubic", MSS)
    assert flow.rtt_us is not None


def test_a_receiver_has_its_own_figures_and_none_of_the_senders() -> None:
    """Its socket has an RTT and a window for what it sends: they say nothing about the payload."""
    track = follow(lambda n: Socket(received=n * STEP, memory=(65_536, 131_072, 0, 0, 0, 0, 0, 0, 0)))
    evidence = evidence_of(track, Direction.IN)
    flow = evidence.flows[0]
    assert evidence.bit_s == pytest.approx(8_000_000)
    assert (flow.rtt_us, flow.cwnd_bytes, flow.busy) == (None, None, None)
    assert (flow.unread, flow.receive_buffer_bytes) == (pytest.approx(0.5), 131_072)


def test_only_the_last_seconds_count() -> None:
    """Findings are about now."""
    evidence = evidence_of(follow(lambda n: Socket(acked=min(n, 8) * STEP), samples=40))
    assert evidence.bit_s == 0
    assert evidence.span_ns == RECENT_NS


def test_a_time_in_which_it_was_not_read_is_no_sample() -> None:
    """Its rises are of an unknown part of that time."""
    track = ConnectionTrack(Socket().reading(), 0)
    track.add_reading(Socket(acked=STEP).reading(), INTERVAL_NS)
    track.add_reading(Socket(acked=100 * STEP).reading(), 60 * SECOND_NS)
    sums = track.flows[Direction.OUT].sums()
    assert sums.sent[Direction.OUT].counters["bytes"] == STEP


def test_rates_of_intervals_are_kept_for_a_while() -> None:
    """As many as a small plot shows."""
    flow = ConnectionTrack(Socket().reading(), 0).flows[Direction.IN]
    for _ in range(500):
        flow.add_bytes(1_000, 1)
        flow.end_interval(SECOND_NS)
    figures = flow.figures(flow.sums())
    assert (figures.bytes, figures.bit_s, len(figures.rates)) == (500_000, 8_000.0, 120)
