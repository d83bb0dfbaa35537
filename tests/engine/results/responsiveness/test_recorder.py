"""Latency under load from made-up runs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import DatagramProbeSample, ProbeSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.responsiveness.result import LoadedLatency, Responsiveness

from ..responsiveness_runs import INTERVAL_NS, MS, Link, no_queue, steady, times, with_datagrams, with_probes

OUT, IN, DUPLEX = Direction.OUT, Direction.IN, Direction.DUPLEX
CLOSE = 0.02  # buckets of a histogram, and the time in which a queue fills


def result_of(link: Link, events: list[Event] | None = None) -> Responsiveness:
    """Return the results of a run over a link."""
    result = replay(link.events() if events is None else events).summary().responsiveness
    assert result is not None
    return result


def load_of(result: Responsiveness, direction: Direction) -> LoadedLatency:
    """Return the results under a load that was measured."""
    load = result.load_of(direction)
    assert load is not None
    return load


def test_a_run_without_such_a_test_has_no_results() -> None:
    """Its summary says so, and its plots have no points."""
    events = Link().events()
    first = events[0]
    assert isinstance(first, Started)
    meter = replay([replace(first, plan=Plan(first.plan.settings, probe=True)), *events[1:]])
    assert meter.summary().responsiveness is None
    assert meter.responsiveness_series == ()


def test_each_direction_has_its_rise_its_rate_and_its_round_trips() -> None:
    """A queue of 40 ms out, of 8 ms in, of 48 ms both ways."""
    result = result_of(Link(steady(40, 8)))
    assert result.probe == "datagram"
    assert result.idle is not None
    assert result.idle.count == 200
    for direction, rise_ms in ((OUT, 40), (IN, 8), (DUPLEX, 48)):
        load = load_of(result, direction)
        assert load.rise_ns == pytest.approx(rise_ms * MS, rel=CLOSE)
        assert load.peak_rise_ns == pytest.approx(rise_ms * MS, rel=CLOSE)
        assert load.rise_p99_ns == pytest.approx(rise_ms * MS, rel=CLOSE)
        assert load.lost_percent == 0.0
        assert load.is_steady
        assert load.round_trips is not None
        assert load.round_trips.per_minute == pytest.approx(60_000 / (rise_ms + 0.4), rel=CLOSE)
    assert load_of(result, OUT).bit_s.out == pytest.approx(94.1e6, rel=1e-3)
    assert load_of(result, OUT).bit_s.in_ is None
    assert load_of(result, DUPLEX).bit_s.total == pytest.approx(188.2e6, rel=1e-3)
    assert load_of(result, DUPLEX).one_way_rise_ns.out == pytest.approx(40 * MS, rel=CLOSE)
    assert load_of(result, DUPLEX).one_way_rise_ns.in_ == pytest.approx(8 * MS, rel=CLOSE)


def test_grade_and_rise_are_those_of_out_and_in_and_round_trips_those_of_both_at_once() -> None:
    """The mean of 40 and 8 ms is an A, and a queue in each direction delays a round trip twice."""
    result = result_of(Link(steady(40, 8)))
    assert result.rise_ns == pytest.approx(24 * MS, rel=CLOSE)
    assert result.grade == "A"
    assert result.round_trips == load_of(result, DUPLEX).round_trips


@pytest.mark.parametrize("direction", list(Direction))
def test_a_load_of_one_kind_alone_has_a_grade_too(direction: Direction) -> None:
    """It is of its own rise."""
    result = result_of(Link(steady(100, 100), phases=(direction,)))
    assert result.rise_ns == load_of(result, direction).rise_ns
    assert result.grade == "C" if direction is not DUPLEX else "D"
    assert result.round_trips == load_of(result, direction).round_trips


def test_a_queue_counts_from_when_it_was_full() -> None:
    """It fills for five of eight seconds, and the mean of all of them would be too small."""
    load = load_of(result_of(Link(lambda _, at_s: min(200.0, 40 * at_s), phases=(OUT,), phase_s=8)), OUT)
    assert 4.4 * SECOND_NS <= load.measured_ns <= 5 * SECOND_NS
    assert load.rise_ns == pytest.approx(200 * MS, rel=0.04)
    assert load.is_steady


def test_a_queue_that_is_still_filling_is_measured_in_the_last_two_seconds_and_is_not_steady() -> None:
    """400 ms would take longer than the test."""
    load = load_of(result_of(Link(lambda _, at_s: 46 * at_s, phases=(OUT,), phase_s=6)), OUT)
    assert load.end_ns - load.measured_ns == pytest.approx(2 * SECOND_NS, abs=INTERVAL_NS)
    assert not load.is_steady
    assert load.round_trips is not None
    assert load.round_trips.confidence == "medium"
    assert load.rise_ns == pytest.approx(46 * 4.9 * MS, rel=0.05)


def test_a_queue_that_saws_has_its_mean_and_its_peak() -> None:
    """TCP drains it to three quarters, and fills it again in two seconds."""
    load = load_of(result_of(Link(lambda _, at_s: 150 + 25 * (at_s % 2), phases=(OUT,), phase_s=8)), OUT)
    assert load.rise_ns == pytest.approx(174 * MS, rel=CLOSE)
    assert load.peak_rise_ns == pytest.approx(193 * MS, rel=CLOSE)


def test_the_first_second_of_a_load_never_counts() -> None:
    """The queue of the load before drains in it, and slow start overshoots."""
    result = result_of(Link(lambda _, at_s: 500.0 if at_s < 0.9 else 5.0, phases=(OUT, IN)))
    for load in result.loads:
        assert load.measured_ns >= load.start_ns + SECOND_NS
        assert load.peak_rise_ns == pytest.approx(5 * MS, rel=0.05)


def test_without_datagrams_latency_is_that_of_requests_by_time() -> None:
    """A tenth of the probes is enough, because each counts with its time."""
    result = result_of(Link(steady(100, 3), has_datagrams=False))
    assert result.probe == "request"
    assert load_of(result, OUT).rise_ns == pytest.approx(100 * MS, rel=CLOSE)
    assert load_of(result, OUT).one_way_rise_ns.out is None
    assert load_of(result, OUT).lost_percent is None


def with_idle(link: Link, sent: int, answered: int) -> list[Event]:
    """Return a run with so many datagrams before its load."""
    events = link.events()
    first = events[0]
    assert isinstance(first, Started)
    idle = first.idle
    assert idle is not None
    few = times(round(0.4 * MS), answered)
    datagrams = DatagramProbeSample(sent, answered, few, few, few)
    return [replace(first, idle=replace(idle, datagrams=datagrams)), *events[1:]]


@pytest.mark.parametrize(
    ("answered", "probe"), [(200, "datagram"), (180, "datagram"), (179, "request"), (0, "request")]
)
def test_datagrams_tell_latency_if_nine_of_ten_come_back(answered: int, probe: str) -> None:
    """Otherwise a firewall or a policer may drop them."""
    link = Link(steady(20, 20))
    assert result_of(link, with_idle(link, 200, answered)).probe == probe


def test_datagrams_of_a_long_path_are_not_lost_while_they_are_on_their_way() -> None:
    """With a round trip of 600 ms, sixty of two hundred have no echo yet after two seconds."""
    link = Link(steady(20, 20), idle_ms=600)
    events = with_idle(link, 200, 140)
    first = events[0]
    assert isinstance(first, Started)
    assert first.idle is not None
    assert first.idle.datagrams is not None
    late = replace(first.idle.datagrams, latency=times(600 * MS, 140))
    result = result_of(link, [replace(first, idle=replace(first.idle, datagrams=late)), *events[1:]])
    assert result.probe == "datagram"


def without_datagrams(events: list[Event], since: Direction, sent: int | None) -> list[Event]:
    """Return a run whose datagrams are lost from a load on: `sent` ones get no echo, or with None none is sent."""
    loads = [OUT, IN, DUPLEX]
    none = times(0, 0)
    lost = None if sent is None else DatagramProbeSample(sent, 0, none, none, none)

    def change(event: Sampled, probe: ProbeSample) -> ProbeSample:
        is_lost = loads.index(event.settings.direction) >= loads.index(since)
        return replace(probe, datagrams=lost) if is_lost else probe

    return with_probes(events, change)


@pytest.mark.parametrize("sent", [20, None])
@pytest.mark.parametrize("since", list(Direction))
def test_all_loads_have_the_same_probe_even_if_datagrams_stop_coming(since: Direction, sent: int | None) -> None:
    """Then requests give the latency of all loads, so that these can be compared."""
    result = result_of(Link(), without_datagrams(Link(steady(40, 8)).events(), since, sent))
    assert result.probe == "request"
    assert [load.rise_ns for load in result.loads] == [
        pytest.approx(rise_ms * MS, rel=CLOSE) for rise_ms in (40, 8, 48)
    ]


def test_lost_datagrams_are_a_share_and_a_few_late_ones_are_not_lost() -> None:
    """One of five has no echo."""
    fewer = times(round(20.4 * MS), 16)
    events = with_probes(
        Link(steady(20, 20)).events(), lambda _, probe: with_datagrams(probe, answered=16, latency=fewer)
    )
    assert load_of(result_of(Link(), events), OUT).lost_percent == pytest.approx(20)
    growing = result_of(Link(lambda _, at_s: 46 * at_s, phases=(OUT,), phase_s=6))
    assert load_of(growing, OUT).lost_percent == 0.0


def test_samples_of_the_far_end_may_come_late_or_not_at_all() -> None:
    """Its figures are complete, or unknown; those of the near end are the same."""
    events = Link(steady(40, 8)).events()
    far = [event for event in events if isinstance(event, Sampled) and event.sample.end is End.FAR]
    rest = [event for event in events if event not in far]
    late = result_of(Link(), [*rest[:-1], *far, rest[-1]])
    assert late == result_of(Link(), events)
    missing = result_of(Link(), rest)
    assert [load.rise_ns for load in missing.loads] == [load.rise_ns for load in late.loads]
    assert load_of(missing, OUT).bit_s.out is None
    assert load_of(missing, OUT).round_trips is not None
    assert load_of(missing, IN).bit_s.in_ == load_of(late, IN).bit_s.in_
    assert load_of(missing, IN).tcp_rtt is None
    assert load_of(missing, IN).round_trips is None
    assert not load_of(missing, OUT).is_steady


def test_the_far_end_adds_nothing_after_the_near_ends_last_sample() -> None:
    """A full queue goes on draining to it: the last two seconds are those in which latency was measured."""
    link = Link(lambda _, at_s: 46 * at_s, phases=(OUT,), phase_s=6)
    events = [
        event
        for event in link.events()
        if not (
            isinstance(event, Sampled) and event.sample.end is End.NEAR and event.sample.elapsed_ns > 5 * SECOND_NS
        )
    ]
    load = load_of(result_of(link, events), OUT)
    assert load.end_ns == 5 * SECOND_NS
    assert load.end_ns - load.measured_ns == pytest.approx(2 * SECOND_NS, abs=INTERVAL_NS)
    assert load.rise_ns == pytest.approx(46 * 3.9 * MS, rel=0.05)


@pytest.mark.every
@given(st.data())
def test_samples_that_are_missing_or_out_of_order_never_break_it(data: st.DataObject) -> None:
    """A busy machine skips some, and the meter leaves out samples that are out of order."""
    events = Link(steady(40, 8), phase_s=2.4).events()
    keep = data.draw(st.lists(st.booleans(), min_size=len(events), max_size=len(events)))
    kept: list[Event] = [events[0]]
    kept += [event for event, is_kept in zip(events[1:], keep[1:], strict=True) if is_kept]
    if data.draw(st.booleans()):
        kept[1:] = data.draw(st.permutations(kept[1:]))
    meter = replay(kept)
    result = meter.summary().responsiveness
    assert result is not None
    for load in result.loads:
        assert load.rise_ns is None or 0 <= load.rise_ns <= 60 * MS
        assert load.start_ns + SECOND_NS <= load.measured_ns < load.end_ns or not load.latency
    elapsed = [point.elapsed_ns for point in meter.responsiveness_series]
    assert elapsed == sorted(elapsed)


def test_more_sessions_in_the_same_direction_are_the_same_load() -> None:
    """The near end adds sessions while the rate still grows."""
    more, since_ns = Settings(OUT, 12), 3 * SECOND_NS
    before, after = list[Event](), list[Event]()
    for event in Link(steady(40), phases=(OUT,)).events():
        if isinstance(event, Sampled) and event.sample.elapsed_ns > since_ns:
            after.append(replace(event, settings=more))
        else:
            (after or before).append(event)
    changed = [*before, Changed(since_ns, more, Expectation()), *after]
    result = result_of(Link(), changed)
    assert [load.direction for load in result.loads] == [OUT]
    assert load_of(result, OUT).sessions == 12
    assert load_of(result, OUT).start_ns == 0


def test_the_queues_at_the_senders_are_means_over_the_measured_time() -> None:
    """40 ms at 99.7 Mb/s are 499 kB in the queueing discipline; 20 kB in the sockets."""
    load = load_of(result_of(Link(steady(40, 8), local=1.0)), DUPLEX)
    near, far = load.queues
    assert (near.end, far.end) == (End.NEAR, End.FAR)
    assert (near.interface, near.qdisc) == ("eth0", "pfifo_fast")
    assert near.delay_ns == pytest.approx(40 * MS, rel=CLOSE)
    assert far.delay_ns == pytest.approx(8 * MS, rel=CLOSE)
    assert near.backlog_bytes == pytest.approx(498_730, rel=CLOSE)
    assert near.unsent_ns == pytest.approx(1.6 * MS, rel=CLOSE)
    assert near.driver_bytes is None


def test_without_readings_a_senders_queue_is_unknown() -> None:
    """None, and not 0."""
    [near] = load_of(result_of(Link(steady(40, 8), has_queue_readings=False)), OUT).queues
    assert near.backlog_bytes is None
    assert near.delay_ns is None
    assert near.unsent_bytes == 20_000


def test_the_series_has_each_interval_with_its_load() -> None:
    """For a plot: rate above, latency below, on one axis of time."""
    series = replay(Link(steady(40, 8)).events()).responsiveness_series
    assert len(series) == 75
    assert [point.elapsed_ns for point in series] == [INTERVAL_NS * number for number in range(1, 76)]
    out, in_, both = series[24], series[49], series[74]
    assert (out.direction, in_.direction, both.direction) == (OUT, IN, DUPLEX)
    assert out.out_bit_s == pytest.approx(94.1e6, rel=1e-3)
    assert out.in_bit_s is None
    assert both.p50_ns == pytest.approx(48.4 * MS, rel=CLOSE)
    assert both.rise_out_ns == pytest.approx(40 * MS, rel=CLOSE)
    assert in_.rise_in_ns == pytest.approx(8 * MS, rel=CLOSE)


def test_nothing_is_reported_before_anything_was_measured() -> None:
    """Of a run that has just begun, of its first second, and of one without an idle probe."""
    events = Link().events()
    for count in (1, 2, 10):
        result = result_of(Link(), events[:count])
        assert result.loads == ()
        assert (result.rise_ns, result.grade, result.round_trips) == (None, None, None)
    first = events[0]
    assert isinstance(first, Started)
    without = result_of(Link(), [replace(first, idle=None), *events[1:]])
    assert without.grade is None
    assert [load.rise_ns for load in without.loads] == [None] * 3
    assert all(load.latency is not None for load in without.loads)


@pytest.mark.every
def test_a_day_beside_a_load_takes_bounded_memory_and_keeps_its_peak() -> None:
    """Neighbouring intervals become one, and a spike of half a second within an hour stays known."""
    link = Link(steady(20), phases=(OUT,), phase_s=600)
    first = link.started()
    plan = replace(first.plan, responsiveness=ResponsivenessTest.ALONGSIDE, duration_ns=600 * SECOND_NS)
    slow = times(90 * MS, 20)
    events = with_probes(
        [replace(first, plan=plan), *link.events()[1:]],
        lambda event, probe: with_datagrams(probe, latency=slow) if 1_000 <= event.sample.index < 1_003 else probe,
    )
    meter = replay(events)
    assert len(meter.responsiveness_series) <= 256
    result = meter.summary().responsiveness
    assert result is not None
    load = load_of(result, OUT)
    assert load.peak_rise_ns == pytest.approx(89.6 * MS, rel=CLOSE)
    assert load.rise_ns == pytest.approx(20 * MS, rel=0.1)


def test_a_healthy_link_has_the_best_grade() -> None:
    """And all of the load counts, because no queue had to fill."""
    result = result_of(Link(no_queue))
    assert result.grade == "A+"
    assert load_of(result, OUT).measured_ns < 2 * SECOND_NS
