"""Events of a short run of one interval."""

from dataclasses import replace

from linkgauge.engine.model.counters.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import MIB, SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd

from .log_entries import HOST

TICK = SECOND_NS // 4
OUT, DUPLEX = Settings(), Settings(Direction.DUPLEX, 2, 65_536)
GIGABIT = ExpectedRate(941_482_000, "documented", "table 1")


def started(settings: Settings, expectation: Expectation) -> Started:
    """Return the first event of a run."""
    return Started("2026-11-21T01:15:30Z", "db-02:5820", HOST, HOST, Plan(settings), expectation)


def sampled(end: End, index: int, *sessions: SessionSample, settings: Settings = OUT, **more: object) -> Sampled:
    """Return the sample of one end."""
    warmup = bool(more.pop("warmup", False))
    sample = replace(Sample(end, index, (index + 1) * TICK, TICK, sessions), **more)
    return Sampled(sample, settings, warmup)


def simplex() -> list[Event]:
    """Return a run of one interval: two sessions, TCP's figures on the sending side, both CPUs."""
    out = Direction.OUT
    return [
        started(OUT, Expectation(out=GIGABIT)),
        sampled(
            End.NEAR,
            0,
            SessionSample(out, 1, 1, retransmits=2, rtt_us=100, cwnd_bytes=14_480),
            SessionSample(out, 2, 1, retransmits=0, rtt_us=300, cwnd_bytes=28_960),
            cores=(CoreTimes(50, 0, 0, 0, 50), CoreTimes(100, 0, 0, 0, 0)),
            process_cpu_ns=TICK,
        ),
        sampled(End.FAR, 0, SessionSample(out, 1, 10 * MIB), SessionSample(out, 2, 15 * MIB)),
        Ended(RunEnd(Reason.COMPLETED, "the time is up")),
    ]
