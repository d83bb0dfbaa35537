"""TCP_INFO: the kernel's figures for a TCP connection. Linux only; unknown elsewhere."""

import fcntl
import socket
import struct
import sys
from collections.abc import Callable
from itertools import accumulate
from typing import Final, NamedTuple

from ..model.counters.session_counters import TCP_COUNTER_NAMES, TCP_COUNTERS, KernelUnit, TcpCounter

# The fields of struct tcp_info (linux/tcp.h), in three parts: a kernel has each part as a whole or not at all.
_PARTS: Final = (
    8 * "B" + 24 * "I",  # Linux 2.6: state, options … total_retrans
    4 * "Q" + 6 * "I" + 4 * "Q",  # Linux 4.10: pacing_rate … sndbuf_limited
    2 * "I" + 2 * "Q" + 4 * "I",  # Linux 5.4: delivered … snd_wnd
)
_LAYOUTS: Final = tuple(struct.Struct("=" + codes) for codes in accumulate(_PARTS))
_OLDEST: Final = _LAYOUTS[0]
_BUFFER_BYTES: Final = 256
_SIOCOUTQ: Final = 0x5411  # linux/sockios.h
_SO_MEMINFO: Final = 55  # asm-generic/socket.h
_MEMORY: Final = struct.Struct("=9I")  # linux/sock_diag.h
_UNKNOWN_MEMORY: Final = 9 * (None,)
_INT_BYTES: Final = 4
_OFFSETS: Final = tuple(accumulate((struct.calcsize("=" + code) for code in "".join(_PARTS)), initial=0))
_FIELD_COUNT: Final = len(_OFFSETS) - 1
_OPTIONS, _MSS, _LAST_DATA_RECEIVED, _LAST_ACK_RECEIVED, _BYTES_ACKED = map(_OFFSETS.index, (5, 16, 52, 56, 120))
_PROBES, _TIMEOUTS, _APP_LIMITED, _RECEIVED_MSS, _RECEIVE_RTT, _BYTES_RECEIVED, _NEEDLESS, _REORDERED = map(
    _OFFSETS.index, (3, 2, 7, 20, 92, 128, 216, 220)
)
_WINDOW: Final = slice(232, 236)  # tcpi_rcv_wnd, Linux 6.2
BYTES_MOVED: Final = slice(120, 136)
"""The bytes of struct tcp_info that count the payload, acknowledged and received (Linux 4.10)."""
_OPTION_TIMESTAMPS, _OPTION_SACK, _OPTION_WINDOW_SCALING = 1, 2, 4

_NO_RATE: Final = 2**56  # more than any line; all ones mean no limit
_NO_RTT: Final = 2**32 - 1


def _measured_rtt(rtt_us: int, _mss_bytes: int) -> int | None:
    return None if rtt_us in {0, _NO_RTT} else rtt_us


def _bit_rate(bytes_s: int, _mss_bytes: int) -> int | None:
    return bytes_s * 8 if 0 < bytes_s < _NO_RATE else None


def _segments(count: int, mss_bytes: int) -> int:
    return count * mss_bytes


_CONVERSIONS: Final[dict[KernelUnit, Callable[[int, int], int | None]]] = {
    "rtt_us": _measured_rtt,
    "bytes_s": _bit_rate,
    "segments": _segments,
}


def _position(counter: TcpCounter) -> int:
    """Return the place of a counter's word: SO_MEMINFO's follow TCP_INFO's."""
    if counter.source == "memory":
        return _FIELD_COUNT + counter.offset // _INT_BYTES
    return _OFFSETS.index(counter.offset)


_COUNTER_FIELDS: Final = tuple((_position(counter), _CONVERSIONS.get(counter.unit)) for counter in TCP_COUNTERS)
_PEER_WINDOW_COUNTER: Final = TCP_COUNTER_NAMES.index("peer_window_bytes")
_RTT_COUNTER: Final = TCP_COUNTER_NAMES.index("rtt_us")
_MIN_RTT_COUNTER: Final = TCP_COUNTER_NAMES.index("min_rtt_us")


class TcpInfo(NamedTuple):
    """A connection's TCP_INFO: options, counters, signs of life.

    None if this kernel does not report them. `counters` are in the order of the table of TCP counters, and in the
    units of their names. `bytes_acked` and `bytes_received` count since the connection was made; `receive_idle_ms`
    is the time since anything came from the other end, data or an acknowledgement. `probes` are those of a closed
    window that have no answer yet, and `timeouts` of retransmission follow each other without an answer.
    `needless_retransmits` are retransmits of segments that had arrived (RFC 2883), and `reordered` is how often
    segments overtook others on the way, as the sender saw it. `window_bytes` is the receive window
    that this end advertises. `is_app_limited` tells whether the sender lacked data when the newest delivery was
    measured. `receive_rtt_us` is the receiver's estimate of the round trip, and `received_mss_bytes` its
    estimate of the segments that arrive.
    """

    timestamps: bool
    sack: bool
    window_scaling: bool
    mss_bytes: int
    bytes_acked: int | None
    receive_idle_ms: int
    counters: tuple[int | None, ...]
    bytes_received: int | None = None
    probes: int = 0
    timeouts: int = 0
    needless_retransmits: int | None = None
    reordered: int | None = None
    window_bytes: int | None = None
    is_app_limited: bool = False
    receive_rtt_us: int | None = None
    received_mss_bytes: int | None = None

    @property
    def peer_window_bytes(self) -> int | None:
        """The receive window of the other end; None if the kernel does not report it."""
        return self.counters[_PEER_WINDOW_COUNTER]

    @property
    def rtt_us(self) -> int | None:
        """The smoothed round trip; None if the kernel has not measured one."""
        return self.counters[_RTT_COUNTER]

    @property
    def min_rtt_us(self) -> int | None:
        """The shortest round trip of the last minutes; None if the kernel has not measured one."""
        return self.counters[_MIN_RTT_COUNTER]


def parse_tcp_info(data: bytes, memory: tuple[int, ...] | None = None) -> TcpInfo | None:
    """Return the content of a kernel's struct tcp_info; None if it is shorter than Linux 2.6's.

    `memory` is the same socket's (`read_socket_memory`).
    """
    if len(data) < _OLDEST.size:
        return None
    layout = next(layout for layout in reversed(_LAYOUTS) if len(data) >= layout.size)
    fields: tuple[int, ...] = layout.unpack_from(data)
    known = len(fields)
    options, mss_bytes = fields[_OPTIONS], fields[_MSS]
    words: tuple[int | None, ...] = (*fields, *(_FIELD_COUNT - known) * (None,), *(memory or _UNKNOWN_MEMORY))
    counters = [
        word if convert is None or word is None else convert(word, mss_bytes)
        for word, convert in ((words[position], convert) for position, convert in _COUNTER_FIELDS)
    ]
    return TcpInfo(
        timestamps=bool(options & _OPTION_TIMESTAMPS),
        sack=bool(options & _OPTION_SACK),
        window_scaling=bool(options & _OPTION_WINDOW_SCALING),
        mss_bytes=mss_bytes,
        bytes_acked=fields[_BYTES_ACKED] if known > _BYTES_ACKED else None,
        receive_idle_ms=min(fields[_LAST_DATA_RECEIVED], fields[_LAST_ACK_RECEIVED]),
        counters=tuple(counters),
        bytes_received=fields[_BYTES_RECEIVED] if known > _BYTES_RECEIVED else None,
        probes=fields[_PROBES],
        timeouts=fields[_TIMEOUTS],
        needless_retransmits=fields[_NEEDLESS] if known > _NEEDLESS else None,
        reordered=fields[_REORDERED] if known > _REORDERED else None,
        window_bytes=int.from_bytes(data[_WINDOW], sys.byteorder) if len(data) >= _WINDOW.stop else None,
        is_app_limited=bool(fields[_APP_LIMITED] & 1),
        receive_rtt_us=fields[_RECEIVE_RTT] or None,
        received_mss_bytes=fields[_RECEIVED_MSS] or None,
    )


def read_bytes_taken(sock: socket.socket) -> int | None:
    """Return how many bytes a connection's kernel has taken: `bytes_acked` once all of them are acknowledged.

    None if the kernel does not report it.
    """
    while True:
        waiting = _count_waiting(sock)
        info = read_tcp_info(sock)
        if info is None or info.bytes_acked is None:
            return None
        if waiting == _count_waiting(sock):  # otherwise an acknowledgement came in between
            return info.bytes_acked + waiting


def _count_waiting(sock: socket.socket) -> int:
    """Return the bytes that are unsent, or sent and not acknowledged."""
    if sys.platform != "linux":
        return 0
    try:
        return int.from_bytes(fcntl.ioctl(sock, _SIOCOUTQ, bytes(_INT_BYTES)), sys.byteorder)
    except OSError:
        return 0


def read_tcp_info(sock: socket.socket) -> TcpInfo | None:
    """Return TCP_INFO of a connected socket; None on systems whose layout is not Linux's."""
    if sys.platform != "linux":
        return None
    try:
        data = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BUFFER_BYTES)
        return parse_tcp_info(data, read_socket_memory(sock))
    except OSError:
        return None


def read_socket_memory(sock: socket.socket) -> tuple[int, ...] | None:
    """Return the words of SO_MEMINFO (linux/sock_diag.h) of any socket; None if the system does not report them."""
    if sys.platform != "linux":
        return None
    try:
        data = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMORY.size)
    except OSError:  # Linux before 4.12
        return None
    return parse_socket_memory(data)


def parse_socket_memory(data: bytes) -> tuple[int, ...] | None:
    """Return the words of SO_MEMINFO; None if a kernel does not report all of them."""
    return _MEMORY.unpack_from(data) if len(data) >= _MEMORY.size else None
