"""Samples of a second as one: the detail that is left of an old run once the run log has thinned it.

Pure. What `sums` adds up is added up here, too: bytes, times, transactions, the counts of
latency and of the interface. Of a value that stands at the end of an interval, such as the RTT, the last one known
counts; of the shortest RTT the least, of a peak the largest. A summary therefore has the same totals and the same
percentiles of latency before and after; a median of RTTs and a confidence interval come from one value a second.

Only neighbours of one end are merged, with the same settings and warm-up, and a drain with none. Both
ends number the merged samples alike, so that intervals still have both.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Final

from ..model.events import Changed, Event, Sampled
from ..model.latency_histogram import merge_counts, summarize_latency
from ..model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ..model.samples import (
    CoreTimes,
    CpuWaits,
    DatagramProbeSample,
    HandshakeSample,
    LatencyCounts,
    ProbeSample,
    QueueSample,
    Sample,
    SessionSample,
)
from ..model.socket_info import TCP_COUNTERS
from ..model.workload import Workload
from .counter_sums import add_cores, add_host_drops, add_nic_counts, sum_known
from .sums.other_tests_sum import merge_others
from .sums.sample_sum import SampleOrder
from .udp.datagram_sums import merge_datagrams

_LEAST: Final = "min_rtt_us"
_SUMMED: Final = tuple(counter.name for counter in TCP_COUNTERS if counter.is_cumulative)
_LAST: Final = tuple(
    counter.name for counter in TCP_COUNTERS if not counter.is_cumulative and counter.name != _LEAST
)


@dataclass(frozen=True, slots=True)
class MergedEvents:
    """Events with merged samples, and samples that may merge with later ones and are therefore left as they are."""

    events: list[Event]
    remaining: list[Event]


@dataclass(slots=True)
class _Key:
    """What samples have in common that are merged. `changes` counts the changes of settings before them."""

    second: int
    settings: Settings
    warmup: bool
    changes: int
    has_process_cpu: bool
    is_drain: bool


@dataclass(slots=True)
class _Group:
    """Neighbouring samples of one end with the same key, and their places among the events."""

    key: _Key
    places: list[int]
    members: list[Sampled]


class SampleMerger:
    """Merges the samples of a run, piece by piece, to one for each end and second.

    Feed `merge` the events in their order, and those that remained before the next ones. Merging what is merged
    changes nothing.

    Args:
        plan: The plan of the run.
        has_silent_end: Leave the silence at the end of a second separate from the payload before it. The summary of
            a run that was cut off leaves out the time after the last byte.
    """

    def __init__(self, plan: Plan, *, has_silent_end: bool) -> None:
        self._interval_ns = plan.interval_ns
        self._workload = plan.workload
        self._has_silent_end = has_silent_end
        self._order = SampleOrder()
        self._changes: list[int] = []

    def skip(self, events: Iterable[Event]) -> None:
        """Note events that are merged already."""
        for event in events:
            if isinstance(event, Sampled):
                self._order.admits(event.sample)
            elif isinstance(event, Changed):
                insort(self._changes, event.elapsed_ns)

    def merge(self, events: Sequence[Event], *, is_last: bool) -> MergedEvents:
        """Return the next events with their samples merged; with `is_last`, nothing remains."""
        order, changes = deepcopy(self._order), list(self._changes)
        done: list[tuple[int, Event]] = []
        open_: dict[End, _Group] = {}
        for place, event in enumerate(events):
            if not isinstance(event, Sampled):
                done.append((place, event))
                if isinstance(event, Changed):
                    insort(changes, event.elapsed_ns)
                continue
            end = event.sample.end
            group = open_.get(end)
            if not order.admits(event.sample):  # every reader leaves it out: it must not come before its group
                if group is not None:
                    done += self._close(open_.pop(end), is_last_of_second=False)
                done.append((place, event))
                continue
            key = self._key(event, changes)
            if group is not None and group.key == key:
                group.places.append(place)
                group.members.append(event)
                continue
            if group is not None:
                done += self._close(group, is_last_of_second=group.key.second != key.second)
            open_[end] = _Group(key, [place], [event])
        rest = [
            (place, member)
            for group in open_.values()
            for place, member in zip(group.places, group.members, strict=True)
        ]
        if is_last:
            done += [part for group in open_.values() for part in self._close(group, is_last_of_second=True)]
            rest = []
        merged = [event for _, event in sorted(done, key=lambda part: part[0])]
        self.skip(merged)
        return MergedEvents(merged, [event for _, event in sorted(rest, key=lambda part: part[0])])

    def _key(self, event: Sampled, changes: Sequence[int]) -> _Key:
        sample = event.sample
        return _Key(
            second=sample.index * self._interval_ns // SECOND_NS,
            settings=event.settings,
            warmup=event.warmup,
            changes=bisect_left(changes, sample.elapsed_ns),
            has_process_cpu=sample.process_cpu_ns is not None,  # a share is of the time in which it is known
            is_drain=sample.is_drain,
        )

    def _close(self, group: _Group, *, is_last_of_second: bool) -> list[tuple[int, Event]]:
        """Return the merged samples of a group, with their places.

        The last one of a second has the second's last index at both ends, whichever of its samples an end skipped.
        """
        cuts = [0, self._silence_start(group.members), len(group.members)]
        parts: list[tuple[int, Event]] = []
        for begin, end in pairwise(cuts):
            members = group.members[begin:end]
            if not members:
                continue
            index = members[-1].sample.index
            if is_last_of_second and end == len(group.members):
                index = ((group.key.second + 1) * SECOND_NS - 1) // self._interval_ns
            parts.append((group.places[end - 1], _merge_events(members, index)))
        return parts

    def _silence_start(self, members: Sequence[Sampled]) -> int:
        """Return where the silence at the end of these begins; their number if nothing is to be separate."""
        start = len(members)
        if self._has_silent_end:
            while start and not _received_bytes(members[start - 1].sample, self._workload):
                start -= 1
        return start


def merge_samples(samples: Sequence[Sample], index: int) -> Sample:
    """Return neighbouring samples of one end as one sample with this index."""
    last = samples[-1]
    latency = _merge_latency([counts for sample in samples for counts in sample.latency])
    sessions: dict[tuple[Direction, int], list[SessionSample]] = {}
    for sample in samples:
        for session in sample.sessions:
            sessions.setdefault((session.direction, session.session), []).append(session)
    only = {flow: counts for flow, counts in latency.items() if sum(key[0] is flow for key in sessions) == 1}
    return Sample(
        end=last.end,
        index=index,
        elapsed_ns=last.elapsed_ns,
        interval_ns=sum(sample.interval_ns for sample in samples),
        sessions=tuple(_merge_sessions(parts, only.get(flow)) for (flow, _), parts in sessions.items()),
        cores=_merge_cores([sample.cores for sample in samples if sample.cores is not None]),
        process_cpu_ns=sum_known(sample.process_cpu_ns for sample in samples),
        latency=tuple(latency.values()),
        busiest_worker_ns=sum_known(sample.busiest_worker_ns for sample in samples),
        nic=reduce(add_nic_counts, (sample.nic for sample in samples)),
        probe=_merge_probes([sample.probe for sample in samples if sample.probe is not None]),
        waits=_merge_waits([sample.waits for sample in samples if sample.waits is not None]),
        drops=reduce(add_host_drops, (sample.drops for sample in samples)),
        datagrams=merge_datagrams(counts for sample in samples for counts in sample.datagrams),
        delay_variation=tuple(
            _merge_latency([counts for sample in samples for counts in sample.delay_variation]).values()
        ),
        is_drain=last.is_drain,
        is_from_sender=last.is_from_sender,
        queue=_merge_queues([sample.queue for sample in samples if sample.queue is not None]),
        others=merge_others([sample.others for sample in samples]),
    )


def _merge_events(members: Sequence[Sampled], index: int) -> Sampled:
    """Return one event for all; the same one where there is nothing to merge."""
    if len(members) == 1 and members[0].sample.index == index:
        return members[0]
    samples = [member.sample for member in members]
    return replace(
        members[0], sample=merge_samples(samples, index) if len(samples) > 1 else replace(samples[0], index=index)
    )


def _received_bytes(sample: Sample, workload: Workload) -> int:
    return sum(
        session.bytes for session in sample.sessions if sender_of(session.direction, workload) is not sample.end
    )


def _merge_sessions(parts: Sequence[SessionSample], counts: LatencyCounts | None) -> SessionSample:
    """Return one session's samples as one. `counts` is its latency if it is its direction's only session."""
    histogram = {} if counts is None else dict(zip(counts.buckets, counts.counts, strict=True))
    latency = summarize_latency(histogram)
    least = [part.min_rtt_us for part in parts if part.min_rtt_us is not None]
    return SessionSample(
        parts[0].direction,
        parts[0].session,
        sum(part.bytes for part in parts),
        transactions=sum_known(part.transactions for part in parts),
        latency_p50_ns=None if latency is None else latency.p50_ns,
        latency_p99_ns=None if latency is None else latency.p99_ns,
        min_rtt_us=min(least, default=None),
        **{name: sum_known(getattr(part, name) for part in parts) for name in _SUMMED},
        **{name: _last_known(getattr(part, name) for part in parts) for name in _LAST},
    )


def _merge_latency(parts: Sequence[LatencyCounts]) -> dict[Direction, LatencyCounts]:
    """Return the transactions of each direction by bucket."""
    merged: dict[Direction, dict[int, int]] = {}
    for part in parts:
        merge_counts(merged.setdefault(part.direction, {}), zip(part.buckets, part.counts, strict=True))
    return {
        flow: LatencyCounts(flow, tuple(sorted(counts)), tuple(counts[bucket] for bucket in sorted(counts)))
        for flow, counts in merged.items()
    }


def _merge_counts(parts: Sequence[LatencyCounts]) -> LatencyCounts:
    """Return the counts of one kind of probe."""
    flow = parts[0].direction
    return _merge_latency([replace(part, direction=flow) for part in parts])[flow]


def _merge_cores(parts: Sequence[tuple[CoreTimes, ...]]) -> tuple[CoreTimes, ...] | None:
    merged: list[CoreTimes] = []
    for cores in parts:
        add_cores(merged, cores)
    return tuple(merged) if parts else None


def _merge_probes(parts: Sequence[ProbeSample]) -> ProbeSample | None:
    if not parts:
        return None
    return ProbeSample(
        _merge_counts([part.latency for part in parts]),
        sum(part.span_ns for part in parts),
        _last_known(part.rtt_us for part in parts),
        _merge_handshakes([part.handshakes for part in parts if part.handshakes is not None]),
        _merge_datagram_probes([part.datagrams for part in parts if part.datagrams is not None]),
    )


def _merge_handshakes(parts: Sequence[HandshakeSample]) -> HandshakeSample | None:
    if not parts:
        return None
    return HandshakeSample(
        _merge_counts([part.connect for part in parts]),
        _merge_counts([part.answer for part in parts]),
        sum(part.failed for part in parts),
    )


def _merge_datagram_probes(parts: Sequence[DatagramProbeSample]) -> DatagramProbeSample | None:
    if not parts:
        return None
    return DatagramProbeSample(
        sum(part.sent for part in parts),
        sum(part.answered for part in parts),
        _merge_counts([part.latency for part in parts]),
        _merge_counts([part.rise_out for part in parts]),
        _merge_counts([part.rise_in for part in parts]),
    )


def _merge_queues(parts: Sequence[QueueSample]) -> QueueSample | None:
    """Return the means over all readings, and the most of any."""
    if not parts:
        return None
    most = [part.most_backlog_bytes for part in parts if part.most_backlog_bytes is not None]
    return QueueSample(
        sum(part.readings for part in parts),
        _mean_reading([(part.readings, part.backlog_bytes) for part in parts]),
        max(most, default=None),
        sum_known(part.dropped for part in parts),
        _mean_reading([(part.readings, part.driver_bytes) for part in parts]),
    )


def _mean_reading(parts: Sequence[tuple[int, int | None]]) -> int | None:
    known = [(readings, value) for readings, value in parts if value is not None]
    readings = sum(count for count, _ in known)
    return round(sum(count * value for count, value in known) / readings) if readings else None


def _merge_waits(parts: Sequence[CpuWaits]) -> CpuWaits | None:
    if not parts:
        return None
    return CpuWaits(sum_known(part.worker_ns for part in parts), sum_known(part.quota_ns for part in parts))


def _last_known(values: Iterable[int | None]) -> int | None:
    last: int | None = None
    for value in values:
        last = last if value is None else value
    return last
