"""The opening of sessions of iperf3's dialect; tests/engine/iperf3 carry payload to and from stock programs."""

import asyncio
import socket

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import Mode, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.iperf3 import session_opening
from linkgauge.engine.workloads.iperf3.session_opening import connect_datagrams, connect_stream, open_session
from linkgauge.engine.workloads.session_handshake import ConnectTarget, Iperf3Format, SessionConfig, SessionSpec
from linkgauge.engine.workloads.udp import socket_options


async def test_a_stream_sends_its_cookie_and_nothing_else() -> None:
    """Nothing comes back, and nothing is awaited."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sock:
        sock.setblocking(False)
        cookie = bytes(range(37))
        spec = SessionSpec(Direction.OUT, 1, 0, None, cookie.hex())
        await connect_stream(sock, spec, ConnectTarget.from_address("", listener.getsockname()), SocketOptions())
        accepted, _ = listener.accept()
        with accepted:
            accepted.settimeout(5)
            assert accepted.recv(100) == cookie


async def test_a_silent_udp_port_is_told_from_a_closed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The TCP port answers in both cases; the remedies differ."""
    monkeypatch.setattr(session_opening, "HELLO_DEADLINE_S", 0.1)
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        target = ConnectTarget.from_address("", server.getsockname())
        with socket.socket(type=socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            with pytest.raises(OSError, match="nothing came back from its UDP port"):
                await connect_datagrams(sock, target, SocketOptions())
        assert server.recv(100) == b"9876"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # a second hello would be a second stream
            server.recv(100)
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        with pytest.raises(OSError, match="nothing takes UDP on that port"):
            await connect_datagrams(sock, target, SocketOptions())


@pytest.mark.parametrize("reply", ["36373839", "39383736", "b168de3a", "3ade68b1"])
async def test_the_reply_of_every_version_opens_a_session(reply: str) -> None:
    """After datagrams of payload, which a server may send too early."""
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as sock:
        server.bind(("127.0.0.1", 0))
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        target = ConnectTarget.from_address("", server.getsockname())
        for data in (bytes(1_400), b"678", bytes.fromhex(reply)):
            server.sendto(data, sock.getsockname())
        # A connected socket still has the datagrams from before.
        await connect_datagrams(sock, target, SocketOptions())
        server.settimeout(5)
        assert server.recv(100) == b"9876"


async def test_an_adopted_socket_forgets_what_came_before_it_was_connected() -> None:
    """A stranger's datagram may have come in between, and would be payload."""
    with socket.socket(type=socket.SOCK_DGRAM) as stranger, socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        for _ in range(10):
            stranger.sendto(bytes(1_400), sock.getsockname())
        sock.connect(("127.0.0.1", 9))
        config = SessionConfig(End.FAR, Workload.UDP, SocketOptions(), Iperf3Format())
        await open_session(sock, SessionSpec(Direction.OUT, 1, 0, None, ""), None, config)
        with pytest.raises(BlockingIOError):
            sock.recv(1)


async def test_a_receiver_has_its_buffer_before_the_hello() -> None:
    """A server sends as soon as it has answered the last hello: datagrams without room are lost."""
    settings = Settings(Direction.IN, rate_bit_s=40_000_000, datagram_bytes=1_400)
    granted: list[int] = []
    with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as sock:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            _, address = server.recvfrom(100)
            granted.append(sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
            server.sendto(b"6789", address)

        loop = asyncio.get_running_loop()
        loop.add_reader(server, answer)
        config = SessionConfig(End.NEAR, Workload.UDP, SocketOptions(), Iperf3Format())
        target = ConnectTarget.from_address("", server.getsockname())
        spec = SessionSpec(Direction.IN, 1, 0, None, "")
        await open_session(sock, spec, target, config, settings)
        loop.remove_reader(server)
        socket_options.set_up_receiver(sock, Mode.QUALITY, settings)
        assert granted == [sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)]
