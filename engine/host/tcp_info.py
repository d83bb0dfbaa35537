"""What the kernel knows of a TCP connection: TCP_INFO, read and unpacked."""

import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final

_OPTION_TIMESTAMPS: Final = 1
_OPTION_SACK: Final = 2
_OPTION_WINDOW_SCALING: Final = 4

# struct tcp_info of linux/tcp.h: eight single bytes, 24 words of 32 bits, then 64-bit and 32-bit counters
# that newer kernels append to (what an older one lacks is None). Offsets in bytes.
_HEAD: Final = struct.Struct("=8B24I")
_PACING_AND_BYTES: Final = struct.Struct("=4Q6I4Q")  # at 104: pacing … sndbuf_limited (Linux 4.10)
_RETRANS_AND_WINDOW: Final = struct.Struct("=2I2Q4I")  # at 192: delivered … snd_wnd (Linux 5.4)
_NO_RATE: Final = 2**56  # more than any line; ~0 is no limit
_NO_RTT: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The parts of TCP_INFO that linkgauge uses; None where this kernel does not tell."""

    timestamps: bool
    sack: bool
    window_scaling: bool
    mss_bytes: int
    rtt_us: int
    cwnd_bytes: int
    retransmits: int
    path_mtu_bytes: int
    bytes_acked: int | None
    min_rtt_us: int | None
    busy_us: int | None
    rwnd_limited_us: int | None
    sndbuf_limited_us: int | None
    rcv_space_bytes: int
    pacing_bit_s: int | None
    delivery_bit_s: int | None
    bytes_retrans: int | None
    out_of_order: int | None
    peer_window_bytes: int | None
    receive_idle_ms: int | None = None  # since anything came from the other end, data or an acknowledgement


def parse_tcp_info(data: bytes) -> TcpInfo | None:
    """Return what a kernel's struct tcp_info says; None where it is shorter than Linux 2.6's."""
    if len(data) < _HEAD.size:
        return None
    (_state, _ca, _retrans, _probes, _backoff, options, _wscale, _limited, *words) = _HEAD.unpack_from(data)
    snd_mss, pmtu, rtt, cwnd, total_retransmits = words[2], words[13], words[15], words[18], words[23]
    acked = min_rtt = busy = rwnd_limited = sndbuf_limited = pacing = delivery = None
    retransmitted = out_of_order = peer_window = None
    if len(data) >= _HEAD.size + _PACING_AND_BYTES.size:
        tail = _PACING_AND_BYTES.unpack_from(data, _HEAD.size)
        acked, min_rtt, busy, rwnd_limited, sndbuf_limited = tail[2], tail[7], tail[11], tail[12], tail[13]
        pacing, delivery = _per_second(tail[0]), _per_second(tail[10])
    if len(data) >= _HEAD.size + _PACING_AND_BYTES.size + _RETRANS_AND_WINDOW.size:
        newest = _RETRANS_AND_WINDOW.unpack_from(data, _HEAD.size + _PACING_AND_BYTES.size)
        retransmitted, out_of_order, peer_window = newest[3], newest[6], newest[7]
    return TcpInfo(
        timestamps=bool(options & _OPTION_TIMESTAMPS),
        sack=bool(options & _OPTION_SACK),
        window_scaling=bool(options & _OPTION_WINDOW_SCALING),
        mss_bytes=snd_mss,
        rtt_us=rtt,
        cwnd_bytes=cwnd * snd_mss,
        retransmits=total_retransmits,
        path_mtu_bytes=pmtu,
        bytes_acked=acked,
        min_rtt_us=_measured(min_rtt),
        busy_us=busy,
        rwnd_limited_us=rwnd_limited,
        sndbuf_limited_us=sndbuf_limited,
        rcv_space_bytes=words[22],
        pacing_bit_s=pacing,
        delivery_bit_s=delivery,
        bytes_retrans=retransmitted,
        out_of_order=out_of_order,
        peer_window_bytes=peer_window,
        receive_idle_ms=min(words[11], words[12]),
    )


def _measured(rtt_us: int | None) -> int | None:
    """Return a round trip; None where the kernel has not measured one (0, or all ones)."""
    return None if rtt_us in {None, 0, _NO_RTT} else rtt_us


def _per_second(bytes_s: int) -> int | None:
    """Return a rate in bits; None where there is none yet, or no limit to it."""
    return bytes_s * 8 if 0 < bytes_s < _NO_RATE else None


def read_tcp_info(sock: socket.socket) -> TcpInfo | None:
    """Return TCP_INFO of a connected socket; None on systems whose layout is not Linux's."""
    if sys.platform != "linux":
        return None
    try:
        return parse_tcp_info(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256))
    except OSError:
        return None
