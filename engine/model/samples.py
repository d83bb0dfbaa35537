"""What the engine measures and says: samples, events and the summary of a run.

Pure data. `None` is unknown, `0` is measured. The events of a run are one stream; the run log stores
every one of them, and everything else (rows of the CSV, the summary, the gauges) can be made from them again.
"""

from dataclasses import dataclass
from itertools import pairwise

from .latency_histogram import BUCKET_COUNT
from .plan import Direction, End


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
        if any(a >= b for a, b in pairwise(buckets)) or (
            buckets and not 0 <= buckets[0] <= buckets[-1] < BUCKET_COUNT
        ):
            raise ValueError(f"latency buckets that do not rise from 0 to {BUCKET_COUNT - 1}")

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
