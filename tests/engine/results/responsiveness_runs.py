"""Made-up events of responsiveness tests: loads over a link whose queue is a function of time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from linkgauge.engine.model.counters.latency_histogram import bucket_of
from linkgauge.engine.model.counters.samples import (
    DatagramProbeSample,
    HandshakeSample,
    LatencyCounts,
    NicCounts,
    ProbeSample,
    QueueSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import Changed, Ended, Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings
from linkgauge.engine.model.run_end import EndText, Reason, RunEnd
from linkgauge.engine.model.workload import Workload

MS: Final = 1_000_000
INTERVAL_NS: Final = SECOND_NS // 5
IDLE_MS: Final = 0.4
PHASE_S: Final = 5.0
Queue = Callable[[Direction, float], float]
"""Returns how many milliseconds a single direction's queue delays at this time since the load began."""


def no_queue(_flow: Direction, _at_s: float) -> float:
    """Return 0."""
    return 0.0


def steady(out_ms: float = 0.0, in_ms: float = 0.0) -> Queue:
    """Return queues that have filled within a second and stay so."""
    return lambda flow, at_s: (out_ms if flow is Direction.OUT else in_ms) * min(1.0, at_s)


@dataclass(frozen=True, slots=True)
class Link:
    """A link to load. `local` is the part of a queue that the sender's own interface holds."""

    queue: Queue = no_queue
    mbit_s: float = 94.1
    local: float = 0.0
    has_datagrams: bool = True
    has_handshakes: bool = True
    has_queue_readings: bool = True
    has_own_queues: bool = False
    unsent_bytes: int = 20_000
    qdisc: str = "pfifo_fast"
    sessions: int = 8
    idle_ms: float = IDLE_MS
    phases: tuple[Direction, ...] = (Direction.OUT, Direction.IN, Direction.DUPLEX)
    phase_s: float = PHASE_S
    nic: NicInfo = field(default_factory=lambda: NicInfo("eth0", "device", "ixgbe", 10**9, "full", 1_500))

    def events(self) -> list[Event]:
        """Return the events of a whole run, `Started` to `Ended`."""
        return list(self._events())

    def _events(self) -> Iterator[Event]:
        settings = Settings(self.phases[0], self.sessions)
        yield self.started()
        at_ns, index = 0, 0
        for direction in self.phases:
            if direction is not settings.direction:
                settings = Settings(direction, self.sessions)
                yield Changed(at_ns, settings, Expectation())
            for number in range(round(self.phase_s * SECOND_NS / INTERVAL_NS)):
                at_ns += INTERVAL_NS
                at_s = number * INTERVAL_NS / SECOND_NS
                for end in End:
                    yield Sampled(self._sample(end, index, at_ns, direction, at_s), settings, at_s < 1)
                index += 1
        yield Ended(RunEnd(Reason.COMPLETED, EndText.DURATION_UP.value))

    def started(self) -> Started:
        """Return the first event, with the probes of two seconds before the load."""
        plan = Plan(
            Settings(self.phases[0], self.sessions),
            duration_ns=23 * SECOND_NS,
            warmup_ns=SECOND_NS,
            interval_ns=INTERVAL_NS,
            probe=True,
            responsiveness=(ResponsivenessTest.ONE_PHASE if len(self.phases) == 1 else ResponsivenessTest.PHASES),
        )
        host = HostInfo("near", "Linux 6.12", 2, "linkgauge 1", "uvloop", replace(self.nic, qdisc=self.qdisc))
        idle = self._probes(0.0, 0.0, 2 * SECOND_NS)
        far = replace(host, hostname="far")
        return Started("2026-11-21T01:15:30Z", "db-02:5820", host, far, plan, Expectation(), idle)

    def _probes(self, out_ms: float, in_ms: float, span_ns: int) -> ProbeSample:
        trip_ns = round((self.idle_ms + out_ms + in_ms) * MS)
        count = max(1, span_ns // max(10 * MS, trip_ns))
        sent = span_ns // (10 * MS)
        many = max(1, span_ns // (100 * MS))
        handshakes = HandshakeSample(times(trip_ns, many), times(trip_ns, many)) if self.has_handshakes else None
        datagrams = DatagramProbeSample(
            sent, sent, times(trip_ns, sent), times(round(out_ms * MS), sent), times(round(in_ms * MS), sent)
        )
        return ProbeSample(
            times(trip_ns, count),
            span_ns,
            round(trip_ns / 1_000),
            handshakes,
            datagrams if self.has_datagrams else None,
        )

    def _sample(self, end: End, index: int, at_ns: int, direction: Direction, at_s: float) -> Sample:
        delays = dict.fromkeys(Direction.DUPLEX.flows, 0.0)
        delays |= {flow: self.queue(flow, at_s) for flow in direction.flows}
        trip_us = round(1_000 * (self.idle_ms + sum(delays.values())))
        sends = next((flow for flow in direction.flows if sender_of(flow, Workload.STREAM) is end), None)
        arrived = round(self.mbit_s * 1e6 / 8 * INTERVAL_NS / SECOND_NS)
        sessions = [
            SessionSample(
                flow,
                number,
                arrived // self.sessions,
                rtt_us=trip_us if flow is sends else None,
                unsent_bytes=self.unsent_bytes // self.sessions if flow is sends else None,
            )
            for flow in direction.flows
            for number in range(1, self.sessions + 1)
        ]
        wire = round(arrived * 1.06)
        waits = 0 if sends is None else round(self.local * delays[sends] / 1_000 * wire * SECOND_NS / INTERVAL_NS)
        probed = (0.0, 0.0) if self.has_own_queues else (delays[Direction.OUT], delays[Direction.IN])
        return Sample(
            end,
            index,
            at_ns,
            INTERVAL_NS,
            tuple(sessions),
            nic=NicCounts(0, wire if sends is not None else 40_000, 0, 0, 0),
            probe=self._probes(*probed, INTERVAL_NS) if end is End.NEAR else None,
            queue=QueueSample(10, waits, waits, 0) if self.has_queue_readings else None,
        )


def times(time_ns: int, count: int) -> LatencyCounts:
    """Return this number of equal times."""
    return LatencyCounts(Direction.OUT, (bucket_of(time_ns),) if count else (), (count,) if count else ())


def with_probes(events: list[Event], change: Callable[[Sampled, ProbeSample], ProbeSample]) -> list[Event]:
    """Return a run whose samples have other probes: `change` makes them of each sample and its own."""
    changed: list[Event] = []
    for event in events:
        probe = event.sample.probe if isinstance(event, Sampled) else None
        if isinstance(event, Sampled) and probe is not None:
            changed.append(replace(event, sample=replace(event.sample, probe=change(event, probe))))
        else:
            changed.append(event)
    return changed


def with_datagrams(probe: ProbeSample, **values: object) -> ProbeSample:
    """Return a probe's sample with other values of its datagrams."""
    assert probe.datagrams is not None
    return replace(probe, datagrams=replace(probe.datagrams, **values))
