"""From a run's events to evidence: of its last stretch, and of its last few seconds.

Pure. Warm-up is left out, as everywhere. A stretch is kept as sums and histograms, so a day's run takes no more
memory than a minute's.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from ...engine.model.events import Changed, Event, ExpectedRate, Opened, Sampled, Started
from ...engine.model.plan import SECOND_NS, Direction, End, Settings, sender_of
from ...engine.model.samples import Sample
from ...engine.model.socket_info import SocketInfo
from .accumulate import PeriodAccumulator
from .evidence import EndEvidence, Evidence, FlowEvidence, LinkEvidence

RECENT_NS: Final = 3 * SECOND_NS


CeilingLookup = Callable[[Settings], int | None]
"""What a machine does under some settings with no link at all; None where that is not known."""


def no_ceiling(_settings: Settings) -> None:
    """Say that nothing is known of what the machine can do."""


class EvidenceCollector:
    """Takes a run's events in order; says what is known at any time.

    `link` is what should have been there, `ceiling` what this machine does with no link at all.
    """

    def __init__(
        self, link: LinkEvidence | None = None, *, pass_percent: float = 95.0, ceiling: CeilingLookup = no_ceiling
    ) -> None:
        self._link = link
        self.pass_percent = pass_percent
        self._ceiling = ceiling
        self._started: Started | None = None
        self._now: PeriodAccumulator | None = None
        self._last: PeriodAccumulator | None = None
        self._recent: deque[Sample] = deque()
        self._sockets: dict[tuple[End, Direction, int], SocketInfo] = {}

    def feed(self, event: Event) -> None:
        """Take the next event in."""
        match event:
            case Sampled():
                self._sample(event)
            case Started():
                self._started = event
                self._now = PeriodAccumulator(event.plan.settings, event.expectation, event.plan)
            case Changed() if self._started is not None:
                if self._now is not None and self._now.is_long_enough:
                    self._last = self._now
                self._now = PeriodAccumulator(event.settings, event.expectation, self._started.plan)
                self._recent.clear()
            case Opened():
                facts = event.facts
                self._sockets[facts.end, facts.direction, facts.session] = facts
            case _:
                pass

    def period_evidence(self) -> Evidence | None:
        """Return the evidence of the last stretch that lasted long enough; None where there is none."""
        sums = self._now if self._now is not None and self._now.is_long_enough else self._last
        return None if sums is None else self._evidence(sums)

    def recent_evidence(self) -> Evidence | None:
        """Return the evidence of the last seconds under the settings in force; None where that is too little."""
        if self._now is None:
            return None
        sums = PeriodAccumulator(self._now.settings, self._now.expectation, self._now.plan)
        for sample in self._recent:
            sums.add(sample)
        return self._evidence(sums) if sums.is_long_enough else None

    def _sample(self, event: Sampled) -> None:
        if event.warmup or self._now is None or event.settings != self._now.settings:
            return
        self._now.add(event.sample)
        self._recent.append(event.sample)
        while self._recent[0].elapsed_ns <= event.sample.elapsed_ns - RECENT_NS:
            self._recent.popleft()

    def _evidence(self, sums: PeriodAccumulator) -> Evidence:
        assert self._started is not None  # noqa: S101 - sums are made when a run starts
        wanted = _expected(sums)
        expected = None if wanted is None else float(wanted.bit_s)
        parts = tuple(
            self._flow(sums, flow, None if expected is None else expected / len(sums.flows)) for flow in sums.flows
        )
        bit_s = sum(part.bit_s for part in parts)
        return Evidence(
            workload=sums.plan.workload,
            direction=sums.settings.direction,
            sessions=sums.settings.sessions,
            window_bytes=sums.settings.window_bytes,
            span_ns=sums.span_ns,
            bit_s=bit_s,
            flows=parts,
            near=self._end(sums, End.NEAR),
            far=self._end(sums, End.FAR),
            expected_bit_s=expected,
            pass_percent=self.pass_percent,
            link=self._link,
            ceiling_bit_s=self._ceiling(sums.settings),
            beyond_bit_s=wanted.most_bit_s if wanted is not None and wanted.is_exceeded_by(bit_s) else None,
        )

    def _end(self, sums: PeriodAccumulator, end: End) -> EndEvidence:
        assert self._started is not None  # noqa: S101 - see above
        facts = self._started.near if end is End.NEAR else self._started.far
        found = sums.ends[end]
        return EndEvidence(
            end=end,
            hostname=facts.hostname,
            system=facts.system,
            cores=found.core_loads(),
            busiest_worker=_of_time(found.worker_ns, found.span_ns),
            process=_of_time(found.process_ns, found.span_ns),
            nic=facts.nic,
            counts=found.nic_counts,
            tcp=facts.tcp,
        )

    def _flow(self, sums: PeriodAccumulator, flow: Direction, expected_bit_s: float | None) -> FlowEvidence:
        found = sums.flows[flow]
        sends = sender_of(flow, sums.plan.workload)
        sender = self._socket(sends, flow)
        receiver = self._socket(sends.other, flow)
        return FlowEvidence(
            direction=flow,
            bit_s=found.received_bytes * 8 * SECOND_NS / found.received_ns,
            expected_bit_s=expected_bit_s,
            busy=found.time_share("busy_us"),
            rwnd_limited=found.time_share("rwnd_limited_us"),
            sndbuf_limited=found.time_share("sndbuf_limited_us"),
            retransmits=found.counters.get("retransmits"),
            retransmitted=found.retransmitted_share,
            rtt_us=found.median("rtt_us"),
            min_rtt_us=found.min_rtt_us,
            cwnd_bytes=found.median("cwnd_bytes"),
            mss_bytes=found.median("mss_bytes"),
            pacing_bit_s=found.median("pacing_bit_s"),
            delivery_bit_s=found.median("delivery_bit_s"),
            peer_window_bytes=found.median("peer_window_bytes"),
            out_of_order=found.counters.get("out_of_order"),
            congestion=sender.congestion if sender else None,
            timestamps=sender.timestamps if sender else None,
            window_scaling=sender.window_scaling if sender else None,
            send_window_bytes=sender.window_granted_bytes if sender else None,
            receive_window_bytes=receiver.window_granted_bytes if receiver else None,
        )

    def _socket(self, end: End, flow: Direction) -> SocketInfo | None:
        """Return the facts of a direction's first session that is known: the others are set up alike."""
        known = [key for key in self._sockets if key[:2] == (end, flow)]
        return self._sockets[min(known, key=lambda key: key[2])] if known else None


def _expected(sums: PeriodAccumulator) -> ExpectedRate | None:
    of: dict[Direction, ExpectedRate | None] = {
        Direction.OUT: sums.expectation.out,
        Direction.IN: sums.expectation.in_,
        Direction.DUPLEX: sums.expectation.total,
    }
    found = of[sums.settings.direction]
    return None if found is None or found.bit_s <= 0 else found


def _of_time(spent_ns: int | None, span_ns: int) -> float | None:
    return None if spent_ns is None or not span_ns else spent_ns / span_ns
