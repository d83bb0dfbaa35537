"""The summary of a run: rates, latency, CPU and TCP, as frozen dataclasses.

Pure data. `None` is unknown, `0` is measured. A summary can be rebuilt from the run's events at any time.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

from ..model.counters.latency_histogram import LatencySummary
from ..model.directions import Direction, End, PerDirection
from ..model.expected_rate import Expectation, ExpectedRate
from ..model.plan import SECOND_NS, Dialect, Mode, Plan, Settings
from ..model.run_end import Reason, RunEnd
from .confidence import Estimate
from .path.path_result import PathResult
from .rate_and_loss import lost_percent, per_second, percent_of
from .responsiveness.result import Responsiveness

DatagramMode = Literal["rate", "quality", "mixed"]
Counter = Literal["receiver", "sender"]
# A shorter round trip is the work of the hosts, and its minimum depends on their timers: it is not a path's.
_LEAST_PATH_RTT_US: Final = 100.0
_LEAST_FRAME_PAYLOAD: Final = 46  # of Ethernet (IEEE 802.3)


@dataclass(frozen=True, slots=True)
class LossByHost:
    """Where datagrams were lost: in the hosts of the two ends, or in the network between them."""

    near: int | None
    far: int | None
    network: int | None


@dataclass(frozen=True, slots=True)
class CapacitySummary:
    """The results of a search for the capacity of a direction (RFC 9097).

    `bit_s` is the payload of the best second, with its loss, delay variation and round trip. `loss_free_bit_s` is
    the highest rate whose loss stayed within the goal for five seconds; None if there was none. A search that was
    cut off is not `is_complete`.
    """

    bit_s: int
    lost_percent: float
    delay_variation_ns: int
    rtt_ns: int
    loss_free_bit_s: int | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class DatagramSummary:
    """The datagrams of a direction, or of both: as many fields as there are figures in a document.

    `received` counts different datagrams. Those `in_time` came before the drain at the end of the run, and make the
    rate. `sent` are the received and the lost, or the sender's count if nothing arrived. `skipped` datagrams were
    not sent, because the sender was held up. `late` ones came too long after others, and stay lost.

    `reordered` datagrams came after one with a higher number, `reordered_3` after three of them; `max_extent` is
    the largest distance in datagrams (RFC 4737). `bursts` are series of lost ones. The jitter is that of RFC 3550,
    `delay_variation` is the one-way delay above the minimum (RFC 5481), and `delay_rise_ns` its mean.
    `return_rise_ns` is the same for the receiver's reports on their way back. The largest values may be from the
    warm-up of their period.

    `datagram_bytes` and the two bytes of IP's type of service are None if there were several. `asked_bit_s` is the
    last rate that all sessions had to send; None is unlimited, or unknown. `sent_bit_s` is the rate that they sent,
    by the sender's clock. `capacity` is the result of a search, in a single direction.
    """

    in_time: int | None
    sent: int | None
    skipped: int | None
    received: int | None
    lost: int | None
    lost_at: LossByHost | None
    duplicates: int | None
    late: int | None
    reordered: int | None
    reordered_3: int | None
    max_extent: int | None
    bursts: int | None
    longest_burst: int | None
    jitter_mean_ns: float | None
    jitter_max_ns: int | None
    delay_variation: LatencySummary | None
    delay_rise_ns: float | None
    return_rise_ns: float | None
    rtt_us: int | None
    datagram_bytes: int | None
    mode: DatagramMode | None
    sent_tos: int | None
    received_tos: int | None
    ce_marks: int | None
    asked_bit_s: int | None
    capacity: CapacitySummary | None = None
    sent_bit_s: float | None = None

    @property
    def lost_percent(self) -> float | None:
        """The lost datagrams in percent of the received and the lost; None if neither is known."""
        return lost_percent(self.lost, self.received or 0)

    @property
    def reordered_percent(self) -> float | None:
        """The reordered datagrams in percent of the received."""
        return percent_of(self.reordered, self.received)

    @property
    def reordered_3_percent(self) -> float | None:
        """The datagrams that TCP would take for lost, in percent of the received."""
        return percent_of(self.reordered_3, self.received)

    @property
    def mean_burst(self) -> float | None:
        """The mean length of the bursts of loss; None without any."""
        return None if self.lost is None or not self.bursts else self.lost / self.bursts


@dataclass(frozen=True, slots=True)
class Measurement:
    """The payload received by the application, on the receiver's clock; `transactions` is None for streams.

    `estimate` is the rate in bit/s with its error (confidence.py). It is None if too few intervals were measured,
    and for several periods, because different settings have no common mean. `counted_by` is `sender` if the
    receiver has reported nothing: then the bytes are those that it acknowledged, or for UDP the sent ones.
    """

    bytes: int
    span_ns: int
    transactions: int | None = None
    latency: LatencySummary | None = None
    estimate: Estimate | None = field(default=None, compare=False)  # equal counts are equal measurements
    datagrams: DatagramSummary | None = None
    counted_by: Counter = "receiver"

    @property
    def bit_s(self) -> float:
        """The payload rate, bits per second."""
        return self.bytes * 8 * SECOND_NS / self.span_ns

    @property
    def transactions_s(self) -> float | None:
        """Transactions a second; None for streams."""
        return per_second(self.transactions, self.span_ns)

    @property
    def result_bit_s(self) -> float:
        """The rate to compare with the expected one: after a search, that of the best second."""
        capacity = None if self.datagrams is None else self.datagrams.capacity
        return self.bit_s if capacity is None else capacity.bit_s

    def percent_of(self, expected: ExpectedRate) -> float | None:
        """Return the result in percent of the expected rate, or of its transactions; None if 0 is expected."""
        if expected.transactions_s and self.transactions_s is not None:
            return percent_of(self.transactions_s, expected.transactions_s)
        return percent_of(self.result_bit_s, expected.bit_s)

    @property
    def packets_s(self) -> float | None:
        """Different datagrams received in a second; None for TCP."""
        return None if self.datagrams is None else per_second(self.datagrams.in_time, self.span_ns)

    @property
    def transactions_estimate(self) -> Estimate | None:
        """Transactions a second with their error, scaled from the rate, since all responses have the same size."""
        if self.estimate is None or not self.transactions or not self.bytes:
            return None
        return self.estimate.scaled(self.transactions / (self.bytes * 8))


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The probe's transactions in a span of time, their latency, and the median RTT of its TCP connection."""

    transactions: int
    span_ns: int
    latency: LatencySummary | None
    rtt_us: int | None


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """The probe's results before payload flowed, and under load without warm-up; None if not measured."""

    idle: ProbeResult | None
    loaded: ProbeResult | None


@dataclass(frozen=True, slots=True)
class CpuSummary:
    """CPU of one end over the measured part of a run.

    `host_percent` is the mean over all cores, `hottest_core_percent` the busiest single core's mean,
    `process_percent` the engine's own processes in percent of one core, `msec_per_mib` their CPU
    milliseconds for each MiB of payload carried in either direction, `msec_per_transaction` those for each
    transaction. `core_percents` has each core's mean, by number.
    """

    host_percent: float | None
    hottest_core_percent: float | None
    process_percent: float | None
    msec_per_mib: float | None
    msec_per_transaction: float | None = None
    core_percents: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TcpSummary:
    """TCP of a run: `rtt_us` is the median over senders and samples, the granted windows the smallest.

    `mode` is how payload moved: the senders' mode, or `discard` if a receiver dropped it. `mean_rtt_us` is the mean
    of the same round trips, `min_rtt_us` the shortest one that a kernel reported. `efficiency_percent` is the share
    of the transmitted payload that was not a retransmission (TCP Efficiency of RFC 6349, section 4.3).
    """

    retransmits: int | None
    rtt_us: int | None
    mss_bytes: int | None
    congestion: str | None
    window_granted_near_bytes: int | None
    window_granted_far_bytes: int | None
    mode: Mode | None = None
    mean_rtt_us: float | None = None
    min_rtt_us: int | None = None
    efficiency_percent: float | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """A part of a run with constant settings, without its warm-up.

    `start_ns` is the time of the settings' change; the first measured interval began `warmup_ns` later.
    """

    settings: Settings
    expectation: Expectation
    measured: PerDirection[Measurement | None]
    start_ns: int = field(default=0, compare=False)
    warmup_ns: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PacketOverhead:
    """The bytes around the payload of each datagram; `frame_bytes` None is unknown, or no Ethernet.

    They turn a rate of UDP payload into the rate of IP packets, which RFC 9097 counts, and into the line's rate.
    """

    header_bytes: int
    frame_bytes: int | None = None

    def ip_bit_s(self, payload_bit_s: float, packets_s: float) -> float:
        """Return the rate of whole IP packets."""
        return payload_bit_s + packets_s * self.header_bytes * 8

    def wire_bit_s(self, payload_bit_s: float, packets_s: float) -> float | None:
        """Return the rate on an Ethernet line, gaps included; None without such a line."""
        if self.frame_bytes is None:
            return None
        frames_bit_s = max(self.ip_bit_s(payload_bit_s, packets_s), packets_s * _LEAST_FRAME_PAYLOAD * 8)
        return frames_bit_s + packets_s * self.frame_bytes * 8


@dataclass(frozen=True, slots=True)
class OtherTestsSummary:
    """The other tests of the endpoint in the measured time of a run; none at all if `most_tests` is 0.

    `most_tests` ran beside it at the same time at most, with `most_sessions`. The rates are means over the whole
    measured time, of payload that the endpoint received and sent.
    """

    most_tests: int
    most_sessions: int
    received_bit_s: float
    sent_bit_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a run, and of each of its periods: a field for each part that some runs have and others lack.

    `measured` has each direction's results under the newest settings with which it was measured, and the newest
    total. If the settings never changed, these are of the whole run. `expectation` has their expected rates.

    `overhead` is the overhead of datagrams; None for TCP, or if it is unknown. `unseen_end` is the end that is an
    iperf3, or another program, as `dialect` says: its host is unknown. An iperf3 reports totals at the end. Only a
    run that measures latency under load has `responsiveness`. `others` is None if the endpoint did not report its
    other tests. `elapsed_ns` is the time of the newest sample, warm-up included; None before the first.
    `unknown_ns` is the time before the end for which a receiver's samples are missing: up to two intervals if the
    run ended in order. `path` has the hops between the ends; None if they were not traced.
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
    overhead: PacketOverhead | None = None
    unseen_end: End | None = None
    responsiveness: Responsiveness | None = None
    unknown_ns: int = 0
    others: OtherTestsSummary | None = None
    elapsed_ns: int | None = None
    path: PathResult | None = None
    dialect: Dialect = Dialect.LINKGAUGE

    @property
    def is_whole(self) -> bool:
        """Whether the run took its time, or carried its bytes: only then it can be judged.

        A run without an end of its own is whole whenever the user ends it.
        """
        return self.end.reason is Reason.COMPLETED or not (self.end.reason.is_fault or self.plan.has_end)

    @property
    def was_cut_short(self) -> bool:
        """Whether the user ended the run before its end."""
        return not (self.is_whole or self.end.reason.is_fault)

    @property
    def measurements(self) -> tuple[tuple[Direction, Measurement], ...]:
        """Each measured direction with its results, and both together if they ran at the same time."""
        out, in_ = self.measured.out, self.measured.in_
        both = self.total_of_one_time if out and in_ else None
        parts = ((Direction.OUT, out), (Direction.IN, in_), (Direction.DUPLEX, both))
        return tuple((direction, measured) for direction, measured in parts if measured is not None)

    @property
    def payload_bytes(self) -> int:
        """The received payload of all periods, without their warm-ups."""
        return sum(period.measured.total.bytes for period in self.periods if period.measured.total is not None)

    @property
    def newest_direction(self) -> Direction | None:
        """The direction of the newest settings with a measurement; None without any."""
        newest = (period for period in reversed(self.periods) if period.measured.total is not None)
        return next((period.settings.direction for period in newest), None)

    @property
    def total_of_one_time(self) -> Measurement | None:
        """The total; None if the directions were measured one after the other, and so have no total."""
        has_both = self.measured.out is not None and self.measured.in_ is not None
        is_apart = has_both and self.newest_direction in Direction.DUPLEX.flows
        return None if is_apart else self.measured.total

    @property
    def transfer_time_ratio(self) -> float | None:
        """The time for these bytes as a multiple of the ideal time (TCP Transfer Time Ratio of RFC 6349).

        The ideal time is that at the line's payload rate by the wire model. None without a line, for several
        directions, and for a rate that such a line cannot carry.
        """
        total, directions = self.measured.total, {period.settings.direction for period in self.periods}
        if not self._is_tcp_stream or total is None or not total.bytes or len(directions) != 1:
            return None
        expected = self.expectation[directions.pop()]
        if expected is None or not expected.most_bit_s or expected.is_exceeded_by(total.bit_s):
            return None
        return expected.most_bit_s / total.bit_s

    @property
    def base_rtt_us(self) -> float | None:
        """The round trip of the path without its queues: the minimum of the idle probe's and of TCP's."""
        idle = None if self.probe is None or self.probe.idle is None else self.probe.idle.latency
        shortest = (self.tcp.min_rtt_us, None if idle is None else idle.min_ns / 1_000)
        return min((rtt_us for rtt_us in shortest if rtt_us), default=None)

    @property
    def buffer_delay_us(self) -> float | None:
        """The mean round trip above the round trip of the path without its queues."""
        base_us, mean_us = self.base_rtt_us, self.tcp.mean_rtt_us
        if not self._is_tcp_stream or base_us is None or mean_us is None:
            return None
        return max(0.0, mean_us - base_us)

    @property
    def buffer_delay_percent(self) -> float | None:
        """The buffer delay in percent of the path's own round trip (RFC 6349, section 4.3).

        None if there is no path to speak of, as over loopback or between two containers.
        """
        base_us, delay_us = self.base_rtt_us, self.buffer_delay_us
        if base_us is None or delay_us is None or base_us < _LEAST_PATH_RTT_US:
            return None
        return percent_of(delay_us, base_us)

    @property
    def efficiency_percent(self) -> float | None:
        """TCP Efficiency of RFC 6349 (see TcpSummary); None if payload is not a stream over TCP."""
        return self.tcp.efficiency_percent if self._is_tcp_stream else None

    @property
    def _is_tcp_stream(self) -> bool:
        return self.plan.workload.is_bulk and not self.plan.workload.is_datagram
