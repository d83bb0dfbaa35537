"""The results of one load from its intervals: latency, its rise, and the queues at the senders.

Pure. A queue takes time to fill, so that figures are from when it was full: from when the latency of 0.4 s first
reached 90 % of its highest rise, or of the last 2 s if that is later. The first second never counts: sessions start
in it, and the queue of an earlier load drains.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...model.counters.latency_histogram import bucket_of
from ...model.counters.samples import ProbeSample
from ...model.directions import Direction, End, PerDirection, sender_of
from ...model.events import Started
from ...model.plan import SECOND_NS
from ...model.workload import Workload
from ..rate_and_loss import bits_per_second, percent_of
from .distribution import (
    latency_of,
    mean_ns,
    merged_counts,
    percentile_ns,
    probe_latency,
)
from .intervals import LoadInterval, QueueSum, Window, goodput, latency_windows
from .result import Latency, LoadedLatency, ProbeKind, SenderQueue
from .round_trips import round_trips
from .steadiness import is_steady

_FULL: Final = 0.9
_LEAST_MEASURED_NS: Final = 2 * SECOND_NS
_NO_RISE_NS: Final = 1_000_000  # a smaller rise is not a queue that fills
_SLOWEST_PERCENT: Final = 95
_MIN_ANSWERED: Final = 0.9  # of the datagrams before the load
_FEW_LOST: Final = 2  # so many may be on their way at either end of the time


@dataclass(frozen=True, slots=True)
class Idle:
    """Latency before the load, by the main probe; its one-way rises are the jitter of an empty path."""

    latency: Latency | None = None
    rise_out_ns: float | None = None
    rise_in_ns: float | None = None

    @classmethod
    def of_sample(cls, sample: ProbeSample | None, probe: ProbeKind) -> "Idle":
        """Return the probe's results from before the payload."""
        if sample is None:
            return cls()
        if probe == "request":
            return cls(probe_latency(sample.latency.by_bucket, probe))
        datagrams = sample.datagrams
        if datagrams is None:
            return cls()
        rises = (mean_ns(rise.by_bucket) for rise in (datagrams.rise_out, datagrams.rise_in))
        return cls(probe_latency(datagrams.latency.by_bucket, probe), *rises)


def carries_datagrams(idle: ProbeSample | None) -> bool:
    """Return whether nearly all datagrams of the idle link were answered; the last ones may be on their way."""
    datagrams = None if idle is None else idle.datagrams
    if idle is None or datagrams is None:
        return False
    trip_ns = mean_ns(datagrams.latency.by_bucket) or 0.0
    arrived = datagrams.sent * max(0.0, 1 - trip_ns / idle.span_ns) if idle.span_ns > 0 else datagrams.sent
    return 0 < datagrams.answered >= _MIN_ANSWERED * arrived


@dataclass(frozen=True, slots=True)
class Load:
    """A load in one direction or both: its intervals from `settled_ns` on, and when it began."""

    direction: Direction
    start_ns: int
    intervals: Sequence[LoadInterval]

    def results(self, started: Started, probe: ProbeKind, idle: Idle) -> LoadedLatency | None:
        """Return the results; None if nothing was measured after the first second."""
        if not self.intervals:
            return None
        windows = latency_windows(self.intervals, probe, self._longest(probe))
        measured = self._full_intervals(windows, idle)
        counts = merged_counts(interval.probes(probe) for interval in measured)
        latency = probe_latency(counts, probe)
        peak_ns = max([*(window.mean_ns for window in windows), *self._earlier_peaks(probe)], default=None)
        base = idle.latency
        steady = is_steady(self.intervals, windows, self.direction.flows)
        connect, answer, tcp_rtt = (
            merged_counts(getattr(interval, name) for interval in measured)
            for name in ("connect", "answer", "tcp_rtt")
        )
        start_ns, end_ns = measured[0].start_ns, measured[-1].end_ns
        return LoadedLatency(
            direction=self.direction,
            sessions=measured[-1].sessions,
            start_ns=self.start_ns,
            measured_ns=start_ns,
            end_ns=end_ns,
            bit_s=self._goodput(measured),
            latency=latency,
            rise_ns=_rise(latency and latency.mean_ns, base and base.mean_ns),
            rise_p99_ns=_rise(latency and latency.p99_ns, base and base.p99_ns),
            peak_rise_ns=_rise(peak_ns, base and base.mean_ns),
            one_way_rise_ns=_one_way_rises(measured, idle),
            lost_percent=_lost_percent(measured),
            handshake=latency_of(connect),
            answer=latency_of(answer),
            tcp_rtt=latency_of(tcp_rtt),
            queues=tuple(_sender_queues(measured, self.direction, started)),
            round_trips=round_trips(connect, answer, tcp_rtt, span_ns=end_ns - start_ns, is_steady=steady),
            is_steady=steady,
        )

    def _longest(self, probe: ProbeKind) -> int | None:
        """Return the bucket of the longest time that counts in a window. A lost request waits for TCP's timer."""
        if probe == "datagram":
            return None
        slowest = percentile_ns(merged_counts(interval.requests for interval in self.intervals), _SLOWEST_PERCENT)
        return None if slowest is None else bucket_of(slowest)

    def _full_intervals(self, windows: Sequence[Window], idle: Idle) -> Sequence[LoadInterval]:
        """Return the intervals in which the queue was as full as it became."""
        since_ns = self.intervals[-1].end_ns - _LEAST_MEASURED_NS
        base_ns = min((window.mean_ns for window in windows), default=0.0)
        if idle.latency is not None:
            base_ns = idle.latency.mean_ns
        highest_ns = max((window.mean_ns for window in windows), default=0.0) - base_ns
        if highest_ns < _NO_RISE_NS:
            since_ns = self.intervals[0].start_ns
        else:
            full = next(window for window in windows if window.mean_ns - base_ns >= _FULL * highest_ns)
            since_ns = min(since_ns, full.newest_ns)
        # An interval counts if half of it is later.
        measured = [each for each in self.intervals if each.start_ns + each.end_ns >= 2 * since_ns]
        return measured or self.intervals[-1:]

    def _earlier_peaks(self, probe: ProbeKind) -> list[float]:
        return [interval.peaks_ns[probe] for interval in self.intervals if probe in interval.peaks_ns]

    def _goodput(self, measured: Sequence[LoadInterval]) -> PerDirection[float | None]:
        rates = {flow: goodput(measured, flow) for flow in self.direction.flows}
        known = [rate for rate in rates.values() if rate is not None]
        total = sum(known) if len(known) == len(rates) else None
        return PerDirection(rates.get(Direction.OUT), rates.get(Direction.IN), total)


def _rise(loaded_ns: float | None, idle_ns: float | None) -> float | None:
    return None if loaded_ns is None or idle_ns is None else max(0.0, loaded_ns - idle_ns)


def _one_way_rises(measured: Sequence[LoadInterval], idle: Idle) -> PerDirection[float | None]:
    out, in_ = (
        _rise(mean_ns(merged_counts(getattr(interval, name) for interval in measured)), base)
        for name, base in (("rise_out", idle.rise_out_ns), ("rise_in", idle.rise_in_ns))
    )
    return PerDirection(out, in_, None)


def _lost_percent(measured: Sequence[LoadInterval]) -> float | None:
    """Return the percentage of datagrams without an echo. Datagrams that are still on their way do not count."""
    sent = sum(interval.sent for interval in measured)
    if not sent:
        return None
    answered = sum(interval.answered for interval in measured)
    pace_ns = (measured[-1].end_ns - measured[0].start_ns) / sent
    first, last = (mean_ns(interval.datagrams) for interval in (measured[0], measured[-1]))
    more_on_their_way = 0.0 if first is None or last is None else (last - first) / pace_ns
    lost = sent - answered - more_on_their_way
    return 0.0 if lost <= _FEW_LOST else min(100.0, percent_of(lost, sent) or 0.0)


def _sender_queues(measured: Sequence[LoadInterval], direction: Direction, started: Started) -> list[SenderQueue]:
    queues: list[SenderQueue] = []
    for flow in direction.flows:
        end = sender_of(flow, Workload.STREAM)
        whole = QueueSum()
        for interval in measured:
            whole.extend(interval.queues[end])
        nic = (started.near if end is End.NEAR else started.far).nic
        queues.append(
            SenderQueue(
                end=end,
                interface=nic and nic.name,
                qdisc=nic and nic.qdisc,
                backlog_bytes=_mean(whole.backlog, whole.backlog_readings),
                most_backlog_bytes=whole.most_backlog_bytes,
                dropped=whole.dropped,
                driver_bytes=_mean(whole.driver, whole.driver_readings),
                unsent_bytes=_mean(whole.unsent, whole.unsent_readings),
                drain_bit_s=bits_per_second(whole.sent_bytes, whole.sent_ns),
            )
        )
    return queues


def _mean(whole: float, count: int) -> float | None:
    return whole / count if count else None
