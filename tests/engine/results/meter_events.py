"""Events of runs with chosen samples, for the meter and the totals."""

from dataclasses import replace

from linkgauge.engine.model.counters.samples import LatencyCounts, ProbeSample, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import Interval, Meter

from .log_entries import HOST

TICK = SECOND_NS // 4
OUT, IN, DUPLEX = Settings(), Settings(Direction.IN), Settings(Direction.DUPLEX)
E100, E200 = ExpectedRate(100_000_000, "documented", "table 1"), ExpectedRate(200_000_000, "computed", "the wire")


def started(settings: Settings = OUT) -> Started:
    """Return the first event of a run."""
    expectation = Expectation(out=E100)
    return Started("2026-11-21T01:15:30Z", "db-02:5820", HOST, HOST, Plan(settings), expectation)


def session(flow: Direction, end: End, number: int = 1, bytes_: int = 1000, **more: int) -> SessionSample:
    """Return a session's share of a sample; the sender's one carries TCP's figures."""
    tcp = {"retransmits": 1, "rtt_us": 200, "cwnd_bytes": 14_480, "mss_bytes": 1448, **more}
    return SessionSample(flow, number, bytes_, **(tcp if sender_of(flow, Workload.STREAM) is end else {}))


def sampled(
    end: End,
    index: int,
    *sessions: SessionSample,
    settings: Settings = OUT,
    warmup: bool = False,
    **more: object,
) -> Sampled:
    """Return one end's sample of an interval of 250 ms."""
    sample = Sample(end, index, (index + 1) * TICK, TICK, sessions)
    return Sampled(replace(sample, **more), settings, warmup)


def of_flow(flow: Direction, end: End, index: int, *bytes_: int, **more: object) -> Sampled:
    """Return a sample of an end with a session for each number of bytes."""
    return sampled(end, index, *(session(flow, end, n, count) for n, count in enumerate(bytes_, 1)), **more)


def feed_all(meter: Meter, *events: Event) -> list[Interval]:
    """Feed events and flush; return all intervals."""
    return [interval for event in events for interval in meter.feed(event)] + meter.flush()


def probe_sample(*counts: tuple[int, int], rtt_us: int | None = 100) -> ProbeSample:
    """Return a probe's sample of a quarter of a second."""
    latency = LatencyCounts(Direction.OUT, tuple(b for b, _ in counts), tuple(c for _, c in counts))
    return ProbeSample(latency, SECOND_NS // 4, rtt_us)
