"""The latency of a run while it runs, from its events."""

from linkgauge.engine.model.events import Changed, Expectation, Sampled, Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.latency_histogram import bucket_of, summarize_latency
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import LatencyCounts, ProbeSample, Sample
from linkgauge.tui.state.latency_readings import ProbeReadings

HOST = HostInfo("a", "Linux", 2, "linkgauge", "uvloop")


def _probe(*times_ns: int) -> ProbeSample:
    buckets = sorted({bucket_of(ns) for ns in times_ns})
    counts = tuple(sum(bucket_of(ns) == bucket for ns in times_ns) for bucket in buckets)
    return ProbeSample(LatencyCounts(Direction.OUT, tuple(buckets), counts), SECOND_NS // 4, 250)


def _sampled(index: int, probe: ProbeSample, settings: Settings) -> Sampled:
    tick = SECOND_NS // 4
    return Sampled(Sample(End.NEAR, index, (index + 1) * tick, tick, (), probe=probe), settings, False)


def test_the_probe_is_read_since_the_latest_change() -> None:
    """Idle stays, and what was found under other settings does not."""
    plan = Plan(probe=True)
    readings = ProbeReadings()
    readings.feed(
        Started("2026-11-21T01:15:30Z", "db-02", HOST, HOST, plan, Expectation(), _probe(100_000, 110_000))
    )
    readings.feed(_sampled(0, _probe(5_000_000), plan.settings))
    reading = readings.reading
    assert reading.idle == summarize_latency({bucket_of(100_000): 1, bucket_of(110_000): 1})
    assert reading.latency == summarize_latency({bucket_of(5_000_000): 1})
    assert reading.load_ratio is not None
    assert reading.load_ratio > 40
    settings = plan.settings.with_changes(sessions=5)
    readings.feed(Changed(SECOND_NS // 2, settings, Expectation()))
    assert readings.reading.latency is None
    assert readings.reading.idle == reading.idle
    for index in range(1, 100):
        readings.feed(_sampled(index, _probe(index * 1_000_000), settings))
    latest = readings.reading.latency
    assert latest is not None
    assert latest.min_ns > 55_000_000  # of the last ten seconds
