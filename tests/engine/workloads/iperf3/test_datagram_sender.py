"""The sender of iperf3's datagrams: its rate without feedback, its header, fragments, and a port that is closed."""

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

from ....end_to_end.namespaces import Namespaces, run_within
from ...tcp_pair import only_linux
from ...waiting import until
from ..udp.datagram_pair import DatagramPair, connected_sockets

pytestmark = only_linux
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
