"""The meter: both ends' samples joined to intervals, and what a run measured."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import CoreTimes
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Ended, Event
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import MIB, SECOND_NS, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Interval, Meter, replay
from linkgauge.engine.results.summary import LossByHost, Measurement
from linkgauge.engine.results.sums.sample_sum import MAX_BEHIND

from .iperf3_runs import BYTES, DATAGRAM_BYTES, DATAGRAMS, INTERVALS, iperf3_run, reported, total
from .meter_events import DUPLEX, E100, E200, IN, OUT, TICK, feed_all, of_flow, sampled, session, started


def test_an_interval_is_complete_when_both_ends_have_reported_it() -> None:
    """The later of the two samples releases it, from either end."""
    meter = Meter()
    near, far = sampled(End.NEAR, 0), sampled(End.FAR, 0)
    assert meter.feed(near) == []
    assert meter.feed(far) == [Interval(0, near, far)]


def test_an_interval_is_complete_when_one_end_has_gone_past_it() -> None:
    """An end that was held up skips indexes; the other end's samples of these are not lost."""
    meter = Meter()
    near = [sampled(End.NEAR, index) for index in range(4)]
    for event in near:
        assert meter.feed(event) == []
    far = sampled(End.FAR, 2)
    assert meter.feed(far) == [
        Interval(0, near[0], None),
        Interval(1, near[1], None),
        Interval(2, near[2], far),
    ]


def test_a_far_end_that_is_seconds_late_loses_no_interval() -> None:
    """All intervals that wait for it are joined when it comes."""
    meter = Meter()
    near = [sampled(End.NEAR, index) for index in range(40)]
    far = [sampled(End.FAR, index) for index in range(40)]
    joined = feed_all(meter, *near, *far)
    assert joined == [Interval(index, near[index], far[index]) for index in range(40)]


def test_a_silent_end_holds_back_no_more_than_some_minutes() -> None:
    """The memory of a day's run has a limit, and a row that was printed without the other end stays so."""
    meter = Meter()
    near = [sampled(End.NEAR, index) for index in range(MAX_BEHIND + 3)]
    given_up = [row for event in near for row in meter.feed(event)]
    assert given_up == [Interval(index, near[index], None) for index in range(3)]
    assert meter.feed(sampled(End.FAR, 2)) == []
    far = sampled(End.FAR, 3)
    assert meter.feed(far) == [Interval(3, near[3], far)]
    assert meter.summary().warnings == ("a sample of the remote end was out of order and is left out",)


def test_intervals_that_wait_for_a_vanished_end_come_out_at_the_end() -> None:
    """Flushing gives it once, in order."""
    meter = Meter()
    near = [sampled(End.NEAR, index) for index in range(3)]
    assert [meter.feed(event) for event in near] == [[], [], []]
    assert meter.flush() == [Interval(index, near[index], None) for index in range(3)]
    assert meter.flush() == []


def test_the_sums_that_gauges_show_follow_each_sample_and_each_change() -> None:
    """They are of the last second under the newest settings, and are made once for a sample."""
    meter = Meter()
    assert meter.shown.received[Direction.OUT].bytes == 0
    meter.feed(started())
    shown: list[int] = []
    for index in range(6):
        meter.feed(of_flow(Direction.OUT, End.FAR, index, 100))
        shown.append(meter.shown.received[Direction.OUT].bytes)
        assert meter.shown is meter.shown
    assert shown == [100, 200, 300, 400, 400, 400]
    meter.feed(Changed(6 * TICK, IN, Expectation()))
    assert meter.shown.received[Direction.OUT].bytes == 0


def test_a_sample_out_of_order_is_dropped_with_a_warning() -> None:
    """Counting it in the sums and not in the rows would make them disagree."""
    meter = Meter()
    good = of_flow(Direction.OUT, End.FAR, 5, 1000)
    feed_all(meter, started(), good, good, replace(good, sample=replace(good.sample, index=6, interval_ns=0)))
    summary = meter.summary()
    assert summary.measured.out == Measurement(1000, TICK)
    assert summary.warnings == ("a sample of the remote end was out of order and is left out",)


def test_the_receiver_s_samples_are_the_truth() -> None:
    """The sender's acknowledged bytes do not count, and warm-up is left out."""
    meter = Meter()
    feed_all(
        meter,
        started(),
        of_flow(Direction.OUT, End.NEAR, 0, 9999, warmup=True),
        of_flow(Direction.OUT, End.FAR, 0, 500, 500, warmup=True),
        of_flow(Direction.OUT, End.NEAR, 1, 9999),
        of_flow(Direction.OUT, End.FAR, 1, 1000, 2000),
        of_flow(Direction.OUT, End.FAR, 2, 0),
    )
    summary = meter.summary()
    assert summary.measured.out == Measurement(3000, 2 * TICK)
    assert summary.measured.in_ is None
    assert summary.measured.total == summary.measured.out


def test_a_duplex_total_has_both_directions_bytes_and_the_sum_of_their_rates() -> None:
    """Both ran at once, on two clocks: a late last sample of one end takes nothing off the total."""
    meter = Meter()
    feed_all(
        meter,
        started(DUPLEX),
        of_flow(Direction.IN, End.NEAR, 0, 700, settings=DUPLEX),
        of_flow(Direction.OUT, End.FAR, 0, 300, settings=DUPLEX, interval_ns=TICK * 2),
    )
    summary = meter.summary()
    assert (summary.measured.out, summary.measured.in_) == (Measurement(300, TICK * 2), Measurement(700, TICK))
    assert summary.measured.total is not None
    assert summary.measured.total.bytes == 1000
    assert summary.measured.total.bit_s == pytest.approx(
        summary.measured.out.bit_s + summary.measured.in_.bit_s, rel=1e-6
    )


def test_nothing_measured_is_unknown_and_nothing_received_is_nothing() -> None:
    """None is unknown, 0 is measured."""
    meter = Meter()
    meter.feed(started())
    assert meter.summary().measured.out is None
    assert meter.summary().measured.total is None
    meter.feed(sampled(End.FAR, 0))
    assert meter.summary().measured.out == Measurement(0, TICK)
    assert meter.summary().near_cpu.msec_per_mib is None


def test_a_change_back_to_earlier_settings_is_a_new_period() -> None:
    """Each period keeps its own figures, even if a far sample comes after all changes."""
    five = Settings(sessions=5)
    changes = [Changed(TICK, five, Expectation(out=E200)), Changed(2 * TICK, OUT, Expectation(out=E100))]
    far = [
        of_flow(Direction.OUT, End.FAR, 0, 100),
        of_flow(Direction.OUT, End.FAR, 1, 200, settings=five),
        of_flow(Direction.OUT, End.FAR, 2, 400),
    ]
    late, prompt = Meter(), Meter()
    feed_all(late, started(), *changes, *far)
    feed_all(prompt, started(), far[0], changes[0], far[1], changes[1], far[2])
    assert late.summary() == prompt.summary()
    stretches = late.summary().periods
    assert [stretch.settings for stretch in stretches] == [OUT, five, OUT]
    assert [stretch.measured.out for stretch in stretches] == [
        Measurement(count, TICK) for count in (100, 200, 400)
    ]


def test_cpu_is_the_mean_over_measured_intervals() -> None:
    """The hottest core is the one with the highest mean, not with the highest moment."""
    hot, mild, idle = CoreTimes(60, 20, 10, 10, 0), CoreTimes(30, 10, 0, 10, 50), CoreTimes(0, 0, 0, 0, 100)
    meter = Meter()
    feed_all(
        meter,
        started(),
        sampled(End.NEAR, 0, warmup=True, cores=(hot, hot), process_cpu_ns=TICK),
        sampled(End.NEAR, 1, cores=(mild, hot), process_cpu_ns=TICK // 2),
        sampled(End.NEAR, 2, cores=(mild, idle), process_cpu_ns=TICK),
        sampled(End.NEAR, 3, cores=(hot, idle), process_cpu_ns=None),
        of_flow(Direction.OUT, End.FAR, 1, MIB * 3),
    )
    cpu = meter.summary().near_cpu
    assert cpu.hottest_core_percent == pytest.approx(200 / 3)
    assert cpu.host_percent == pytest.approx((200 / 3 + 100 / 3) / 2)
    assert cpu.core_percents == pytest.approx((200 / 3, 100 / 3))
    assert cpu.process_percent == pytest.approx(75)
    assert cpu.msec_per_mib == pytest.approx(0.75 * 750 / 3)
    assert meter.summary().far_cpu.host_percent is None


def test_a_run_without_its_end_was_cut_off() -> None:
    """The log of a crashed run still makes a summary."""
    meter = replay([started(), of_flow(Direction.OUT, End.FAR, 0, 10)])
    assert meter.summary().measured.out == Measurement(10, TICK)
    assert meter.summary().end.reason is Reason.FAILED
    assert "interrupted before its reason was recorded" in meter.summary().end.detail
    meter.feed(Ended(RunEnd(Reason.COMPLETED, "done")))
    assert meter.summary().end == RunEnd(Reason.COMPLETED, "done")


def test_an_empty_log_has_a_summary_too() -> None:
    """A run that was killed before its first event is nothing measured, not an error."""
    summary = replay([]).summary()
    assert (summary.measured.total, summary.expectation, summary.periods) == (None, Expectation(), ())


@pytest.mark.parametrize(
    ("reason", "intervals"), [(Reason.PEER_LOST, 2), (Reason.SESSION_LOST, 2), (Reason.STOPPED, 4)]
)
def test_the_wait_for_a_lost_peer_is_not_measured(reason: Reason, intervals: int) -> None:
    """A link that carried 8 Mb/s until its cable was pulled carried 8 Mb/s; a silent link that is there did not."""
    meter = Meter()
    counts = [250_000, 250_000, 0, 0]
    samples = [of_flow(Direction.IN, End.NEAR, index, count, settings=IN) for index, count in enumerate(counts)]
    feed_all(meter, started(IN), *samples, Ended(RunEnd(reason, "gone")))
    assert meter.summary().measured.in_ == Measurement(500_000, intervals * TICK)


def test_bytes_that_drain_after_a_change_are_shown_and_not_measured() -> None:
    """In the warm-up after a change of direction the old one's last bytes have a flow of their own."""
    meter = Meter()
    late = (
        session(Direction.OUT, End.FAR, 1, 77),
        session(Direction.IN, End.FAR, 1, 5),
    )
    intervals = feed_all(
        meter,
        started(),
        Changed(TICK, IN, Expectation()),
        sampled(End.FAR, 0, *late, settings=IN, warmup=True),
        sampled(End.NEAR, 0, settings=IN, warmup=True),
        sampled(End.FAR, 1, *late, settings=IN),
        sampled(End.NEAR, 1, settings=IN),
    )
    assert [interval.flows for interval in intervals] == [(Direction.OUT, Direction.IN), (Direction.IN,)]
    assert intervals[0].received_bytes(Direction.OUT) == 77
    assert meter.summary().measured.out is None


@pytest.mark.every
def test_memory_does_not_grow_with_the_length_of_a_run() -> None:
    """Samples are summed, not kept: after a million more nothing waits and nothing has been added."""
    meter = Meter()
    meter.feed(started())

    def run(first: int, last: int) -> None:
        for index in range(first, last):
            near = session(Direction.OUT, End.NEAR, 1, 1, rtt_us=index * 7919 % 1_000_000)
            meter.feed(sampled(End.NEAR, index, near))
            meter.feed(of_flow(Direction.OUT, End.FAR, index, 1))

    def weight() -> int:
        histogram = meter.periods[0].sums.sent[Direction.OUT].histograms["rtt_us"]
        return len(meter._waiting) + len(meter.periods) + sys.getsizeof(histogram.counts) // 1_000_000

    run(0, 2_000)
    before = weight()
    run(2_000, 20_000)
    assert weight() == before
    assert len(meter.periods[0].sums.sent[Direction.OUT].histograms["rtt_us"].counts) < 4096 + 2048 * 8


_BYTES = st.lists(st.integers(0, 2**40), min_size=1, max_size=4)
_PLAN = (OUT, DUPLEX, IN, OUT)


@st.composite
def _runs(draw: st.DrawFn) -> tuple[list[Event], list[Event], list[Event]]:
    """Draw a run: with the far end seconds late, and with its samples as late as drawn.

    A far sample never comes before the change that it was taken after: the near end tells of that first.
    """
    near: list[Event] = [started()]
    far: list[tuple[int, Event]] = []
    count = draw(st.integers(1, 12))
    places = sorted(draw(st.lists(st.integers(0, count), max_size=3)))
    number = 0
    for index in range(count):
        while number < len(places) and places[number] == index:
            number += 1
            near.append(Changed(index * TICK, _PLAN[number], Expectation(total=E200)))
        settings = _PLAN[number]
        for end in End:
            if not draw(st.integers(0, 4)):
                continue
            sessions = [
                session(flow, end, n, bytes_)
                for flow in settings.direction.flows
                for n, bytes_ in enumerate(draw(_BYTES), 1)
            ]
            event = sampled(end, index, *sessions, settings=settings, warmup=draw(st.booleans()))
            if end is End.NEAR:
                near.append(event)
            else:
                far.append((number, event))
    return near, [event for _, event in far], _interleaved(draw, near, far)


def _interleaved(draw: st.DrawFn, near: list[Event], far: list[tuple[int, Event]]) -> list[Event]:
    merged, waiting, changes = list[Event](), list(far), 0
    for event in near:
        merged.append(event)
        changes += isinstance(event, Changed)
        while waiting and waiting[0][0] <= changes and draw(st.booleans()):
            merged.append(waiting.pop(0)[1])
    return merged + [event for _, event in waiting]


@given(_runs())
def test_any_interleaving_of_the_ends_gives_the_same_intervals_and_summary(
    run: tuple[list[Event], list[Event], list[Event]],
) -> None:
    """If the far end's samples are late, the user sees them later, and nothing else changes."""
    near, far, interleaved = run
    late, mixed = Meter(), Meter()
    expected = feed_all(late, *near, *far)
    assert feed_all(mixed, *interleaved) == expected
    assert mixed.summary() == late.summary()
    indexes = [interval.index for interval in expected]
    assert indexes == sorted(set(indexes))


@given(_runs())
def test_the_intervals_receivers_add_up_to_the_summary(
    run: tuple[list[Event], list[Event], list[Event]],
) -> None:
    """No byte is in the one and not in the other."""
    meter = Meter()
    intervals = feed_all(meter, *run[2])
    counted = [
        interval.received_bytes(flow) or 0
        for interval in intervals
        for flow in interval.flows
        if (receiver := interval.receiver_sample(flow)) is not None and not receiver.warmup
    ]
    assert sum(counted) == meter.summary().payload_bytes


SPAN = INTERVALS * TICK


def test_an_iperf3_that_receives_counts_by_its_own_clock() -> None:
    """The samples have the bytes acknowledged to the near end: more than arrived, over another time."""
    parts = [total(Direction.OUT, n, 11_000_000, SPAN - 1_000_000) for n in (1, 2)]
    summary = replay(iperf3_run(Direction.OUT, sessions=2, totals=reported(*parts, cpu_ns=SPAN // 2))).summary()
    out = summary.measured.out
    assert out == summary.measured.total
    assert out is not None
    assert (out.bytes, out.span_ns, out.counted_by) == (22_000_000, SPAN - 1_000_000, "receiver")
    assert out.estimate is not None
    assert out.estimate.mean == pytest.approx(out.bit_s)
    assert summary.tcp.retransmits == 2 * INTERVALS
    assert summary.unseen_end is End.FAR
    assert (summary.far_cpu.process_percent, summary.far_cpu.core_percents) == (50.0, ())
    assert summary.far_cpu.msec_per_mib == pytest.approx(SPAN / 2e6 / (22_000_000 / MIB))


def test_without_the_results_of_an_iperf3_a_run_has_the_senders_figures_and_says_so() -> None:
    """The server died: its kernel's acknowledgements are known, its program's reads are not."""
    events = iperf3_run(Direction.OUT, reason=Reason.PEER_LOST)
    out = replay(events).summary().measured.out
    assert out is not None
    assert (out.bytes, out.span_ns, out.counted_by) == (INTERVALS * BYTES, SPAN, "sender")
    duplex = replay(iperf3_run(Direction.DUPLEX, reason=Reason.PEER_LOST)).summary().measured
    assert duplex.out is not None
    assert duplex.in_ is not None
    assert duplex.total is not None
    counters = (duplex.out.counted_by, duplex.in_.counted_by, duplex.total.counted_by)
    assert counters == ("sender", "receiver", "sender")


@pytest.mark.parametrize("direction", [Direction.IN, Direction.DUPLEX])
def test_bytes_from_an_iperf3_are_counted_here_and_it_adds_its_retransmits(direction: Direction) -> None:
    """It knows its retransmits; the bytes that count are those read at the near end."""
    parts = [total(flow, 1, 99_000_000, retransmits=7) for flow in direction.flows if flow is Direction.IN]
    parts += [total(Direction.OUT, 1, 9_000_000)] * (direction is Direction.DUPLEX)
    summary = replay(iperf3_run(direction, totals=reported(*parts))).summary()
    in_ = summary.measured.in_
    assert in_ is not None
    assert (in_.bytes, in_.counted_by) == (INTERVALS * BYTES, "receiver")
    own = INTERVALS if direction is Direction.DUPLEX else 0
    assert summary.tcp.retransmits == own + 7
    measured = summary.measured
    assert measured.total is not None
    assert measured.total.bytes == in_.bytes + (9_000_000 if direction is Direction.DUPLEX else 0)


@pytest.mark.parametrize("direction", list(Direction))
def test_intervals_do_not_wait_for_an_end_that_has_no_samples(direction: Direction) -> None:
    """A reader follows the run: an hour of samples does not wait in memory until the end."""
    meter = Meter()
    seen = [len(meter.feed(event)) for event in iperf3_run(direction)]
    assert sum(seen) == INTERVALS
    assert meter.flush() == []


def test_datagrams_that_an_iperf3_received_have_its_losses_and_no_place_beyond_the_near_host() -> None:
    """The near kernel's drops are known; the network and the far host cannot be told apart."""
    parts = total(Direction.OUT, 1, 11_000_000, received=11_000, lost=1_000, jitter_ns=40_000)
    summary = replay(iperf3_run(Direction.OUT, workload=Workload.UDP, totals=reported(parts))).summary()
    out = summary.measured.out
    assert out is not None
    assert out.datagrams is not None
    found = out.datagrams
    assert (found.sent, found.received, found.lost, found.in_time) == (12_000, 11_000, 1_000, 11_000)
    assert found.lost_at == LossByHost(near=INTERVALS, far=None, network=None)
    assert (found.jitter_mean_ns, found.jitter_max_ns, found.bursts) == (40_000, None, None)
    assert out.packets_s == 11_000 * SECOND_NS / SPAN
    assert out.estimate is None  # the sender's intervals know nothing of the losses


def test_packets_a_second_match_the_rate_if_an_iperf3_counts_its_warm_up_too() -> None:
    """Before 3.14 its counts of datagrams have the omitted seconds in them, and its bytes have not."""
    parts = total(Direction.OUT, 1, 8_000_000, received=11_000, lost=0)
    out = replay(iperf3_run(Direction.OUT, workload=Workload.UDP, totals=reported(parts))).summary().measured.out
    assert out is not None
    assert out.datagrams is not None
    assert (out.datagrams.in_time, out.datagrams.received) == (8_000, 11_000)
    assert out.packets_s == out.bit_s / 8 / DATAGRAM_BYTES


def test_losses_of_datagrams_are_all_the_near_hosts_if_its_kernel_dropped_as_many() -> None:
    """Then nothing is left for the network and the far host."""
    parts = total(Direction.OUT, 1, 11_988_000, received=11_988, lost=INTERVALS)
    found = replay(iperf3_run(Direction.OUT, workload=Workload.UDP, totals=reported(parts))).summary().measured.out
    assert found is not None
    assert found.datagrams is not None
    assert found.datagrams.lost_at == LossByHost(near=INTERVALS, far=0, network=0)


def test_an_iperf3_that_has_seen_no_datagram_has_lost_all_that_were_sent() -> None:
    """It cannot count unseen datagrams: its results have no loss of none."""
    parts = total(Direction.OUT, 1, 0, received=0, lost=0)
    found = replay(iperf3_run(Direction.OUT, workload=Workload.UDP, totals=reported(parts))).summary().measured.out
    assert found is not None
    assert found.datagrams is not None
    assert (found.bytes, found.datagrams.lost, found.datagrams.lost_percent) == (0, INTERVALS * DATAGRAMS, 100.0)


def test_datagrams_that_an_iperf3_sends_are_counted_here_with_its_rate() -> None:
    """The losses follow from the numbers that arrive; the sender reports how much it sent."""
    parts = total(Direction.IN, 1, 12_000_000, sent=12_000)
    found = replay(iperf3_run(Direction.IN, workload=Workload.UDP, totals=reported(parts))).summary().measured.in_
    assert found is not None
    assert found.datagrams is not None
    assert (found.datagrams.lost, found.datagrams.received) == (10 * INTERVALS, 990 * INTERVALS)
    assert found.datagrams.sent_bit_s == 12_000_000 * 8 * SECOND_NS / SPAN
    assert found.datagrams.lost_at == LossByHost(near=10 * INTERVALS, far=0, network=0)


def test_totals_without_time_or_sessions_change_nothing() -> None:
    """A damaged log may have any: no division by zero, and the figures stay the sender's."""
    for totals in (reported(), replace(reported(total(Direction.OUT, 1, 5)), span_ns=0)):
        out = replay(iperf3_run(Direction.OUT, totals=totals)).summary().measured.out
        assert out is not None
        assert (out.bytes, out.counted_by) == (INTERVALS * BYTES, "sender")
