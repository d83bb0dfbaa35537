"""The sums of each single session."""

from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import SessionTotal, Totals
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.session_sums import SessionSum, SessionSums


def _sample(end: End, index: int, *parts: SessionSample) -> Sample:
    return Sample(end, index, (index + 1) * SECOND_NS, SECOND_NS, parts)


def test_a_session_has_the_receivers_bytes_and_the_senders_counters() -> None:
    """The other end's parts of both are left out."""
    sums = SessionSums()
    for index, rtt_us in enumerate((100, 300, 200)):
        sent = SessionSample(Direction.OUT, 1, 999, rtt_us=rtt_us, retransmits=1)
        sums.add_sample(_sample(End.NEAR, index, sent), Workload.STREAM)
        sums.add_sample(_sample(End.FAR, index, SessionSample(Direction.OUT, 1, 125)), Workload.STREAM)
    (session,) = sums.sessions.values()
    assert (session.bytes, session.span_ns, session.bit_s) == (375, 3 * SECOND_NS, 1_000)
    assert (session.retransmits, session.rtt_us) == (3, 200)
    assert sums.retransmits == 3


def test_a_value_in_no_sample_is_unknown() -> None:
    """Not zero."""
    session = SessionSum()
    assert (session.bit_s, session.rtt_us, session.retransmits) == (None, None, None)
    assert SessionSums().retransmits is None


def test_totals_of_an_end_without_samples_replace_the_counts() -> None:
    """They have the time of the session, or the time of the run if the session's is unknown."""
    for span_ns, expected_ns in ((SECOND_NS, SECOND_NS), (0, 2 * SECOND_NS)):
        sums = SessionSums()
        sums.add_sample(_sample(End.FAR, 0, SessionSample(Direction.OUT, 1, 7)), Workload.STREAM)
        total = SessionTotal(Direction.OUT, 1, 500, span_ns)
        sums.set_totals(Totals(End.FAR, 2 * SECOND_NS, (total,)), Workload.STREAM)
        session = sums.sessions[Direction.OUT, 1]
        assert (session.bytes, session.span_ns) == (500, expected_ns)
