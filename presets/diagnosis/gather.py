"""From a run's events to evidence: of its last stretch, and of its last few seconds.

Pure. Warm-up is left out, as everywhere. A stretch is kept as sums and histograms, so a day's run takes no more
memory than a minute's.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ...engine.meter import bytes_of
from ...engine.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ...engine.samples import (
    Changed,
    Event,
    Expectation,
    Expected,
    NicCounts,
    Opened,
    Sample,
    Sampled,
    SessionSample,
    SocketFacts,
    Started,
)
from ...engine.summary import Histogram
from .evidence import CoreLoad, EndEvidence, Evidence, FlowEvidence, LinkEvidence

# CPU counters move in steps of 10 ms and TCP's round trips in its own rhythm: in less time than this a share of
# time is noise, and nothing is said.
LEAST_SPAN_NS: Final = SECOND_NS // 2
RECENT_NS: Final = 3 * SECOND_NS
_MICRO: Final = 1_000


@dataclass(slots=True)
class _FlowSums:
    """One single direction of a stretch."""

    received_bytes: int = 0
    received_ns: int = 0
    sent_ns: int = 0
    sessions: set[int] = field(default_factory=set[int])
    sums: dict[str, int] = field(default_factory=dict[str, int])
    medians: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    min_rtt_us: int | None = None

    def receive(self, sample: Sample, flow: Direction) -> None:
        """Add the receiver's sample."""
        self.received_bytes += bytes_of(sample, flow)
        self.received_ns += sample.interval_ns
        for session in _sessions(sample, flow):
            self._sum("out_of_order", session.out_of_order)

    def send(self, sample: Sample, flow: Direction) -> None:
        """Add the sender's sample."""
        self.sent_ns += sample.interval_ns
        for session in _sessions(sample, flow):
            self.sessions.add(session.session)
            for name in ("bytes", "bytes_retrans", "retransmits", *_SHARES):
                self._sum(name, getattr(session, name))
            for name in _MEDIANS:
                value: int | None = getattr(session, name)
                if value is not None:
                    self.medians.setdefault(name, Histogram()).add(value)
            if session.min_rtt_us is not None:
                self.min_rtt_us = min(session.min_rtt_us, self.min_rtt_us or session.min_rtt_us)

    def _sum(self, name: str, value: int | None) -> None:
        if value is not None:
            self.sums[name] = self.sums.get(name, 0) + value

    def share(self, name: str) -> float | None:
        """Return the mean share of the sessions' time that a counter of microseconds took."""
        whole_us = self.sent_ns * len(self.sessions) / _MICRO
        return None if name not in self.sums or not whole_us else min(1.0, self.sums[name] / whole_us)

    def median(self, name: str) -> int | None:
        """Return the median of what sessions told."""
        found = self.medians.get(name)
        return None if found is None else found.median

    @property
    def retransmitted(self) -> float | None:
        """Which share of what was sent was sent again; by segments where the kernel does not tell bytes."""
        again = self.sums.get("bytes_retrans")
        if again is None and "retransmits" in self.sums:
            again = self.sums["retransmits"] * (self.median("mss_bytes") or 0)
        whole = self.sums.get("bytes", 0) + (again or 0)
        return None if again is None or not whole else again / whole


_SHARES: Final = ("busy_us", "rwnd_limited_us", "sndbuf_limited_us")
_MEDIANS: Final = ("rtt_us", "cwnd_bytes", "mss_bytes", "pacing_bit_s", "delivery_bit_s", "peer_window_bytes")


@dataclass(slots=True)
class _EndSums:
    """One end of a stretch."""

    span_ns: int = 0
    cores: list[list[int]] = field(default_factory=list[list[int]])
    worker_ns: int | None = None
    process_ns: int | None = None
    counts: NicCounts | None = None

    def add(self, sample: Sample) -> None:
        """Add a sample of this end."""
        self.span_ns += sample.interval_ns
        cores = sample.cores or ()
        self.cores += [[0] * 5 for _ in range(len(cores) - len(self.cores))]
        for sums, core in zip(self.cores, cores, strict=False):
            for place, value in enumerate(
                (core.user_ns, core.system_ns, core.softirq_ns, core.steal_ns, core.idle_ns)
            ):
                sums[place] += value
        if sample.busiest_worker_ns is not None:
            self.worker_ns = (self.worker_ns or 0) + sample.busiest_worker_ns
        if sample.process_cpu_ns is not None:
            self.process_ns = (self.process_ns or 0) + sample.process_cpu_ns
        if sample.nic is not None:
            self.counts = _added(self.counts, sample.nic)

    def loads(self) -> tuple[CoreLoad, ...]:
        """Return how each core spent the time."""
        shares = [[part / max(1, sum(sums)) for part in sums] for sums in self.cores]
        return tuple(CoreLoad(*share[:4]) for share in shares)


class _Sums:
    """A stretch: its settings, and what both ends counted under them."""

    def __init__(self, settings: Settings, expectation: Expectation, plan: Plan) -> None:
        self.settings = settings
        self.expectation = expectation
        self.plan = plan
        self.flows = {flow: _FlowSums() for flow in settings.direction.flows}
        self.ends = {end: _EndSums() for end in End}

    def add(self, sample: Sample) -> None:
        """Add a sample that was taken under these settings."""
        self.ends[sample.end].add(sample)
        for flow, sums in self.flows.items():
            if sender_of(flow, self.plan.workload) is sample.end:
                sums.send(sample, flow)
            else:
                sums.receive(sample, flow)

    @property
    def span_ns(self) -> int:
        """How long was measured, by the receiver that measured least."""
        return min(sums.received_ns for sums in self.flows.values())

    @property
    def is_enough(self) -> bool:
        """Whether both ends told enough to say anything."""
        return self.span_ns >= LEAST_SPAN_NS and all(sums.span_ns >= LEAST_SPAN_NS for sums in self.ends.values())


class Gatherer:
    """Takes a run's events in order; says what is known at any time. `link` is what should have been there."""

    def __init__(
        self, link: LinkEvidence | None = None, *, pass_percent: float = 95.0, ceiling_bit_s: int | None = None
    ) -> None:
        self._link = link
        self._pass_percent = pass_percent
        self._ceiling_bit_s = ceiling_bit_s
        self._started: Started | None = None
        self._now: _Sums | None = None
        self._last: _Sums | None = None
        self._recent: deque[Sample] = deque()
        self._sockets: dict[tuple[End, Direction, int], SocketFacts] = {}

    def feed(self, event: Event) -> None:
        """Take the next event in."""
        match event:
            case Sampled():
                self._sample(event)
            case Started():
                self._started = event
                self._now = _Sums(event.plan.settings, event.expectation, event.plan)
            case Changed() if self._started is not None:
                if self._now is not None and self._now.is_enough:
                    self._last = self._now
                self._now = _Sums(event.settings, event.expectation, self._started.plan)
                self._recent.clear()
            case Opened():
                facts = event.facts
                self._sockets[facts.end, facts.direction, facts.session] = facts
            case _:
                pass

    def evidence(self) -> Evidence | None:
        """Return the evidence of the last stretch that lasted long enough; None where there is none."""
        sums = self._now if self._now is not None and self._now.is_enough else self._last
        return None if sums is None else self._evidence(sums)

    def recent(self) -> Evidence | None:
        """Return the evidence of the last seconds under the settings in force; None where that is too little."""
        if self._now is None:
            return None
        sums = _Sums(self._now.settings, self._now.expectation, self._now.plan)
        for sample in self._recent:
            sums.add(sample)
        return self._evidence(sums) if sums.is_enough else None

    def _sample(self, event: Sampled) -> None:
        if event.warmup or self._now is None or event.settings != self._now.settings:
            return
        self._now.add(event.sample)
        self._recent.append(event.sample)
        while self._recent[0].elapsed_ns <= event.sample.elapsed_ns - RECENT_NS:
            self._recent.popleft()

    def _evidence(self, sums: _Sums) -> Evidence:
        assert self._started is not None  # noqa: S101 - sums are made when a run starts
        expected = _expected(sums)
        parts = tuple(
            self._flow(sums, flow, None if expected is None else expected / len(sums.flows)) for flow in sums.flows
        )
        return Evidence(
            workload=sums.plan.workload,
            direction=sums.settings.direction,
            sessions=sums.settings.sessions,
            window_bytes=sums.settings.window_bytes,
            span_ns=sums.span_ns,
            bit_s=sum(part.bit_s for part in parts),
            flows=parts,
            near=self._end(sums, End.NEAR),
            far=self._end(sums, End.FAR),
            expected_bit_s=expected,
            pass_percent=self._pass_percent,
            link=self._link,
            ceiling_bit_s=self._ceiling_bit_s,
        )

    def _end(self, sums: _Sums, end: End) -> EndEvidence:
        assert self._started is not None  # noqa: S101 - see above
        facts = self._started.near if end is End.NEAR else self._started.far
        found = sums.ends[end]
        return EndEvidence(
            end=end,
            hostname=facts.hostname,
            system=facts.system,
            cores=found.loads(),
            busiest_worker=_of_time(found.worker_ns, found.span_ns),
            process=_of_time(found.process_ns, found.span_ns),
            nic=facts.nic,
            counts=found.counts,
            tcp=facts.tcp,
        )

    def _flow(self, sums: _Sums, flow: Direction, expected_bit_s: float | None) -> FlowEvidence:
        found = sums.flows[flow]
        sends = sender_of(flow, sums.plan.workload)
        sender = self._socket(sends, flow)
        receiver = self._socket(sends.other, flow)
        return FlowEvidence(
            direction=flow,
            bit_s=found.received_bytes * 8 * SECOND_NS / found.received_ns,
            expected_bit_s=expected_bit_s,
            busy=found.share("busy_us"),
            rwnd_limited=found.share("rwnd_limited_us"),
            sndbuf_limited=found.share("sndbuf_limited_us"),
            retransmits=found.sums.get("retransmits"),
            retransmitted=found.retransmitted,
            rtt_us=found.median("rtt_us"),
            min_rtt_us=found.min_rtt_us,
            cwnd_bytes=found.median("cwnd_bytes"),
            mss_bytes=found.median("mss_bytes"),
            pacing_bit_s=found.median("pacing_bit_s"),
            delivery_bit_s=found.median("delivery_bit_s"),
            peer_window_bytes=found.median("peer_window_bytes"),
            out_of_order=found.sums.get("out_of_order"),
            congestion=sender.congestion if sender else None,
            timestamps=sender.timestamps if sender else None,
            window_scaling=sender.window_scaling if sender else None,
            send_window_bytes=sender.window_granted_bytes if sender else None,
            receive_window_bytes=receiver.window_granted_bytes if receiver else None,
        )

    def _socket(self, end: End, flow: Direction) -> SocketFacts | None:
        """Return the facts of a direction's first session that is known: the others are set up alike."""
        known = [key for key in self._sockets if key[:2] == (end, flow)]
        return self._sockets[min(known, key=lambda key: key[2])] if known else None


def _sessions(sample: Sample, flow: Direction) -> list[SessionSample]:
    return [session for session in sample.sessions if session.direction is flow]


def _expected(sums: _Sums) -> float | None:
    of: dict[Direction, Expected | None] = {
        Direction.OUT: sums.expectation.out,
        Direction.IN: sums.expectation.in_,
        Direction.DUPLEX: sums.expectation.total,
    }
    found = of[sums.settings.direction]
    return None if found is None or found.bit_s <= 0 else float(found.bit_s)


def _of_time(spent_ns: int | None, span_ns: int) -> float | None:
    return None if spent_ns is None or not span_ns else spent_ns / span_ns


def _added(before: NicCounts | None, more: NicCounts) -> NicCounts:
    if before is None:
        return more
    return NicCounts(
        before.received_bytes + more.received_bytes,
        before.sent_bytes + more.sent_bytes,
        before.errors + more.errors,
        before.dropped + more.dropped,
        before.collisions + more.collisions,
    )
