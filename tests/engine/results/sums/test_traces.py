"""The traces of a run: CPU, latency and the totals of sessions."""

import pytest
from linkgauge.engine.model.counters.samples import DatagramSample, Sample, combine
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.sums.traces import CpuPoint, DatagramPoint, LatencyPoint, TcpPoint, Traces
from linkgauge.presets.catalog import load_catalog

from ....tui.scripted_run import ScriptedRun, play


def script_of(preset: str, plan: Plan, *took_ns: int) -> ScriptedRun:
    """Return a run that has started."""
    script = ScriptedRun(load_catalog().find(preset), plan)
    script.took_ns = took_ns
    script.start(LOOPBACK)
    return script


def traces_of(plan: Plan, intervals: int, *took_ns: int) -> Traces:
    """Return the traces of a run at 8 Gb/s."""
    script = script_of("10gbe-fd-1500", plan, *took_ns)
    script.run_for(intervals, 8e9, near_busy=0.9, far_busy=0.5)
    script.end()
    return play(script).traces


def test_each_end_has_its_busiest_core_and_the_mean_of_all() -> None:
    """One point for each interval."""
    traces = traces_of(Plan(), 8)
    near, far = traces.cpu[End.NEAR], traces.cpu[End.FAR]
    assert len(near) == len(far) == 8
    assert near[-1].at_s == 2.0
    assert near[-1].hottest_percent == pytest.approx(90, rel=0.1)
    assert far[-1].hottest_percent == pytest.approx(50, rel=0.1)
    assert near[-1].host_percent < near[-1].hottest_percent
    assert traces.latency == {}


def test_tcp_is_the_senders_and_sums_up_its_sessions() -> None:
    """Congestion windows and retransmits add up, and round trips have their median."""
    tcp = traces_of(Plan(Settings(sessions=3)), 40).tcp
    assert set(tcp) == {Direction.OUT}
    points = tcp[Direction.OUT]
    assert len(points) == 40
    assert points[-1].cwnd_bytes == 3 * 1_448 * 422
    assert points[-1].rtt_us is not None
    assert sum(point.retransmits or 0 for point in points) == 3


def test_the_totals_of_sessions_leave_the_warm_up_out() -> None:
    """Receivers count the payload, senders the retransmits and round trips."""
    plan = Plan(Settings(sessions=2), warmup_ns=SECOND_NS)
    warm, longer = traces_of(plan, 4), traces_of(plan, 8)
    assert warm.session_sums.sessions == {}
    assert set(longer.session_sums.sessions) == {(Direction.OUT, 1), (Direction.OUT, 2)}
    total = longer.session_sums.sessions[Direction.OUT, 2]
    assert total.mib == pytest.approx(4e9 / 8 / 1_048_576, rel=0.05)
    assert total.retransmits == 1
    assert total.rtt_us is not None


def test_the_latency_of_transactions_is_in_milliseconds() -> None:
    """Median and 99th percentile of each interval."""
    traces = traces_of(Plan(workload=Workload.RR), 4, 1_000_000, 1_000_000, 5_000_000)
    (points,) = traces.latency.values()
    assert len(points) == 4
    assert points[0].p50_ms == pytest.approx(1, rel=0.05)
    assert points[0].p99_ms == pytest.approx(5, rel=0.05)


def test_two_merged_points_keep_the_peak() -> None:
    """Means are averaged; the busiest core and the slowest transactions stay."""
    assert combine([CpuPoint(1, 20, 80), CpuPoint(2, 40, 60)]) == CpuPoint(2, 30, 80)
    assert combine([TcpPoint(1, 20, 1, None), TcpPoint(2, 40, 2, 8)]) == TcpPoint(2, 30, 3, 8)
    assert combine([LatencyPoint(1, 2, 9), LatencyPoint(2, 4, 5)]) == LatencyPoint(2, 3, 9)


@pytest.mark.parametrize(
    "intervals", [1_601, *(pytest.param(count, marks=pytest.mark.every) for count in (1_201, 4_000))]
)
def test_the_points_of_a_long_run_stay_few(intervals: int) -> None:
    """A plot cannot show more. The last moment is still there, just after points were merged, too."""
    traces = traces_of(Plan(duration_ns=None), intervals)
    rates, loads = traces.periods[0].points[Direction.OUT], traces.cpu[End.NEAR]
    assert len(rates) <= 1_600
    assert len(loads) <= 1_200
    assert rates == sorted(rates, key=lambda point: point.at_s)
    assert rates[-1].at_s == loads[-1].at_s == intervals / 4


def test_datagrams_are_the_receivers_and_the_drain_is_left_out() -> None:
    """The drain has no time of its own."""
    script = script_of("gbe-fd-1500", Plan(workload=Workload.UDP, warmup_ns=SECOND_NS))
    script.run_for(8, 9e8)
    script.lost_share = 0.1
    script.run_for(8, 9e8)
    script.drain()
    script.end()
    readings = play(script)
    assert set(readings.traces.datagrams) == {Direction.OUT}
    points = readings.traces.datagrams[Direction.OUT]
    assert len(points) == 16
    assert [point.lost_percent for point in points[:8]] == [0.0] * 8
    assert points[-1].lost_percent == pytest.approx(10, rel=0.01)
    assert points[-1].at_s == 4.0
    assert len(readings.periods[-1].points[Direction.OUT]) == 16
    (row,) = readings.session_rows()
    assert row.lost_percent == pytest.approx(10 * 8 / 12, rel=0.05)
    assert row.jitter_ns == 31_000
    assert row.packets_s == pytest.approx(9e8 / 8 / 1_472, rel=0.05)


def test_points_of_datagrams_merge_without_losing_a_loss() -> None:
    """A day has more intervals than a plot has columns."""
    first, second = DatagramPoint(1.0, 10, 1, 0.5, None), DatagramPoint(2.0, 30, 0, 0.25, 3.0)
    assert combine([first, second]) == DatagramPoint(2.0, 40, 1, 0.5, 3.0)
    assert DatagramPoint(1.0, 0, 0, None, None).lost_percent is None


def test_a_loss_of_one_session_is_not_taken_back_by_another() -> None:
    """A session whose late datagrams arrive hides no loss, as in the CSV."""
    parts = (
        DatagramSample(Direction.OUT, 1, advanced=100, received=90),
        DatagramSample(Direction.OUT, 2, advanced=50, received=60),
    )
    traces = Traces()
    sample = Sample(End.FAR, 0, SECOND_NS, SECOND_NS, (), datagrams=parts)
    traces.add_event(Sampled(sample, Settings(), warmup=False), Workload.UDP)
    assert [(point.passed, point.lost) for point in traces.datagrams[Direction.OUT]] == [(150, 10)]
