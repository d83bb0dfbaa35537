"""Samples: the counters of one interval, of one end, on that end's own monotonic clock, and how they combine.

Pure; `None` is unknown, `0` is measured. Samples of neighbouring intervals combine into one of the whole time,
field by field: by the table of TCP counters, by the field's metadata, and otherwise by their sum.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import pairwise, zip_longest
from operator import attrgetter
from typing import Any, Final, TypeVar

from ..directions import Direction, End
from ..serialization import OMITTED_AT_DEFAULT
from .latency_histogram import BUCKET_COUNT, merge_counts
from .session_counters import TCP_COUNTERS, DatagramSample

T = TypeVar("T")

PEAK: Final[dict[str, object]] = {"combines": "peak"}
LEAST: Final[dict[str, object]] = {"combines": "least"}
MEAN: Final[dict[str, object]] = {"combines": "mean"}
GAUGE: Final[dict[str, object]] = {"combines": "gauge"}
PERCENTILE: Final[dict[str, object]] = {"combines": "percentile"}  # of several intervals, it is unknown
PART: Final[dict[str, object]] = {"combines": "part"}  # a value with such fields of its own
FLOWS: Final[dict[str, object]] = {"combines": "flows"}  # such values, one for each direction
SESSIONS: Final[dict[str, object]] = {"combines": "sessions"}  # and one for each session of a direction
CORES: Final[dict[str, object]] = {"combines": "cores"}


@dataclass(frozen=True, slots=True)
class CoreTimes:
    """The time of one core of the host during an interval, nanoseconds (proc(5), /proc/stat)."""

    user_ns: int
    system_ns: int
    softirq_ns: int
    steal_ns: int
    idle_ns: int

    @property
    def busy_ns(self) -> int:
        """All but idle. Stolen time counts as busy: it was not available."""
        return self.user_ns + self.system_ns + self.softirq_ns + self.steal_ns

    @property
    def busy_fraction(self) -> float:
        """The busy share of the interval, 0 to 1."""
        whole = self.busy_ns + self.idle_ns
        return self.busy_ns / whole if whole > 0 else 0.0


# A table: each field is a counter of the wire format.
@dataclass(frozen=True, slots=True)
class SessionSample:
    """One session in one direction, seen from one end, during an interval.

    `bytes` counts the bytes that this end's application received or, if it sends, that the other end's kernel
    acknowledged. Transactions and their latency are known at the end that sends the requests; they are None
    elsewhere, and for streams. All other fields are the TCP counters of this end's socket (TCP_INFO, tcp(7); see
    session_counters.py): cumulative ones by their rise during the interval, the rest as they stand at its end.

    At the sending end these are retransmitted segments and bytes; the times in which it was busy sending
    (`busy_us`), limited by the peer's window (`rwnd_limited_us`) or by its own send buffer (`sndbuf_limited_us`);
    round trips, windows, and the rates at which TCP paces and delivers. `unsent_bytes` are in the send buffer and
    have not been sent yet (tcpi_notsent_bytes), `unacked_bytes` have been sent in segments that nothing has
    acknowledged (tcpi_unacked); `max_pacing_bit_s` is the limit that a program has set (SO_MAX_PACING_RATE, None
    without one). `send_memory_bytes` is the memory that both take, of the `send_buffer_bytes` that
    they may take (SO_MEMINFO). At the receiving end they are packets out of order, the bytes that the application
    reads in a round trip (`rcv_space_bytes`), and the memory of what it has not read, of what that may take.

    Only a connection of another program has the last three, at its sending end: of the retransmits, those of
    segments that had arrived (tcpi_dsack_dups, RFC 2883), how often segments overtook others (tcpi_reord_seen), and
    1 if TCP lacked data when the newest delivery was measured, else 0 (tcpi_delivery_rate_app_limited).
    """

    direction: Direction = field(metadata=GAUGE)
    session: int = field(metadata=GAUGE)
    bytes: int
    retransmits: int | None = None
    rtt_us: int | None = None
    cwnd_bytes: int | None = None
    mss_bytes: int | None = None
    busy_us: int | None = None
    rwnd_limited_us: int | None = None
    sndbuf_limited_us: int | None = None
    transactions: int | None = None
    latency_p50_ns: int | None = field(default=None, metadata=PERCENTILE)
    latency_p99_ns: int | None = field(default=None, metadata=PERCENTILE)
    bytes_retrans: int | None = None
    min_rtt_us: int | None = None
    pacing_bit_s: int | None = None
    delivery_bit_s: int | None = None
    peer_window_bytes: int | None = None
    out_of_order: int | None = None
    rcv_space_bytes: int | None = None
    unsent_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    unacked_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    max_pacing_bit_s: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    send_memory_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    send_buffer_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    unread_memory_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    receive_buffer_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    needless_retransmits: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    reordered: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    app_limited: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT | GAUGE)


@dataclass(frozen=True, slots=True)
class LatencyCounts:
    """The latency histogram of all sessions of a direction during an interval (latency_histogram.py).

    `buckets` ascend, and each has its count, at least one, in `counts`.
    """

    direction: Direction
    buckets: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def by_bucket(self) -> dict[int, int]:
        """The count of each bucket."""
        return dict(zip(self.buckets, self.counts, strict=True))

    def __post_init__(self) -> None:
        """Raise ValueError for impossible counts: percentiles are computed from these."""
        buckets = self.buckets
        if len(buckets) != len(self.counts) or any(count < 1 for count in self.counts):
            raise ValueError("latency counts without a bucket for each, or below one")
        if any(a >= b for a, b in pairwise(buckets)) or (
            buckets and not 0 <= buckets[0] <= buckets[-1] < BUCKET_COUNT
        ):
            raise ValueError(f"latency buckets that do not rise from 0 to {BUCKET_COUNT - 1}")

    @property
    def transactions(self) -> int:
        """The number of transactions."""
        return sum(self.counts)


@dataclass(frozen=True, slots=True)
class NicCounts:
    """The counters of an interface during an interval (/proc/net/dev), all traffic included.

    `errors` are frames that arrived broken or could not be sent, `dropped` those that found no room in a queue.
    """

    received_bytes: int
    sent_bytes: int
    errors: int
    dropped: int
    collisions: int


@dataclass(frozen=True, slots=True)
class HandshakeSample:
    """New connections to the far end beside the load: their TCP handshakes, and the first answer on each.

    `connect` has the times of connect(2), `answer` those from the request on the new connection to its answer.
    `failed` are connections that were refused, or had no answer by their deadline.
    """

    connect: LatencyCounts = field(metadata=PART)
    answer: LatencyCounts = field(metadata=PART)
    failed: int = 0


@dataclass(frozen=True, slots=True)
class DatagramProbeSample:
    """UDP datagrams that the far end echoes, at a fixed pace whatever their latency.

    `latency` has their round trips without the far end's own time. `rise_out` and `rise_in` have the one-way delay
    of each direction above the shortest one so far (RFC 5481). Of the `sent` ones, those without an echo are lost
    or still on their way: `answered` may be from an earlier interval.
    """

    sent: int
    answered: int
    latency: LatencyCounts = field(metadata=PART)
    rise_out: LatencyCounts = field(metadata=PART)
    rise_in: LatencyCounts = field(metadata=PART)


@dataclass(frozen=True, slots=True)
class ProbeSample:
    """The probe's sample over `span_ns`: the latency of its transactions, and the RTT of its connection.

    A responsiveness test has two further kinds of probe; None if the path does not carry them.
    """

    latency: LatencyCounts = field(metadata=PART)
    span_ns: int
    rtt_us: int | None = field(default=None, metadata=GAUGE)
    handshakes: HandshakeSample | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)
    datagrams: DatagramProbeSample | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)


@dataclass(frozen=True, slots=True)
class QueueSample:
    """The queue at this end's interface: means and maximum of `readings` during an interval.

    `backlog_bytes` are in the interface's queueing discipline, all of its classes, `most_backlog_bytes` at the
    fullest reading, and it `dropped` packets. `driver_bytes` are with the driver and have not been sent (byte
    queue limits). None is unknown.
    """

    readings: int
    backlog_bytes: int | None = None
    most_backlog_bytes: int | None = None
    dropped: int | None = None
    driver_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CpuWaits:
    """The time for which processes of this end were ready to run and had no core.

    `worker_ns` is the time of the worker that waited longest in the run queue (/proc/PID/schedstat), whatever used
    the core meanwhile. `quota_ns` is the part for which a CPU quota stopped this end's processes (cpu.stat of their
    cgroup, summed over cores); None if no quota is set.
    """

    worker_ns: int | None = None
    quota_ns: int | None = None


@dataclass(frozen=True, slots=True)
class HostDrops:
    """The packets that the kernel of this end's host dropped during an interval, those of other programs included.

    In the order of a packet's way out: `send_buffer` are datagrams that a socket could not send (SndbufErrors),
    `qdisc` packets of the interface's queueing discipline, `nic_sent` frames of the interface. On the way in:
    `nic_received` are frames for which the interface or the kernel had no room, `backlog` those of them for which
    the queue of their core was full (softnet_stat), `receive_buffer` are datagrams for which their socket had no
    room (RcvbufErrors), `receive_invalid` broken ones. `squeezed` is how often a core had to leave packets for
    later.
    """

    send_buffer: int | None = None
    qdisc: int | None = None
    nic_sent: int | None = None
    nic_received: int | None = None
    backlog: int | None = None
    squeezed: int | None = None
    receive_buffer: int | None = None
    receive_invalid: int | None = None


@dataclass(frozen=True, slots=True)
class OtherTests:
    """The load of the far endpoint's other tests during an interval, those of iperf3 clients included.

    `tests` are those that moved payload in it or shortly before, and `sessions` all of theirs in one direction. The
    endpoint received and sent `received_bytes` and `sent_bytes` of their payload. All are 0 if the run had the
    endpoint for itself.
    """

    tests: int = field(default=0, metadata=PEAK)
    sessions: int = field(default=0, metadata=PEAK)
    received_bytes: int = 0
    sent_bytes: int = 0


# The wire format of an end's reports; the fields that earlier versions know keep their places.
@dataclass(frozen=True, slots=True)
class Sample:
    """The counters of one interval, of one end, on that end's own monotonic clock.

    `index` counts intervals since the start and may skip if an end was held up; `elapsed_ns` is the interval's
    end. `process_cpu_ns` is user and system time of the engine's own processes, `busiest_worker_ns` the time of the
    busiest worker. `latency` has each direction whose requests this end sends. `probe` is the near end's,
    if the plan has one: its transactions are not the run's payload. A far end sends `waits` only to a near end
    that reads them (see `HostInfo.reads_waits`).

    `datagrams` has each UDP session, and `delay_variation` each direction whose datagrams this end receives: their
    one-way delays above the shortest one. A sample with `is_drain` follows the last one of a UDP run: it has the
    datagrams that were still on their way, and counts for no rate. `drops` has only a UDP run.

    With `is_from_sender` the bytes are those that the other end sent, as its own counters say: acknowledged ones
    over TCP, all over UDP. They stand in for a receiver that reports only at the end of the run (`Totals`), and
    everything but the sessions' bytes is unknown. `queue` has only a responsiveness test.

    A far end tells of `others` if the near end reads them (see `HostInfo.reads_others`); None is unknown.
    """

    end: End = field(metadata=GAUGE)
    index: int = field(metadata=GAUGE)
    elapsed_ns: int = field(metadata=GAUGE)
    interval_ns: int
    sessions: tuple[SessionSample, ...] = field(metadata=SESSIONS)
    cores: tuple[CoreTimes, ...] | None = field(default=None, metadata=CORES)
    process_cpu_ns: int | None = None
    latency: tuple[LatencyCounts, ...] = field(default=(), metadata=FLOWS)
    busiest_worker_ns: int | None = None
    nic: NicCounts | None = field(default=None, metadata=PART)
    probe: ProbeSample | None = field(default=None, metadata=PART)
    waits: CpuWaits | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)
    datagrams: tuple[DatagramSample, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT | SESSIONS)
    delay_variation: tuple[LatencyCounts, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT | FLOWS)
    is_drain: bool = field(default=False, metadata=OMITTED_AT_DEFAULT | GAUGE)
    drops: HostDrops | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)
    is_from_sender: bool = field(default=False, metadata=OMITTED_AT_DEFAULT | PEAK)
    queue: QueueSample | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)
    others: OtherTests | None = field(default=None, metadata=OMITTED_AT_DEFAULT | PART)

    def bytes_of(self, flow: Direction) -> int:
        """Return the bytes of all sessions of a single direction."""
        return sum(session.bytes for session in self.sessions if session.direction is flow)

    def for_unseen_receiver(self) -> "Sample | None":
        """Return a near end's acknowledged bytes as the sample of a far end that sends none; None without any."""
        parts = tuple(
            SessionSample(part.direction, part.session, part.bytes)
            for part in self.sessions
            if part.direction is Direction.OUT
        )
        if not parts or self.is_drain:
            return None
        return Sample(End.FAR, self.index, self.elapsed_ns, self.interval_ns, parts, is_from_sender=True)


def combine(parts: Sequence[T]) -> T:
    """Return samples of neighbouring intervals, or parts of them, as one of the whole time.

    They are of one class, and there is at least one. Parts that a sample has several of are combined by direction
    and session, and cores by their place.
    """
    return _combiner(type(parts[0]))(parts)


def combine_known(parts: Iterable[T | None]) -> T | None:
    """Return the known ones combined; None if there are none."""
    known = [part for part in parts if part is not None]
    return combine(known) if known else None


def latency_counts(parts: Iterable[LatencyCounts], flow: Direction) -> dict[int, int]:
    """Return the counts of a single direction by latency bucket (latency_histogram.py)."""
    for part in parts:
        if part.direction is flow:
            return part.by_bucket
    return {}


def sum_known(values: Iterable[int | None]) -> int | None:
    """Return the sum of the known values; None if all are unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def difference(before: T, after: T) -> T:
    """Return how far each counter rose between two readings, at least 0.

    A counter may step back: idle time does on Linux (proc(5)), and an interface may restart its counters.
    """
    read = _reader(type(after))
    return type(after)(*(max(0, now - was) for was, now in zip(read(before), read(after), strict=True)))


_Rule = Callable[[Sequence[Any]], Any]


def _newest(values: Sequence[int | None]) -> int | None:
    return next((value for value in reversed(values) if value is not None), None)


def _among_known(choose: Callable[..., int]) -> _Rule:
    return lambda values: choose((value for value in values if value is not None), default=None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    whole = sum(known)
    return None if not known else whole // len(known) if isinstance(whole, int) else whole / len(known)


@cache
def _combiner(kind: type[Any]) -> _Rule:
    """Return the function that combines the parts of a class; made once, because there are many samples."""
    if kind is LatencyCounts:
        return _combine_latency
    if kind is QueueSample:
        return _combine_queues
    kinds = {each.name: each.metadata.get("combines", "cumulative") for each in fields(kind)}
    if kind is SessionSample:
        kinds |= {counter.name: counter.kind for counter in TCP_COUNTERS}
    read, rules = _reader(kind), [COMBINING[name] for name in kinds.values()]
    return lambda parts: kind(
        *(rule(values) for rule, values in zip(rules, zip(*map(read, parts), strict=True), strict=True))
    )


@cache
def _reader(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    return attrgetter(*(each.name for each in fields(kind)))


def _combine_each(key_of: Callable[[Any], Any]) -> _Rule:
    def combine_each(values: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        parts: dict[Any, list[Any]] = {}
        for value in values:
            for part in value:
                parts.setdefault(key_of(part), []).append(part)
        return tuple(map(combine, parts.values()))

    return combine_each


def _combine_cores(values: Sequence[tuple[CoreTimes, ...] | None]) -> tuple[CoreTimes, ...] | None:
    """Return the times of each core; one may be switched on later."""
    known = [cores for cores in values if cores is not None]
    places = zip_longest(*known)
    return tuple(combine([core for core in place if core is not None]) for place in places) if known else None


def _combine_latency(parts: Sequence[LatencyCounts]) -> LatencyCounts:
    counts: dict[int, int] = {}
    for part in parts:
        merge_counts(counts, zip(part.buckets, part.counts, strict=True))
    return LatencyCounts(parts[0].direction, tuple(sorted(counts)), tuple(counts[key] for key in sorted(counts)))


def _combine_queues(parts: Sequence[QueueSample]) -> QueueSample:
    """Return the means over all readings, and the maximum of any."""
    most = [part.most_backlog_bytes for part in parts if part.most_backlog_bytes is not None]
    return QueueSample(
        sum(part.readings for part in parts),
        _mean_reading([(part.readings, part.backlog_bytes) for part in parts]),
        max(most, default=None),
        sum_known(part.dropped for part in parts),
        _mean_reading([(part.readings, part.driver_bytes) for part in parts]),
    )


def _mean_reading(parts: Sequence[tuple[int, int | None]]) -> int | None:
    known = [(readings, value) for readings, value in parts if value is not None]
    readings = sum(count for count, _ in known)
    return round(sum(count * value for count, value in known) / readings) if readings else None


COMBINING: Final[Mapping[str, _Rule]] = {
    "cumulative": lambda values: sum(values) if None not in values else sum_known(values),
    "peak": _among_known(max),
    "least": _among_known(min),
    "mean": _mean,
    "gauge": _newest,
    "percentile": lambda _values: None,
    "part": combine_known,
    "flows": _combine_each(attrgetter("direction")),
    "sessions": _combine_each(attrgetter("direction", "session")),
    "cores": _combine_cores,
}
