"""The sums of one end's host: CPU of its cores and of linkgauge, waits for a core, interface counters, drops."""

from dataclasses import dataclass, field, replace
from typing import Self

from ...model.counters.samples import CORES, PART, CoreTimes, CpuWaits, HostDrops, NicCounts, OtherTests, Sample
from ...model.plan import MIB
from ..rate_and_loss import core_percents, host_percent, hottest_core_percent, msec_each, percent_of
from ..summary import CpuSummary, OtherTestsSummary
from .other_tests_sum import summarize_others


def _time_share(time_ns: int | None, span_ns: int) -> float | None:
    """Return the share of a span, at most 1: threads and cores count their waits side by side."""
    return None if time_ns is None or not span_ns else min(1.0, time_ns / span_ns)


@dataclass(frozen=True, slots=True)
class EndSum:
    """The CPU times of one end's cores, linkgauge's processes and their waits, and the counters of its kernel.

    The sums of several samples or times combine as samples do. The position of a core's times is its number.
    """

    span_ns: int = 0
    process_ns: int = 0
    process_span_ns: int = 0
    worker_ns: int | None = None
    waits: CpuWaits | None = field(default=None, metadata=PART)
    nic: NicCounts | None = field(default=None, metadata=PART)
    drops: HostDrops | None = field(default=None, metadata=PART)
    others: OtherTests | None = field(default=None, metadata=PART)
    others_span_ns: int = 0
    cores: tuple[CoreTimes, ...] | None = field(default=None, metadata=CORES)

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return the sum over one sample."""
        return cls(
            sample.interval_ns,
            sample.process_cpu_ns or 0,
            0 if sample.process_cpu_ns is None else sample.interval_ns,
            sample.busiest_worker_ns,
            sample.waits,
            sample.nic,
            sample.drops,
            sample.others,
            0 if sample.others is None else sample.interval_ns,
            sample.cores,
        )

    def with_totals(self, cpu_ns: int | None, span_ns: int) -> Self:
        """Return the sum with the CPU time that an end without samples reports at the end."""
        whole_ns = self.span_ns or span_ns
        if cpu_ns is None:
            return replace(self, span_ns=whole_ns)
        return replace(self, span_ns=whole_ns, process_ns=cpu_ns, process_span_ns=span_ns)

    @property
    def process_share(self) -> float | None:
        """How many cores linkgauge's processes used; None if no sample knows their CPU time."""
        return self.process_ns / self.process_span_ns if self.process_span_ns else None

    @property
    def worker_share(self) -> float | None:
        """The share of a core that the busiest worker process used."""
        return None if self.worker_ns is None or not self.span_ns else self.worker_ns / self.span_ns

    @property
    def wait_share(self) -> float | None:
        """The share of time for which the worker that waited longest was ready to run and had no core."""
        return _time_share(self.waits and self.waits.worker_ns, self.span_ns)

    @property
    def quota_share(self) -> float | None:
        """The share of time for which a CPU quota stopped linkgauge's processes; None without a quota."""
        return _time_share(self.waits and self.waits.quota_ns, self.span_ns)

    @property
    def others_summary(self) -> OtherTestsSummary | None:
        """The other tests of the endpoint; None if no sample has them."""
        return summarize_others(self.others, self.others_span_ns)

    def summary(self, payload_bytes: int, transactions: int = 0) -> CpuSummary:
        """Return the mean loads, and the cost of the payload received in both directions together."""
        # Samples without a process time are assumed to be like the others.
        cores = self.cores or ()
        cpu_ns = None if self.process_share is None else self.process_share * self.span_ns
        return CpuSummary(
            host_percent=host_percent(cores),
            hottest_core_percent=hottest_core_percent(cores),
            process_percent=percent_of(self.process_ns, self.process_span_ns),
            msec_per_mib=msec_each(cpu_ns, payload_bytes / MIB),
            msec_per_transaction=msec_each(cpu_ns, transactions),
            core_percents=core_percents(cores),
        )
