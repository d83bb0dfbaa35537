"""The counts of datagrams add up to the fate of every one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import DatagramSample, LatencyCounts, Sample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Event, Sampled
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Mode, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Interval, Meter, replay
from linkgauge.engine.results.summary import DatagramSummary, LossByHost, Measurement
from linkgauge.engine.results.sums.sample_sum import RecentSamples
from linkgauge.engine.results.udp.datagram_sums import DatagramSum

from ..datagram_runs import DATAGRAM_BYTES, INTERVAL_NS, draw_datagram_run

RUNS = {"seed": st.integers(0, 10**6), "direction": st.sampled_from(list(Direction))}


def _datagrams(measured: Measurement | None) -> DatagramSummary:
    assert measured is not None
    assert measured.datagrams is not None
    return measured.datagrams


@given(**RUNS)
def test_lost_datagrams_are_counted_exactly_with_those_at_the_tail(seed: int, direction: Direction) -> None:
    """The receiver's count decides; behind the last arrival only the sender knows."""
    events, fates = draw_datagram_run(seed, direction)
    summary = replay(events).summary()
    for flow in direction.flows:
        counts = _datagrams(summary.measured[flow])
        assert (counts.sent, counts.lost, counts.duplicates) == (
            fates[flow].sent,
            fates[flow].lost,
            fates[flow].copies,
        )
        assert counts.received == fates[flow].sent - fates[flow].lost
        assert counts.lost_at == LossByHost(0, 0, fates[flow].lost)
    total = _datagrams(summary.measured.total)
    assert total.lost == sum(part.lost for part in fates.values())
    assert total.lost_at == LossByHost(0, 0, total.lost)


def test_an_extent_that_is_read_after_its_datagrams_counts() -> None:
    """The receiver's thread counts arrivals at once; the rest follows when the session is next read."""
    whole = DatagramSum()
    for index, part in enumerate(
        (
            DatagramSample(Direction.OUT, 1, received=100, reordered=1, extent=2),
            DatagramSample(Direction.OUT, 1, received=0, reordered=1, extent=10),
            DatagramSample(Direction.OUT, 1, received=0, reordered=0, extent=90),  # what a closed session left
        )
    ):
        sample = Sample(End.FAR, index, (index + 1) * INTERVAL_NS, INTERVAL_NS, (), datagrams=(part,))
        whole.add_sample(sample, Direction.OUT)
    assert whole.summary is not None
    assert (whole.summary.reordered, whole.summary.max_extent) == (2, 10)


@pytest.mark.parametrize("direction", Direction.DUPLEX.flows)
def test_datagrams_on_their_way_are_not_lost_in_a_live_value_or_a_broken_run(direction: Direction) -> None:
    """Only datagrams that others have overtaken are missing; more is known only after the drain of both ends."""
    events, _ = draw_datagram_run(1, direction, intervals=0, sessions=1, is_drained=False)
    sender = End.NEAR if direction is Direction.OUT else End.FAR
    settings = Settings(direction, rate_bit_s=10**6)
    recent = RecentSamples(SECOND_NS)
    recent.begin(settings, 0)
    for end, part in (
        (sender, DatagramSample(direction, 1, sent=100)),
        (sender.other, DatagramSample(direction, 1, advanced=60, received=58)),
    ):
        sample = Sample(end, 0, INTERVAL_NS, INTERVAL_NS, (), datagrams=(part,))
        sampled = Sampled(sample, settings, warmup=False)
        events.insert(-1, sampled)
        recent.keep_sample(sampled)
    live = recent.sum_shown(Workload.UDP, direction.flows, SECOND_NS).received[direction].datagrams
    assert live is not None
    assert live.lost == 2
    for part in (events, events[:-1]):
        assert _datagrams(replay(part).summary().measured[direction]).lost == 2


@given(**RUNS)
def test_the_drain_changes_counts_and_no_rate(seed: int, direction: Direction) -> None:
    """Neither bytes nor time, nor an interval or a CPU time."""
    events, _ = draw_datagram_run(seed, direction)
    drainless: list[Event] = [e for e in events if not (isinstance(e, Sampled) and e.sample.is_drain)]
    meters = Meter(), Meter()
    rows = [_rows(meter, part) for meter, part in zip(meters, (events, drainless), strict=True)]
    assert rows[0] == rows[1]
    whole, cut = (meter.summary() for meter in meters)
    for flow in (*direction.flows, Direction.DUPLEX):
        first, second = whole.measured[flow], cut.measured[flow]
        assert first is not None
        assert second is not None
        assert (first.bytes, first.span_ns, first.packets_s) == (second.bytes, second.span_ns, second.packets_s)
        assert first.estimate == second.estimate
        assert first.bytes == (_datagrams(first).in_time or 0) * DATAGRAM_BYTES


def _rows(meter: Meter, events: list[Event]) -> list[Interval]:
    return [interval for event in events for interval in meter.feed(event)] + meter.flush()


@given(**RUNS)
def test_a_change_of_the_rate_loses_no_count(seed: int, direction: Direction) -> None:
    """A new rate begins a period; the sessions go on, and their tail belongs to the last one."""
    events, fates = draw_datagram_run(
        seed, direction, change=lambda settings: replace(settings, rate_bit_s=2 * 10**6)
    )
    summary = replay(events).summary()
    assert len(summary.periods) == 2
    for flow in direction.flows:
        parts = [_datagrams(period.measured[flow]) for period in summary.periods]
        # One that a change overtakes is missing in the first period, and arrives in the second.
        assert sum(part.lost or 0 for part in parts) >= fates[flow].lost
        assert _datagrams(summary.measured[flow]) == parts[-1]
        assert sum(part.received or 0 for part in parts) == fates[flow].sent - fates[flow].lost


def test_the_percentiles_of_the_delay_variation_are_those_of_all_datagrams() -> None:
    """From the sums of the counts, never from other percentiles."""
    events, fates = draw_datagram_run(1, Direction.IN)
    counts = _datagrams(replay(events).summary().measured.in_)
    delays = sorted(fates[Direction.IN].delays_ns)
    assert counts.delay_variation is not None
    assert counts.delay_variation.p50_ns == pytest.approx(delays[(len(delays) - 1) // 2], rel=0.01)
    assert counts.delay_variation.max_ns == pytest.approx(delays[-1], rel=0.01)
    assert counts.delay_rise_ns == pytest.approx(sum(delays) / len(delays), rel=0.01)
    assert counts.return_rise_ns == pytest.approx(30_000, rel=0.01)
    assert (counts.jitter_mean_ns, counts.jitter_max_ns) == (3_000, 9_000)
    assert (counts.mode, counts.datagram_bytes, counts.asked_bit_s) == ("quality", DATAGRAM_BYTES, 10**6)


def _sum(*parts: DatagramSample) -> DatagramSum:
    sums = DatagramSum()
    for part in parts:
        end = End.NEAR if part.sent is not None else End.FAR
        sums.add_sample(Sample(end, 0, INTERVAL_NS, INTERVAL_NS, (), datagrams=(part,)), Direction.OUT)
    return sums


@pytest.mark.parametrize("flow", Direction.DUPLEX.flows)
def test_drops_of_a_sockets_own_kernel_are_its_hosts_loss(flow: Direction) -> None:
    """Of the sender and of the receiver; the rest is the network's, in both directions together, too."""
    sender = End.NEAR if flow is Direction.OUT else End.FAR
    sums = DatagramSum()
    for end, part in (
        (sender, DatagramSample(flow, 1, sent=1_000, send_dropped=30)),
        (sender.other, DatagramSample(flow, 1, advanced=1_000, received=920, gaps=2, socket_dropped=40)),
    ):
        sums.add_sample(Sample(end, 0, INTERVAL_NS, INTERVAL_NS, (), datagrams=(part,)), flow)
    own, other = (30, 40) if sender is End.NEAR else (40, 30)
    assert sums.summary is not None
    assert sums.summary.lost_at == LossByHost(own, other, 10)
    assert sums.loss_causes(flow).socket == 40
    both = DatagramSum()
    both.extend(sums)
    both.extend(_sum(DatagramSample(Direction.OUT, 1, advanced=5, received=5, socket_dropped=0)))
    assert both.summary is not None
    assert both.summary.lost == 80


def test_a_loss_that_another_interval_took_back_is_never_negative() -> None:
    """A datagram that comes late arrives in an interval that has not sent it."""
    summary = _sum(DatagramSample(Direction.OUT, 1, advanced=5, received=8, gaps=1, gap_longest=3)).summary
    assert summary is not None
    assert (summary.lost, summary.lost_percent, summary.bursts, summary.longest_burst) == (0, 0.0, 0, 0)
    assert summary.mean_burst is None


def test_the_sent_are_the_received_and_the_lost() -> None:
    """The sender's clock is another: by it, fewer may have been sent than received in the same period."""
    sending, nothing = (
        DatagramSample(Direction.OUT, 1, sent=629),
        DatagramSample(Direction.OUT, 1, advanced=0, received=0),
    )
    for receiving, sent in ((DatagramSample(Direction.OUT, 1, advanced=650, received=647), 650), (nothing, 629)):
        summary = _sum(sending, receiving).summary
        assert summary is not None
        assert summary.sent == sent


def test_a_count_without_a_report_is_unknown() -> None:
    """None is unknown, 0 is measured: without a receiver there is no loss, without datagrams no percentage."""
    sender = _sum(DatagramSample(Direction.OUT, 1, sent=9)).summary
    assert sender is not None
    assert (sender.sent, sender.lost, sender.lost_at, sender.lost_percent, sender.jitter_mean_ns) == (
        9,
        *[None] * 4,
    )
    assert DatagramSum().summary is None
    nothing = _sum(DatagramSample(Direction.OUT, 1, advanced=0, received=0)).summary
    assert nothing is not None
    assert (nothing.lost, nothing.lost_percent) == (0, None)


def test_a_far_end_that_reports_ever_new_settings_fills_no_memory() -> None:
    """Its reports are not trusted."""
    sums = _sum(*(DatagramSample(Direction.OUT, 1, received=1, received_tos=tos) for tos in range(1_000)))
    assert sums.summary is not None
    assert sums.summary.received_tos is None
    assert max(len(values) for part in sums._flows.values() for values in part.settings.values()) <= 16


def test_an_end_that_changes_in_its_warm_up_has_no_drain_to_count() -> None:
    """A period of which nothing was measured has no counts either."""
    events, _ = draw_datagram_run(5, Direction.OUT)
    changed = replace(Settings(Direction.OUT, 2, rate_bit_s=10**6), rate_bit_s=3 * 10**6)
    last = [event for event in events if isinstance(event, Sampled) and event.sample.is_drain]
    begun: list[Event] = [event for event in events[:-1] if event not in last]
    begun.append(Changed(10 * INTERVAL_NS, changed, Expectation()))
    begun += [replace(event, settings=changed) for event in last]
    summary = replay(begun).summary()
    assert summary.periods[-1].measured.total is None
    assert _datagrams(summary.measured.out).received == _datagrams(summary.periods[0].measured.out).received


def test_both_modes_of_a_run_are_named_as_mixed() -> None:
    """A search begins slowly, one by one, and goes on in groups."""
    sums = _sum(*(DatagramSample(Direction.OUT, 1, sent=1, is_grouped=grouped) for grouped in (0, 1)))
    assert sums.summary is not None
    assert sums.summary.mode == "mixed"
    assert Mode.RATE.is_for_datagrams


def test_a_delay_counts_for_its_own_direction() -> None:
    """A duplex sample of one end has both."""
    sums = DatagramSum()
    sample = Sample(
        End.NEAR,
        0,
        INTERVAL_NS,
        INTERVAL_NS,
        (),
        datagrams=(DatagramSample(Direction.IN, 1, received=1),),
        delay_variation=(LatencyCounts(Direction.IN, (7,), (2,)),),
    )
    sums.add_sample(sample, Direction.OUT)
    assert not sums.delays
    sums.add_sample(sample, Direction.IN)
    assert sums.delays == {7: 2}


@pytest.mark.parametrize("flow", Direction.DUPLEX.flows)
def test_the_rate_that_was_sent_is_the_senders_over_its_own_time(flow: Direction) -> None:
    """Of all sessions of a direction; neither the other end's time nor the drain's is in it."""
    near, far = (End.NEAR, End.FAR) if flow is Direction.OUT else (End.FAR, End.NEAR)
    sent = tuple(DatagramSample(flow, number, sent=100, datagram_bytes=DATAGRAM_BYTES) for number in (1, 2))
    received = (DatagramSample(flow, 1, advanced=100, received=100),)
    sums = DatagramSum()
    for index, (end, parts) in enumerate(((near, sent), (far, received), (near, sent), (far, received))):
        sums.add_sample(Sample(end, index, INTERVAL_NS, INTERVAL_NS, (), datagrams=parts), flow)
    drain = Sample(near, 4, INTERVAL_NS, INTERVAL_NS, (), datagrams=sent[:1], is_drain=True)
    sums.add_sample(drain, flow)
    assert sums.summary is not None
    assert sums.summary.sent_bit_s == pytest.approx(200 * DATAGRAM_BYTES * 8 * SECOND_NS / INTERVAL_NS)
    both = DatagramSum()
    both.extend(sums)
    both.extend(sums)
    assert both.summary is not None
    assert both.summary.sent_bit_s == sums.summary.sent_bit_s
    assert _datagrams(replay(draw_datagram_run(1, flow)[0]).summary().measured[flow]).sent_bit_s is not None
