"""UDP runs of chance, whose datagrams are lost, doubled and delayed, and what became of each of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from linkgauge.engine.model.counters.latency_histogram import bucket_of
from linkgauge.engine.model.counters.samples import DatagramSample, LatencyCounts, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Ended, Event, Opened, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.udp.sequence_tracker import SequenceTracker

from .log_entries import HOST

DATAGRAM_BYTES = 1_400
INTERVAL_NS = SECOND_NS // 4
LOSS, COPIES, DELAYS = 0.05, 0.02, 0.2  # shares of the datagrams; a delayed one comes an interval later


@dataclass
class Fates:
    """The counts of a direction's datagrams over the whole run."""

    sent: int = 0
    lost: int = 0
    copies: int = 0
    delays_ns: list[int] = field(default_factory=list[int])


@dataclass
class _Session:
    """A session: the numbers that are on their way, and the receiver's counts."""

    flow: Direction
    number: int
    tracker: SequenceTracker = field(default_factory=SequenceTracker)
    next_number: int = 0
    under_way: list[int] = field(default_factory=list[int])

    def send(self, chance: random.Random, fates: Fates, count: int, *, is_last: bool) -> tuple[int, list[int]]:
        """Return what was sent, and the numbers that arrive now. Of the last ones, none arrives at times."""
        arrived, self.under_way = self.under_way, []
        is_cut = is_last and chance.random() < 0.5
        for number in range(self.next_number, self.next_number + count):
            if is_cut or chance.random() < LOSS:
                fates.lost += 1
                continue
            copies = 1 + (chance.random() < COPIES)
            fates.copies += copies - 1
            (self.under_way if chance.random() < DELAYS else arrived).extend([number] * copies)
        self.next_number += count
        fates.sent += count
        return count, arrived

    def receive(self, numbers: list[int]) -> DatagramSample:
        """Return the receiver's counts of these arrivals."""
        tracker = self.tracker
        before = (tracker.advanced, tracker.received, tracker.duplicates, tracker.reordered, tracker.gaps)
        for number in numbers:
            tracker.add(number)
        return DatagramSample(
            self.flow,
            self.number,
            advanced=tracker.advanced - before[0],
            received=tracker.received - before[1],
            duplicates=tracker.duplicates - before[2],
            late=0,
            reordered=tracker.reordered - before[3],
            reordered_3=0,
            extent=tracker.extent_max,
            gaps=max(0, tracker.gaps - before[4]),
            gap_longest=tracker.gap_longest,
            socket_dropped=0,
            invalid=0,
            jitter_sum_ns=3_000 * len(numbers),
            jitter_count=len(numbers),
            jitter_max_ns=9_000,
            ce_marks=0,
            received_tos=0,
            receive_buffer_bytes=1 << 20,
        )


def draw_datagram_run(
    seed: int,
    direction: Direction,
    *,
    intervals: int = 10,
    sessions: int = 2,
    change: Callable[[Settings], Settings] | None = None,
    is_drained: bool = True,
) -> tuple[list[Event], dict[Direction, Fates]]:
    """Return the events of a run without a warm-up, and the fates of its datagrams by direction.

    Args:
        seed: The source of chance.
        direction: The direction.
        intervals: How many intervals it has.
        sessions: The sessions of each direction.
        change: A change of the settings in the middle, which closes no session.
        is_drained: Whether both ends report what was on its way at the end.
    """
    chance = random.Random(seed)  # noqa: S311 (no secret)
    settings = Settings(direction, sessions, rate_bit_s=10**6)
    plan = Plan(settings=settings, workload=Workload.UDP, interval_ns=INTERVAL_NS, warmup_ns=0)
    events: list[Event] = [Started("2026-11-21T01:15:30Z", "h:1", HOST, HOST, plan, Expectation())]
    parts = [_Session(flow, number) for flow in direction.flows for number in range(1, sessions + 1)]
    events += [Opened(_socket(end, part)) for part in parts for end in End]
    fates = {flow: Fates() for flow in direction.flows}
    late: list[Event] = []
    for index in range(intervals + is_drained):
        is_drain = index == intervals
        if change is not None and index == intervals // 2:
            settings = change(settings)
            events.append(Changed(index * INTERVAL_NS, settings, Expectation()))
        samples = {
            end: Sample(end, index, (index + 1) * INTERVAL_NS, INTERVAL_NS, (), is_drain=is_drain) for end in End
        }
        for part in parts:
            flow = fates[part.flow]
            count = 0 if is_drain else chance.randrange(1, 20)
            sent, numbers = part.send(chance, flow, count, is_last=index >= intervals - 1)
            _add_part(chance, samples, part, sent, numbers, flow)
        events.append(Sampled(samples[End.NEAR], settings, warmup=False))
        late.append(Sampled(samples[End.FAR], settings, warmup=False))
        while late and chance.random() < 0.8:
            events.append(late.pop(0))
    return [*events, *late, Ended(RunEnd(Reason.COMPLETED, "the end"))], fates


def _add_part(
    chance: random.Random, samples: dict[End, Sample], part: _Session, sent: int, numbers: list[int], fates: Fates
) -> None:
    """Add a session's interval to the samples of both ends."""
    sender = End.NEAR if part.flow is Direction.OUT else End.FAR
    counts = part.receive(numbers)
    sending = DatagramSample(
        part.flow, part.number, sent=sent, send_dropped=0, skipped=0, datagram_bytes=DATAGRAM_BYTES,
        rate_bit_s=500_000, is_grouped=0, sent_tos=0, rtt_us=200, return_delay_us=30,
    )  # fmt: skip
    delays = [chance.randrange(1_000, 10**7) for _ in numbers]
    fates.delays_ns += delays
    for end, datagrams, bytes_ in (
        (sender, sending, sent * DATAGRAM_BYTES),
        (sender.other, counts, (counts.received or 0) * DATAGRAM_BYTES),
    ):
        sample = samples[end]
        variation = sample.delay_variation
        if end is not sender:
            variation = _merge_delays(variation, part.flow, delays)
        samples[end] = replace(
            sample,
            sessions=(*sample.sessions, SessionSample(part.flow, part.number, bytes_)),
            datagrams=(*sample.datagrams, datagrams),
            delay_variation=variation,
        )


def _merge_delays(
    parts: tuple[LatencyCounts, ...], flow: Direction, delays_ns: list[int]
) -> tuple[LatencyCounts, ...]:
    counts: dict[int, int] = {}
    for part in parts:
        if part.direction is flow:
            counts |= dict(zip(part.buckets, part.counts, strict=True))
    for delay in delays_ns:
        counts[bucket_of(delay)] = counts.get(bucket_of(delay), 0) + 1
    buckets = tuple(sorted(counts))
    merged = LatencyCounts(flow, buckets, tuple(counts[bucket] for bucket in buckets))
    return (*(part for part in parts if part.direction is not flow), merged)


def _socket(end: End, part: _Session) -> SocketInfo:
    return SocketInfo(end, part.flow, part.number, None, None, None, None, None, None, Mode.QUALITY)
