"""Times counted by bucket, with weights: means, percentiles, and means without the slowest.

Pure. A prober that waits for each answer sends fewer probes in a slow time. A mean over its probes is not the mean
over time: a second at 5 ms has a hundred probes, a second at 500 ms has two. So each probe counts with the time
it covered: its own time, or the pace if that is longer.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ...model.counters.latency_histogram import bucket_midpoint_ns, bucket_of
from ...model.counters.samples import LatencyCounts
from ...model.plan import PROBE_PACE_NS
from .result import Latency, ProbeKind

_TRIMMED: Final = 0.05  # draft-ietf-ippm-responsiveness: its TMP is 95 %

Counts = Mapping[int, float]
"""Numbers of times by their bucket (latency_histogram.py); they need not be whole."""


def add_counts(into: dict[int, float], counts: LatencyCounts | None) -> None:
    """Add the counts of a sample to others."""
    if counts is not None:
        for bucket, count in zip(counts.buckets, counts.counts, strict=True):
            into[bucket] = into.get(bucket, 0) + count


def extend_counts(into: dict[int, float], counts: Counts) -> None:
    """Add counts to others."""
    for bucket, count in counts.items():
        into[bucket] = into.get(bucket, 0) + count


def merged_counts(parts: Iterable[Counts]) -> dict[int, float]:
    """Return the sum of several counts."""
    merged: dict[int, float] = {}
    for part in parts:
        extend_counts(merged, part)
    return merged


def add_time(into: dict[int, float], time_ns: int) -> None:
    """Count one time."""
    bucket = bucket_of(time_ns)
    into[bucket] = into.get(bucket, 0) + 1


def without_slowest(counts: Counts, share: float = _TRIMMED) -> dict[int, float]:
    """Return the counts without this share of the longest times: of five times, a part of the longest one."""
    rest = dict(counts)
    surplus = share * sum(rest.values())
    for bucket in sorted(rest, reverse=True):
        if rest[bucket] > surplus:
            rest[bucket] -= surplus
            break
        surplus -= rest.pop(bucket)
    return rest


def weighted_by_time(counts: Counts, pace_ns: int = PROBE_PACE_NS) -> dict[int, float]:
    """Return the counts of a prober that waits for its answers, each with the time that it covered."""
    return {bucket: count * max(pace_ns, bucket_midpoint_ns(bucket)) for bucket, count in counts.items()}


def mean_ns(counts: Counts) -> float | None:
    """Return the mean; None if nothing was counted."""
    whole = sum(counts.values())
    return sum(bucket_midpoint_ns(bucket) * count for bucket, count in counts.items()) / whole if whole else None


def trimmed_mean_ns(counts: Counts) -> float | None:
    """Return the mean without the slowest 5 %; None if nothing was counted."""
    return mean_ns(without_slowest(counts))


def percentile_ns(counts: Counts, percent: float) -> int | None:
    """Return the time that this share of the weights does not exceed; None if nothing was counted."""
    whole, cumulative = sum(counts.values()), 0.0
    newest: int | None = None
    for bucket in sorted(counts):
        cumulative += counts[bucket]
        newest = bucket
        if cumulative * 100 >= percent * whole * (1 - 1e-12):  # sums of weights are not exact
            break
    return None if newest is None else bucket_midpoint_ns(newest)


def latency_of(counts: Counts) -> Latency | None:
    """Return the latency of probes that do not wait for each other; None without any."""
    return _latency(counts, counts, counts)


def probe_latency(counts: Counts, probe: ProbeKind) -> Latency | None:
    """Return the latency of the main probe.

    Requests count with their time, and their mean leaves the slowest 5 % out: a lost request waits for a timer of
    TCP, which has nothing to do with the queue.
    """
    if probe == "datagram":
        return latency_of(counts)
    return _latency(counts, weighted_by_time(counts), weighted_by_time(without_slowest(counts)))


def _latency(counts: Counts, weighted: Counts, trimmed: Counts) -> Latency | None:
    mean, p50, p99 = mean_ns(trimmed), percentile_ns(weighted, 50), percentile_ns(weighted, 99)
    if mean is None or p50 is None or p99 is None:
        return None
    return Latency(round(sum(counts.values())), mean, p50, p99)
