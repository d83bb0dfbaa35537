"""The sums over samples of both ends, and which samples belong in them."""

from linkgauge.engine.model.plan import SECOND_NS, Direction, End
from linkgauge.engine.model.samples import Sample, SessionSample
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.sample_sum import RecentSamples, SampleOrder, SampleSum


def _sample(end: End, index: int, bytes_: int = 0, interval_ns: int = SECOND_NS) -> Sample:
    part = SessionSample(Direction.OUT, 1, bytes_)
    return Sample(end, index, (index + 1) * SECOND_NS, interval_ns, (part,))


def test_each_ends_samples_are_admitted_once_and_in_order() -> None:
    """Repeated and late ones are left out, and those that lasted no time."""
    order = SampleOrder()
    assert (order.reached_by_both, order.reached_by_any) == (-1, -1)
    assert [order.admits(_sample(End.NEAR, index)) for index in (0, 2, 2, 1, 3)] == [True, True, False, False, True]
    assert order.admits(_sample(End.FAR, 0))
    assert not order.admits(_sample(End.FAR, 1, interval_ns=0))
    assert (order.reached_by_both, order.reached_by_any) == (0, 3)


def test_the_receivers_bytes_are_the_result() -> None:
    """A stream's are the other end's; the responder of transactions is the end that received requests."""
    for workload, result in ((Workload.STREAM, 70), (Workload.RR, 100)):
        sums = SampleSum(workload)
        sums.add(_sample(End.NEAR, 0, 100), (Direction.OUT,))
        sums.add(_sample(End.FAR, 0, 70), (Direction.OUT,))
        assert sums.received[Direction.OUT].bytes == result
        assert sums.sent[Direction.OUT].counters["bytes"] == 170 - result


def test_recent_samples_are_those_of_the_span_and_the_newest_at_least() -> None:
    """Each end by its own clock."""
    recent = RecentSamples(2 * SECOND_NS)
    for index in range(4):
        recent.add(_sample(End.NEAR, index))
    recent.add(_sample(End.FAR, 0))
    assert [sample.index for sample in recent.of_end(End.NEAR)] == [2, 3]
    assert [sample.index for sample in recent.of_end(End.FAR)] == [0]
    recent.add(_sample(End.FAR, 9))
    assert [sample.index for sample in recent.of_end(End.FAR)] == [9]
    recent.clear()
    assert recent.of_end(End.NEAR) == ()
