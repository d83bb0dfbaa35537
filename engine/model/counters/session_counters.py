"""The counters of a session, in the order in which shared memory has them, and its socket's options.

Pure. Worker processes import this and no other samples. Both tables are the wire format as well:

- A new counter of TCP is a row of `TCP_COUNTERS`, and a field of the same name in `SessionSample`.
- A new counter of datagrams is a field of `DatagramSample`.

All else follows from the tables: host/tcp_info.py reads TCP's counters from their offsets,
metering/shared_counters.py stores the counters in this order, metering/sampler.py takes the differences of the
cumulative ones, and the results add them up by their kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

from ..directions import Direction, End
from ..plan import Mode
from ..serialization import OMITTED_AT_DEFAULT


@dataclass(frozen=True, slots=True)
class SocketInfo:
    """The socket options of a session at one end, read back from the kernel after it was opened.

    `window_granted_bytes` is the receive buffer at the receiving end and the send buffer at the sending
    one, as far as an application may use it (Linux reports twice that, socket(7)); None if the window is auto.
    `mode` is how this end moves payload.
    """

    end: End
    direction: Direction
    session: int
    congestion: str | None
    window_granted_bytes: int | None
    mss_bytes: int | None
    timestamps: bool | None
    sack: bool | None
    window_scaling: bool | None
    mode: Mode = Mode.COPY


CounterKind = Literal["cumulative", "peak", "least", "gauge"]
"""How a counter's samples combine: their sum, the largest, the smallest, or the newest of them."""

KernelUnit = Literal["count", "bytes", "us", "rtt_us", "segments", "bytes_s"]
"""The kernel's unit. A round trip of 0 or all ones is unknown, and so is a rate without a limit."""


@dataclass(frozen=True, slots=True)
class TcpCounter:
    """A counter of struct tcp_info (linux/tcp.h): its name ends in the unit that linkgauge reports it in.

    `offset` is in bytes, in `source`: `memory` is the result of SO_MEMINFO (linux/sock_diag.h). A cumulative
    counter is reported as its rise during an interval, another one as it stands. `end` is the end of a session that
    reports it.
    """

    name: str
    unit: KernelUnit
    offset: int
    kind: CounterKind = "gauge"
    end: Literal["sender", "receiver"] = "sender"
    source: Literal["tcp_info", "memory"] = "tcp_info"


TCP_COUNTERS: Final = (
    TcpCounter("retransmits", "count", 100, "cumulative"),
    TcpCounter("busy_us", "us", 168, "cumulative"),
    TcpCounter("rwnd_limited_us", "us", 176, "cumulative"),
    TcpCounter("sndbuf_limited_us", "us", 184, "cumulative"),
    TcpCounter("rtt_us", "rtt_us", 68),
    TcpCounter("cwnd_bytes", "segments", 80),
    TcpCounter("mss_bytes", "bytes", 16),
    TcpCounter("bytes_retrans", "bytes", 208, "cumulative"),
    TcpCounter("min_rtt_us", "rtt_us", 148, "least"),
    TcpCounter("pacing_bit_s", "bytes_s", 104),
    TcpCounter("delivery_bit_s", "bytes_s", 160),
    TcpCounter("peer_window_bytes", "bytes", 228),
    TcpCounter("out_of_order", "count", 224, "cumulative", end="receiver"),
    TcpCounter("rcv_space_bytes", "bytes", 96, end="receiver"),
    TcpCounter("unsent_bytes", "bytes", 144),
    TcpCounter("unacked_bytes", "segments", 24),
    TcpCounter("max_pacing_bit_s", "bytes_s", 112),
    # In the kernel's memory, with the overhead of packets.
    TcpCounter("send_memory_bytes", "bytes", 20, source="memory"),
    TcpCounter("send_buffer_bytes", "bytes", 12, source="memory"),
    TcpCounter("unread_memory_bytes", "bytes", 0, source="memory", end="receiver"),
    TcpCounter("receive_buffer_bytes", "bytes", 4, source="memory", end="receiver"),
)
_CUMULATIVE: Final = tuple(
    position for position, counter in enumerate(TCP_COUNTERS) if counter.kind == "cumulative"
)
TCP_COUNTER_NAMES: Final = tuple(counter.name for counter in TCP_COUNTERS)
BUFFER_COUNTER_NAMES: Final = TCP_COUNTER_NAMES[TCP_COUNTER_NAMES.index("unsent_bytes") :]
"""The fill of a socket's buffers, and the limit of its pacing.

A far end reports them only to a near end that reads them (see `HostInfo.reads_buffers`).
"""


def since_last(before: Sequence[int | None] | None, after: Sequence[int | None]) -> dict[str, int | None]:
    """Return the TCP counters of two readings as a sample has them, by name: the cumulative ones as their rises.

    Without an earlier reading they started from zero.
    """
    values = list(after)
    for position in _CUMULATIVE:
        now, was = values[position], None if before is None else before[position]
        values[position] = None if now is None else max(0, now - (was or 0))
    return dict(zip(TCP_COUNTER_NAMES, values, strict=True))


def _sent(kind: CounterKind = "cumulative") -> Any:
    return field(default=None, metadata={"combines": kind, "end": "sender", **OMITTED_AT_DEFAULT})


def _received(kind: CounterKind = "cumulative") -> Any:
    return field(default=None, metadata={"combines": kind, "end": "receiver", **OMITTED_AT_DEFAULT})


# A table: each field is a counter, in the order of the shared memory.
@dataclass(frozen=True, slots=True)
class DatagramSample:
    """The datagrams of one UDP session in one direction, seen from one end.

    Cumulative counters are their rise during the interval. The other end's counters are None.

    At the sending end: datagrams that were `sent`, of which the own kernel dropped `send_dropped` (ENOBUFS);
    `skipped` ones that its pacing gave up because this end was held up. `datagram_bytes` is the UDP payload of
    each, `rate_bit_s` the session's set rate, 0 without a limit, `is_grouped` 1 in mode `rate`.
    `return_delay_us` is how much the one-way delay of the receiver's reports has risen above their shortest. A
    search for the rate (workloads/udp/capacity_search.py) has a `search_phase`, the second in which most arrived so
    far with its loss, delay variation and round trip (`best_bit_s` to `best_rtt_us`), and `loss_free_bit_s`.

    At the receiving end: `advanced` is the rise of the highest number, `received` are different datagrams, so that
    `advanced - received` are missing so far. A datagram that comes later takes its loss back, unless it is `late`:
    older than the receiver remembers. `reordered` came after a higher number, `reordered_3` after three of them
    (RFC 4737); `extent` is the largest reordering in packets. `gaps` are runs of missing numbers. `socket_dropped`
    are those for which this end's socket had no room, as the kernel counts them. `jitter_sum_ns / jitter_count` is
    the mean jitter (RFC 3550). `ce_marks` are datagrams with the ECN mark for congestion (RFC 3168).
    """

    direction: Direction = field(metadata={"combines": "gauge"})
    session: int = field(metadata={"combines": "gauge"})
    sent: int | None = _sent()
    send_dropped: int | None = _sent()
    skipped: int | None = _sent()
    datagram_bytes: int | None = _sent("gauge")
    rate_bit_s: int | None = _sent("gauge")
    is_grouped: int | None = _sent("gauge")
    sent_tos: int | None = _sent("gauge")
    rtt_us: int | None = _sent("gauge")
    return_delay_us: int | None = _sent("gauge")
    search_phase: int | None = _sent("gauge")
    best_bit_s: int | None = _sent("gauge")
    best_lost_ppm: int | None = _sent("gauge")
    best_delay_us: int | None = _sent("gauge")
    best_rtt_us: int | None = _sent("gauge")
    loss_free_bit_s: int | None = _sent("gauge")
    advanced: int | None = _received()
    received: int | None = _received()
    duplicates: int | None = _received()
    late: int | None = _received()
    reordered: int | None = _received()
    reordered_3: int | None = _received()
    extent: int | None = _received("peak")
    gaps: int | None = _received()
    gap_longest: int | None = _received("peak")
    socket_dropped: int | None = _received()
    invalid: int | None = _received()
    jitter_sum_ns: int | None = _received()
    jitter_count: int | None = _received()
    jitter_max_ns: int | None = _received("peak")
    ce_marks: int | None = _received()
    received_tos: int | None = _received("gauge")
    receive_buffer_bytes: int | None = _received("gauge")


@dataclass(frozen=True, slots=True)
class DatagramCounter:
    """A counter of datagrams, and the end of a session that reports it."""

    name: str
    kind: CounterKind
    end: Literal["sender", "receiver"]


DATAGRAM_COUNTERS: Final = tuple(
    DatagramCounter(each.name, each.metadata["combines"], each.metadata["end"])
    for each in fields(DatagramSample)
    if "end" in each.metadata
)
SEARCH_DONE: Final = 3  # the counter `search_phase` once the search has its results
DATAGRAM_COUNTER_NAMES: Final = tuple(counter.name for counter in DATAGRAM_COUNTERS)
