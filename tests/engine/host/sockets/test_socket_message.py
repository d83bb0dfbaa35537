"""Messages about sockets: addresses of both families, states, and those without TCP_INFO."""

import socket
import struct

import pytest
from linkgauge.engine.host.sockets.socket_message import (
    SocketAddress,
    SocketMessage,
    decode_connection,
    find_info,
    read_drops,
)


def body(family: int, local: bytes, remote: bytes, state: int = 1, attributes: bytes = b"") -> bytes:
    """Return a message about a socket with ports 1 and 2, cookie 7, queues 3 and 4, user 5 and inode 6."""
    ports, padding = struct.pack("!HH", 1, 2), bytes(16)
    id_ = ports + (local + padding)[:16] + (remote + padding)[:16] + struct.pack("=IQ", 0, 7)
    return struct.pack("=4B48s5I", family, state, 0, 0, id_, 0, 3, 4, 5, 6) + attributes


@pytest.mark.parametrize(
    ("family", "host", "packed"),
    [
        (socket.AF_INET, "192.0.2.1", bytes((192, 0, 2, 1))),
        (socket.AF_INET6, "2001:db8::1", socket.inet_pton(socket.AF_INET6, "2001:db8::1")),
        (socket.AF_INET6, "192.0.2.1", socket.inet_pton(socket.AF_INET6, "::ffff:192.0.2.1")),
    ],
)
def test_addresses_are_read_in_both_families(family: int, host: str, packed: bytes) -> None:
    """An IPv4 address in an IPv6 socket is an IPv4 address."""
    message = SocketMessage(body(family, packed, packed))
    assert (message.local, message.remote) == (SocketAddress(host, 1), SocketAddress(host, 2))
    assert (message.cookie, message.queues, message.user_and_inode) == (7, (3, 4), (5, 6))


def test_an_ipv6_address_has_brackets_in_a_sentence() -> None:
    """Otherwise its port is part of it."""
    assert str(SocketAddress("::1", 5)) == "[::1]:5"
    assert str(SocketAddress("192.0.2.1", 5)) == "192.0.2.1:5"


def test_a_socket_without_figures_has_none() -> None:
    """Neither TCP_INFO nor memory; a state that this version does not know."""
    message = SocketMessage(body(socket.AF_INET, bytes(4), bytes(4), state=200))
    assert find_info(message.body) == 0
    assert (decode_connection(message), read_drops(message)) == (None, None)
    assert (message.state, message.moved) == ("unknown", b"")


def test_the_payload_that_moved_is_at_the_offset_of_tcp_info() -> None:
    """Bytes 120 to 136 of the structure, whatever comes before it."""
    info = bytes(120) + struct.pack("=QQ", 10, 20) + bytes(100)
    attributes = struct.pack("=HHB3x", 5, 8, 1) + struct.pack("=HH", 4 + len(info), 2) + info
    raw = body(socket.AF_INET, bytes(4), bytes(4), attributes=attributes)
    message = SocketMessage(raw, find_info(raw))
    assert struct.unpack("=QQ", message.moved) == (10, 20)
    reading = decode_connection(message)
    assert reading is not None
    assert (reading.info.bytes_acked, reading.info.bytes_received) == (10, 20)
