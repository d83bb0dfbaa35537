"""The handshake of crr's listener: nothing reaches a port that has proved nothing, and errors name a remedy."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host.event_loop import read_exactly
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PeerRefused
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import Run
from linkgauge.engine.workloads import crr_handshake, session_handshake
from linkgauge.engine.workloads.session_handshake import CrrEndpoint, SessionConfig, SessionSpec

from .plans import plan_of

Answer = Callable[[socket.socket], Coroutine[Any, Any, None]]
ADDRESSES = {"127.0.0.1": socket.AF_INET, "::1": socket.AF_INET6}
SECRET = bytes(range(32)).hex()


@contextlib.contextmanager
def connection(address: str = "127.0.0.1") -> Any:
    """Give both ends of a session's own connection: near, far."""
    with socket.create_server((address, 0), family=ADDRESSES[address]) as anchor:
        near = socket.create_connection(anchor.getsockname()[:2])
        far, _ = anchor.accept()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


async def negotiate(sock: socket.socket, end: End, direction: Direction, secret: str = SECRET) -> CrrEndpoint:
    """Agree on the listener of a session."""
    config = SessionConfig(end, Workload.CRR, SocketOptions())
    spec = SessionSpec(direction, 1, 0, None, secret)
    return await session_handshake.negotiate_listener(sock, config, spec)


async def stay_silent(sock: socket.socket) -> None:
    """Read, and say nothing."""


async def reset(sock: socket.socket) -> None:
    """Abort the connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


async def greet(sock: socket.socket) -> None:
    """Say something of the length of a proof, as a server might that speaks first."""
    await asyncio.get_running_loop().sock_sendall(sock, os.urandom(32))


async def hang_up(sock: socket.socket) -> None:
    """Close the connection."""
    sock.close()


class Victim:
    """A server that has nothing to do with linkgauge, at the client's own address."""

    def __init__(self, address: str, answer: Answer) -> None:
        self._listener = socket.create_server((address, 0), family=ADDRESSES[address])
        self._listener.setblocking(False)
        self._answer = answer
        self.received = b""
        self.port = self._listener.getsockname()[1]

    async def serve(self) -> None:
        """Serve until cancelled."""
        loop = asyncio.get_running_loop()
        with self._listener:
            while True:
                sock, _ = await loop.sock_accept(self._listener)
                with sock, contextlib.suppress(OSError):
                    sock.setblocking(False)
                    await self._answer(sock)
                    while sock.fileno() >= 0 and (data := await loop.sock_recv(sock, 65_536)):
                        self.received += data


@contextlib.asynccontextmanager
async def victim(address: str, answer: Answer) -> AsyncIterator[Victim]:
    """Give a server for the time of the block."""
    server = Victim(address, answer)
    task = asyncio.create_task(server.serve())
    try:
        yield server
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def closed_port(address: str) -> int:
    """Return a port at which nothing listens."""
    with socket.create_server((address, 0), family=ADDRESSES[address]) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("payload", [b"", pytest.param(b"x" * 1_000, marks=pytest.mark.every)])
async def test_a_port_that_proves_nothing_gets_no_byte_and_tells_nothing(
    address: str, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client names the port of a victim: open or closed, silent or not, the far end's error is the same."""
    monkeypatch.setattr(crr_handshake, "VERIFY_DEADLINE_S", 0.2)
    texts: set[str] = set()

    async def attack(port: int) -> None:
        with connection(address) as (near, far):
            near.send(port.to_bytes(2, "big") + payload)
            with pytest.raises(OSError, match="the remote host cannot connect") as caught:
                await negotiate(far, End.FAR, Direction.IN)
        assert caught.value.errno is None
        texts.add(str(caught.value).replace(str(port), "PORT"))

    async with asyncio.timeout(20):
        await attack(closed_port(address))
        for answer in (stay_silent, reset, greet, hang_up):
            async with victim(address, answer) as server:
                await attack(server.port)
                assert server.received == b""
    assert len(texts) == 1


async def test_the_far_end_reports_no_port_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a port that is closed nor one that greets is known sooner than a silent one."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note_pause(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(crr_handshake.asyncio, "sleep", note_pause)
    async with asyncio.timeout(20), victim("127.0.0.1", greet) as server:
        for port in (closed_port("127.0.0.1"), server.port):
            with connection() as (near, far):
                near.send(port.to_bytes(2, "big"))
                with pytest.raises(OSError, match="cannot connect"):
                    await negotiate(far, End.FAR, Direction.IN)
    assert len(pauses) == 2
    assert min(pauses) > 0


@pytest.mark.parametrize(
    ("answer", "why"), [(None, "refused"), (stay_silent, "no answer"), (greet, "another program"), (hang_up, "")]
)
async def test_the_near_end_names_the_reason_and_the_remedy(
    answer: Answer | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It connects for its own user, who may learn the port's state."""
    monkeypatch.setattr(crr_handshake, "VERIFY_DEADLINE_S", 0.5)
    async with asyncio.timeout(20), victim("127.0.0.1", answer or stay_silent) as server:
        port = closed_port("127.0.0.1") if answer is None else server.port
        with connection() as (near, far):
            far.send(port.to_bytes(2, "big"))
            with pytest.raises(OSError, match=rf"local host cannot connect .*{why}.*--direction in"):
                await negotiate(near, End.NEAR, Direction.OUT)
        assert server.received == b""


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("direction", [Direction.OUT, Direction.IN])
async def test_the_first_connection_after_the_proof_is_the_session_s(address: str, direction: Direction) -> None:
    """The listener proves itself to a requester and takes no later connection for another of these."""
    async with asyncio.timeout(20):
        for _ in range(20):
            with connection(address) as (near, far), socket.socket(ADDRESSES[address]) as first:
                requesting, responding = (near, far) if direction is Direction.OUT else (far, near)
                ends = (End.NEAR, End.FAR) if direction is Direction.OUT else (End.FAR, End.NEAR)
                offering = asyncio.create_task(negotiate(responding, ends[1], direction))
                found = await negotiate(requesting, ends[0], direction)
                first.connect(found)
                first.send(b"request")
                listener = await offering
                assert isinstance(listener, socket.socket)
                with listener:
                    assert found == (*listener.getsockname()[:2], *near.getsockname()[2:])
                    accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
                    with accepted:
                        assert accepted.recv(7) == b"request"


async def test_strangers_at_the_listener_are_no_obstacle() -> None:
    """One stays silent, one answers wrongly, one goes away: the requester still gets its proof."""
    with connection() as (near, relay_far), connection() as (relay_near, far):
        offering = asyncio.create_task(negotiate(near, End.NEAR, Direction.IN))
        async with asyncio.timeout(20):
            port = await read_exactly(relay_far, 2)
            address = near.getsockname()[0], int.from_bytes(port, "big")
            with socket.create_connection(address), socket.create_connection(address) as wrong:
                wrong.send(bytes(32))
                socket.create_connection(address).close()
                relay_near.send(port)
                verifying = asyncio.create_task(negotiate(far, End.FAR, Direction.IN))
                relay_far.send(await read_exactly(relay_near, 16))
                assert await verifying == address
                listener = await offering
        assert isinstance(listener, socket.socket)
        listener.close()


async def test_a_session_that_ends_during_the_handshake_leaves_no_listener() -> None:
    """The responding end reports it, with a remedy, whenever the other end goes."""
    text = r"the remote host cannot connect to 127\.0\.0\.1 port \d+ of the local one .*--direction out"
    for nonce in (b"", bytes(16)):
        with connection() as (near, far):
            offering = asyncio.create_task(negotiate(near, End.NEAR, Direction.IN))
            async with asyncio.timeout(10):
                port = int.from_bytes(await read_exactly(far, 2), "big")
                far.send(nonce)
                far.shutdown(socket.SHUT_WR)
                with pytest.raises(OSError, match=text):
                    await offering
            with socket.socket() as late:
                assert late.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


@pytest.mark.parametrize("direction", [Direction.IN, pytest.param(Direction.DUPLEX, marks=pytest.mark.every)])
async def test_an_endpoint_need_not_connect_back(direction: Direction, record: Any) -> None:
    """Its limit refuses crr inwards by name, before a run and during it, and leaves everything else alone."""

    def turn(run: Run, event: Event) -> None:
        if isinstance(event, Sampled):
            run.change_settings(run.settings.with_changes(direction=direction))

    async with Endpoint(listen("127.0.0.1", 0), limits=Limits(connect_back=0)) as endpoint:
        peer = Peer(*endpoint.address)
        with pytest.raises(PeerRefused, match=r"--direction out \(its limit connect_back is 0\)"):
            await record(plan_of(Workload.CRR, direction), peer)
        recorded = await record(plan_of(Workload.CRR, Direction.OUT), peer, turn)
        assert "connect_back is 0" in recorded.end.detail
        endpoint.admission.limits = Limits(connect_back=1)
        with pytest.raises(
            PeerRefused, match=r"3 sessions of crr inwards are too many at once .*connect_back is 1"
        ):
            await record(plan_of(Workload.CRR, direction, sessions=3), peer)
        recorded = await record(plan_of(Workload.CRR, direction), peer)
        assert recorded.end.reason is Reason.COMPLETED
        recorded = await record(plan_of(Workload.RR, direction), peer)
        assert recorded.end.reason is Reason.COMPLETED
