"""The samples of each second merged to one: the detail of an old run once the run log has thinned it.

Pure. The samples combine as their fields say (counters/samples.py): counts are added, as in `sums`, and of a
value at the end of an interval, such as the RTT, the last known one counts. So a summary has the same totals and
the same percentiles of latency before and after. A median of RTTs and a confidence interval come from one value a
second.

Only neighbours of one end with the same settings and warm-up are merged, and never a drain with another sample.
Both ends number the merged samples alike, so that intervals still have both.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

from ..model.counters.latency_histogram import summarize_latency
from ..model.counters.samples import LatencyCounts, Sample, SessionSample, combine
from ..model.directions import End, sender_of
from ..model.events import Changed, Event, Sampled
from ..model.plan import SECOND_NS, Plan, Settings
from ..model.workload import Workload
from .sums.sample_sum import SampleOrder


@dataclass(frozen=True, slots=True)
class MergedEvents:
    """Events with merged samples, and the remaining samples that may still merge with later ones."""

    events: list[Event]
    remaining: list[Event]


@dataclass(slots=True)
class _Key:
    """What merged samples have in common. `changes` counts the changes of settings before them."""

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

    Feed `merge` the events in their order, and the remaining events before the next ones. Merging twice changes
    nothing more.

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
            if not order.admits(event.sample):  # all readers leave it out: it must not come before its group
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
            has_process_cpu=sample.process_cpu_ns is not None,  # a share covers only the time in which it is known
            is_drain=sample.is_drain,
        )

    def _close(self, group: _Group, *, is_last_of_second: bool) -> list[tuple[int, Event]]:
        """Return the merged samples of a group, with their places.

        The last one of a second has the second's last index at both ends, even if an end skipped some samples.
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
        """Return the position at which the silence at the end begins; the length if nothing is separate."""
        start = len(members)
        if self._has_silent_end:
            while start and not _received_bytes(members[start - 1].sample, self._workload):
                start -= 1
        return start


def merge_samples(samples: Sequence[Sample], index: int) -> Sample:
    """Return neighbouring samples of one end as one sample with this index.

    The percentiles of a session are those of its direction if it is the only one there.
    """
    whole = combine(samples)
    counts = Counter(session.direction for session in whole.sessions)
    only = {latency.direction: latency for latency in whole.latency if counts[latency.direction] == 1}
    sessions = [_with_percentiles(session, only.get(session.direction)) for session in whole.sessions]
    return replace(whole, index=index, sessions=tuple(sessions))


def _merge_events(members: Sequence[Sampled], index: int) -> Sampled:
    """Return one event for all; the same event if there is nothing to merge."""
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


def _with_percentiles(session: SessionSample, counts: LatencyCounts | None) -> SessionSample:
    latency = counts and summarize_latency(counts.by_bucket)
    if latency is None:
        return session
    return replace(session, latency_p50_ns=latency.p50_ns, latency_p99_ns=latency.p99_ns)
