"""A session's socket as the kernel reports it: the options in force, and the table of TCP counters.

Pure. Worker processes import this and no other samples. A new counter is a row of the table and a field of the
same name in `SessionSample`, which is its wire format. All else follows the table: host/tcp_info.py reads each
counter from its offset, metering/shared_counters.py stores them in this order, and metering/sampler.py takes the
differences of the cumulative ones.
"""

from dataclasses import dataclass
from typing import Final, Literal

from .plan import Direction, End, Mode


@dataclass(frozen=True, slots=True)
class SocketInfo:
    """The socket options of a session at one end, read back from the kernel after it was opened.

    `window_granted_bytes` is the receive buffer at the receiving end and the send buffer at the sending
    one, as an application may use it (Linux reports twice that, socket(7)); None where the window is auto.
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
"""What the kernel counts in. A round trip of 0 or all ones is unknown, and so is a rate without a limit."""


@dataclass(frozen=True, slots=True)
class TcpCounter:
    """A counter of struct tcp_info (linux/tcp.h): its name ends in the unit that linkgauge reports it in.

    `offset` is in bytes, in `source`: `memory` is what SO_MEMINFO returns (linux/sock_diag.h). A cumulative counter
    is reported as its rise during an interval, another one as it stands. `end` is the end of a session that reports
    it.
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
    # In the kernel's memory, with what packets take beyond their payload.
    TcpCounter("send_memory_bytes", "bytes", 20, source="memory"),
    TcpCounter("send_buffer_bytes", "bytes", 12, source="memory"),
    TcpCounter("unread_memory_bytes", "bytes", 0, source="memory", end="receiver"),
    TcpCounter("receive_buffer_bytes", "bytes", 4, source="memory", end="receiver"),
)
TCP_COUNTER_NAMES: Final = tuple(counter.name for counter in TCP_COUNTERS)
BUFFER_COUNTER_NAMES: Final = TCP_COUNTER_NAMES[TCP_COUNTER_NAMES.index("unsent_bytes") :]
"""What a socket's buffers hold, and the limit of its pace.

A far end tells only a near end that reads it (see `HostInfo.reads_buffers`).
"""
