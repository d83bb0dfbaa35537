"""The live line of a headless test."""

import pytest
from linkgauge.engine.model.counters.latency_histogram import bucket_of
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    DatagramProbeSample,
    DatagramSample,
    LatencyCounts,
    ProbeSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Interval, Meter
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.cli.live_line import interval_text

from ...engine.results.iperf3_runs import iperf3_run


def test_the_live_line_shows_time_rates_and_load_of_both_ends() -> None:
    """A far end that has not told yet is a dash."""
    core = CoreTimes(100_000_000, 0, 0, 0, 150_000_000)
    sent = SessionSample(Direction.IN, 1, 31_250_000)
    sample = Sample(End.NEAR, 3, SECOND_NS, SECOND_NS // 4, (sent,), (core, core), 0)
    near = Sampled(sample, Settings(Direction.IN), warmup=True)
    text = interval_text(Interval(3, near, None), Plan(duration_ns=10 * SECOND_NS))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "00:01 / 00:10  in ←    1 000 Mb/s  CPU local  40 %, remote   – %  warming up"
    )


def test_the_live_line_of_datagrams_shows_their_loss_and_number() -> None:
    """A loss that is taken back in a later interval is no negative one there."""
    sent = SessionSample(Direction.IN, 1, 31_250_000)
    for passed, received, loss in ((25_000, 24_000, "4.00 %"), (1_000, 1_200, "0 %"), (0, 0, "– %")):
        counts = DatagramSample(Direction.IN, 1, advanced=passed, received=received)
        sample = Sample(End.NEAR, 3, SECOND_NS, SECOND_NS // 4, (sent,), datagrams=(counts,))
        near = Sampled(sample, Settings(Direction.IN), warmup=False)
        plan = Plan(workload=Workload.UDP)
        text = interval_text(Interval(3, near, None, workload=Workload.UDP), plan).replace(
            "\N{NO-BREAK SPACE}", " "
        )
        assert f"loss {loss:>8}  {received * 4:>9,} packets/s".replace(",", " ") in text


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_the_live_line_says_what_an_iperf3_has_not_reported_yet(workload: Workload) -> None:
    """`out` has what was acknowledged, or sent; `in` is received here."""
    meter = Meter()
    events = iperf3_run(Direction.DUPLEX, workload=workload)
    (interval, *_) = [interval for event in events for interval in meter.feed(event)]
    out, in_ = interval_text(interval, Plan(workload=workload), meter).split("in ←")
    word = "sent" if workload is Workload.UDP else "acknowledged"
    assert word in out
    assert word not in in_


def test_the_live_line_of_a_responsiveness_test_shows_its_phase_and_the_latency() -> None:
    """That of datagrams where some came back, else that of requests; the mean of all phases would be none."""
    plan = responsiveness_plan()
    requests, datagrams = (LatencyCounts(Direction.OUT, (bucket_of(ns),), (20,)) for ns in (48_000_000, 23_600_000))
    nothing = LatencyCounts(Direction.OUT, (), ())
    for answered, counts, latency in ((20, datagrams, "23.7 ms"), (0, nothing, "48.0 ms")):
        echoes = DatagramProbeSample(20, answered, counts, nothing, nothing)
        probe = ProbeSample(requests, SECOND_NS // 5, datagrams=echoes)
        received = SessionSample(Direction.IN, 1, 2_500_000)
        sample = Sample(End.NEAR, 30, 6 * SECOND_NS, SECOND_NS // 5, (received,), probe=probe)
        near = Sampled(sample, Settings(Direction.IN, 8), warmup=False)
        text = interval_text(Interval(30, near, None), plan, Meter()).replace("\N{NO-BREAK SPACE}", " ")
        assert text.startswith(f"00:06  2/3 load in  in ←    100.0 Mb/s  latency  {latency}  CPU local")
