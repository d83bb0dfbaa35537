"""TCP_INFO: as its layout says, as a real connection says, and what it says of the window that was asked for."""

import select
import socket
import struct
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from linkgauge.engine.host.tcp_info import TcpInfo, parse_tcp_info, read_tcp_info
from linkgauge.engine.model.plan import Direction, End, Mode, SocketOptions
from linkgauge.engine.model.tcp_counters import TCP_COUNTER_NAMES
from linkgauge.engine.workloads.sockets import granted_window, prepare, read_socket_info

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="struct tcp_info is Linux's")
SND_WND_OFFSET = 228  # of struct tcp_info, since Linux 5.4
PAYLOAD_BYTES = 8 << 20


def pair(window_bytes: int | None = None) -> tuple[socket.socket, socket.socket]:
    """Return (sender, receiver) on 127.0.0.1, set up as data connections are: before connect, after accept."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = socket.socket()
        sender.connect(listener.getsockname())
        receiver, _address = listener.accept()
    for sock in (sender, receiver):
        prepare(sock, window_bytes, SocketOptions())
    return sender, receiver


def carry(sender: socket.socket, receiver: socket.socket, count: int) -> Iterator[int]:
    """Carry so many bytes, and give the peer's window as the sender sees it each time some were read."""
    block, buffer = bytes(1 << 16), bytearray(1 << 20)
    received = 0
    while received < count:
        _readable, writable, _failed = select.select([], [sender], [], 0)
        if writable:
            sender.send(block)
        readable, _writable, _failed = select.select([receiver], [], [], 0.01)
        if readable:
            received += receiver.recv_into(buffer)
            info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            yield struct.unpack_from("=I", info, SND_WND_OFFSET)[0]


def layout(length: int = 232) -> bytes:
    """Return a struct tcp_info in which every field holds its own offset."""
    head = struct.pack("=8B", 1, 0, 0, 0, 0, 0b101, 0, 0)
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
    assert (tcp.rcv_space_bytes, info.receive_idle_ms) == (96, 52)


@pytest.mark.parametrize(
    ("at", "length", "value"), [(104, 8, 2**64 - 1), (104, 8, 0), (148, 4, 2**32 - 1), (148, 4, 0)]
)
def test_no_limit_and_nothing_measured_yet_are_unknown(at: int, length: int, value: int) -> None:
    """A pacing rate of all ones is no rate, nor is a round trip of all ones or of nothing."""
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
    """Each part of the structure is known or not by itself."""
    info = parse_tcp_info(layout(length))
    assert info is not None
    tcp = by_name(info)
    assert tcp.rwnd_limited_us == 176
    assert tcp.bytes_retrans is tcp.out_of_order is tcp.peer_window_bytes is None


@only_linux
def test_a_real_connection_tells_what_was_acknowledged() -> None:
    """What the receiver has read was acknowledged, and no more than was sent."""
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
    """A closed socket is no error."""
    sock = socket.socket()
    sock.close()
    assert read_tcp_info(sock) is None


@only_linux
@pytest.mark.parametrize("asked_bytes", [16_384, 57_344, 262_144])
def test_a_window_asked_for_after_accept_bounds_what_the_sender_may_have_under_way(asked_bytes: int) -> None:
    """Once data flows the peer's window is at least about what was asked for, and within its doubled buffer.

    Linux doubles SO_RCVBUF for its book-keeping (socket(7)), and where packets are large and book-keeping is little
    it lends the rest to the window: it is a bound and not the window itself.
    """
    sender, receiver = pair(asked_bytes)
    with sender, receiver:
        granted = granted_window(receiver, is_sender=False)
        windows = list(carry(sender, receiver, max(PAYLOAD_BYTES // 8, 16 * asked_bytes)))
    assert granted == asked_bytes
    settled = windows[len(windows) // 2 :]
    assert max(settled) <= 2 * asked_bytes
    assert max(settled) >= 0.9 * asked_bytes


@only_linux
def test_facts_of_a_session_are_what_the_kernel_granted() -> None:
    """The sender tells its send buffer, the receiver its receive buffer; auto is unknown."""
    sender, receiver = pair(65_536)
    with sender, receiver:
        for sock, end in ((sender, End.NEAR), (receiver, End.FAR)):
            facts = read_socket_info(sock, end, Direction.OUT, 3, 65_536, Mode.COPY, is_sender=end is End.NEAR)
            assert (facts.end, facts.direction, facts.session) == (end, Direction.OUT, 3)
            assert facts.window_granted_bytes == 65_536
            assert facts.congestion
            assert facts.mss_bytes
        unasked = read_socket_info(sender, End.NEAR, Direction.OUT, 3, None, Mode.COPY, is_sender=True)
        assert unasked.window_granted_bytes is None


def test_a_congestion_control_that_is_not_there_is_an_error_with_what_to_do() -> None:
    """The text names it and the command that lists those there are."""
    with (
        socket.socket() as sock,
        pytest.raises(OSError, match=r"no_such_control is not available; .*available_congestion_control"),
    ):
        prepare(sock, None, SocketOptions(congestion="no_such_control"))
