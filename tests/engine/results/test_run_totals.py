"""Totals of a run: its expected rate, its TCP, its probe and its warnings."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT, summarize_latency
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import Changed, Event, Opened, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Mode, Settings
from linkgauge.engine.model.workload import all_workloads
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_totals import OpenSockets, ProbeSum, sum_senders
from linkgauge.engine.results.summary import Measurement

from .meter_events import (
    DUPLEX,
    E100,
    E200,
    IN,
    OUT,
    TICK,
    feed_all,
    of_flow,
    probe_sample,
    sampled,
    session,
    started,
)


def test_a_direction_has_the_rate_of_the_time_in_which_it_ran() -> None:
    """After 27 s out and 3 s in each has its own rate: neither is divided by the time of the other."""
    meter = Meter()
    feed_all(meter, started())
    for index in range(27):
        feed_all(meter, of_flow(Direction.OUT, End.FAR, index, 1000))
    meter.feed(Changed(27 * TICK, IN, Expectation(in_=E200)))
    for index in range(27, 30):
        feed_all(meter, of_flow(Direction.IN, End.NEAR, index, 1000, settings=IN))
    summary = meter.summary()
    assert summary.measured.out == Measurement(27_000, 27 * TICK)
    assert summary.measured.in_ == summary.measured.total == Measurement(3_000, 3 * TICK)
    assert summary.payload_bytes == 30_000
    assert [direction for direction, _ in summary.measurements] == [Direction.OUT, Direction.IN]


@given(
    toggles=st.sampled_from(list(product((OUT, IN, DUPLEX), repeat=3))),
    lengths=st.sampled_from([(1, 1, 1), (5, 1, 2), (0, 3, 4)]),
)
def test_the_results_of_a_run_are_those_of_its_newest_settings_after_any_changes(
    toggles: tuple[Settings, ...], lengths: tuple[int, ...]
) -> None:
    """Each direction's are those of the newest settings with which it ran, of all periods that had them."""
    meter = Meter()
    index = 0
    meter.feed(started(toggles[0]))
    for settings, length in zip(toggles, lengths, strict=True):
        meter.feed(Changed(index * TICK, settings, Expectation()))
        for _ in range(length):
            for flow in settings.direction.flows:
                end = End.FAR if flow is Direction.OUT else End.NEAR
                slack = 1 + (flow is Direction.OUT) / 200
                count = 1_000_000 + 7919 * index
                meter.feed(of_flow(flow, end, index, count, settings=settings, interval_ns=round(TICK * slack)))
            index += 1
    summary = meter.summary()
    measured = [period for period in summary.periods if period.measured.total is not None]
    assert summary.payload_bytes == sum(period.measured.total.bytes for period in measured if period.measured.total)
    for flow in Direction:
        ran = [period for period in measured if period.measured[flow] is not None]
        same = [part for period in ran if period.settings == ran[-1].settings and (part := period.measured[flow])]
        whole = summary.measured[flow]
        assert (whole is None) == (not same)
        if whole is not None:
            assert (whole.bytes, whole.span_ns) == (sum(p.bytes for p in same), sum(p.span_ns for p in same))
    if measured[-1].settings is DUPLEX:
        rates = {direction: part.bit_s for direction in Direction if (part := summary.measured[direction])}
        assert rates[Direction.DUPLEX] == pytest.approx(rates[Direction.OUT] + rates[Direction.IN], rel=1e-4)


def test_a_run_of_several_settings_expects_the_rate_of_its_newest_ones() -> None:
    """No source has a rate for a mix; each of its periods keeps the rate of its own settings."""
    five = Settings(sessions=5)
    meter = Meter()
    feed_all(
        meter,
        started(),
        *(of_flow(Direction.OUT, End.FAR, index, 1) for index in range(3)),
        Changed(3 * TICK, five, Expectation(out=E200)),
        of_flow(Direction.OUT, End.FAR, 3, 1, settings=five, warmup=True),
        of_flow(Direction.OUT, End.FAR, 4, 1, settings=five),
    )
    summary = meter.summary()
    assert summary.expectation == Expectation(out=E200)
    assert [period.expectation for period in summary.periods] == [Expectation(out=E100), Expectation(out=E200)]
    assert meter.expectation_for(five) == Expectation(out=E200)
    assert meter.expectation_for(IN) == Expectation()


@pytest.mark.parametrize(
    ("events", "expectation"),
    [
        ([Changed(5, DUPLEX, Expectation(total=E200))], Expectation(total=E200)),  # nothing is measured yet
        (
            [
                of_flow(Direction.OUT, End.FAR, 0, 1),
                Changed(TICK, DUPLEX, Expectation(total=E200)),
                of_flow(Direction.OUT, End.FAR, 1, 1, settings=DUPLEX, warmup=True),
            ],
            Expectation(out=E100),
        ),
        (
            [
                of_flow(Direction.OUT, End.FAR, 0, 1),
                Changed(TICK, DUPLEX, Expectation(total=E200)),
                Changed(TICK + 1, OUT, Expectation(out=E100)),
                of_flow(Direction.OUT, End.FAR, 1, 1),
            ],
            Expectation(out=E100),
        ),
    ],
)
def test_settings_without_a_measurement_do_not_change_the_expected_rate(
    events: list[Event], expectation: Expectation
) -> None:
    """Before the first measurement the newest settings count; later ones that were only passed through do not."""
    meter = Meter()
    feed_all(meter, started(), *events)
    assert meter.summary().expectation == expectation


def test_tcp_is_the_senders_in_measured_intervals() -> None:
    """Retransmits add up, the round trip is the median over sessions and intervals."""
    meter = Meter()
    rtts = [(1, 100), (2, 250), (3, 9000)]
    feed_all(
        meter,
        started(),
        of_flow(Direction.OUT, End.NEAR, 0, 1, warmup=True),
        sampled(End.NEAR, 1, *(session(Direction.OUT, End.NEAR, number, rtt_us=rtt) for number, rtt in rtts)),
        of_flow(Direction.OUT, End.FAR, 1, 1),
    )
    tcp = meter.summary().tcp
    assert (tcp.retransmits, tcp.rtt_us, tcp.mss_bytes) == (3, 250, 1448)
    assert tcp.mean_rtt_us == pytest.approx((100 + 250 + 9000) / 3)


@pytest.mark.parametrize("flow", Direction.DUPLEX.flows)
def test_the_efficiency_is_the_share_of_the_sent_payload_that_arrived_first(flow: Direction) -> None:
    """The example of RFC 6349: 2,000 of 102,000 bytes were sent twice. The warm-up's do not count."""
    meter, sender = Meter(), End.NEAR if flow is Direction.OUT else End.FAR
    again = {"bytes_retrans": 1_000, "min_rtt_us": 80}
    feed_all(
        meter,
        started(Settings(flow, 2)),
        sampled(sender, 0, SessionSample(flow, 1, 9, bytes_retrans=10**6), settings=Settings(flow, 2), warmup=True),
        sampled(
            sender,
            1,
            SessionSample(flow, 1, 60_000, **again),
            SessionSample(flow, 2, 40_000, **(again | {"min_rtt_us": 70})),
            settings=Settings(flow, 2),
        ),
    )
    tcp = meter.summary().tcp
    assert tcp.efficiency_percent == pytest.approx(100 * 100_000 / 102_000)
    assert tcp.min_rtt_us == 70


def test_tcp_is_unknown_if_no_sender_reported() -> None:
    """A system without TCP_INFO has no retransmits to show, not none."""
    meter = Meter()
    feed_all(meter, started(), sampled(End.NEAR, 0, SessionSample(Direction.OUT, 1, 5)))
    tcp = meter.summary().tcp
    assert (tcp.retransmits, tcp.rtt_us, tcp.mss_bytes) == (None, None, None)
    assert tcp.mean_rtt_us is tcp.min_rtt_us is tcp.efficiency_percent is None


def facts(end: End, number: int, granted: int | None, flow: Direction = Direction.OUT) -> Opened:
    """Return the event of a session that was granted a window."""
    congestion = "cubic" if end is End.NEAR else "bbr"
    return Opened(SocketInfo(end, flow, number, congestion, granted, 1448, True, True, True))


def test_the_granted_window_is_the_smallest_of_the_sessions_now_open() -> None:
    """Sessions that were taken away or opened again no longer count as they were."""
    meter = Meter()
    feed_all(
        meter,
        started(Settings(sessions=3, window_bytes=65_536)),
        *(facts(End.NEAR, number, granted) for number, granted in ((1, 5000), (2, 4000), (3, 3000))),
        facts(End.FAR, 1, 7000),
    )
    assert meter.summary().tcp.window_granted_near_bytes == 3000
    assert meter.summary().tcp.window_granted_far_bytes == 7000
    assert meter.summary().tcp.congestion == "cubic"
    assert meter.summary().tcp.mss_bytes == 1448
    meter.feed(Changed(1, Settings(sessions=2, window_bytes=65_536), Expectation()))
    assert meter.summary().tcp.window_granted_near_bytes == 4000
    meter.feed(facts(End.NEAR, 2, None))
    assert meter.summary().tcp.window_granted_near_bytes == 5000
    meter.feed(Changed(2, Settings(Direction.IN, 2), Expectation()))
    meter.feed(facts(End.FAR, 1, None, Direction.IN))
    assert meter.summary().tcp.window_granted_near_bytes is None
    assert meter.summary().tcp.congestion == "bbr"


@pytest.mark.parametrize(
    ("senders", "receivers", "mode"),
    [
        ((), (), None),
        ((), (Mode.COPY,), None),
        ((Mode.COPY, Mode.COPY), (Mode.COPY,), Mode.COPY),
        ((Mode.COPY, Mode.SENDFILE), (Mode.COPY,), Mode.SENDFILE),
        ((Mode.SENDFILE,), (Mode.COPY, Mode.DISCARD), Mode.DISCARD),
        ((Mode.QUALITY, Mode.RATE), (Mode.QUALITY,), Mode.RATE),
        ((Mode.QUALITY,), (Mode.RATE,), Mode.QUALITY),
    ],
)
def test_of_several_modes_a_run_has_the_one_that_limits_its_figures_most(
    senders: tuple[Mode, ...], receivers: tuple[Mode, ...], mode: Mode | None
) -> None:
    """A receiver that drops the payload comes first, then a sender that does not copy it."""
    for workload, flow in product(all_workloads(), (Direction.OUT, Direction.IN)):
        sockets, end = OpenSockets(), sender_of(flow, workload)
        for each, modes in ((end, senders), (end.other, receivers)):
            for number, own in enumerate(modes, 1):
                sockets.add_session(Opened(replace(facts(each, number, None, flow).facts, mode=own)))
        assert sockets.mode(workload) is mode
        assert sockets.summarize(sum_senders([]), workload).mode is mode


def test_the_socket_of_a_direction_is_its_lowest_session_at_that_end() -> None:
    """Not one of the other direction, nor of the other end."""
    sockets = OpenSockets()
    for end, number, flow in product(End, (3, 2), (Direction.OUT, Direction.IN)):
        sockets.add_session(facts(end, number, None, flow))
    for end, flow in product(End, (Direction.OUT, Direction.IN)):
        first = sockets.first(end, flow)
        assert first is not None
        assert (first.end, first.direction, first.session) == (end, flow, 2)


def test_warnings_appear_once_in_order_and_in_a_bounded_number() -> None:
    """A thousand different warnings would not be a summary."""
    meter = Meter()
    feed_all(meter, Warned("b"), Warned("a"), Warned("b"))
    assert meter.summary().warnings == ("b", "a")
    feed_all(meter, *(Warned(f"warning {number}") for number in range(1000)))
    assert len(meter.summary().warnings) == 33
    assert meter.summary().warnings[-1] == "further warnings left out here: 970"


def _probed(index: int, *counts: tuple[int, int]) -> Sample:
    tick = SECOND_NS // 4
    return Sample(End.NEAR, index, (index + 1) * tick, tick, (), probe=probe_sample(*counts))


def test_the_recent_result_of_a_probe_is_of_ten_seconds_since_the_latest_change() -> None:
    """The idle one stays. The warm-up is shown and does not count."""
    sums, lowest = ProbeSum(), 100
    sums.add_idle(probe_sample((7, 2)))
    for index in range(50):
        sums.add_loaded(_probed(index, (lowest + index, 1)), is_warmup=True)
    assert sums.recent is not None
    assert sums.recent.transactions == 40
    assert sums.recent.latency == summarize_latency(dict.fromkeys(range(lowest + 10, lowest + 50), 1))
    assert sums.summary is not None
    assert sums.summary.loaded is None
    sums.begin()
    assert sums.recent is None
    assert sums.idle is not None
    assert sums.idle.latency == summarize_latency({7: 2})


@given(st.lists(st.dictionaries(st.integers(0, BUCKET_COUNT - 1), st.integers(1, 1_000), max_size=8), max_size=6))
def test_the_counts_of_a_probe_add_up(intervals: list[dict[int, int]]) -> None:
    """The count is the histogram's sum, and percentiles are those of all intervals together."""
    sums, whole = ProbeSum(), dict[int, int]()
    for counts in intervals:
        sums.add_loaded(_probed(len(intervals), *sorted(counts.items())), is_warmup=False)
        for bucket, count in counts.items():
            whole[bucket] = whole.get(bucket, 0) + count
    found = sums.summary
    if not intervals:
        assert found is None
        return
    assert found is not None
    assert found.idle is None
    assert found.loaded is not None
    assert found.loaded.transactions == sum(whole.values())
    assert found.loaded.latency == summarize_latency(whole)
    assert found.loaded.span_ns == len(intervals) * SECOND_NS // 4
