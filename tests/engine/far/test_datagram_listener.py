"""The UDP side of an endpoint's port: sessions of both families, and nothing for strangers and thieves."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from linkgauge.engine.far.clients.admission import Admission
from linkgauge.engine.far.datagram_listener import DatagramListener
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.run import FarRun
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import DATAGRAM_PROBE_SESSION, PROBE_SESSION, SocketOptions
from linkgauge.engine.protocol.datagram_handshake import (
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from linkgauge.engine.protocol.payload_datagrams import CONTROL_MAGIC, is_control_datagram
from linkgauge.engine.protocol.preamble import DataHello
from linkgauge.engine.protocol.tokens import RunSecret, TicketCheck
from linkgauge.engine.workloads.datagram_handshake import (
    accept_datagrams,
    answer_control_datagram,
    connect_datagrams,
)
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec

from ..waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")

DEADLINE_S = 20.0
SECRET = RunSecret(b"shared", b"nonce", b"open")
ADDRESSES = [("127.0.0.1", "127.0.0.1"), (None, "127.0.0.1"), (None, "::1"), ("::1", "::1")]


class Sessions(FarRun):
    """A run of UDP: it checks tokens as every run does, and takes over sockets as a worker does."""

    def __init__(self) -> None:
        self._tickets = TicketCheck(SECRET)
        self.sockets: list[socket.socket] = []
        self.specs: list[SessionSpec] = []

    def takes_datagrams_of(self, session: int) -> bool:
        """Take those of every session."""
        return session > 0

    async def attach_connection(self, sock: socket.socket, hello: DataHello) -> None:
        """Accept a session whose token is valid."""
        settings = (hello.direction, hello.session, hello.generation, hello.window_bytes)
        secret = self._tickets.check(*settings, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with an invalid token")
        await asyncio.sleep(0)  # a worker that has to be started
        self.sockets.append(socket.socket(fileno=sock.detach()))
        self.specs.append(SessionSpec(*settings, secret.hex()))
        accept_datagrams(self.sockets[-1], self.specs[-1])


class Scene:
    """A listener with one run, and sockets of clients."""

    def __init__(self, listener: DatagramListener, sessions: Sessions, port: int) -> None:
        self.listener, self.sessions, self.port = listener, sessions, port
        self.lines: list[str] = []

    def rejected(self, client: str = "127.0.0.1") -> list[str]:
        """Return why datagrams of a client were rejected."""
        return [line.removeprefix(f"{client}: rejected: ") for line in self.lines]


@asynccontextmanager
async def scene(bind: str | None = "127.0.0.1", limits: Limits | None = None) -> AsyncGenerator[Scene]:
    """Open a listener beside a TCP socket."""
    tcp, sessions = listen(bind, 0), Sessions()
    lines: list[str] = []
    listener = DatagramListener({SECRET.run_tag: sessions}, Admission(limits), lines.append)
    with tcp:
        made = Scene(listener, sessions, tcp.getsockname()[1])
        made.lines = lines
        listener.open(tcp)
        assert listener.is_open
        try:
            yield made
        finally:
            await listener.close()
            for sock in sessions.sockets:
                sock.close()


def spec_of(session: int = 1, direction: Direction = Direction.IN, generation: int = 0) -> SessionSpec:
    """Return the near end's view of a session."""
    settings = (direction, session, generation, None)
    return SessionSpec(*settings, SECRET.session_secret(*settings).hex())


def hello_of(spec: SessionSpec, cookie: bytes = bytes(16)) -> DatagramHello:
    """Return the hello of a session."""
    token = spec.make_tickets().token(0)
    header = DataHello(SECRET.run_tag, token, spec.direction, spec.session, spec.generation, spec.window_bytes)
    return DatagramHello(header, cookie)


def udp_socket(host: str = "127.0.0.1") -> socket.socket:
    """Return a non-blocking socket of a client."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    return sock


async def received(sock: socket.socket) -> bytes:
    """Return the next datagram."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            with contextlib.suppress(BlockingIOError):
                return sock.recv(2_048)
            await asyncio.sleep(0.001)


async def settled(place: Scene, lines: int) -> list[str]:
    """Return the log once it has so many lines."""
    async with asyncio.timeout(DEADLINE_S):
        await until(lambda: len(place.lines) >= lines)
    return place.rejected()


async def cookie_for(place: Scene, sock: socket.socket, spec: SessionSpec) -> bytes:
    """Return the cookie of a client's address."""
    sock.sendto(hello_of(spec).pack(), ("127.0.0.1", place.port))
    challenge = decode_handshake(await received(sock))
    assert isinstance(challenge, DatagramChallenge)
    return challenge.cookie


@pytest.mark.parametrize(("bind", "host"), ADDRESSES)
async def test_a_session_gets_a_socket_of_its_own_at_the_address_that_the_client_used(
    bind: str | None, host: str
) -> None:
    """Of either family, with payload in both directions; the endpoint's port serves others on."""
    async with scene(bind) as place:
        if ":" in host and not socket.has_dualstack_ipv6():
            pytest.skip("this machine has no IPv6")
        with udp_socket(host) as first, udp_socket(host) as second:
            fields = (0, 0) if ":" in host else ()
            target = ConnectTarget.from_address(SECRET.run_tag.hex(), (host, place.port, *fields))
            for number, sock in enumerate((first, second), 1):
                await connect_datagrams(sock, spec_of(number), target, SocketOptions())
            far = place.sessions.sockets
            assert [each.getsockname()[:2] for each in far] == [(host, place.port)] * 2
            assert [each.family for each in far] == [first.family] * 2
            for near, other in zip((first, second), far, strict=True):
                near.send(b"out")
                other.send(b"in")
                other.setblocking(False)
                assert (await received(other), await received(near)) == (b"out", b"in")
        assert place.lines == []


async def test_many_sessions_open_at_once_and_each_has_its_own_socket() -> None:
    """Between bind and connect, a session's socket takes the hellos of others: none of them is lost for long."""
    async with scene() as place:
        target = ConnectTarget.from_address(SECRET.run_tag.hex(), ("127.0.0.1", place.port))
        with contextlib.ExitStack() as stack:
            near = [stack.enter_context(udp_socket()) for _ in range(100)]
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(
                    *(connect_datagrams(s, spec_of(n), target, SocketOptions()) for n, s in enumerate(near, 1))
                )
            for number, sock in enumerate(near, 1):
                sock.send(b"%d" % number)
            for spec, sock in zip(place.sessions.specs, place.sessions.sockets, strict=True):
                sock.setblocking(False)
                data = await received(sock)
                while is_control_datagram(data):  # a hello that its sender repeated: the answer came late
                    data = await received(sock)
                assert data == b"%d" % spec.session
        assert place.lines == []


async def test_a_hello_whose_acceptance_was_lost_is_answered_by_the_session() -> None:
    """A repeated hello makes no second socket, before or after the session has its own."""
    spec = spec_of()
    async with scene() as place:
        with udp_socket() as sock:
            cookie = await cookie_for(place, sock, spec)
            for _ in range(3):
                sock.sendto(hello_of(spec, cookie).pack(), ("127.0.0.1", place.port))
            assert isinstance(decode_handshake(await received(sock)), DatagramAccepted)
            [far] = place.sessions.sockets
            far.setblocking(False)
            sock.sendto(hello_of(spec, cookie).pack(), ("127.0.0.1", place.port))
            assert answer_control_datagram(far, await received(far), spec)
            assert isinstance(decode_handshake(await received(sock)), DatagramAccepted)
            assert not answer_control_datagram(far, b"payload", spec)
        assert (len(place.sessions.sockets), place.lines) == (1, [])


async def test_what_a_client_sent_before_it_knew_of_the_end_is_no_strangers_datagram() -> None:
    """A late echo comes to the port itself, once its session has no socket. Another port's is logged."""
    async with scene() as place:
        target = ConnectTarget.from_address(SECRET.run_tag.hex(), ("127.0.0.1", place.port))
        with udp_socket() as near, udp_socket() as stranger:
            await connect_datagrams(near, spec_of(), target, SocketOptions())
            place.sessions.sockets.pop().close()
            near.send(b"late echo")
            stranger.sendto(b"late echo", ("127.0.0.1", place.port))
            assert await settled(place, 1) == ["a UDP datagram that opens no session"]


async def test_a_source_address_that_was_not_shown_to_receive_gets_nothing_but_a_challenge() -> None:
    """A cookie of another address, a forged one, and none at all open nothing."""
    spec = spec_of()
    async with scene() as place:
        with udp_socket() as thief, udp_socket() as victim:
            cookie = await cookie_for(place, thief, spec)
            for forged in (cookie, b"x" * 16):
                victim.sendto(hello_of(spec, forged).pack(), ("127.0.0.1", place.port))
            assert await settled(place, 2) == ["a UDP session with the cookie of another address"] * 2
            assert place.sessions.sockets == []
            with pytest.raises(BlockingIOError):
                victim.recv(100)


async def test_a_token_that_somebody_repeats_disturbs_no_session() -> None:
    """From another address, with a cookie of its own: it gets no socket, and the session has its payload."""
    spec = spec_of()
    async with scene() as place:
        target = ConnectTarget.from_address(SECRET.run_tag.hex(), ("127.0.0.1", place.port))
        with udp_socket() as near, udp_socket() as thief:
            await connect_datagrams(near, spec, target, SocketOptions())
            cookie = await cookie_for(place, thief, spec)
            thief.sendto(hello_of(spec, cookie).pack(), ("127.0.0.1", place.port))
            assert await settled(place, 1) == ["a UDP session that has another address already"]
            [far] = place.sessions.sockets
            far.send(b"payload")
            assert await received(near) == b"payload"


async def test_a_token_that_is_not_the_runs_opens_nothing() -> None:
    """A stranger who knows only a run's tag gets a challenge, and no session."""
    spec = SessionSpec(Direction.IN, 1, 0, None, "00" * 32)
    async with scene() as place:
        with udp_socket() as sock:
            cookie = await cookie_for(place, sock, spec)
            sock.sendto(hello_of(spec, cookie).pack(), ("127.0.0.1", place.port))
            assert await settled(place, 1) == ["a data connection with an invalid token"]
            # The place of the session is free for the client that has its token.
            target = ConnectTarget.from_address(SECRET.run_tag.hex(), ("127.0.0.1", place.port))
            with udp_socket() as near:
                await connect_datagrams(near, spec_of(), target, SocketOptions())
        assert len(place.sessions.sockets) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 76,
        CONTROL_MAGIC,
        hello_of(spec_of()).pack()[:-1],
        hello_of(spec_of()).pack() + b"\0",
        DatagramHello(DataHello(b"x" * 16, b"t" * 16, Direction.IN, 1, 0, None)).pack(),
        DatagramAccepted.of_session(b"").pack(),
        b"\xff" * 1_400,
    ],
)
async def test_a_stranger_gets_no_answer(data: bytes) -> None:
    """Truncated, of another test, or of another program: it is counted, and a client is served next."""
    async with scene() as place:
        with udp_socket() as stranger, udp_socket() as sock:
            stranger.sendto(data, ("127.0.0.1", place.port))
            await settled(place, 1)
            await cookie_for(place, sock, spec_of())
            with pytest.raises(BlockingIOError):
                stranger.recv(100)


async def test_a_run_without_datagrams_of_a_session_is_an_unknown_one() -> None:
    """As a run over TCP is, whose only datagrams may be those of a probe."""
    async with scene() as place:
        with udp_socket() as sock:
            sock.sendto(hello_of(spec_of(PROBE_SESSION, Direction.OUT)).pack(), ("127.0.0.1", place.port))
            assert await settled(place, 1) == ["a UDP session of an unknown test"]
            await cookie_for(place, sock, spec_of(DATAGRAM_PROBE_SESSION, Direction.OUT))


async def test_an_excluded_address_gets_no_challenge() -> None:
    """The lists of denied and allowed networks hold for UDP."""
    async with scene(limits=Limits(deny=("127.0.0.2/32",))) as place:
        with udp_socket() as denied, udp_socket() as sock:
            denied.bind(("127.0.0.2", 0))
            denied.sendto(hello_of(spec_of()).pack(), ("127.0.0.1", place.port))
            await settled(place, 1)
            assert place.rejected("127.0.0.2")[0].startswith("127.0.0.2 is denied")
            await cookie_for(place, sock, spec_of())
            with pytest.raises(BlockingIOError):
                denied.recv(100)


async def test_a_flood_of_hellos_keeps_no_client_out() -> None:
    """Between full turns others have the loop, challenges have a rate, and the honest client repeats its hello."""
    async with scene() as place:
        target = ConnectTarget.from_address(SECRET.run_tag.hex(), ("127.0.0.1", place.port))
        junk, hello = b"\xff" * 76, hello_of(spec_of(2)).pack()
        with udp_socket() as attacker, udp_socket() as near:

            async def flood() -> None:
                while True:
                    with contextlib.suppress(BlockingIOError):
                        for _ in range(50):
                            attacker.sendto(junk, ("127.0.0.1", place.port))
                            attacker.sendto(hello, ("127.0.0.1", place.port))
                    await asyncio.sleep(0.002)

            flooding = asyncio.create_task(flood())
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await connect_datagrams(near, spec_of(), target, SocketOptions())
            finally:
                flooding.cancel()
                await asyncio.gather(flooding, return_exceptions=True)
        assert len(place.sessions.sockets) == 1


async def test_an_endpoint_whose_udp_port_is_taken_says_so_and_serves_tcp() -> None:
    """Another program has the UDP port: one line of the log names it."""
    with listen("127.0.0.1", 0) as tcp, udp_socket() as other:
        other.bind(tcp.getsockname())
        lines: list[str] = []
        async with Endpoint(tcp, lines.append):
            [line] = lines
            assert line.startswith(f"UDP port {tcp.getsockname()[1]} cannot be opened: address already in use")


async def test_a_free_port_is_free_for_udp_as_well() -> None:
    """An endpoint that may choose its port takes one with both protocols."""
    async with Endpoint(listen(None, 0)) as endpoint:
        with udp_socket() as sock, pytest.raises(OSError, match="in use"):
            sock.bind(("", endpoint.address[1]))
