"""The probe beside a stream: how it asks, and what a run makes of its answers.

Pure. The near end asks for one byte with one byte, so that a packet each way is all that it adds. One request is
in flight at a time and none goes out sooner than 10 ms after the last: 100 a second at most, which take 0.7 % of a
10 Mb/s link and 0.007 % of one of 1 Gb/s. With more in flight, TCP would hold requests back in the sender
and their time would be the connection's own; with one, it is the path's and both hosts'. So an answer that
takes longer than 10 ms holds the next request back, and percentiles are of the requests that were made.
"""

from typing import Final

from .latency import latency_of, merge
from .plan import SECOND_NS
from .samples import Probed, ProbeSample, ProbeSummary
from .summary import Histogram

IDLE_NS: Final = SECOND_NS


class _Sum:
    """What the probe found over some samples."""

    def __init__(self) -> None:
        self._span_ns = 0
        self._counts: dict[int, int] = {}
        self._rtt_us = Histogram()

    def add(self, sample: ProbeSample) -> None:
        self._span_ns += sample.span_ns
        merge(self._counts, zip(sample.latency.buckets, sample.latency.counts, strict=True))
        if sample.rtt_us is not None:
            self._rtt_us.add(sample.rtt_us)

    @property
    def probed(self) -> Probed | None:
        if not self._span_ns:
            return None
        transactions = sum(self._counts.values())
        return Probed(transactions, self._span_ns, latency_of(self._counts), self._rtt_us.median)


class ProbeSum:
    """What the probe of a run found before the load, and under it."""

    def __init__(self) -> None:
        self._has_probe = False
        self._idle = _Sum()
        self._loaded = _Sum()

    def idle(self, sample: ProbeSample | None) -> None:
        """Take in what it found before payload flowed."""
        if sample is not None:
            self._has_probe = True
            self._idle.add(sample)

    def loaded(self, sample: ProbeSample | None) -> None:
        """Add an interval under load; the warm-up is left out by who calls."""
        if sample is not None:
            self._has_probe = True
            self._loaded.add(sample)

    @property
    def summary(self) -> ProbeSummary | None:
        """Both, None where the run had no probe."""
        return ProbeSummary(self._idle.probed, self._loaded.probed) if self._has_probe else None
