"""The sockets of this host by sock_diag: real connections, filters of the kernel, and those that end."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from linkgauge.engine.host.sockets.sock_diag import EndedConnections, SockDiag
from linkgauge.engine.host.sockets.socket_filter import EndCondition, compile_filter
from linkgauge.engine.host.sockets.socket_message import SocketAddress, SocketMessage, read_drops

from ...tcp_pair import only_linux

pytestmark = only_linux

PAYLOAD = bytes(1_000)
DEADLINE_S = 10.0

Pair = tuple[socket.socket, socket.socket]


def connect(host: str = "127.0.0.1") -> Pair:
    """Return both ends of a connection over loopback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        client = socket.create_connection(server.getsockname()[:2])
        return client, server.accept()[0]


@pytest.fixture(params=["127.0.0.1", "::1"])
def ends(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both ends of a connection, of either family."""
    client, server = connect(request.param)
    with client, server:
        yield client, server


def address(sock: socket.socket) -> SocketAddress:
    """Return the address of a socket's own end."""
    host, port, *_ = sock.getsockname()
    return SocketAddress(host, port)


def find(diag: SockDiag, sock: socket.socket) -> SocketMessage:
    """Return the message about one of this test's own sockets."""
    own = address(sock)
    return next(each for each in diag.dump_connections() if each.local == own)


def test_a_dump_has_the_payload_of_every_connection(ends: Pair) -> None:
    """Both ends are on this host: what one has acknowledged, the other one has received, and not yet read."""
    client, server = ends
    client.sendall(PAYLOAD)
    with SockDiag() as diag:
        sent, received = find(diag, client), find(diag, server)
        readings = {each.message.id: each for each in diag.read_connections([(sent.family, sent.id)])}
    assert (sent.remote, received.remote) == (address(server), address(client))
    assert (sent.state, received.queues[0]) == ("established", len(PAYLOAD))
    assert readings[sent.id].info.bytes_acked == len(PAYLOAD) + 1  # the SYN counts
    assert readings[sent.id].info.counters[-3]  # the send buffer, from SO_MEMINFO
    assert readings[sent.id].congestion


def test_a_connection_that_has_ended_is_not_read_and_its_ports_do_not_stand_for_it(ends: Pair) -> None:
    """The cookie is part of the id: the kernel compares it."""
    client, server = ends
    with SockDiag() as diag:
        message = find(diag, client)
        forged = message.id[:-8] + bytes(range(8))
        assert [each.message.id for each in diag.read_connections([(message.family, message.id)])] == [message.id]
        assert not list(diag.read_connections([(message.family, forged)]))
        client.close()
        server.close()
        assert not list(diag.read_connections([(message.family, message.id)]))


def test_more_connections_are_read_than_one_batch_has() -> None:
    """Each request has its own answer, in any number."""
    pairs = [connect() for _ in range(100)]
    try:
        with SockDiag() as diag:
            own = {(address(client), address(server)) for client, server in pairs}
            found = [each for each in diag.dump_connections() if (each.local, each.remote) in own]
            read = diag.read_connections([(each.family, each.id) for each in found])
            both = [(each.message.local, each.message.remote) for each in read]
    finally:
        for pair in pairs:
            for sock in pair:
                sock.close()
    assert sorted(both) == sorted(own)


def test_a_dump_that_was_not_read_to_its_end_disturbs_no_later_request() -> None:
    """The kernel would refuse it: a part of the answer still waits."""
    pairs = [connect() for _ in range(60)]
    try:
        with SockDiag() as diag:
            for _ in range(3):
                assert next(diag.dump_connections())
            own = {address(client) for client, _ in pairs}
            assert own <= {each.local for each in diag.dump_connections()}
    finally:
        for pair in pairs:
            for sock in pair:
                sock.close()


def test_the_kernel_reports_only_sockets_of_the_filter(ends: Pair) -> None:
    """A port of either end, or an address and a port of the remote end."""
    client, server = ends
    peer = address(server)
    by_port = [[EndCondition(remote, None, peer.port)] for remote in (False, True)]
    by_host = [[EndCondition(True, "203.0.113.9")], [EndCondition(True, peer.host, peer.port)]]
    for alternatives, wanted in ((by_port, {address(client), peer}), (by_host, {address(client)})):
        with SockDiag(compile_filter(alternatives)) as diag:
            assert {each.local for each in diag.dump_connections()} == wanted


def test_the_last_counters_of_a_connection_that_ends_are_reported() -> None:
    """It began and ended between two dumps."""
    with closing(EndedConnections()) as ended:
        client, server = connect()
        own = address(client)
        client.sendall(PAYLOAD)
        assert len(server.recv(len(PAYLOAD))) == len(PAYLOAD)
        client.close()
        server.close()
        deadline = time.monotonic() + DEADLINE_S
        found: list[SocketMessage] = []
        while not found and time.monotonic() < deadline:
            found = [each for each in ended.take() if each.local == own]
            time.sleep(0.01)
    assert int.from_bytes(found[0].moved[:8], "little") >= len(PAYLOAD)


def test_a_udp_socket_has_its_queue_and_what_it_dropped() -> None:
    """A receiver that reads nothing, with the smallest buffer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        receiver.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(50):
                sender.sendto(PAYLOAD, receiver.getsockname())
        with SockDiag() as diag:
            message = next(each for each in diag.dump_datagram_sockets() if each.local == address(receiver))
    found = read_drops(message)
    assert found is not None
    assert found[0] > 0
    assert message.queues[0] > 0
