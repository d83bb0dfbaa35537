"""Totals of a run and of its periods, from which the meter makes a summary.

Pure. A period is the time between two changes of settings. A run with several settings has the results of
its periods: a mean of rates under different settings means nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ..model.counters.latency_histogram import merge_counts, summarize_latency
from ..model.counters.samples import ProbeSample, Sample, combine
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction, End, PerDirection, sender_of
from ..model.events import Opened, Totals
from ..model.expected_rate import Expectation, ExpectedRate
from ..model.plan import SECOND_NS, Mode, Settings
from ..model.texts.warning_text import WarningKind
from ..model.workload import Workload
from .confidence import RateSeries
from .summary import Measurement, Period, ProbeResult, ProbeSummary, TcpSummary
from .sums.end_sum import EndSum
from .sums.histogram import Histogram
from .sums.sample_sum import ReceiverSum, SampleSum
from .sums.sender_sum import SenderSum
from .udp.tail_losses import TailLosses

_MAX_WARNINGS: Final = 32
_RECENT_PROBE_NS: Final = 10 * SECOND_NS  # a probe makes at most 100 transactions a second, too few for percentiles
_LIMITING_FIRST: Final = (Mode.DISCARD, Mode.SENDFILE, Mode.COPY, Mode.RATE, Mode.QUALITY)


class PeriodSum:
    """One period of a run: its settings since `start_ns`, and the sums over its measured samples."""

    def __init__(self, settings: Settings, expectation: Expectation, start_ns: int, workload: Workload) -> None:
        self.settings = settings
        self.expectation = expectation
        self.start_ns = start_ns
        self.sums = SampleSum(workload, has_series=True)
        self._first_measured_ns: int | None = None
        # The two directions share machines and line. So the error of their sum does not follow from their own
        # errors: it needs the sums themselves, interval by interval.
        self._duplex_series = RateSeries()

    def add_sample(self, sample: Sample, duplex_bit_s: float | None = None) -> None:
        """Add an end's sample outside the warm-up, or of the drain.

        Once both ends have measured an interval, `duplex_bit_s` is the rate of both directions together.
        """
        flows = self.settings.direction.flows
        self.sums.add_sample(sample, flows)
        if not sample.is_drain and any(sender_of(flow, self.sums.workload) is not sample.end for flow in flows):
            begin_ns, first_ns = sample.elapsed_ns - sample.interval_ns, self._first_measured_ns
            self._first_measured_ns = begin_ns if first_ns is None else min(begin_ns, first_ns)
        if duplex_bit_s is not None:
            self._duplex_series.add_interval(duplex_bit_s * sample.interval_ns, sample.interval_ns)

    def set_totals(self, totals: Totals) -> None:
        """Take the figures of an end without samples."""
        self.sums.set_totals(totals, self.settings.direction.flows)

    @property
    def received(self) -> dict[Direction, ReceiverSum]:
        """The receiver's sums of each single direction."""
        return self.sums.received

    def set_tails(self, tails: TailLosses) -> None:
        """Count the sessions' losses behind the last datagram that arrived."""
        for flow in self.settings.direction.flows:
            datagrams = self.received[flow].datagrams
            if datagrams is not None:
                datagrams.set_tails(flow, tails.of_flow(flow, self.settings.sessions))

    def trim_silence(self) -> None:
        """Let each direction end with its last byte."""
        for flow in self.received.values():
            flow.trim_silence()
        self._duplex_series.trim_silence()

    @property
    def total(self) -> ReceiverSum:
        """Both directions: all bytes, and the span that gives the sum of the two rates.

        The two receivers' spans differ by a few milliseconds. On a slow link the far end's last sample comes late:
        the longer span alone would take 0.9 % off the sum of 10 s.
        """
        out, in_ = self.received[Direction.OUT], self.received[Direction.IN]
        total = ReceiverSum()
        total.extend(out)
        total.extend(in_)
        if out.span_ns and in_.span_ns:
            total.series = None if out.series is None or in_.series is None else self._duplex_series
        bytes_per_ns = sum(flow.bytes / flow.span_ns for flow in (out, in_) if flow.span_ns)
        longer_ns = max(out.span_ns, in_.span_ns)
        total.span_ns = round(total.bytes / bytes_per_ns) if bytes_per_ns else longer_ns
        return total

    @property
    def period(self) -> Period:
        """The period's part of a summary."""
        begin_ns = self._first_measured_ns
        return Period(
            self.settings,
            self.expectation,
            PerDirection(
                self.received[Direction.OUT].measurement,
                self.received[Direction.IN].measurement,
                self.total.measurement,
            ),
            self.start_ns,
            None if begin_ns is None else max(0, begin_ns - self.start_ns),
        )


def newest_results(periods: Sequence[PeriodSum]) -> PerDirection[Measurement | None]:
    """Return each direction's results under the newest settings with which it was measured, and the newest total.

    A mean over several settings is the rate of none of them. A mean over time in which a direction did not run is
    not its rate. Periods of the same settings count as one.
    """
    measured = [period for period in reversed(periods) if period.total.span_ns]

    def join(flow: Direction) -> Measurement | None:
        parts = [period for period in measured if period.received[flow].span_ns]
        return _join(parts, lambda period: period.received[flow])

    return PerDirection(join(Direction.OUT), join(Direction.IN), _join(measured, lambda period: period.total))


def _join(newest_first: Sequence[PeriodSum], part_of: Callable[[PeriodSum], ReceiverSum]) -> Measurement | None:
    """Return the results of all periods that have the settings of the newest one."""
    whole = ReceiverSum()
    for period in reversed(newest_first):
        if period.settings == newest_first[0].settings:
            whole.extend(part_of(period))
    return whole.measurement


def newest_expectation(periods: Sequence[PeriodSum]) -> Expectation:
    """Return the expected rates for `newest_results`. Before the first measurement the newest period counts."""
    measured = [period for period in reversed(periods) if period.total.span_ns] or list(periods[-1:])

    def of_flow(flow: Direction) -> ExpectedRate | None:
        newest = next((each for each in measured if each.received[flow].span_ns), measured[0])
        return newest.expectation[flow]

    return Expectation(of_flow(Direction.OUT), of_flow(Direction.IN), measured[0].expectation.total)


def sum_senders(periods: Sequence[PeriodSum]) -> SenderSum:
    """Return the senders' TCP counters over both directions and all periods."""
    parts = [sums for period in periods for sums in period.sums.sent.values() if sums.sessions]
    if len(parts) == 1:
        return parts[0]  # the usual case does not copy its histograms four times a second
    whole = SenderSum()
    for sums in parts:
        whole.extend(sums)
    return whole


def sum_end(periods: Sequence[PeriodSum], end: End) -> EndSum:
    """Return the CPU times and interface counters of one end over all periods."""
    return combine([EndSum(), *(period.sums.ends[end] for period in periods)])


class OpenSockets:
    """The sockets of a run's sessions at both ends, with the options that the kernels granted."""

    def __init__(self) -> None:
        self._open: dict[tuple[End, Direction, int], SocketInfo] = {}

    def add_session(self, event: Opened) -> None:
        """Record a session's socket; a session that is opened again replaces its earlier one."""
        facts = event.facts
        self._open[facts.end, facts.direction, facts.session] = facts

    def first(self, end: End, flow: Direction) -> SocketInfo | None:
        """Return the socket of a direction's first known session: the others have the same options."""
        keys = [key for key in self._open if key[:2] == (end, flow)]
        return self._open[min(keys, key=lambda key: key[2])] if keys else None

    def change_settings(self, settings: Settings) -> None:
        """Forget the sessions that new settings close."""
        flows = settings.direction.flows
        self._open = {
            key: facts
            for key, facts in self._open.items()
            if facts.direction in flows and facts.session <= settings.sessions
        }

    def mode(self, workload: Workload) -> Mode | None:
        """Return how payload moves: of several modes, the one that limits the meaning of a run's figures most.

        None before the first session is open.
        """
        senders = self._senders(workload)
        if any(facts.mode is Mode.DISCARD and facts not in senders for facts in self._open.values()):
            return Mode.DISCARD
        modes = {facts.mode for facts in senders}
        return next((mode for mode in _LIMITING_FIRST if mode in modes), None)

    def summarize(self, sent: SenderSum, workload: Workload) -> TcpSummary:
        """Return the TCP values of the run so far; congestion control and MSS are the senders'."""
        senders = self._senders(workload)
        names = sorted({facts.congestion for facts in senders if facts.congestion is not None})
        mss_bytes = sent.median("mss_bytes")
        if mss_bytes is None:
            mss_bytes = _least(facts.mss_bytes for facts in senders)
        again = sent.retransmitted_share()
        return TcpSummary(
            retransmits=sent.retransmits,
            rtt_us=sent.median("rtt_us"),
            mss_bytes=mss_bytes,
            congestion=", ".join(names) or None,
            window_granted_near_bytes=self.granted_bytes(End.NEAR),
            window_granted_far_bytes=self.granted_bytes(End.FAR),
            mode=self.mode(workload),
            mean_rtt_us=sent.mean("rtt_us"),
            min_rtt_us=sent.min_rtt_us,
            efficiency_percent=None if again is None else 100 * (1 - again),
        )

    def _senders(self, workload: Workload) -> list[SocketInfo]:
        return [facts for facts in self._open.values() if facts.end is sender_of(facts.direction, workload)]

    def granted_bytes(self, end: End) -> int | None:
        """Return the smallest window that an end's kernel has granted; None if none is known."""
        return _least(facts.window_granted_bytes for facts in self._open.values() if facts.end is end)


class ProbeSum:
    """The latency probe's measurements, before the load and under it."""

    def __init__(self) -> None:
        self._has_probe = False
        self._idle = _ProbeResultSum()
        self._loaded = _ProbeResultSum()
        self._recent: deque[tuple[int, ProbeSample]] = deque()

    def add_idle(self, sample: ProbeSample | None) -> None:
        """Add the sample from before the payload."""
        if sample is not None:
            self._has_probe = True
            self._idle.add_probe(sample)

    def begin(self) -> None:
        """Drop the recent samples: they are of other settings."""
        self._recent.clear()

    def add_loaded(self, sample: Sample, *, is_warmup: bool) -> None:
        """Add an interval under load."""
        if sample.probe is None:
            return
        self._recent.append((sample.elapsed_ns, sample.probe))
        while self._recent[0][0] <= sample.elapsed_ns - _RECENT_PROBE_NS:
            self._recent.popleft()
        if not is_warmup:
            self._has_probe = True
            self._loaded.add_probe(sample.probe)

    @property
    def idle(self) -> ProbeResult | None:
        """The result before the load; None if there is none."""
        return self._idle.result

    @property
    def recent(self) -> ProbeResult | None:
        """The result of the last ten seconds under these settings, the warm-up included, with the newest RTT."""
        sums = _ProbeResultSum()
        for _, sample in self._recent:
            sums.add_probe(sample)
        return None if sums.result is None else replace(sums.result, rtt_us=self._recent[-1][1].rtt_us)

    @property
    def summary(self) -> ProbeSummary | None:
        """Both results; None if the run had no probe."""
        return ProbeSummary(self._idle.result, self._loaded.result) if self._has_probe else None


class _ProbeResultSum:
    """The probe's results over some samples."""

    def __init__(self) -> None:
        self._span_ns = 0
        self._counts: dict[int, int] = {}
        self._rtt_us = Histogram()

    def add_probe(self, sample: ProbeSample) -> None:
        self._span_ns += sample.span_ns
        merge_counts(self._counts, zip(sample.latency.buckets, sample.latency.counts, strict=True))
        if sample.rtt_us is not None:
            self._rtt_us.count_value(sample.rtt_us)

    @property
    def result(self) -> ProbeResult | None:
        if not self._span_ns:
            return None
        transactions = sum(self._counts.values())
        return ProbeResult(transactions, self._span_ns, summarize_latency(self._counts), self._rtt_us.median)


class Warnings:
    """Texts in order of first occurrence, each once, up to a limit; and their kinds."""

    def __init__(self) -> None:
        self._texts: dict[str, set[WarningKind]] = {}
        self._left_out = 0

    def add_warning(self, text: str, kind: WarningKind = WarningKind.OTHER) -> None:
        """Add a text. The same one may come from the other end, as another kind."""
        if text in self._texts or len(self._texts) < _MAX_WARNINGS:
            self._texts.setdefault(text, set()).add(kind)
        else:
            self._left_out += 1

    def of_kind(self, kind: WarningKind) -> tuple[str, ...]:
        """Return the texts of a kind."""
        return tuple(text for text, kinds in self._texts.items() if kind in kinds)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts, with the number of further ones at the end."""
        more = (f"further warnings left out here: {self._left_out}",) if self._left_out else ()
        return (*self._texts, *more)


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
