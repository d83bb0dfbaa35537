"""Stock iperf3 programs as the other end of a worker pool, and the control conversation that a run would hold.

Just enough of the protocol to drive sessions alone: no limits, no refusals, one test at a time.
"""

import asyncio
import contextlib
import json
import shutil
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.metering.drain import await_drain
from linkgauge.engine.model.plan import Direction, End, Plan
from linkgauge.engine.workers.ipc import (
    AdoptSession,
    ConnectionFailed,
    ConnectionLost,
    ConnectionOpened,
    OpenSession,
)
from linkgauge.engine.workers.pool import WorkerPool
from linkgauge.engine.workloads.session_handshake import ConnectTarget, Iperf3Format, SessionSpec

IPERF3 = shutil.which("iperf3")
needs_iperf3 = pytest.mark.skipif(IPERF3 is None, reason="needs iperf3")
DEADLINE_S = 30.0
COOKIE = b"abcdefghijklmnopqrstuvwxyz2345672345\0"
TEST_START, TEST_RUNNING, TEST_END, PARAM_EXCHANGE, CREATE_STREAMS = 1, 2, 4, 9, 10
EXCHANGE_RESULTS, DISPLAY_RESULTS, IPERF_DONE = 13, 14, 16
_LENGTH = struct.Struct(">I")
_LISTEN = "0A"  # a state in /proc/net/tcp


class Conversation:
    """A control connection after its cookie: states and documents."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def expect(self, *states: int) -> None:
        """Read these states, in this order."""
        for state in states:
            assert (await self._reader.readexactly(1))[0] == state

    def send(self, *states: int) -> None:
        """Send states."""
        self._writer.write(bytes(states))

    async def read_document(self) -> Any:
        """Read a length and a document."""
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return json.loads(await self._reader.readexactly(length))

    def send_document(self, document: object) -> None:
        """Send a document behind its length."""
        data = json.dumps(document).encode()
        self._writer.write(_LENGTH.pack(len(data)) + data)

    async def read_to_end(self) -> None:
        """Read until the other end has closed, and close."""
        await self._reader.read()
        self._writer.close()


class Sessions:
    """A pool of iperf3's dialect, whose events can be awaited."""

    def __init__(self, end: End, plan: Plan, *, has_64bit_counters: bool = False) -> None:
        self.opened: list[ConnectionOpened] = []
        self.failed: list[str] = []
        self._changed = asyncio.Event()
        self.pool = WorkerPool(end, plan, self._take, self.failed.append, iperf3=Iperf3Format(has_64bit_counters))

    def _take(self, event: object) -> None:
        if isinstance(event, ConnectionOpened):
            self.opened.append(event)
        elif isinstance(event, ConnectionFailed | ConnectionLost):
            self.failed.append(event.why)
        self._changed.set()

    async def wait_for(self, count: int) -> None:
        """Wait until so many sessions are open; fail with the reason where one is not."""
        while len(self.opened) < count:
            await self._changed.wait()
            self._changed.clear()
            assert not self.failed, self.failed

    def carried(self, direction: Direction) -> int:
        """Return the bytes of a direction, which the workers may still store."""
        return self.pool.counters.flow_bytes(direction)


@dataclass(frozen=True)
class Outcome:
    """What both ends counted: our bytes of each direction, and the results that iperf3 gives."""

    out_bytes: int
    in_bytes: int
    results: dict[str, Any]
    failed: list[str]
    datagrams: dict[Direction, tuple[int | None, ...]]


def keys_of(plan: Plan) -> list[tuple[Direction, int]]:
    """Return the sessions of a plan in the order in which iperf3 opens them: the senders first."""
    settings = plan.settings
    return [(flow, number) for flow in settings.direction.flows for number in range(1, settings.sessions + 1)]


def own_results(plan: Plan, sessions: Sessions, end: End) -> dict[str, Any]:
    """Return a document of results, as far as iperf3 insists on it."""
    ids = [1, *range(3, 2 + len(keys_of(plan)))]
    streams: list[dict[str, Any]] = []
    for number, (flow, session) in zip(ids, keys_of(plan), strict=False):
        slot = sessions.pool.counters.read(flow, session)
        is_sender = (flow is Direction.OUT) is (end is End.NEAR)
        streams.append(
            {
                "id": number,
                "bytes": 0 if slot is None else slot.bytes,
                "retransmits": 0 if is_sender else -1,
                "jitter": 0.0,
                "errors": 0,
                "omitted_errors": 0,
                "packets": 0,
                "omitted_packets": 0,
                "start_time": 0,
                "end_time": 1.0,
            }
        )
    cpu = dict.fromkeys(("cpu_util_total", "cpu_util_user", "cpu_util_system"), 0.0)
    return {**cpu, "sender_has_retransmits": 1, "streams": streams}


def _outcome(sessions: Sessions, plan: Plan, results: dict[str, Any]) -> Outcome:
    counters = sessions.pool.counters
    datagrams = {flow: counters.read_datagrams(flow, 1) for flow in plan.settings.direction.flows}
    return Outcome(
        sessions.carried(Direction.OUT), sessions.carried(Direction.IN), results, sessions.failed, datagrams
    )


def free_port(host: str) -> int:
    """Return a port of loopback that nothing uses now, over TCP and UDP."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tcp, socket.socket(family, socket.SOCK_DGRAM) as udp:
        tcp.bind((host, 0))
        port: int = tcp.getsockname()[1]
        udp.bind((host, port))
    return port


@contextlib.asynccontextmanager
async def stock_server_process(host: str = "127.0.0.1") -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """Give the port and the process of an iperf3 server that serves one test."""
    assert IPERF3 is not None
    port = free_port(host)
    arguments = ["-s", "-1", "-B", host, "-p", str(port), "--forceflush"]
    process = await asyncio.create_subprocess_exec(
        IPERF3, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        assert process.stdout is not None
        while b"listening" not in await process.stdout.readline():
            pass
        yield port, process
        await process.stdout.read()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def stock_server(host: str = "127.0.0.1") -> AsyncIterator[int]:
    """Give the port of an iperf3 server that serves one test."""
    async with stock_server_process(host) as (port, _process):
        yield port


async def until_all_is_read(port: int) -> None:
    """Wait until the server of this port has read everything that its kernel has acknowledged.

    At the end of a test it stops reading: what still waits in its sockets then is in no count of its own.
    """
    while any(_unread_bytes(port)):  # noqa: ASYNC110 - the kernel tells nobody that another process has read
        await asyncio.sleep(0.01)


def _unread_bytes(port: int) -> list[int]:
    """Return what waits in each connected IPv4 socket of a local port (proc_net_tcp(5))."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return [
        int(queues.partition(":")[2], 16)
        for _number, local, _remote, state, queues, *_ in rows
        if int(local.partition(":")[2], 16) == port and state != _LISTEN
    ]


async def drive_near(
    plan: Plan,
    port: int,
    parameters: dict[str, Any],
    until: Callable[[Sessions], Awaitable[None]],
    *,
    host: str = "127.0.0.1",
    **options: Any,
) -> Outcome:
    """Carry out a test as the client of an iperf3 server, which ends once `until` returns."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(COOKIE)
        control = Conversation(reader, writer)
        await control.expect(PARAM_EXCHANGE)
        control.send_document({"omit": 0, "time": 60, "parallel": plan.settings.sessions, **parameters})
        await control.expect(CREATE_STREAMS)
        sessions = Sessions(End.NEAR, plan, **options)
        async with sessions.pool:
            target = ConnectTarget.from_address("", writer.get_extra_info("peername"))
            for count, (flow, number) in enumerate(keys_of(plan), 1):
                spec = SessionSpec(flow, number, 0, plan.settings.window_bytes, COOKIE.hex())
                await sessions.pool.send_command(OpenSession(spec, target))
                await sessions.wait_for(count)
            await control.expect(TEST_START, TEST_RUNNING)
            sessions.pool.start_payload()
            await until(sessions)
            sessions.pool.stop_payload()
            await sessions.pool.await_stopped()
            control.send(TEST_END)
            await control.expect(EXCHANGE_RESULTS)
            control.send_document(own_results(plan, sessions, End.NEAR))
            results = await control.read_document()
            await control.expect(DISPLAY_RESULTS)
            control.send(IPERF_DONE)
            if plan.workload.is_datagram and Direction.IN in plan.settings.direction.flows:
                await await_drain(sessions.pool.counters)  # as a run does: a busy worker still has some to read
            outcome = _outcome(sessions, plan, results)
        writer.close()
    return outcome


async def drive_far(plan: Plan, *arguments: str, host: str = "127.0.0.1", **options: Any) -> Outcome:
    """Carry out a test as the server of an iperf3 client with these arguments."""
    assert IPERF3 is not None
    async with asyncio.timeout(DEADLINE_S):
        port = free_port(host)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family) as listener:
            listener.setblocking(False)
            process = await asyncio.create_subprocess_exec(
                *(IPERF3, "-c", host, "-p", str(port), "--json", *arguments),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            try:
                outcome = await _serve(plan, listener, options)
                output = (await process.communicate())[0]
            finally:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    document = json.loads(output)
    assert "error" not in document, document["error"]
    return Outcome(outcome.out_bytes, outcome.in_bytes, document["end"], outcome.failed, outcome.datagrams)


async def _serve(plan: Plan, listener: socket.socket, options: dict[str, Any]) -> Outcome:
    loop = asyncio.get_running_loop()
    first, _ = await loop.sock_accept(listener)
    control = Conversation(*await asyncio.open_connection(sock=first))
    cookie = await control._reader.readexactly(len(COOKIE))
    control.send(PARAM_EXCHANGE)
    await control.read_document()
    sessions = Sessions(End.FAR, plan, **options)
    async with sessions.pool:
        accept = _accept_datagrams if plan.workload.is_datagram else _accept_stream
        udp = _hello_socket(listener) if plan.workload.is_datagram else None
        control.send(CREATE_STREAMS)
        for count, (flow, number) in enumerate(keys_of(plan), 1):
            sock, udp = await accept(listener, udp, cookie)
            spec = SessionSpec(flow, number, 0, plan.settings.window_bytes, cookie.hex())
            await sessions.pool.send_command(AdoptSession(spec), sock.detach())
            await sessions.wait_for(count)
        if udp is not None:
            udp.close()
        control.send(TEST_START, TEST_RUNNING)
        sessions.pool.start_payload()
        await control.expect(TEST_END)
        sessions.pool.stop_payload()
        await sessions.pool.await_stopped()
        control.send(EXCHANGE_RESULTS)
        results = await control.read_document()
        control.send_document(own_results(plan, sessions, End.FAR))
        control.send(DISPLAY_RESULTS)
        await control.expect(IPERF_DONE)
        outcome = _outcome(sessions, plan, results)
    await control.read_to_end()
    return outcome


async def _accept_stream(
    listener: socket.socket, _udp: socket.socket | None, cookie: bytes
) -> tuple[socket.socket, None]:
    loop = asyncio.get_running_loop()
    sock, _ = await loop.sock_accept(listener)
    shown = b""
    while len(shown) < len(cookie):
        shown += await loop.sock_recv(sock, len(cookie) - len(shown))
    assert shown == cookie
    return sock, None


def _hello_socket(listener: socket.socket) -> socket.socket:
    udp = socket.socket(listener.family, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp.setblocking(False)
    udp.bind(listener.getsockname())
    return udp


async def _accept_datagrams(
    listener: socket.socket, udp: socket.socket | None, _cookie: bytes
) -> tuple[socket.socket, socket.socket]:
    """Take a hello, connect its socket to the client, and open the next one before the reply."""
    assert udp is not None
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(udp, lambda: readable.done() or readable.set_result(None))
    await readable
    loop.remove_reader(udp)
    hello, address = udp.recvfrom(16)
    udp.connect(address)
    following = _hello_socket(listener)
    udp.send(b"6789" if hello == b"9876" else bytes.fromhex("b168de3a"))
    return udp, following
