"""What the engine measures and says: samples, events and the summary of a run.

Pure data. `None` is unknown, `0` is measured. The events of a run are one stream; the run log stores
every one of them, and everything else (rows of the CSV, the summary, the gauges) can be made from them again.
"""

from dataclasses import dataclass, field

from ..model.events import Expectation, RunEnd
from ..model.latency_histogram import LatencySummary
from ..model.plan import SECOND_NS, Mode, PerDirection, Plan, Settings
from .confidence import Estimate


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a receiver's application got, on the receiver's clock; `transactions` is None for streams.

    `steady` is the rate in bit/s with its error (interval.py): None where too few intervals were measured, and
    where they are of more than one stretch, for a mean over several settings is no steady state.
    """

    bytes: int
    span_ns: int
    transactions: int | None = None
    latency: LatencySummary | None = None
    estimate: Estimate | None = field(default=None, compare=False)  # what was counted is the same without it

    @property
    def bit_s(self) -> float:
        """The payload rate, bits per second."""
        return self.bytes * 8 * SECOND_NS / self.span_ns

    @property
    def transactions_s(self) -> float | None:
        """Transactions a second; None for streams."""
        return None if self.transactions is None else self.transactions * SECOND_NS / self.span_ns

    @property
    def transactions_estimate(self) -> Estimate | None:
        """Transactions a second with their error: answers are of one size, so it is the rate's own."""
        if self.estimate is None or not self.transactions or not self.bytes:
            return None
        return self.estimate.scaled(self.transactions / (self.bytes * 8))


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the probe found in some time: how many transactions, how long they took, and its TCP's median RTT."""

    transactions: int
    span_ns: int
    latency: LatencySummary | None
    rtt_us: int | None


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """Latency before payload flowed, and under load with the warm-up left out; None where that was not measured."""

    idle: ProbeResult | None
    loaded: ProbeResult | None


@dataclass(frozen=True, slots=True)
class CpuSummary:
    """CPU of one end over the measured part of a run.

    `host_percent` is the mean over all cores, `hottest_core_percent` the busiest single core's mean,
    `process_percent` the engine's own processes in percent of one core, `msec_per_mib` their CPU
    milliseconds for each MiB of payload carried in either direction, `msec_per_transaction` those for each
    transaction.
    """

    host_percent: float | None
    hottest_core_percent: float | None
    process_percent: float | None
    msec_per_mib: float | None
    msec_per_transaction: float | None = None


@dataclass(frozen=True, slots=True)
class TcpSummary:
    """TCP of a run: `rtt_us` is the median over senders and samples, the granted windows the smallest.

    `mode` is how payload moved: what the senders did, or `discard` where a receiver dropped it.
    """

    retransmits: int | None
    rtt_us: int | None
    mss_bytes: int | None
    congestion: str | None
    window_granted_near_bytes: int | None
    window_granted_far_bytes: int | None
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a run under one setting, its warm-up left out. `total` is both directions together.

    `start_ns` is when the setting came, and `warmup_ns` how long after that the first measured interval began.
    """

    settings: Settings
    expectation: Expectation
    measured: PerDirection[Measurement | None]
    start_ns: int = field(default=0, compare=False)
    warmup_ns: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run measured, whole and in stretches.

    `expectation` is the mean of the stretches' expectations, each weighted with the time it was measured
    for, so that a percentage of it is bytes carried over bytes that should have been. A direction has an
    expected rate only where each of its stretches has one.
    """

    plan: Plan
    measured: PerDirection[Measurement | None]
    expectation: Expectation
    periods: tuple[Period, ...]
    near_cpu: CpuSummary
    far_cpu: CpuSummary
    tcp: TcpSummary
    warnings: tuple[str, ...]
    end: RunEnd
    probe: ProbeSummary | None = None
