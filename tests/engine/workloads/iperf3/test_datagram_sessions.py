"""The sessions of iperf3's datagrams: rate without feedback, fragments, a closed port; the receiver's counts."""

import asyncio
import ctypes
import os
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.plan import Dialect, Mode, Settings
from linkgauge.engine.workloads.udp import socket_options

from ....end_to_end.namespaces import Namespaces, run_within
from ...tcp_pair import only_linux
from ...waiting import until
from ..udp.datagram_pair import DatagramPair, connected_sockets
from ..udp.lossy_order import DATAGRAM_BYTES, LossyOrder

pytestmark = only_linux
SETTINGS = Settings(rate_bit_s=8_000_000, datagram_bytes=DATAGRAM_BYTES)
HEADERS = {False: struct.Struct(">III"), True: struct.Struct(">IIQ")}


def sender(settings: Settings, is_wide: bool = False, mode: Mode = Mode.RATE, **values: Any) -> DatagramPair:
    """Return a pair whose receiver is the test."""
    return DatagramPair(
        settings, mode, has_receiver=False, dialect=Dialect.IPERF3, has_64bit_counters=is_wide, **values
    )


@pytest.mark.parametrize(("mode", "is_wide"), [(Mode.RATE, False), (Mode.QUALITY, True)])
async def test_numbers_begin_at_one_and_the_sender_needs_no_answer(mode: Mode, is_wide: bool) -> None:
    """Beyond the time after which a sender of linkgauge's own would stop."""
    pair = sender(Settings(rate_bit_s=800_000, datagram_bytes=1_000), is_wide, mode)
    pair.start()
    pair.receiving_socket.send(b"nothing that it knows")
    counters: list[int] = []
    for _ in range(120):  # 1.2 s at 100 datagrams a second
        data = await asyncio.get_running_loop().sock_recv(pair.receiving_socket, 2_000)
        assert len(data) == 1_000
        counters.append(HEADERS[is_wide].unpack_from(data)[2])
    assert counters == list(range(1, 121))
    assert not pair.lost
    await pair.stop()
    assert pair.known("sender", "sent") >= 120
    pair.close()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_both_ends_count_the_same_datagrams(family: socket.AddressFamily) -> None:
    """In groups, over both families."""
    settings = Settings(rate_bit_s=200_000_000, datagram_bytes=1_460)
    pair = DatagramPair(settings, Mode.RATE, family=family, dialect=Dialect.IPERF3)
    pair.start()
    await until(lambda: pair.known("receiver", "received") > 2_000)
    await pair.stop()
    assert pair.known("receiver", "received") == pair.known("sender", "sent")
    assert pair.count("sender", "is_grouped") == 1
    assert pair.count("receiver", "invalid") == 0
    assert pair.count("sender", "rtt_us") is None
    pair.close()


def sockets_of_short_packets(family: socket.AddressFamily) -> tuple[socket.socket, socket.socket]:
    """Return two sockets of a loopback whose MTU is 1,500 bytes, in a namespace that ends with them."""
    libc = ctypes.CDLL(None, use_errno=True)
    namespaces = Namespaces(1)
    run_within(namespaces.entries[0], "ip", "link", "set", "lo", "up", "mtu", "1500")

    def make() -> tuple[socket.socket, socket.socket]:
        with Path("/proc", namespaces.pids[0], "ns", "net").open() as namespace:
            assert libc.setns(namespace.fileno(), 0) == 0
        return connected_sockets(family, allows_fragments=True)

    try:
        with ThreadPoolExecutor(1) as thread:  # of its own, which enters the namespace and ends
            return thread.submit(make).result()
    finally:
        namespaces.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the loopback of a namespace")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize(("size", "is_grouped"), [(1_400, 1), (1_480, 0), (20_000, 0)])
async def test_a_datagram_beyond_the_mtu_goes_alone_and_in_fragments(
    family: socket.AddressFamily, size: int, is_grouped: int
) -> None:
    """As a stock sender's does. The kernel cuts groups into whole datagrams only."""
    settings = Settings(rate_bit_s=400_000_000, datagram_bytes=size)
    sockets = sockets_of_short_packets(family)
    pair = DatagramPair(settings, Mode.RATE, dialect=Dialect.IPERF3, sockets=sockets)
    pair.start()
    await until(lambda: pair.known("receiver", "received") >= 100 or pair.lost)
    await pair.stop()
    assert not pair.lost
    assert pair.count("sender", "is_grouped") == is_grouped
    assert pair.known("receiver", "received") == pair.known("sender", "sent")
    pair.close()


async def test_a_closed_port_ends_the_session() -> None:
    """The kernel reports ICMP's refusal; nothing else would stop the sender."""
    pair = sender(Settings(rate_bit_s=8_000_000, datagram_bytes=1_000))
    pair.receiving_socket.close()
    pair.start()
    await until(lambda: pair.lost)
    assert "refused" in pair.lost[0]
    pair.close()


def payload(counter: int, is_wide: bool, *, stamp_us: int = 0, size: int = DATAGRAM_BYTES) -> bytes:
    """Return a datagram with iperf3's counter, which begins at 1."""
    if not is_wide:
        counter %= 2**32
    return HEADERS[is_wide].pack(stamp_us // 10**6, stamp_us % 10**6, counter).ljust(size, b"x")


def receiver(is_wide: bool, mode: Mode = Mode.QUALITY, **values: Any) -> DatagramPair:
    """Return a pair whose sender is the test."""
    return DatagramPair(
        SETTINGS, mode, has_sender=False, dialect=Dialect.IPERF3, has_64bit_counters=is_wide, **values
    )


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
@pytest.mark.parametrize("is_wide", [False, True])
async def test_loss_copies_and_order_of_iperf3_are_counted_exactly(mode: Mode, is_wide: bool) -> None:
    """As linkgauge's own are."""
    arriving, pair = LossyOrder(7), receiver(is_wide, mode)
    await arriving.send(pair, lambda number: payload(number + 1, is_wide))
    arriving.assert_counted(pair)
    assert pair.count("receiver", "invalid") == 0
    pair.close()


@pytest.mark.parametrize("is_wide", [False, True])
async def test_numbers_pass_four_billion(is_wide: bool) -> None:
    """An hour of a fast test: the header's 32 bits begin again, and nothing is lost."""
    pair = receiver(is_wide)
    assert pair.receiver is not None
    start = pair.receiver._tracker.advanced = 2**32 - 50
    pair.start()
    for number in range(start, start + 100):
        pair.sending_socket.send(payload(number + 1, is_wide))
    await until(lambda: pair.known("receiver", "received") == 100)
    assert pair.count("receiver", "advanced") == 2**32 + 50
    pair.close()


@pytest.mark.parametrize("mode", [Mode.RATE, Mode.QUALITY])
@pytest.mark.parametrize("is_wide", [False, True])
async def test_what_is_no_payload_is_invalid(mode: Mode, is_wide: bool) -> None:
    """A repeated hello, half a header, and impossible numbers; the session goes on."""
    strange = [b"9876", b"x", payload(0, is_wide), bytes(HEADERS[is_wide].size - 1), payload(2**31, is_wide)]
    if is_wide:
        strange += [payload(2**64 - 1, is_wide), payload(2**62, is_wide)]
    pair = receiver(is_wide, mode)
    pair.start()
    for data in strange:
        pair.sending_socket.send(data)
    pair.sending_socket.send(payload(1, is_wide))
    await until(
        lambda: pair.known("receiver", "received") == 1 and pair.known("receiver", "invalid") == len(strange)
    )
    assert not pair.lost
    with pytest.raises(BlockingIOError):  # nothing is answered
        pair.sending_socket.recv(100)
    pair.close()


async def test_a_group_from_one_system_call_is_counted_whole() -> None:
    """As `iperf3 --gsro` sends: up to 65,507 bytes, whose last datagram can be shorter than a header."""
    pair = receiver(True, Mode.RATE)
    pair.start()
    assert socket_options.set_segment(pair.sending_socket, 1_024)
    group = b"".join(payload(number + 1, True, size=1_024) for number in range(63))
    pair.sending_socket.send(group + bytes(10))
    await until(lambda: pair.known("receiver", "received") == 63 and pair.known("receiver", "invalid") == 1)
    pair.sending_socket.send(payload(65, True, size=1_024) + payload(64, True, size=1_024))
    await until(lambda: pair.known("receiver", "received") == 65)
    assert pair.count("receiver", "reordered") == 1
    pair.close()


async def test_jitter_is_that_of_the_stamps() -> None:
    """They leap by a second from one datagram to the next: a sixteenth of it, and then less."""
    pair = receiver(False)
    pair.start()
    for number in range(3):
        pair.sending_socket.send(payload(number + 1, False, stamp_us=number * 10**6))
    await until(lambda: pair.known("receiver", "received") == 3)
    assert pair.known("receiver", "jitter_max_ns") == pytest.approx(10**9 / 16 * (1 + 15 / 16), rel=0.01)
    pair.close()
