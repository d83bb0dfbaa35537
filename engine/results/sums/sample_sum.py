"""The sums over some samples of both ends, and the samples that belong in them: in order, or the newest ones."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from ...model.events import Sampled, Totals
from ...model.plan import Direction, End, Settings, sender_of
from ...model.samples import Sample, combine
from ...model.workload import Workload
from ..confidence import RateSeries
from ..udp.datagram_sums import DatagramSum
from .end_sum import EndSum
from .receiver_sum import ReceiverSum
from .sender_sum import SenderSum

MAX_BEHIND: Final = 2_400
"""The number of intervals by which one end may be behind the other: ten minutes of the usual ones."""


class SampleOrder:
    """Admits each end's samples in the order of their indexes, and none that is too far behind the other end's.

    Ask it before a sample is added anywhere: if one consumer leaves a sample out, all of them do.
    """

    def __init__(self) -> None:
        self._newest = {End.NEAR: -1, End.FAR: -1}

    def admits(self, sample: Sample) -> bool:
        """Return whether the sample follows its end's last one and lasted some time; remember its index if so."""
        if sample.index <= max(self._newest[sample.end], self._given_up) or sample.interval_ns <= 0:
            return False
        self._newest[sample.end] = sample.index
        return True

    @property
    def complete_index(self) -> int:
        """The index up to which no sample can come any more; -1 before."""
        return max(min(self._newest.values()), self._given_up)

    @property
    def reached_by_any(self) -> int:
        """The index of the newest sample of either end; -1 before."""
        return max(self._newest.values())

    @property
    def _given_up(self) -> int:
        """The index up to which samples of the end that is behind do not count: memory must have a limit."""
        return self.reached_by_any - MAX_BEHIND


class SampleSum:
    """The sums over some samples taken under one setting: of each end, and of each single direction.

    With `has_series`, the receivers' sums hold their intervals' rates, for an estimate of the error. Without
    `has_senders`, TCP's counters are left out: they take most of the time.
    """

    def __init__(self, workload: Workload, *, has_series: bool = False, has_senders: bool = True) -> None:
        self.workload = workload
        self.ends = {end: EndSum() for end in End}
        self.sent = {flow: SenderSum() for flow in Direction.DUPLEX.flows if has_senders}
        self.received = {
            flow: ReceiverSum(
                is_transactional=workload.is_transactional,
                series=RateSeries() if has_series else None,
                datagrams=DatagramSum() if workload.is_datagram else None,
            )
            for flow in Direction.DUPLEX.flows
        }

    def add_sample(self, sample: Sample, flows: Iterable[Direction]) -> None:
        """Add the directions of a sample that its setting runs. Of a drain, only the datagrams count."""
        for flow in flows:
            datagrams = self.received[flow].datagrams
            if datagrams is not None:
                datagrams.add_sample(sample, flow)
        if sample.is_drain:
            return
        self.ends[sample.end] = combine((self.ends[sample.end], EndSum.of(sample)))
        for flow in flows:
            if sender_of(flow, self.workload) is not sample.end:
                self.received[flow].add_sample(sample, flow)
            elif flow in self.sent:
                self.sent[flow].add_sample(sample, flow)

    def set_totals(self, totals: Totals, flows: Iterable[Direction]) -> None:
        """Take the figures of an end without samples: its results as receiver and as sender."""
        if totals.span_ns <= 0:
            return
        self.ends[totals.end] = self.ends[totals.end].with_totals(totals.cpu_ns, totals.span_ns)
        for flow in flows:
            sessions = [session for session in totals.sessions if session.direction is flow]
            if not sessions:
                continue
            span_ns = max(session.span_ns for session in sessions)
            span_ns = span_ns if span_ns > 0 else totals.span_ns
            datagrams, is_sender = self.received[flow].datagrams, sender_of(flow, self.workload) is totals.end
            if is_sender:
                self.sent[flow].set_totals(sessions, span_ns)
            else:
                self.received[flow].set_totals(sessions, span_ns)
            if datagrams is not None:
                datagrams.set_totals(flow, sessions, span_ns, is_sender=is_sender)


class RecentSamples:
    """The samples of the last `span_ns` of each end under the newest settings, by that end's clock.

    They include at least the newest one. Call `begin` with the first settings, and after each change. `newest` is
    the sample that came last, None before the first.
    """

    def __init__(self, span_ns: int) -> None:
        self._span_ns = span_ns
        self.settings: Settings | None = None
        self.newest: Sampled | None = None
        self._start_ns = 0
        self._samples: dict[End, deque[Sampled]] = {end: deque() for end in End}

    def begin(self, settings: Settings, start_ns: int) -> None:
        """Drop all samples: from now on, only those of these settings count."""
        self.settings, self._start_ns, self.newest = settings, start_ns, None
        for samples in self._samples.values():
            samples.clear()

    def keep_sample(self, event: Sampled) -> bool:
        """Add an end's next sample, which is not of the drain, and drop those that are too old now.

        Return whether it counts. A late sample counts for earlier settings only, even if they are the same.
        """
        if event.settings != self.settings or event.sample.elapsed_ns <= self._start_ns:
            return False
        samples = self._samples[event.sample.end]
        samples.append(event)
        while not _is_within(samples[0], event, self._span_ns):
            samples.popleft()
        self.newest = event
        return True

    def of_end(self, end: End, span_ns: int | None = None) -> tuple[Sample, ...]:
        """Return an end's samples, the newest one last: all of them, or those of a shorter span."""
        samples, span_ns = self._samples[end], self._span_ns if span_ns is None else span_ns
        return tuple(event.sample for event in samples if _is_within(event, samples[-1], span_ns))

    def sum_measured(self, workload: Workload, flows: Sequence[Direction]) -> SampleSum:
        """Return the sums over both ends' samples after the warm-up."""
        sums = SampleSum(workload)
        for samples in self._samples.values():
            for event in samples:
                if not event.warmup:
                    sums.add_sample(event.sample, flows)
        return sums

    def sum_shown(self, workload: Workload, flows: Sequence[Direction], span_ns: int) -> SampleSum:
        """Return the sums that the gauges show: of a shorter span, and in the warm-up, too."""
        sums = SampleSum(workload, has_senders=False)
        for end in End:
            for sample in self.of_end(end, span_ns):
                sums.add_sample(sample, flows)
        return sums


def _is_within(event: Sampled, newest: Sampled, span_ns: int) -> bool:
    return event is newest or event.sample.elapsed_ns > newest.sample.elapsed_ns - span_ns
