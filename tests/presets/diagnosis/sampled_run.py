"""Events of a run at 50 Mb/s over two sessions, for tests of their consumers."""

from typing import Any

from linkgauge.engine.model.counters.samples import CoreTimes, NicCounts, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.presets.diagnosis.live import EvidenceCollector, LiveDiagnosis

QUARTER_NS = SECOND_NS // 4
HOST = HostInfo("a", "Linux", 2, "linkgauge 0.1.0", "uvloop")
EXPECTED = Expectation(out=ExpectedRate(100_000_000, "computed", "the wire model"))
SENT: dict[str, Any] = {
    "retransmits": 1,
    "rtt_us": 2_000,
    "cwnd_bytes": 14_480,
    "mss_bytes": 1_448,
    "busy_us": 200_000,
    "rwnd_limited_us": 150_000,
    "sndbuf_limited_us": 0,
    "bytes_retrans": 1_448,
    "min_rtt_us": 500,
}


def started(plan: Plan | None = None) -> Started:
    """Return the first event of a run."""
    return Started("2026-11-21T01:15:30.000+00:00", "db-02", HOST, HOST, plan or Plan(), EXPECTED)


def sampled(
    end: End, index: int, settings: Settings | None = None, *, warmup: bool = False, **sent: Any
) -> Sampled:
    """Return a quarter of a second at 50 Mb/s, out, of two sessions."""
    tcp = SENT | sent if end is End.NEAR else {"out_of_order": 2, "rcv_space_bytes": 70_000}
    sessions = tuple(SessionSample(Direction.OUT, number, 781_250, **tcp) for number in (1, 2))
    cores = (CoreTimes(100_000_000, 50_000_000, 25_000_000, 0, 75_000_000),)
    counts = NicCounts(10, 20, 1, 2, 3)
    sample = Sample(
        end, index, (index + 1) * QUARTER_NS, QUARTER_NS, sessions, cores, 90_000_000, (), 50_000_000, counts
    )
    return Sampled(sample, settings or Settings(), warmup)


def feed(watch: LiveDiagnosis | EvidenceCollector, event: Event) -> None:
    """Feed an event to the meter."""
    watch.meter.feed(event)


def fed(
    watch: LiveDiagnosis | EvidenceCollector, first: int, last: int, settings: Settings | None = None, **more: Any
) -> None:
    """Feed the intervals of both ends."""
    for index in range(first, last):
        for end in End:
            feed(watch, sampled(end, index, settings, **more))
