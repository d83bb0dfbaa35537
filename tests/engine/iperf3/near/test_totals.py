"""The results of both ends of an iperf3 test, from samples and documents of either end."""

import pytest
from linkgauge.engine.iperf3.near.totals import NearCounts, build_totals, find_discrepancies
from linkgauge.engine.iperf3.protocol.cookie_and_streams import list_streams
from linkgauge.engine.iperf3.protocol.results import EndResults, StreamResult
from linkgauge.engine.model.counters.samples import DatagramSample, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import SessionTotal
from linkgauge.engine.model.plan import SECOND_NS

OUT, IN = Direction.OUT, Direction.IN
STREAMS = {direction: list_streams(direction, 1) for direction in Direction}


def sample_of(
    *sessions: SessionSample, datagrams: tuple[DatagramSample, ...] = (), is_drain: bool = False
) -> Sample:
    """Return a sample of a second of this end."""
    return Sample(
        End.NEAR,
        0,
        SECOND_NS,
        SECOND_NS,
        sessions,
        process_cpu_ns=250_000_000,
        datagrams=datagrams,
        is_drain=is_drain,
    )


def counts_of_datagrams(direction: Direction) -> NearCounts:
    """Return counts of a warm-up of 10 datagrams, 100 measured ones, and 5 that came after the end."""
    counts = NearCounts()
    for number, is_warmup, is_drain in ((10, True, False), (100, False, False), (5, False, True)):
        sample = DatagramSample(direction, 1, sent=number) if direction is OUT else received_sample(number)
        session = SessionSample(direction, 1, 1_000 * number)
        counts.add_sample(sample_of(session, datagrams=(sample,), is_drain=is_drain), is_warmup=is_warmup)
    return counts


def received_sample(advanced: int) -> DatagramSample:
    """Return a sample of a receiver that misses one datagram."""
    return DatagramSample(IN, 1, advanced=advanced, received=advanced - 1, jitter_sum_ns=4_000_000, jitter_count=2)


def test_results_for_the_server_have_the_warmup_apart() -> None:
    """Bytes, retransmits and CPU without it; numbers of datagrams with it, and its part beside them."""
    counts = NearCounts()
    counts.add_sample(sample_of(SessionSample(OUT, 1, 10, retransmits=7)), is_warmup=True)
    counts.add_sample(sample_of(SessionSample(OUT, 1, 1_000, retransmits=2)), is_warmup=False)
    results = counts.make_results(STREAMS[Direction.DUPLEX])
    first, second = results.streams
    assert (first.id, first.bytes, first.retransmits, first.span_s) == (1, 1_000, 2, 1.0)
    assert (second.id, second.bytes, second.retransmits) == (3, 0, None)
    assert (results.has_retransmits, results.cpu_total_percent) == (1, 25.0)


def test_datagrams_that_come_after_the_end_are_no_losses_and_count_for_no_rate() -> None:
    """Their numbers are in the results, their bytes are not."""
    (stream,) = counts_of_datagrams(IN).make_results(STREAMS[IN]).streams
    assert (stream.bytes, stream.packets, stream.omitted_packets) == (100_000, 115, 10)
    assert (stream.errors, stream.omitted_errors) == (3, 1)
    assert stream.jitter_s == pytest.approx(0.002)


def test_an_end_that_only_receives_says_that_it_knows_no_retransmits() -> None:
    """As iperf3 writes it: -1; and 0 for a sender of datagrams."""
    assert counts_of_datagrams(IN).make_results(STREAMS[IN]).has_retransmits == -1
    assert counts_of_datagrams(OUT).make_results(STREAMS[OUT]).has_retransmits == 0


def test_losses_behind_the_last_datagram_received_come_from_the_senders_count() -> None:
    """115 were sent, the server has seen up to number 108, and misses 4 of them, one in the warm-up."""
    far = EndResults(
        (StreamResult(1, 97_000, jitter_s=0.001, errors=4, omitted_errors=1, packets=108, omitted_packets=10),)
    )
    totals = build_totals(far, counts_of_datagrams(OUT), STREAMS[OUT], is_datagram=True)
    assert totals is not None
    expected = SessionTotal(OUT, 1, 97_000, SECOND_NS, received=95, lost=3 + 7, jitter_ns=1_000_000)
    assert totals.sessions == (expected,)


def test_an_old_server_has_losses_of_the_whole_test() -> None:
    """Up to 3.13 the omitted parts are unknown, and up to 3.1 the time: both counts are of the same datagrams."""
    far = EndResults((StreamResult(1, 97_000, errors=4, omitted_errors=None, packets=115, omitted_packets=None),))
    totals = build_totals(far, counts_of_datagrams(OUT), STREAMS[OUT], is_datagram=True)
    assert totals is not None
    assert (totals.sessions[0].received, totals.sessions[0].lost) == (111, 4)
    assert totals.span_ns == SECOND_NS


@pytest.mark.parametrize(("has_retransmits", "expected"), [(1, 9), (0, None), (-1, None)])
def test_a_sending_server_reports_retransmits_if_it_knows_them(has_retransmits: int, expected: int | None) -> None:
    """A sender of another system counts none."""
    far = EndResults((StreamResult(1, 5_000, retransmits=9, span_s=2.0),), has_retransmits=has_retransmits)
    totals = build_totals(far, NearCounts(), STREAMS[IN], is_datagram=False)
    assert totals is not None
    assert totals.sessions == (SessionTotal(IN, 1, 5_000, 2 * SECOND_NS, retransmits=expected),)


def test_results_without_the_streams_of_the_test_are_no_totals() -> None:
    """A server that names other streams, or none, has no result for this test."""
    counts = NearCounts()
    assert build_totals(EndResults(()), counts, STREAMS[OUT], is_datagram=False) is None
    assert build_totals(EndResults((StreamResult(2, 5),)), counts, STREAMS[OUT], is_datagram=False) is None


def test_totals_that_contradict_this_end_are_reported() -> None:
    """Ten times the bytes that the kernel had acknowledged, in a third of the time."""
    counts = NearCounts()
    for _ in range(3):
        counts.add_sample(sample_of(SessionSample(OUT, 1, 10**8)), is_warmup=False)
    honest = EndResults((StreamResult(1, 3 * 10**8, span_s=3.0),))
    liar = EndResults((StreamResult(1, 3 * 10**9, span_s=1.0),))
    for far, words in ((honest, []), (liar, ["clocks", "bytes"])):
        totals = build_totals(far, counts, STREAMS[OUT], is_datagram=False)
        assert totals is not None
        assert [text.partition(":")[0] for text in find_discrepancies(totals, counts)] == words


def test_the_far_sample_has_only_bytes_that_this_end_sent() -> None:
    """Nothing for the direction that this end receives, and nothing after the end."""
    sample = sample_of(SessionSample(OUT, 1, 10, rtt_us=5), SessionSample(IN, 1, 20))
    far = sample.for_unseen_receiver()
    assert far is not None
    assert (far.end, far.is_from_sender, far.process_cpu_ns) == (End.FAR, True, None)
    assert far.sessions == (SessionSample(OUT, 1, 10),)
    assert sample_of(SessionSample(IN, 1, 20)).for_unseen_receiver() is None
    assert sample_of(SessionSample(OUT, 1, 10), is_drain=True).for_unseen_receiver() is None
