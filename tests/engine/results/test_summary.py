"""Rates of a measurement, with and without transactions."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import (
    CpuSummary,
    Measurement,
    Period,
    ProbeResult,
    ProbeSummary,
    Summary,
    TcpSummary,
)


def test_rates_are_per_second_of_the_span() -> None:
    """Half a second doubles them."""
    measurement = Measurement(1_000, SECOND_NS // 2, transactions=10)
    assert measurement.bit_s == 16_000
    assert measurement.transactions_s == 20


def test_a_stream_has_no_transactions_a_second() -> None:
    """None is unknown; a workload of transactions that carried none has 0."""
    assert Measurement(1_000, SECOND_NS).transactions_s is None
    assert Measurement(0, SECOND_NS, transactions=0).transactions_s == 0


def test_the_error_of_transactions_is_that_of_the_payload_rate() -> None:
    """Responses are of one size, so that the relative error is the same."""
    estimate = Estimate(8_000.0, 400.0, 15.0, 24)
    transactions = Measurement(1_000, SECOND_NS, transactions=10, estimate=estimate).transactions_estimate
    assert transactions is not None
    assert transactions.mean == pytest.approx(10)
    assert transactions.half_width_percent == pytest.approx(estimate.half_width_percent)


@pytest.mark.parametrize(
    "measurement",
    [
        Measurement(1_000, SECOND_NS, transactions=10),
        Measurement(0, SECOND_NS, transactions=0, estimate=Estimate(0.0, 0.0, 15.0, 24)),
        Measurement(1_000, SECOND_NS, estimate=Estimate(8_000.0, 400.0, 15.0, 24)),
    ],
)
def test_without_transactions_or_an_estimate_there_is_no_error_of_them(measurement: Measurement) -> None:
    """Nothing is divided by zero."""
    assert measurement.transactions_estimate is None


CPU = CpuSummary(None, None, None, None)
TCP = TcpSummary(7, 30_000, 1_448, "cubic", None, None, None, 32_000.0, 25_000, 98.04)


def transfer(
    direction: Direction = Direction.OUT, tcp: TcpSummary = TCP, workload: Workload = Workload.STREAM
) -> Summary:
    """Return the example of RFC 6349: 8 s ideal and 12 s in fact, 25 ms of round trip and 32 ms under load."""
    measured = Measurement(100 * 10**6 // 8 * 8, 12 * SECOND_NS)
    ideal = ExpectedRate(60_000_000, "documented", "a table", most_bit_s=round(measured.bit_s * 1.5))
    flows = {
        Direction.OUT: (ideal, None, None),
        Direction.IN: (None, ideal, None),
        Direction.DUPLEX: (None,) * 2 + (ideal,),
    }
    expectation = Expectation(*flows[direction])
    totals = PerDirection(measured, None, measured)
    return Summary(
        plan=Plan(Settings(direction), workload),
        measured=totals,
        expectation=expectation,
        periods=(Period(Settings(direction), expectation, totals),),
        near_cpu=CPU,
        far_cpu=CPU,
        tcp=tcp,
        warnings=(),
        end=RunEnd(Reason.COMPLETED, "completed"),
    )


@pytest.mark.parametrize("direction", list(Direction))
def test_the_metrics_of_rfc_6349_are_those_of_its_examples(direction: Direction) -> None:
    """Sections 4.1 to 4.3: 1.5 times the ideal time, and a buffer delay of 28 %."""
    summary = transfer(direction)
    assert summary.transfer_time_ratio == pytest.approx(1.5)
    assert summary.buffer_delay_percent == pytest.approx(28)
    assert (summary.base_rtt_us, summary.buffer_delay_us) == (25_000, 7_000)
    assert summary.efficiency_percent == 98.04


@pytest.mark.parametrize("workload", [Workload.RR, Workload.CRR, Workload.UDP], ids=str)
def test_only_a_stream_over_tcp_has_the_metrics_of_rfc_6349(workload: Workload) -> None:
    """They compare the time and the bytes of a bulk transfer."""
    summary = transfer(workload=workload)
    assert summary.transfer_time_ratio is summary.efficiency_percent is summary.buffer_delay_percent is None
    assert transfer(workload=Workload.FETCH).transfer_time_ratio == pytest.approx(1.5)


def test_the_shortest_round_trip_of_probe_and_tcp_is_the_baseline() -> None:
    """A stream always has a queue. An idle probe measures the path without it."""
    latency = LatencySummary(20_000_000, 21_000_000, 22_000_000, 23_000_000, 24_000_000, 25_000_000)
    idle = ProbeResult(10, SECOND_NS, latency, 20_000)
    probed = replace(transfer(), probe=ProbeSummary(idle, None))
    assert (probed.base_rtt_us, probed.buffer_delay_us) == (20_000, 12_000)
    slower = replace(latency, min_ns=26_000_000)  # the probe's time includes its programs
    assert replace(probed, probe=ProbeSummary(replace(idle, latency=slower), None)).base_rtt_us == 25_000
    assert replace(probed, probe=ProbeSummary(None, idle)).base_rtt_us == 25_000
    assert replace(probed, tcp=replace(TCP, min_rtt_us=None)).base_rtt_us == 20_000


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({}, (False, False, False)),
        ({"mean_rtt_us": 300.0}, (False, False, False)),
        ({"min_rtt_us": 150}, (False, False, False)),
        ({"mean_rtt_us": 300.0, "min_rtt_us": 150}, (False, True, False)),
        ({"efficiency_percent": 0.0}, (False, False, True)),
    ],
)
def test_unreported_figures_of_the_kernel_make_no_metric(
    fields: dict[str, int], known: tuple[bool, bool, bool]
) -> None:
    """Without a line there is no ideal time."""
    tcp = TcpSummary(None, None, None, None, None, None, **fields)  # type: ignore[arg-type]
    summary = replace(transfer(tcp=tcp), expectation=Expectation(out=ExpectedRate(5, "documented", "a table")))
    metrics = (summary.transfer_time_ratio, summary.buffer_delay_percent, summary.efficiency_percent)
    assert tuple(metric is not None for metric in metrics) == known


def test_a_mean_below_the_baseline_is_a_buffer_delay_of_0() -> None:
    """The kernel's mean is smoothed, and may be below the minimum of a probe."""
    assert transfer(tcp=replace(TCP, mean_rtt_us=24_999.0)).buffer_delay_percent == 0


@pytest.mark.parametrize(("base_us", "percent"), [(6, None), (99, None), (100, 10_200.0)])
def test_the_round_trip_within_a_host_has_no_buffer_delay_in_percent(base_us: int, percent: float | None) -> None:
    """Over loopback it is a few microseconds of the host's own work, and not a path's."""
    local = transfer(tcp=replace(TCP, mean_rtt_us=10_300.0, min_rtt_us=base_us))
    assert local.buffer_delay_percent == percent
    assert local.buffer_delay_us == 10_300 - base_us


@pytest.mark.parametrize(
    ("reason", "bounds", "is_whole", "was_cut_short"),
    [
        (Reason.COMPLETED, {}, True, False),
        (Reason.STOPPED, {}, False, True),
        (Reason.INTERRUPTED, {}, False, True),
        (Reason.STOPPED, {"duration_ns": None, "bytes_limit": 1 << 30}, False, True),
        (Reason.STOPPED, {"duration_ns": None}, True, False),
        (Reason.INTERRUPTED, {"duration_ns": None}, True, False),
        (Reason.PEER_LOST, {}, False, False),
        (Reason.PEER_LOST, {"duration_ns": None}, False, False),
    ],
)
def test_only_a_run_with_an_end_of_its_own_can_be_cut_short(
    reason: Reason, bounds: dict[str, int | None], is_whole: bool, was_cut_short: bool
) -> None:
    """By a key or by a signal. A run that lasts until it is stopped is whole then."""
    summary = transfer()
    ended = replace(summary, plan=replace(summary.plan, **bounds), end=RunEnd(reason, ""))
    assert (ended.is_whole, ended.was_cut_short) == (is_whole, was_cut_short)


def test_nothing_received_and_several_settings_have_no_ideal_time() -> None:
    """There is no division by zero, no rate for a mix of settings, and no time of another link."""
    summary = transfer()
    other = replace(summary.periods[0], settings=Settings(Direction.IN))
    assert replace(summary, periods=(*summary.periods, other)).transfer_time_ratio is None
    assert replace(summary, periods=()).transfer_time_ratio is None
    empty = Measurement(0, SECOND_NS)
    assert replace(summary, measured=PerDirection(empty, None, empty)).transfer_time_ratio is None
    faster = Measurement(10**9, SECOND_NS)
    assert replace(summary, measured=PerDirection(faster, None, faster)).transfer_time_ratio is None
