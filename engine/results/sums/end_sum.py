"""What one end's host spent and counted: CPU of its cores and of linkgauge, waits for a core, interface, drops."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...model.plan import MIB
from ...model.samples import CoreTimes, HostDrops, NicCounts, Sample
from ..counter_sums import (
    add_cores,
    add_host_drops,
    add_known,
    add_nic_counts,
    core_percents,
    host_percent,
    hottest_core_percent,
)
from ..summary import CpuSummary
from .other_tests_sum import OtherTestsSum


def _time_share(time_ns: int | None, span_ns: int) -> float | None:
    """Return the share of a span, at most 1: threads and cores count their waits side by side."""
    return None if time_ns is None or not span_ns else min(1.0, time_ns / span_ns)


@dataclass(slots=True)
class EndSum:
    """The CPU times of one end's cores, linkgauge's processes and their waits, and the counters of its kernel."""

    span_ns: int = 0
    process_ns: int = 0
    process_span_ns: int = 0
    worker_ns: int | None = None
    worker_wait_ns: int | None = None
    quota_wait_ns: int | None = None
    nic: NicCounts | None = None
    drops: HostDrops | None = None
    others: OtherTestsSum = field(default_factory=OtherTestsSum)
    _cores: list[CoreTimes] = field(default_factory=list[CoreTimes])

    def add(self, sample: Sample) -> None:
        """Add a sample of this end."""
        self.span_ns += sample.interval_ns
        if sample.process_cpu_ns is not None:
            self.process_ns += sample.process_cpu_ns
            self.process_span_ns += sample.interval_ns
        self._add_host(sample.busiest_worker_ns, sample.nic, sample.cores or ())
        self.drops = add_host_drops(self.drops, sample.drops)
        self.others.add(sample)
        if sample.waits is not None:
            self._add_waits(sample.waits.worker_ns, sample.waits.quota_ns)

    def set_totals(self, cpu_ns: int | None, span_ns: int) -> None:
        """Take the CPU time of an end without samples from what it reports at the end."""
        self.span_ns = self.span_ns or span_ns
        if cpu_ns is not None:
            self.process_ns, self.process_span_ns = cpu_ns, span_ns

    def extend(self, other: "EndSum") -> None:
        """Add another sum, over another time."""
        self.span_ns += other.span_ns
        self.process_ns += other.process_ns
        self.process_span_ns += other.process_span_ns
        self._add_host(other.worker_ns, other.nic, other.cores)
        self.drops = add_host_drops(self.drops, other.drops)
        self.others.extend(other.others)
        self._add_waits(other.worker_wait_ns, other.quota_wait_ns)

    def _add_waits(self, worker_ns: int | None, quota_ns: int | None) -> None:
        self.worker_wait_ns = add_known(self.worker_wait_ns, worker_ns)
        self.quota_wait_ns = add_known(self.quota_wait_ns, quota_ns)

    def _add_host(self, worker_ns: int | None, nic: NicCounts | None, cores: Iterable[CoreTimes]) -> None:
        self.worker_ns = add_known(self.worker_ns, worker_ns)
        self.nic = add_nic_counts(self.nic, nic)
        add_cores(self._cores, cores)

    @property
    def cores(self) -> tuple[CoreTimes, ...]:
        """The sums of each core's times; the position is the core's number."""
        return tuple(self._cores)

    @property
    def process_share(self) -> float | None:
        """How many cores linkgauge's processes used; None where no sample knows their CPU time."""
        return self.process_ns / self.process_span_ns if self.process_span_ns else None

    @property
    def worker_share(self) -> float | None:
        """The share of a core that the busiest worker process used."""
        return None if self.worker_ns is None or not self.span_ns else self.worker_ns / self.span_ns

    @property
    def wait_share(self) -> float | None:
        """The share of time for which the worker that waited longest was ready to run and had no core."""
        return _time_share(self.worker_wait_ns, self.span_ns)

    @property
    def quota_share(self) -> float | None:
        """The share of time for which a CPU quota stopped linkgauge's processes; None without a quota."""
        return _time_share(self.quota_wait_ns, self.span_ns)

    def summary(self, payload_bytes: int, transactions: int = 0) -> CpuSummary:
        """Return the mean loads, and the cost of the payload received in both directions together."""
        # Samples without a process time are assumed to be like the others.
        cpu_ms = None if self.process_share is None else self.process_share * self.span_ns / 1e6
        return CpuSummary(
            host_percent=host_percent(self._cores),
            hottest_core_percent=hottest_core_percent(self._cores),
            process_percent=None if self.process_share is None else 100 * self.process_share,
            msec_per_mib=cpu_ms / (payload_bytes / MIB) if cpu_ms is not None and payload_bytes else None,
            msec_per_transaction=cpu_ms / transactions if cpu_ms is not None and transactions else None,
            core_percents=core_percents(self._cores),
        )
