"""Sums over the datagrams of UDP sessions, in bounded memory, and their results.

Pure. The receiver counts the losses: the datagrams below the highest number that have not arrived are missing. So a
datagram that is still on its way does not count as lost, and one that comes later takes its loss back. The sender's
count is needed only behind the last datagram that arrived, and only after the run: the datagrams behind it are the
tail of a session, and lost.

A run ends with a drain: a sample of each end with the datagrams that were still on their way. They belong to the
counts, and not to a rate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from ...model.counters.latency_histogram import bucket_midpoint_ns, merge_counts, summarize_latency
from ...model.counters.samples import GAUGE, PART, PEAK, DatagramSample, HostDrops, Sample, combine_known, sum_known
from ...model.counters.session_counters import DATAGRAM_COUNTERS, SEARCH_DONE
from ...model.directions import Direction, End, sender_of
from ...model.events import SessionTotal
from ...model.workload import Workload
from ..rate_and_loss import add_known, bits_per_second
from ..summary import CapacitySummary, DatagramMode, DatagramSummary, LossByHost
from ..sums.field_sums import Sums
from ..sums.histogram import Histogram
from .loss_location import LossCauses, LossCounts, locate_losses
from .loss_pattern import LossPattern, LossSeries, find_loss_pattern

_SUMMED: Final = tuple(counter.name for counter in DATAGRAM_COUNTERS if counter.kind == "cumulative")
_PEAKS: Final = tuple(counter.name for counter in DATAGRAM_COUNTERS if counter.kind == "peak")
_SETTINGS: Final = ("datagram_bytes", "is_grouped", "sent_tos", "received_tos", "receive_buffer_bytes")
_TIMES: Final = ("rtt_us", "return_delay_us")
_TIME_BITS: Final = 8  # within 0.4 %
_MOST_VALUES: Final = 16  # of a setting: a far end that reports other values all the time must not fill the memory

_read_summed: Callable[[DatagramSample], tuple[int | None, ...]] = attrgetter(*_SUMMED)
_read_peaks: Callable[[DatagramSample], tuple[int | None, ...]] = attrgetter(*_PEAKS)
_read_settings: Callable[[DatagramSample], tuple[int | None, ...]] = attrgetter(*_SETTINGS)
_read_times: Callable[[DatagramSample], tuple[int | None, ...]] = attrgetter(*_TIMES)


def missing_datagrams(counts: DatagramSample) -> int | None:
    """Return how many of the datagrams that must have been sent have not arrived; None at the sender.

    At least 0, although those of an earlier interval may have arrived in this one.
    """
    if counts.advanced is None or counts.received is None:
        return None
    return max(0, counts.advanced - counts.received)


@dataclass(slots=True)
class _FlowSum(Sums):
    """The counters of one direction."""

    counters: dict[str, int] = field(default_factory=dict[str, int])
    peaks: dict[str, int] = field(default_factory=dict[str, int], metadata=PEAK)
    settings: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    times: dict[str, Histogram] = field(default_factory=dict[str, Histogram])
    rates: dict[int, int] = field(default_factory=dict[int, int], metadata=GAUGE)
    drops: dict[End, HostDrops] = field(default_factory=dict[End, HostDrops], metadata=PART)
    span_ns: int = 0
    sent_bytes: int = 0
    sent_span_ns: int = 0
    tails: tuple[int, ...] = ()
    series: LossSeries = field(default_factory=LossSeries)
    search: DatagramSample | None = field(default=None, metadata=GAUGE)  # of a search for the rate

    def add_host(self, sample: Sample) -> None:
        """Add the drops of an end's host."""
        self.add_drops(sample.end, sample.drops)
        if any(counts.received is not None for counts in sample.datagrams):
            self.span_ns += sample.interval_ns

    def add_losses(self, sample: Sample, parts: Sequence[DatagramSample]) -> None:
        """Add an interval of the receiver to the pattern of the losses."""
        missing = sum_known(map(missing_datagrams, parts))
        if missing is not None and not sample.is_drain:
            self.series.add_interval(
                missing, sum(counts.advanced or 0 for counts in parts), sample.elapsed_ns, sample.interval_ns
            )

    def add_drops(self, end: End, drops: HostDrops | None) -> None:
        whole = combine_known((self.drops.get(end), drops))
        if whole is not None:
            self.drops[end] = whole

    def add_datagrams(self, counts: DatagramSample) -> None:
        """Add one session's counts, at one end."""
        summed = list(_known(_SUMMED, _read_summed(counts)))
        merge_counts(self.counters, summed)
        if counts.search_phase is not None:
            self.search = counts
        # A closed session leaves its last values behind, and counts nothing. Arrivals are counted at once, their
        # extent and jitter at the session's next reading: a sample may have nothing else.
        if not any(value for _name, value in summed):
            return
        for name, value in _known(_PEAKS, _read_peaks(counts)):
            self.peaks[name] = max(value, self.peaks.get(name, 0))
        for name, value in _known(_SETTINGS, _read_settings(counts)):
            self._add_setting(name, value)
        for name, value in _known(_TIMES, _read_times(counts)):
            self.times.setdefault(name, Histogram(_TIME_BITS)).count_value(value)
        if counts.rate_bit_s is not None:
            self.rates[counts.session] = counts.rate_bit_s

    def add_rate(self, sample: Sample, parts: Iterable[DatagramSample]) -> None:
        """Add the bytes that the sessions of this direction sent, if it is a sample of the sender."""
        senders = [counts for counts in parts if counts.sent is not None and counts.datagram_bytes is not None]
        if senders:
            self.sent_bytes += sum((counts.sent or 0) * (counts.datagram_bytes or 0) for counts in senders)
            self.sent_span_ns += sample.interval_ns

    def _add_setting(self, name: str, value: int) -> None:
        values = self.settings.setdefault(name, set())
        if len(values) < _MOST_VALUES:
            values.add(value)

    @property
    def sent_bit_s(self) -> float | None:
        """The rate of the sender's payload."""
        return bits_per_second(self.sent_bytes, self.sent_span_ns)

    @property
    def missing(self) -> int | None:
        """The datagrams that must have been sent and have not arrived, at least 0."""
        advanced, received = self.counters.get("advanced"), self.counters.get("received")
        return None if advanced is None or received is None else max(0, advanced - received)

    @property
    def lost(self) -> int | None:
        missing = self.missing
        return None if missing is None else missing + sum(self.tails)

    @property
    def bursts(self) -> int | None:
        """The runs of numbers that are missing: a gap that was filled later may still be counted."""
        gaps, missing = self.counters.get("gaps"), self.missing
        return None if gaps is None or missing is None else min(gaps, missing) + sum(map(bool, self.tails))

    @property
    def longest_burst(self) -> int | None:
        longest, missing = self.peaks.get("gap_longest"), self.missing
        return None if longest is None or missing is None else max(min(longest, missing), *self.tails, 0)

    def locate_losses(self, sender: End) -> LossCauses:
        """Return the places of the losses."""
        counts = LossCounts(self.lost, self.counters.get("send_dropped"), self.counters.get("socket_dropped"))
        return locate_losses(counts, self.drops.get(sender), self.drops.get(sender.other), self.span_ns)


@dataclass(slots=True)
class DatagramSum(Sums):
    """The datagrams of one direction over some samples; of both, and of several periods, by `extend`.

    Add both ends' samples: each reports the counters that it knows. `in_time` is the number of different datagrams
    that were received outside the drain, for the rate.
    """

    in_time: int | None = None
    delays: dict[int, int] = field(default_factory=dict[int, int])
    _flows: dict[Direction, _FlowSum] = field(default_factory=dict[Direction, _FlowSum])

    def add_sample(self, sample: Sample, flow: Direction) -> None:
        """Add the datagrams of a single direction in one end's sample."""
        parts = [counts for counts in sample.datagrams if counts.direction is flow]
        if parts:
            self._flows.setdefault(flow, _FlowSum()).add_host(sample)
            self._flows[flow].add_losses(sample, parts)
            for counts in parts:
                self._flows[flow].add_datagrams(counts)
                if not sample.is_drain:
                    self.in_time = add_known(self.in_time, counts.received)
            if not sample.is_drain:
                self._flows[flow].add_rate(sample, parts)
        for delays in sample.delay_variation:
            if delays.direction is flow:
                merge_counts(self.delays, zip(delays.buckets, delays.counts, strict=True))

    def set_totals(
        self, flow: Direction, sessions: Sequence[SessionTotal], span_ns: int, *, is_sender: bool
    ) -> None:
        """Take a direction's counters from the report of an end without samples at the end of the run."""
        part = self._flows.setdefault(flow, _FlowSum())
        if is_sender:
            sent = sum_known(session.sent for session in sessions)
            if sent is not None:
                part.counters["sent"] = sent
            part.sent_bytes, part.sent_span_ns = sum(session.bytes for session in sessions), span_ns
            part.tails = tuple(session.lost or 0 for session in sessions)
            return
        received = sum_known(session.received for session in sessions)
        if received is None:
            return
        part.counters["received"] = received
        sizes = part.settings.get("datagram_bytes", set())
        # An iperf3 before 3.14 counts the datagrams of the warm-up too, but not their bytes.
        self.in_time = sum(session.bytes for session in sessions) // max(sizes) if len(sizes) == 1 else received
        lost = sum_known(session.lost for session in sessions)
        if not received and not lost:  # a receiver without datagrams does not know of losses
            lost = part.counters.get("sent")
        if lost is not None:
            part.counters["advanced"] = received + lost
        jitters = [session.jitter_ns for session in sessions if session.jitter_ns is not None]
        part.counters |= {"jitter_sum_ns": sum(jitters), "jitter_count": len(jitters)}
        part.span_ns = span_ns

    def set_tails(self, flow: Direction, tails: Iterable[int]) -> None:
        """Set the losses of each session of a direction behind the last datagram that arrived."""
        self._flows.setdefault(flow, _FlowSum()).tails = tuple(tails)

    @property
    def lost(self) -> int | None:
        """The lost datagrams; None if no receiver has reported any."""
        return sum_known(part.lost for part in self._flows.values())

    @property
    def sent(self) -> int | None:
        """The datagrams that must have been sent, by the receiver's count; by the sender's if nothing arrived.

        The two counts differ by the datagrams on their way when samples are taken: by its own clock, a sender may
        have sent less than was received in the same period.
        """
        lost, received = self.lost, self.count("received")
        return lost + received if lost is not None and received else self.count("sent")

    def count(self, name: str) -> int | None:
        """Return the sum of a cumulative counter such as `sent`; None if no end reported it."""
        return sum_known(part.counters.get(name) for part in self._flows.values())

    def peak(self, name: str) -> int | None:
        """Return the largest value of a counter such as `extent`; None if no end reported it."""
        return max((part.peaks[name] for part in self._flows.values() if name in part.peaks), default=None)

    def loss_causes(self, flow: Direction) -> LossCauses:
        """Return the places of a single direction's losses, in the order of the datagrams' way."""
        part = self._flows.get(flow)
        return LossCauses() if part is None else part.locate_losses(_sender(flow))

    def loss_pattern(self, flow: Direction) -> tuple[LossPattern | None, int | None]:
        """Return the pattern of a direction's losses, and the time between losses that come regularly."""
        part = self._flows.get(flow)
        if part is None or not part.lost:
            return None, None
        share = part.lost / max(1, part.lost + part.counters.get("received", 0))
        pattern = find_loss_pattern(part.lost, part.bursts or 0, share, part.series)
        return pattern, part.series.period_ns if pattern == "periodic" else None

    @property
    def smallest_buffer_bytes(self) -> int | None:
        """The smallest buffer of a receiver's socket; None if no end reported it."""
        return min(self._values("receive_buffer_bytes"), default=None)

    def median_us(self, name: str) -> int | None:
        """Return the median of a time such as `rtt_us`; None if no end reported it."""
        return self._times(name).median

    @property
    def summary(self) -> DatagramSummary | None:
        """The results; None if no session has reported anything."""
        if not self._flows:
            return None
        jitters, jitter_sum_ns = self.count("jitter_count"), self.count("jitter_sum_ns")
        has_jitter = bool(jitters) and jitter_sum_ns is not None
        return DatagramSummary(
            in_time=self.in_time,
            sent=self.sent,
            skipped=self.count("skipped"),
            received=self.count("received"),
            lost=self.lost,
            lost_at=self._lost_at(),
            duplicates=self.count("duplicates"),
            late=self.count("late"),
            reordered=self.count("reordered"),
            reordered_3=self.count("reordered_3"),
            max_extent=self.peak("extent"),
            bursts=sum_known(part.bursts for part in self._flows.values()),
            longest_burst=max(
                (part.longest_burst for part in self._flows.values() if part.longest_burst is not None),
                default=None,
            ),
            jitter_mean_ns=(jitter_sum_ns or 0) / (jitters or 1) if has_jitter else None,
            jitter_max_ns=self.peak("jitter_max_ns") if has_jitter else None,
            delay_variation=summarize_latency(self.delays),
            delay_rise_ns=_mean_ns(self.delays),
            return_rise_ns=_in_ns(self._times("return_delay_us").mean),
            rtt_us=self.median_us("rtt_us"),
            datagram_bytes=self._only("datagram_bytes"),
            mode=self._mode(),
            sent_tos=self._only("sent_tos"),
            received_tos=self._only("received_tos"),
            ce_marks=self.count("ce_marks"),
            asked_bit_s=self._asked_bit_s(),
            capacity=self._capacity(),
            sent_bit_s=self._sent_bit_s(),
        )

    def _times(self, name: str) -> Histogram:
        whole = Histogram(_TIME_BITS)
        for part in self._flows.values():
            if name in part.times:
                whole.extend(part.times[name])
        return whole

    def _values(self, name: str) -> set[int]:
        return {value for part in self._flows.values() for value in part.settings.get(name, ())}

    def _only(self, name: str) -> int | None:
        """Return a setting that was the same all the time; None if it was not."""
        values = self._values(name)
        return values.pop() if len(values) == 1 else None

    def _mode(self) -> DatagramMode | None:
        values = self._values("is_grouped")
        if len(values) > 1:
            return "mixed"
        return None if not values else "rate" if values.pop() else "quality"

    def _asked_bit_s(self) -> int | None:
        rates = [rate for part in self._flows.values() for rate in part.rates.values()]
        return sum(rates) if rates and all(rates) else None

    def _capacity(self) -> CapacitySummary | None:
        """Return the result of a search; None for both directions together."""
        searches = [part.search for part in self._flows.values()]
        search = searches[0] if len(searches) == 1 else None
        if search is None or search.best_bit_s is None:
            return None
        return CapacitySummary(
            bit_s=search.best_bit_s,
            lost_percent=(search.best_lost_ppm or 0) / 10_000,
            delay_variation_ns=(search.best_delay_us or 0) * 1_000,
            rtt_ns=(search.best_rtt_us or 0) * 1_000,
            loss_free_bit_s=search.loss_free_bit_s,
            is_complete=search.search_phase == SEARCH_DONE,
        )

    def _sent_bit_s(self) -> float | None:
        rates = [part.sent_bit_s for part in self._flows.values() if part.sent_bit_s is not None]
        return sum(rates) if rates else None

    def _lost_at(self) -> LossByHost | None:
        if self.lost is None:
            return None
        places = {flow: self.loss_causes(flow) for flow in self._flows}
        near, far = (_sum_all(part.of_end(end, _sender(flow)) for flow, part in places.items()) for end in End)
        return LossByHost(near, far, _sum_all(part.network for part in places.values()))


def _sender(flow: Direction) -> End:
    """Return the end that sends a single direction of datagrams."""
    return sender_of(flow, Workload.UDP)


def datagrams_of(sample: Sample, flow: Direction) -> dict[int, DatagramSample]:
    """Return the sessions of a single direction in one sample, by number."""
    return {counts.session: counts for counts in sample.datagrams if counts.direction is flow}


def _known(names: Iterable[str], values: Iterable[int | None]) -> Iterator[tuple[str, int]]:
    return ((name, value) for name, value in zip(names, values, strict=True) if value is not None)


def _sum_all(values: Iterable[int | None]) -> int | None:
    """Return the sum; None if any value is unknown."""
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _mean_ns(delays: Mapping[int, int]) -> float | None:
    count = sum(delays.values())
    return sum(bucket_midpoint_ns(bucket) * part for bucket, part in delays.items()) / count if count else None


def _in_ns(us: float | None) -> float | None:
    return None if us is None else 1_000 * us
