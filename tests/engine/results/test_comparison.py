"""Two runs beside each other: which differences are significant, and which are not."""

import random
from dataclasses import replace

import pytest
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.comparison import Figure, compare, compare_estimates
from linkgauge.engine.results.confidence import Estimate, estimate_mean
from linkgauge.engine.results.summary import CpuSummary, DatagramSummary, Measurement, Summary, TcpSummary


def measured(mbit_s: float, error: float = 0.5, transactions: int | None = None) -> Measurement:
    """Return ten seconds at a rate that is known with this error."""
    bytes_ = round(mbit_s * 1e6 / 8 * 10)
    latency = None if transactions is None else LatencySummary(1, 2, 3, 4, 5, 6)
    steady = Estimate(mbit_s * 1e6, error * 1e6, 15.0, 40)
    return Measurement(bytes_, 10 * SECOND_NS, transactions, latency, steady)


def summary(
    out: Measurement | None = None,
    in_: Measurement | None = None,
    total: Measurement | None = None,
    plan: Plan | None = None,
) -> Summary:
    """Return a summary with these rates."""
    cpu = CpuSummary(50.0, 90.0, 30.0, 0.5)
    tcp = TcpSummary(0, 200, 1448, "cubic", None, None)
    end = RunEnd(Reason.COMPLETED, "its duration is up")
    measured = PerDirection(out, in_, total or out or in_)
    return Summary(plan or Plan(), measured, Expectation(), (), cpu, cpu, tcp, (), end)


def figures(first: Summary, second: Summary) -> dict[str, Figure]:
    """Return a comparison's figures by their keys."""
    return {figure.key: figure for figure in compare(first, second).figures}


def test_rates_that_are_apart_are_a_difference_with_its_interval() -> None:
    """The interval contains the difference, and not 0."""
    rate = figures(summary(measured(100.0)), summary(measured(105.2)))["measured.out.mbit_s"]
    found = rate.difference
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < 5.2 < found.high
    assert found.percent == pytest.approx(5.2)
    assert found.is_significant


def test_rates_that_may_be_the_same_are_no_difference() -> None:
    """Even if their numbers differ."""
    rate = figures(summary(measured(100.0, 2.0)), summary(measured(103.0, 2.0)))["measured.out.mbit_s"]
    assert rate.difference is not None
    assert rate.difference.is_significant is False


def test_figures_without_an_interval_have_a_difference_that_is_not_judged() -> None:
    """CPU and TCP: a number each."""
    found = figures(summary(measured(100.0)), summary(measured(105.0)))
    for key in ("cpu.near.msec_per_mib", "tcp.rtt_us", "tcp.retransmits"):
        assert found[key].difference is not None
        assert found[key].difference.is_significant is None
    old = replace(measured(100.0), estimate=None)
    rate = figures(summary(old), summary(measured(105.0)))["measured.out.mbit_s"]
    assert rate.difference is not None
    assert rate.difference.is_significant is None


def test_the_total_is_shown_if_both_directions_ran_or_have_no_direction_in_common() -> None:
    """Otherwise it repeats the only direction."""
    out, in_ = measured(100.0), measured(90.0)
    assert "measured.total.mbit_s" not in figures(summary(out), summary(out))
    both = summary(out, in_, measured(190.0))
    assert {"measured.out.mbit_s", "measured.in.mbit_s", "measured.total.mbit_s"} <= figures(both, both).keys()
    across = figures(summary(out), summary(None, in_))
    assert across["measured.total.mbit_s"].difference is not None
    assert across["measured.out.mbit_s"].difference is None


def test_transactions_are_compared_with_their_times() -> None:
    """Their rate has the payload's interval; percentiles have none."""
    first_run, other = measured(10.0, 0.1, 1_000), measured(20.0, 0.1, 2_000)
    found = figures(summary(first_run), summary(other))
    rate = found["measured.out.transactions_s"]
    assert (rate.first, rate.second) == (100.0, 200.0)
    assert rate.difference is not None
    assert rate.difference.is_significant
    assert found["measured.out.latency_us.p99"].difference is not None


def test_the_settings_that_are_not_the_same_are_named() -> None:
    """The user sees why two runs differ."""
    plain = Plan()
    other = Plan(Settings(Direction.IN, 5, 65_536), block_bytes=4_096, mode=Mode.DISCARD)
    changed = compare(summary(plan=plain), summary(plan=other)).changed_fields
    assert changed == ("direction", "sessions", "window_bytes", "block_bytes", "mode")
    assert compare(summary(plan=plain), summary(plan=Plan(workload=Workload.RR))).changed_fields == (
        "workload",
        "sizes",
    )
    assert compare(summary(plan=plain), summary(plan=plain)).changed_fields == ()


def test_a_mean_of_0_has_no_ratio() -> None:
    """Exact estimates have an exact difference."""
    nothing, exact = Estimate(0.0, 0.0, 9.0, 10), Estimate(2.0, 0.0, 9.0, 10)
    assert compare_estimates(nothing, exact) is None
    found = compare_estimates(exact, exact.scaled(2))
    assert found is not None
    assert (found.low, found.percent, found.high) == (100.0, 100.0, 100.0)


def test_runs_that_are_alike_seem_to_differ_about_once_in_twenty() -> None:
    """In 400 pairs with a fixed seed."""
    rng = random.Random(5820)  # noqa: S311
    shown = 0
    for _ in range(400):
        pair = [estimate_mean([100 + rng.gauss() for _ in range(16)]) for _ in range(2)]
        assert pair[0] is not None
        assert pair[1] is not None
        found = compare_estimates(pair[0], pair[1])
        shown += bool(found and found.is_significant)
    assert 0.01 <= shown / 400 <= 0.10


def test_datagrams_are_compared_by_number_loss_jitter_and_delay() -> None:
    """Beside the rate; a rate and a size that differ are settings that differ."""
    plans = [
        Plan(Settings(rate_bit_s=rate, datagram_bytes=size), Workload.UDP)
        for rate, size in ((10**8, 1_472), (2 * 10**8, None))
    ]
    lossless = replace(DatagramSummary(*[None] * 25), in_time=1_000, received=1_000, lost=0)
    lossy = replace(
        lossless,
        lost=250,
        jitter_mean_ns=31_000.0,
        delay_variation=LatencySummary(1, 2, 3, 4_000, 5, 6),
    )
    runs = [
        summary(replace(measured(100.0), datagrams=datagrams), plan=plan)
        for plan, datagrams in zip(plans, (lossless, lossy), strict=True)
    ]
    comparison = compare(*runs)
    assert comparison.changed_fields == ("datagram_bytes", "sending_rate")
    values = {
        figure.key.removeprefix("measured.out."): (figure.first, figure.second) for figure in comparison.figures
    }
    assert values["packets_s"] == (100.0, 100.0)
    assert values["udp.lost_percent"] == (0.0, 20.0)
    assert values["udp.jitter_ms.mean"] == (None, 31_000.0)
    assert values["udp.delay_variation_ms.p99"] == (None, 4_000)
    streams = compare(summary(measured(1.0)), summary(measured(2.0)))
    assert not any("udp" in figure.key or "packets" in figure.key for figure in streams.figures)
