"""Packets that the kernel drops: its counters in /proc, and real sockets and queues that drop some."""

import json
import socket
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Final

import pytest
from linkgauge.engine.host.queues.drop_counters import (
    BackgroundReading,
    HostDropReader,
    WrappingTotal,
    parse_softnet,
    parse_udp_counters,
)

from .own_interface import needs_interface, run_within

DEADLINE_S: Final = 20.0
SNMP: Final = (
    "Ip: Forwarding DefaultTTL\nIp: 2 64\n"
    "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n"
    "Udp: 455956 0 13840 469810 13834 21 6\n"
    "UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n"
    "UdpLite: 9 9 9 9 9 9 9\n"
)
SNMP6: Final = "Ip6InReceives \t40\nUdp6InErrors \t5\nUdp6RcvbufErrors \t4\nUdp6SndbufErrors \t3\n"


def test_the_drops_of_udp_are_those_of_both_families() -> None:
    """InErrors has the full buffers too."""
    assert parse_udp_counters(SNMP, SNMP6) == {
        "send_buffer": 24,
        "receive_buffer": 13_838,
        "receive_invalid": 7,
    }
    assert parse_udp_counters(SNMP, "")["receive_buffer"] == 13_834


@pytest.mark.parametrize("snmp", ["", "Udp: InDatagrams\n", "Udp: InDatagrams\nUdp: 5\n"])
def test_counters_that_a_kernel_does_not_have_are_unknown(snmp: str) -> None:
    """They are not zero."""
    assert parse_udp_counters(snmp, "") == {}


def test_the_drops_of_the_cores_queues_are_summed_over_cores() -> None:
    """Each line is a core's, in hexadecimal."""
    text = "625d0d93 00001328 00000174 00000000\n6d77950d 00000b52 00000232 00000000\n"
    assert parse_softnet(text) == {"backlog": 0x1328 + 0xB52, "squeezed": 0x174 + 0x232}
    assert parse_softnet("") == parse_softnet("625d0d93 00001328\n") == {}


def test_a_counter_of_32_bits_goes_on_where_it_wraps_and_where_it_begins_anew() -> None:
    """The count before the first reading is not part of the total."""
    total = WrappingTotal()
    assert total.total is None
    rises: list[int | None] = []
    for value in (2**32 - 10, 2**32 - 4, 6, 6, 2_006, 7):
        total.update(value)
        rises.append(total.total)
    assert rises == [0, 6, 16, 16, 2_016, 2_023]


def test_a_reading_that_blocks_keeps_nobody_waiting() -> None:
    """Its last result counts until it goes on, and it is not begun twice."""
    begun, may_go_on = threading.Semaphore(0), threading.Event()
    results = iter([1, 2])

    def read() -> int:
        begun.release()
        assert may_go_on.wait(DEADLINE_S)
        return next(results)

    reading = BackgroundReading(read)
    assert reading.take() is None
    assert begun.acquire(timeout=DEADLINE_S)
    assert reading.take() is None
    assert not begun.acquire(blocking=False)
    may_go_on.set()
    deadline = time.monotonic() + DEADLINE_S
    while reading.take() is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.skipif(not Path("/proc/net/snmp").exists(), reason="the kernel's counters are those of Linux")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_datagrams_for_which_a_socket_has_no_room_are_counted(host: str) -> None:
    """Of either family."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as receiver, socket.socket(family, socket.SOCK_DGRAM) as sender:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        try:
            receiver.bind((host, 0))
        except OSError:
            pytest.skip(f"this system has no {host}")
        reader = HostDropReader(None)
        for _ in range(100):
            sender.sendto(bytes(1_000), receiver.getsockname()[:2])
        drops = reader.take()
    assert drops.receive_buffer is not None
    assert drops.receive_buffer >= 90
    assert drops.nic_received is drops.qdisc is None  # no interface was named


# A queue of six packets before a line of 1 Mb/s; half a second of reading, for the thread that asks the kernel.
QUEUE: Final = textwrap.dedent("""
    import json, socket, subprocess, sys, time
    from dataclasses import asdict
    from linkgauge.engine.host.queues.drop_counters import HostDropReader
    for line in sys.argv[1:]:
        subprocess.run(line.split(), check=True)
    reader = HostDropReader("near0")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    deadline, queued = time.monotonic() + 10, 0
    while reader.take().qdisc is None and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(100):
        sock.sendto(bytes(1_000), ("10.9.0.2", 9))
    while not queued and time.monotonic() < deadline:
        time.sleep(0.05)
        drops = reader.take()
        queued = drops.qdisc
        print(json.dumps(asdict(drops)))
""")


@needs_interface
def test_packets_that_the_interfaces_queue_drops_are_counted() -> None:
    """UDP does not report them to a sender that does not ask."""
    done = run_within(QUEUE, "tc qdisc add dev near0 root tbf rate 1mbit burst 3000 limit 6000")
    assert done.returncode == 0, done.stderr
    readings: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert 80 <= sum(reading["qdisc"] for reading in readings) <= 100
    assert 80 <= sum(reading["send_buffer"] for reading in readings) <= 100
    assert sum(reading["nic_sent"] for reading in readings) == 0
