"""TCP_INFO: by its layout, of a real connection, and of a requested window."""

import socket
import struct
import sys
from types import SimpleNamespace

import pytest
from linkgauge.engine.host.tcp_info import TcpInfo, parse_tcp_info, read_tcp_info
from linkgauge.engine.model.counters.session_counters import TCP_COUNTER_NAMES

from ..tcp_pair import carry, only_linux, pair

PAYLOAD_BYTES = 8 << 20


def layout(length: int = 232) -> bytes:
    """Return a struct tcp_info in which every field holds its own offset."""
    head = struct.pack("=8B", 1, 0, 2, 3, 0, 0b101, 0, 0b1)
    words = struct.pack("=24I", *range(8, 104, 4))
    tail = struct.pack("=4Q6I4Q", *range(104, 136, 8), *range(136, 160, 4), *range(160, 192, 8))
    newest = struct.pack("=2I2Q4I", 192, 196, 200, 208, *range(216, 232, 4))
    return (head + words + tail + newest + bytes(64))[:length]


def by_name(info: TcpInfo) -> SimpleNamespace:
    """Return the counters by their names."""
    return SimpleNamespace(**dict(zip(TCP_COUNTER_NAMES, info.counters, strict=True)))


def test_each_field_is_read_from_its_place_in_linux_tcp_h() -> None:
    """The values are the offsets of the fields."""
    info = parse_tcp_info(layout())
    assert info is not None
    tcp = by_name(info)
    assert (info.timestamps, info.sack, info.window_scaling) == (True, False, True)
    assert (info.mss_bytes, info.rtt_us) == (16, 68)
    assert (tcp.cwnd_bytes, tcp.retransmits) == (80 * 16, 100)
    assert (info.bytes_acked, tcp.min_rtt_us) == (120, 148)
    assert (tcp.busy_us, tcp.rwnd_limited_us, tcp.sndbuf_limited_us) == (168, 176, 184)
    assert (tcp.pacing_bit_s, tcp.delivery_bit_s) == (104 * 8, 160 * 8)
    assert (tcp.bytes_retrans, tcp.out_of_order, tcp.peer_window_bytes) == (208, 224, 228)
    assert (tcp.rcv_space_bytes, tcp.unsent_bytes, info.receive_idle_ms) == (96, 144, 52)
    assert tcp.unacked_bytes == 24 * 16
    assert (info.timeouts, info.probes, info.is_app_limited) == (2, 3, True)
    assert (info.received_mss_bytes, info.receive_rtt_us, info.bytes_received) == (20, 92, 128)
    assert (info.needless_retransmits, info.reordered) == (216, 220)
    assert (info.peer_window_bytes, info.window_bytes) == (228, None)
    assert (tcp.send_memory_bytes, tcp.receive_buffer_bytes) == (None, None)


def test_what_buffers_hold_is_read_from_its_place_in_linux_sock_diag_h() -> None:
    """The values are the offsets of the words."""
    info = parse_tcp_info(layout(), tuple(range(0, 36, 4)))
    assert info is not None
    tcp = by_name(info)
    assert (tcp.send_memory_bytes, tcp.send_buffer_bytes) == (20, 12)
    assert (tcp.unread_memory_bytes, tcp.receive_buffer_bytes) == (0, 4)


@pytest.mark.parametrize(
    ("at", "length", "value"), [(104, 8, 2**64 - 1), (104, 8, 0), (148, 4, 2**32 - 1), (148, 4, 0)]
)
def test_no_limit_and_nothing_measured_yet_are_unknown(at: int, length: int, value: int) -> None:
    """A pacing rate of all ones is not a rate, and a round trip of all ones or 0 is not one either."""
    data = layout()
    info = parse_tcp_info(data[:at] + value.to_bytes(length, sys.byteorder) + data[at + length :])
    assert info is not None
    tcp = by_name(info)
    assert (tcp.pacing_bit_s if at == 104 else tcp.min_rtt_us) is None


@pytest.mark.parametrize("length", [0, 1, 103])
def test_less_than_the_oldest_layout_is_unknown(length: int) -> None:
    """Nothing is guessed."""
    assert parse_tcp_info(layout(length)) is None


@pytest.mark.parametrize("length", [104, 160, 191])
def test_an_older_kernels_layout_leaves_the_newer_fields_unknown(length: int) -> None:
    """Unknown is None, and not zero."""
    info = parse_tcp_info(layout(length))
    assert info is not None
    tcp = by_name(info)
    assert tcp.retransmits == 100
    assert info.bytes_acked is tcp.busy_us is tcp.rwnd_limited_us is tcp.sndbuf_limited_us is None
    assert tcp.pacing_bit_s is tcp.bytes_retrans is tcp.peer_window_bytes is None


@pytest.mark.parametrize("length", [192, 231])
def test_a_kernel_before_5_4_tells_the_limits_and_not_what_was_sent_again(length: int) -> None:
    """Each part of the structure is known or unknown independently."""
    info = parse_tcp_info(layout(length))
    assert info is not None
    tcp = by_name(info)
    assert tcp.rwnd_limited_us == 176
    assert tcp.bytes_retrans is tcp.out_of_order is tcp.peer_window_bytes is None


@only_linux
def test_a_real_connection_tells_what_was_acknowledged() -> None:
    """At least the bytes that the receiver has read were acknowledged, and at most those that were sent."""
    sender, receiver = pair()
    with sender, receiver:
        before = read_tcp_info(sender)
        windows = list(carry(sender, receiver, PAYLOAD_BYTES))
        info = read_tcp_info(sender)
    assert before is not None
    assert info is not None
    tcp = by_name(info)
    assert before.bytes_acked is not None
    assert info.bytes_acked is not None
    assert info.bytes_acked - before.bytes_acked >= PAYLOAD_BYTES - max(windows)
    assert info.mss_bytes >= 536
    assert tcp.cwnd_bytes % info.mss_bytes == 0
    assert tcp.busy_us is not None


def test_a_socket_without_a_connection_tells_nothing_or_zeros() -> None:
    """A closed socket is not an error."""
    sock = socket.socket()
    sock.close()
    assert read_tcp_info(sock) is None
