"""The sums over samples of both ends, and which samples belong in them."""

import random
import statistics
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import Sample, SessionSample, combine
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.histogram import Histogram
from linkgauge.engine.results.sums.sample_sum import ReceiverSum, RecentSamples, SampleOrder, SampleSum

from ..drawn_runs import draw_run


def _sample(end: End, index: int, bytes_: int = 0, interval_ns: int = SECOND_NS) -> Sample:
    part = SessionSample(Direction.OUT, 1, bytes_)
    return Sample(end, index, (index + 1) * SECOND_NS, interval_ns, (part,))


def test_each_ends_samples_are_admitted_once_and_in_order() -> None:
    """Repeated and late ones are left out, and those without a time."""
    order = SampleOrder()
    assert (order.complete_index, order.reached_by_any) == (-1, -1)
    assert [order.admits(_sample(End.NEAR, index)) for index in (0, 2, 2, 1, 3)] == [True, True, False, False, True]
    assert order.admits(_sample(End.FAR, 0))
    assert not order.admits(_sample(End.FAR, 1, interval_ns=0))
    assert (order.complete_index, order.reached_by_any) == (0, 3)


def test_the_receivers_bytes_are_the_result() -> None:
    """A stream's are the other end's; the responder of transactions is the end that received requests."""
    for workload, result in ((Workload.STREAM, 70), (Workload.RR, 100)):
        sums = SampleSum(workload)
        sums.add_sample(_sample(End.NEAR, 0, 100), (Direction.OUT,))
        sums.add_sample(_sample(End.FAR, 0, 70), (Direction.OUT,))
        assert sums.received[Direction.OUT].bytes == result
        assert sums.sent[Direction.OUT].counters["bytes"] == 170 - result


def test_a_silence_counts_once_it_is_long() -> None:
    """Its intervals count from the first one on; a shorter one is none."""
    received = ReceiverSum()
    for index, bytes_ in enumerate((9, 0, 9, 0, 0, 0, 9, 0, 0)):
        received.add_sample(_sample(End.FAR, index, bytes_, SECOND_NS // 4), Direction.OUT)
    silences = received.silences
    assert (silences.count, silences.span_ns, silences.longest_ns) == (2, 5 * SECOND_NS // 4, 3 * SECOND_NS // 4)
    assert received.silent_share == pytest.approx(5 / 9)


@pytest.mark.parametrize("cut", range(10))
def test_a_silence_goes_on_from_one_time_into_the_next(cut: int) -> None:
    """Before the first payload, between two, and after the last one."""
    first, rest = ReceiverSum(), ReceiverSum()
    for index, bytes_ in enumerate((0, 0, 9, 0, 0, 0, 9, 0, 0)):
        received = first if index < cut else rest
        received.add_sample(_sample(End.FAR, index, bytes_, SECOND_NS // 4), Direction.OUT)
    first.extend(rest)
    silences = first.silences
    assert (silences.count, silences.span_ns, silences.longest_ns) == (3, 7 * SECOND_NS // 4, 3 * SECOND_NS // 4)
    first.trim_silence()
    assert first.silences.count == 2


def test_recent_samples_are_those_of_the_span_and_the_newest_at_least() -> None:
    """Each end by its own clock."""
    recent = _recent(2 * SECOND_NS)
    for index in range(4):
        assert recent.keep_sample(_sampled(End.NEAR, index))
    recent.keep_sample(_sampled(End.FAR, 0))
    assert [sample.index for sample in recent.of_end(End.NEAR)] == [2, 3]
    assert [sample.index for sample in recent.of_end(End.NEAR, SECOND_NS)] == [3]
    assert [sample.index for sample in recent.of_end(End.FAR)] == [0]
    recent.keep_sample(_sampled(End.FAR, 9))
    assert [sample.index for sample in recent.of_end(End.FAR)] == [9]


def test_recent_samples_are_those_of_the_newest_settings() -> None:
    """A late one counts for the time before the change, even if the settings are the same again."""
    recent, other = _recent(9 * SECOND_NS), Settings(sessions=2)
    recent.keep_sample(_sampled(End.NEAR, 0))
    recent.begin(other, SECOND_NS)
    assert recent.of_end(End.NEAR) == ()
    assert recent.keep_sample(_sampled(End.NEAR, 1, other))
    recent.begin(Settings(), 2 * SECOND_NS)
    assert not recent.keep_sample(_sampled(End.FAR, 0))
    assert not recent.keep_sample(_sampled(End.FAR, 1, other))
    assert recent.keep_sample(_sampled(End.FAR, 2))


def test_a_gauge_shows_the_warm_up_and_a_diagnosis_leaves_it_out() -> None:
    """Of the same recent samples."""
    recent = _recent(9 * SECOND_NS)
    for index in range(4):
        recent.keep_sample(replace(_sampled(End.FAR, index, bytes_=5), warmup=index < 3))
    flows = Direction.OUT.flows
    assert recent.sum_measured(Workload.STREAM, flows).received[Direction.OUT].bytes == 5
    assert recent.sum_shown(Workload.STREAM, flows, 9 * SECOND_NS).received[Direction.OUT].bytes == 20


def _recent(span_ns: int) -> RecentSamples:
    recent = RecentSamples(span_ns)
    recent.begin(Settings(), 0)
    return recent


def _sampled(end: End, index: int, settings: Settings | None = None, bytes_: int = 0) -> Sampled:
    return Sampled(_sample(end, index, bytes_), settings or Settings(), warmup=False)


def _plain(sums: Any) -> dict[str, Any]:
    """Return the fields that combine, with values that compare."""
    names = [each.name for each in fields(sums) if each.metadata.get("combines", "") is not None]
    return {name: _plain_value(getattr(sums, name)) for name in names}


def _plain_value(value: Any) -> Any:
    if is_dataclass(value):
        return _plain(value)
    if isinstance(value, Histogram):
        return value.counts, value.sums
    if isinstance(value, dict):
        return {key: _plain_value(value[key]) for key in value}
    return pytest.approx(value) if isinstance(value, float) else value


@given(chance=st.randoms(use_true_random=True), workload=st.sampled_from([Workload.STREAM, Workload.RR]))
def test_samples_add_up_at_once_as_in_pieces(chance: random.Random, workload: Workload) -> None:
    """Each field of the sums that says how it combines."""
    events = draw_run(chance, Plan(workload=workload), 12, reason=Reason.COMPLETED, changes=0)
    samples = [event.sample for event in events if isinstance(event, Sampled)]
    cut = chance.randrange(len(samples))
    whole, first, rest = (SampleSum(workload) for _ in range(3))
    for at, sample in enumerate(samples):
        whole.add_sample(sample, [Direction.OUT])
        (first if at < cut else rest).add_sample(sample, [Direction.OUT])
    for mine, theirs in ((first.sent, rest.sent), (first.received, rest.received)):
        mine[Direction.OUT].extend(theirs[Direction.OUT])
    assert _plain(whole.sent[Direction.OUT]) == _plain(first.sent[Direction.OUT])
    assert _plain(whole.received[Direction.OUT]) == _plain(first.received[Direction.OUT])
    assert whole.ends == {end: combine([first.ends[end], rest.ends[end]]) for end in End}


def test_a_round_trip_of_nothing_is_the_shortest() -> None:
    """0 is measured; only None is unknown."""
    sums = SampleSum(Workload.STREAM)
    for index, rtt_us in enumerate((0, 5, None)):
        session = SessionSample(Direction.OUT, 1, 1, min_rtt_us=rtt_us)
        sums.add_sample(Sample(End.NEAR, index, index + 1, 1, (session,)), [Direction.OUT])
    assert sums.sent[Direction.OUT].min_rtt_us == 0


def _receiver_sum(intervals: list[tuple[int, int]]) -> ReceiverSum:
    """Return the sum over intervals of these bytes and nanoseconds."""
    sums = ReceiverSum()
    for index, (amount, span_ns) in enumerate(intervals):
        part = SessionSample(Direction.OUT, 1, amount)
        sums.add_sample(Sample(End.FAR, index, (index + 1) * SECOND_NS, span_ns, (part,)), Direction.OUT)
    return sums


@given(st.lists(st.integers(1, 10**12), min_size=2), st.integers(1, 100))
def test_the_spread_of_rates_is_their_standard_deviation(amounts: list[int], split: int) -> None:
    """As a share of the mean, over intervals of one length, in one sum or in two."""
    intervals = [(amount, SECOND_NS) for amount in amounts]
    first, second = _receiver_sum(intervals[:split]), _receiver_sum(intervals[split:])
    first.extend(second)
    for sums in (_receiver_sum(intervals), first):
        assert sums.rate_spread == pytest.approx(statistics.pstdev(amounts) / statistics.fmean(amounts), abs=1e-5)


def test_the_spread_of_rates_is_unknown_without_two_intervals_of_payload() -> None:
    """Nothing is divided by zero, and intervals of another length at the same rate do not spread."""
    assert _receiver_sum([(5, SECOND_NS)]).rate_spread is None
    assert _receiver_sum([(0, SECOND_NS)] * 2).rate_spread is None
    assert _receiver_sum([(5, 0), (5, SECOND_NS)]).rate_spread is None
    assert _receiver_sum([(100, SECOND_NS), (200, 2 * SECOND_NS)]).rate_spread == pytest.approx(0, abs=1e-7)
