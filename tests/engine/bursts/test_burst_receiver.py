"""The arrivals of a burst: places, times after the first one, and only those of the newest burst."""

import socket
import struct
import time

from linkgauge.engine.bursts.burst_receiver import BurstReceiver
from linkgauge.engine.protocol.burst_datagrams import MAX_ARRIVAL_NS, burst_number
from linkgauge.engine.protocol.payload_datagrams import PAYLOAD_HEADER
from linkgauge.engine.workloads.udp.socket_options import SO_TIMESTAMPNS

from .socket_pair import connected_sockets

COOKIE = 5


def datagram(burst: int, place: int, cookie: int = COOKIE) -> bytes:
    """Return a datagram of a burst."""
    return PAYLOAD_HEADER.pack(burst_number(burst, place), 1_000 + place, cookie) + bytes(40)


def test_only_the_newest_burst_is_kept() -> None:
    """A late datagram of an earlier one is known, and not counted."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        arrivals = BurstReceiver(receiver, COOKIE)
        for burst, place in ((1, 0), (1, 1), (2, 0), (1, 2), (2, 3)):
            assert arrivals.take(datagram(burst, place), [])
        assert (arrivals.burst, list(arrivals.places), list(arrivals.stamps_ns)) == (2, [0, 3], [1_000, 1_003])
        assert arrivals.arrived_ns[0] == 0
        assert arrivals.payload_datagrams == 5
        assert arrivals.payload_bytes == 5 * 64
        arrivals.begin(4)
        assert arrivals.take(datagram(3, 0), [])
        assert (arrivals.burst, len(arrivals.places)) == (4, 0)


def test_other_datagrams_are_not_taken() -> None:
    """Of another session, too short, or of the exchange."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        arrivals = BurstReceiver(receiver, COOKIE)
        for data in (datagram(1, 0, cookie=6), b"", b"linkgau\xff" + bytes(60)):
            assert not arrivals.take(data, [])
        assert not arrivals.payload_bytes


def test_what_comes_seconds_later_is_not_counted() -> None:
    """Times after the first arrival, by the kernel's stamps, have 32 bits."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        arrivals = BurstReceiver(receiver, COOKIE)
        first_ns = time.time_ns() - 2 * MAX_ARRIVAL_NS
        for place, after_ns in enumerate((0, 10**9, MAX_ARRIVAL_NS + 10**6)):
            stamp = struct.pack("@qq", *divmod(first_ns + after_ns, 10**9))
            arrivals.take(datagram(1, place), [(socket.SOL_SOCKET, SO_TIMESTAMPNS, stamp)])
        assert list(arrivals.arrived_ns) == [0, 10**9]


def test_datagrams_without_room_in_the_socket_are_counted() -> None:
    """Since the last burst."""
    sender, receiver = connected_sockets()
    with sender, receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_304)
        arrivals = BurstReceiver(receiver, COOKIE)
        for place in range(200):
            sender.send(datagram(1, place) + bytes(1_000))
        arrivals.begin(1)
        assert arrivals.unread > 0
        arrivals.begin(2)
        assert arrivals.unread == 0
