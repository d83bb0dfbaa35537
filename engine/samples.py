"""What the engine measures and says: samples, events and the summary of a run.

Pure data. `None` is unknown, `0` is measured. The events of a run are one stream; the run log stores
every one of them, and everything else (rows of the CSV, the summary, the gauges) can be made from them again.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final, Literal

from .granted import SocketFacts
from .interval import Steady
from .latency import BUCKETS, Latency
from .plan import SECOND_NS, Direction, End, Mode, Plan, Settings

_MIN_MTU_BYTES: Final = 68  # RFC 791: every link carries a packet of that size
_MAX_MTU_BYTES: Final = 1 << 32  # what the kernel's word for it holds
_MOST_BIT_S: Final = 10**15  # a thousand times what the fastest interfaces have
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class CoreTimes:
    """What one core of the host did during an interval, nanoseconds (proc(5), /proc/stat)."""

    user_ns: int
    system_ns: int
    softirq_ns: int
    steal_ns: int
    idle_ns: int

    @property
    def busy_ns(self) -> int:
        """All but idle; stolen time counts, for it was not there to be used."""
        return self.user_ns + self.system_ns + self.softirq_ns + self.steal_ns

    @property
    def busy_fraction(self) -> float:
        """Busy share of the interval, 0 to 1."""
        whole = self.busy_ns + self.idle_ns
        return self.busy_ns / whole if whole > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SessionSample:
    """One session in one direction, seen from one end, during an interval.

    `bytes` is what this end's application received where it receives, and what the other end's kernel
    acknowledged where it sends. The rest is TCP_INFO (tcp(7)) of this end's socket at the interval's end;
    `retransmits` counts segments during the interval; the three `…_us` times are the interval's share in
    which this end was busy sending, was held by the peer's window, and by its own send buffer. Transactions
    and their latency are known where they are asked for; None elsewhere, and for streams. The rest is for telling
    why it is not faster: what was sent again during the interval, the smallest round trip, the rates at which TCP
    sends (`pacing`) and got through (`delivery`), and the window that the peer grants; at the receiving end the
    packets that came out of order during the interval, and what its application reads in a round trip.
    """

    direction: Direction
    session: int
    bytes: int
    retransmits: int | None = None
    rtt_us: int | None = None
    cwnd_bytes: int | None = None
    mss_bytes: int | None = None
    busy_us: int | None = None
    rwnd_limited_us: int | None = None
    sndbuf_limited_us: int | None = None
    transactions: int | None = None
    latency_p50_ns: int | None = None
    latency_p99_ns: int | None = None
    bytes_retrans: int | None = None
    min_rtt_us: int | None = None
    pacing_bit_s: int | None = None
    delivery_bit_s: int | None = None
    peer_window_bytes: int | None = None
    out_of_order: int | None = None
    rcv_space_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LatencyCounts:
    """How many transactions of all sessions of a direction took how long during an interval (latency.py).

    `buckets` rise, and each has its count, at least one, in `counts`.
    """

    direction: Direction
    buckets: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what no interval can have counted: percentiles are made of these."""
        buckets = self.buckets
        if len(buckets) != len(self.counts) or any(count < 1 for count in self.counts):
            raise ValueError("latency counts without a bucket for each, or below one")
        if any(a >= b for a, b in pairwise(buckets)) or (buckets and not 0 <= buckets[0] <= buckets[-1] < BUCKETS):
            raise ValueError(f"latency buckets that do not rise from 0 to {BUCKETS - 1}")

    @property
    def transactions(self) -> int:
        """How many transactions these are."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class NicCounts:
    """What an interface counted during an interval (/proc/net/dev), everybody's traffic included.

    `errors` are frames that came in broken or could not be sent, `dropped` those for which there was no room.
    """

    received_bytes: int
    sent_bytes: int
    errors: int
    dropped: int
    collisions: int


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """What the probe beside a stream found in `span_ns`: how long its transactions took, and its TCP's RTT."""

    latency: LatencyCounts
    span_ns: int
    rtt_us: int | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of one interval, of one end, on that end's own monotonic clock.

    `index` counts intervals since the start and may skip where an end was held up; `elapsed_ns` is the
    interval's end. `process_cpu_ns` is user and system time of the engine's own processes, `busiest_worker_ns` that
    of the one worker that used most. `latency` is there for each direction whose transactions this end asks for.
    `probe` is the near end's, where the plan has one: its transactions are none of the run's payload.
    """

    end: End
    index: int
    elapsed_ns: int
    interval_ns: int
    sessions: tuple[SessionSample, ...]
    cores: tuple[CoreTimes, ...] | None = None
    process_cpu_ns: int | None = None
    latency: tuple[LatencyCounts, ...] = ()
    busiest_worker_ns: int | None = None
    nic: NicCounts | None = None
    probe: ProbeSample | None = None


@dataclass(frozen=True, slots=True)
class NicFacts:
    """The network interface that carries a connection, as its own kernel describes it.

    `sort` is `device` for hardware or what a hypervisor presents as such, `virtual` for what the kernel
    makes up itself. `kind` is a device's driver (`ixgbe`, `virtio_net`) or a virtual interface's kind (`veth`,
    `vlan`). `line_rate_bit_s` is None where there is no line, or none whose rate is known. `tso` to `lro` are
    the offloads' states: segmentation by the NIC and by the kernel, merging by the kernel and by the NIC.
    `qdisc` is the queue that packets leave by.
    """

    name: str
    sort: Literal["device", "virtual", "wireless", "loopback"]
    kind: str | None = None
    line_rate_bit_s: int | None = None
    duplex: Literal["full", "half"] | None = None
    mtu_bytes: int | None = None
    tso: bool | None = None
    gso: bool | None = None
    gro: bool | None = None
    lro: bool | None = None
    qdisc: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no interface can have: expected rates are computed from these."""
        rate, mtu = self.line_rate_bit_s, self.mtu_bytes
        has_rate = rate is None or 1 <= rate <= _MOST_BIT_S
        if not has_rate or not (mtu is None or _MIN_MTU_BYTES <= mtu <= _MAX_MTU_BYTES):
            raise ValueError(f"an interface of {rate} bit/s and MTU {mtu}")
        if max(len(self.name), len(self.kind or "")) > _LONGEST_NAME:
            raise ValueError(f"an interface's name of more than {_LONGEST_NAME} characters")


@dataclass(frozen=True, slots=True)
class TcpFacts:
    """What a kernel lets TCP have (tcp(7), socket(7)); None where it does not tell.

    `rmem_max_bytes` and `wmem_max_bytes` bound what a program may ask for as a buffer, `tcp_rmem_max_bytes` and
    `tcp_wmem_max_bytes` what the kernel may grow one to by itself. `congestion` is the default congestion control.
    """

    rmem_max_bytes: int | None = None
    wmem_max_bytes: int | None = None
    tcp_rmem_max_bytes: int | None = None
    tcp_wmem_max_bytes: int | None = None
    window_scaling: bool | None = None
    timestamps: bool | None = None
    congestion: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no kernel can say: windows are computed from these."""
        limits = (self.rmem_max_bytes, self.wmem_max_bytes, self.tcp_rmem_max_bytes, self.tcp_wmem_max_bytes)
        if any(limit is not None and limit < 1 for limit in limits):
            raise ValueError(f"buffer limits of {limits} bytes")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Who an end is, the interface that carries its control connection, and its kernel's limits, where known.

    Text from a peer has had its control characters taken out.
    """

    hostname: str
    system: str
    cores: int
    software: str
    event_loop: str
    nic: NicFacts | None = None
    tcp: TcpFacts | None = None

    def __post_init__(self) -> None:
        """Refuse what no host has."""
        if max(map(len, (self.hostname, self.system, self.software, self.event_loop))) > _LONGEST_NAME:
            raise ValueError(f"a host's name or system of more than {_LONGEST_NAME} characters")


# What was held up somewhere and comes at once makes a rate a little more than a wire's for a moment.
_BEYOND: Final = 1.2


@dataclass(frozen=True, slots=True)
class Expected:
    """A rate to expect of a link, and where that comes from.

    Where it is one of transactions, `transactions_s` is what counts, and `bit_s` the payload that they carry.
    `most_bit_s` is what the wire of such a link can carry, where it has one that can be computed.
    """

    bit_s: int
    basis: Literal["documented", "computed"]
    source: str
    transactions_s: float | None = None
    most_bit_s: int | None = None

    def is_beyond(self, bit_s: float | None) -> bool:
        """Return whether no such link carries a rate: it is another link, then."""
        return bit_s is not None and self.most_bit_s is not None and bit_s > _BEYOND * self.most_bit_s


@dataclass(frozen=True, slots=True)
class Expectation:
    """The rates to expect of each direction and of both together; None where nothing can be expected."""

    out: Expected | None = None
    in_: Expected | None = None
    total: Expected | None = None


class Reason(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"  # its duration was up
    STOPPED = "stopped"  # the person stopped it
    INTERRUPTED = "interrupted"  # a signal stopped the near end
    PEER_STOPPED = "peer_stopped"  # the far end stopped it
    PEER_LOST = "peer_lost"  # the far end vanished
    SESSION_LOST = "session_lost"  # a data connection broke
    WORKER_LOST = "worker_lost"  # a worker process ended by itself
    FAILED = "failed"  # anything else that broke

    @property
    def is_regular(self) -> bool:
        """Whether the run went as the person wanted it to."""
        return self in {Reason.COMPLETED, Reason.STOPPED}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run ended: the reason for programs, the detail for people."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Started:
    """Both ends are ready and the clocks have started. Always a run's first event.

    `idle` is what the probe found before payload flowed.
    """

    started_utc: str
    peer: str
    near: HostFacts
    far: HostFacts
    plan: Plan
    expectation: Expectation
    idle: ProbeSample | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session is open at one end, with what the kernel granted it."""

    facts: SocketFacts


@dataclass(frozen=True, slots=True)
class Changed:
    """The person changed a setting; from here on samples are taken under the new ones."""

    elapsed_ns: int
    settings: Settings
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class Sampled:
    """One end's sample, the settings it was taken under, and whether it belongs to a warm-up."""

    sample: Sample
    settings: Settings
    warmup: bool


@dataclass(frozen=True, slots=True)
class Warned:
    """Something a person should know about the figures; the run goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Always a run's last event."""

    end: RunEnd


Event = Started | Opened | Changed | Sampled | Warned | Ended


@dataclass(frozen=True, slots=True)
class Measured:
    """What a receiver's application got, on the receiver's clock; `transactions` is None for streams.

    `steady` is the rate in bit/s with its error (interval.py): None where too few intervals were measured, and
    where they are of more than one stretch, for a mean over several settings is no steady state.
    """

    bytes: int
    span_ns: int
    transactions: int | None = None
    latency: Latency | None = None
    steady: Steady | None = field(default=None, compare=False)  # what was counted is the same without it

    @property
    def bit_s(self) -> float:
        """The payload rate, bits per second."""
        return self.bytes * 8 * SECOND_NS / self.span_ns

    @property
    def transactions_s(self) -> float | None:
        """Transactions a second; None for streams."""
        return None if self.transactions is None else self.transactions * SECOND_NS / self.span_ns

    @property
    def steady_transactions(self) -> Steady | None:
        """Transactions a second with their error: answers are of one size, so it is the rate's own."""
        if self.steady is None or not self.transactions or not self.bytes:
            return None
        return self.steady.scaled(self.transactions / (self.bytes * 8))


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probe found in some time: how many transactions, how long they took, and its TCP's median RTT."""

    transactions: int
    span_ns: int
    latency: Latency | None
    rtt_us: int | None


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """Latency before payload flowed, and under load with the warm-up left out; None where that was not measured."""

    idle: Probed | None
    loaded: Probed | None


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
class Stretch:
    """A part of a run under one setting, its warm-up left out. `total` is both directions together.

    `start_ns` is when the setting came, and `warmup_ns` how long after that the first measured interval began.
    """

    settings: Settings
    expectation: Expectation
    out: Measured | None
    in_: Measured | None
    total: Measured | None = field(default=None, compare=False)
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
    out: Measured | None
    in_: Measured | None
    total: Measured | None
    expectation: Expectation
    stretches: tuple[Stretch, ...]
    near_cpu: CpuSummary
    far_cpu: CpuSummary
    tcp: TcpSummary
    warnings: tuple[str, ...]
    end: RunEnd
    probe: ProbeSummary | None = None
