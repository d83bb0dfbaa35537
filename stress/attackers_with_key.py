"""Attacks by clients that have the key: their runs do what no honest near end does."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import itertools
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any

from attack_target import Attack, Target, source
from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.plan import (
    DATAGRAM_PROBE_SESSION,
    HANDSHAKE_PROBE_SESSION,
    MAX_BLOCK_BYTES,
    MAX_SESSIONS,
    MAX_WORKERS,
    MIN_INTERVAL_NS,
    SECOND_NS,
    Plan,
    ResponsivenessTest,
    Settings,
    SocketOptions,
)
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import connect
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.messages import Begun, Finish, Open, Ping, Ready, Start
from linkgauge.engine.protocol.preamble import DATA_ACCEPTED, DATA_KIND, DataHello, encode_preamble
from linkgauge.engine.protocol.probe_datagrams import ProbeDatagram
from linkgauge.engine.protocol.tokens import RunSecret, Tickets
from linkgauge.engine.workloads.datagram_handshake import connect_datagrams
from linkgauge.engine.workloads.session_handshake import ConnectTarget, SessionSpec
from relay import open_relay

_CLIENTS = 6
_PINGS = 8_000
_SESSIONS = 16  # more have too many samples for six clients at once
_ATTEMPT_S = 20.0
_PAUSE_S = 0.2
_NETWORK = 8
_REOPENINGS = 2_000
_ANSWERS_S = 160  # of handshakes 20, and of datagrams 150, with a burst of two seconds


async def _as_clients(
    target: Target, clients: int, attempt: Callable[[ControlConnection], Awaitable[None]]
) -> None:
    """Connect as so many clients, each from an address of its own, again and again."""

    async def work(number: int) -> None:
        async with open_relay(target, source(number, _NETWORK)) as peer:
            while True:
                with contextlib.suppress(LinkgaugeError, OSError, TimeoutError):
                    async with connect(peer) as (control, _ends):
                        target.count("connections")
                        await attempt(control)
                await asyncio.sleep(_PAUSE_S)

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(work(number))


async def _receive(control: ControlConnection, *kinds: type) -> Any:
    """Return the next message of one of these kinds."""
    while not isinstance(message := await control.receive(), kinds):
        pass
    return message


async def _open(control: ControlConnection, plan: Plan, *, start: bool) -> None:
    control.send(Open(plan))
    await _receive(control, Ready)
    if start:
        control.send(Start())
        await _receive(control, Begun)


async def never_starts(target: Target) -> None:
    """Open a run, and leave it at that."""

    async def attempt(control: ControlConnection) -> None:
        await _open(control, Plan(), start=False)
        target.report_strength()
        await _receive(control, Finish)

    await _as_clients(target, _CLIENTS, attempt)


async def never_stops(target: Target) -> None:
    """Start a run of half a second, answer pings, and never stop it."""

    async def attempt(control: ControlConnection) -> None:
        await _open(control, Plan(duration_ns=SECOND_NS // 2), start=True)
        target.report_strength()
        await _receive(control, Finish)

    await _as_clients(target, _CLIENTS, attempt)


async def never_reads(target: Target) -> None:
    """Start a run with many samples, and read none; pings show that the client is there."""

    async def attempt(control: ControlConnection) -> None:
        plan = Plan(Settings(Direction.DUPLEX, _SESSIONS), duration_ns=None, interval_ns=MIN_INTERVAL_NS)
        await _open(control, plan, start=True)
        control._transport.pause_reading()
        target.report_strength()
        serial = 0
        while not control.is_closing:
            serial += 1
            control.try_send(Ping(serial))
            await asyncio.sleep(_PAUSE_S)

    await _as_clients(target, _CLIENTS, attempt)


async def late_pings(target: Target) -> None:
    """Send thousands of pings in one chunk, behind the proof of the key."""

    async def attempt(control: ControlConnection) -> None:
        for serial in range(_PINGS):
            control.machine.send(Ping(serial))
        control.flush()
        target.count("pings", _PINGS)
        target.report_strength()
        await _receive(control, Finish)

    await _as_clients(target, 2, attempt)


async def largest_plan(target: Target) -> None:
    """Open the largest runs that a plan can name, and start none."""
    plans = (
        Plan(Settings(Direction.DUPLEX, MAX_SESSIONS), block_bytes=MAX_BLOCK_BYTES, workers=MAX_WORKERS),
        Plan(
            Settings(Direction.DUPLEX, MAX_SESSIONS),
            Workload.RR,
            block_bytes=MAX_BLOCK_BYTES,
            workers=MAX_WORKERS,
            request_bytes=MAX_BLOCK_BYTES,
            response_bytes=1 << 30,
        ),
    )

    async def attempt(control: ControlConnection) -> None:
        target.count("opened")
        try:
            await _open(control, plans[target.counts["opened"] % 2], start=False)
        finally:
            target.report_strength()
        await _receive(control, Finish)

    await _as_clients(target, 2, attempt)


async def stolen_tokens(target: Target) -> None:
    """Show the tokens of an honest run again, while it lasts and after its end, whole and with a bit changed."""
    headers: list[bytes] = []
    honest = Plan(Settings(Direction.DUPLEX, 2, 65_536), duration_ns=2 * SECOND_NS, block_bytes=4_096)

    async def carry_out() -> None:
        async with open_relay(target, source(1, _NETWORK), headers) as peer:
            while True:
                with contextlib.suppress(LinkgaugeError, OSError):
                    async with open_run(honest, peer) as run:
                        async for event in run:
                            if isinstance(event, Started):
                                target.count("honest runs")

    async def steal(thief: int) -> None:
        while True:
            await asyncio.sleep(0.01)
            if target.counts.get("honest runs", 0):
                header = bytearray(headers[(thief + target.counts.get("tokens", 0)) % len(headers)])
                if target.counts.get("tokens", 0) % 3 == 0:
                    header[-20] ^= 1
                with contextlib.suppress(OSError):
                    await _show(target, bytes(header), thief)

    async with asyncio.TaskGroup() as group:
        group.create_task(carry_out())
        for thief in range(8):
            group.create_task(steal(thief))


async def _show(target: Target, header: bytes, thief: int) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", target.port, local_addr=(source(100 + thief, _NETWORK), 0)
    )
    try:
        writer.write(header)
        target.count("tokens")
        if await reader.read(1) == DATA_ACCEPTED:
            target.count("ADMITTED")
        target.report_strength()
    finally:
        writer.close()


async def crr_at_victim(target: Target) -> None:
    """Have the endpoint request from a port of somebody else: a client names it in place of its own listener."""
    port = struct.pack(">H", target.victim_port)
    plan = Plan(Settings(Direction.IN), Workload.CRR, duration_ns=SECOND_NS, request_bytes=1 << 20)

    def rewrite(_header: bytes, chunk: bytes) -> bytes:
        target.count("ports named")
        return port + chunk[len(port) :]

    async def attempt(number: int) -> None:
        async with open_relay(target, source(number, _NETWORK), rewrite=rewrite) as peer:
            while True:
                with contextlib.suppress(LinkgaugeError, OSError, TimeoutError):
                    async with asyncio.timeout(_ATTEMPT_S), open_run(plan, peer) as run:
                        async for _event in run:
                            pass
                target.report_strength()

    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(attempt(number))


async def reopened_sessions(target: Target) -> None:
    """Open a session of crr outwards again and again, and finish no opening: each would have a port of its own."""
    plan = Plan(workload=Workload.CRR, duration_ns=None)

    async def attempt(control: ControlConnection) -> None:
        control.send(Open(plan))
        ready = await _receive(control, Ready)
        secret = control.derive_run_secret(bytes.fromhex(ready.token))
        control.send(Start())
        async with contextlib.AsyncExitStack() as stack:
            for generation in range(_REOPENINGS):
                session_secret = secret.session_secret(Direction.OUT, 1, generation, None)
                token = Tickets(session_secret).token(0)
                header = DataHello(secret.run_tag, token, Direction.OUT, 1, generation, None)
                _reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
                stack.callback(writer.close)
                writer.write(encode_preamble(DATA_KIND) + header.pack())
                target.count("openings")
            target.report_strength()
            await asyncio.sleep(_PAUSE_S)

    await _as_clients(target, 2, attempt)


async def probe_floods(target: Target) -> None:
    """Flood a run with handshake probes, and with datagrams to echo, each with its own valid token or code."""
    plan = Plan(duration_ns=None, probe=True, responsiveness=ResponsivenessTest.PHASES)

    async def attempt(control: ControlConnection) -> None:
        control.send(Open(plan))
        ready = await _receive(control, Ready)
        secret = control.derive_run_secret(bytes.fromhex(ready.token))
        control.send(Start())
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(_ATTEMPT_S), asyncio.TaskGroup() as group:
                group.create_task(_flood_handshakes(target, secret))
                group.create_task(_flood_echoes(target, secret))
        finally:
            seconds = time.monotonic() - began_s
            for name in ("answers", "echoes"):
                if target.counts.pop(name, 0) > _ANSWERS_S * (seconds + 2):
                    target.count("ADMITTED")

    await _as_clients(target, 1, attempt)


async def _flood_handshakes(target: Target, secret: RunSecret) -> None:
    settings = (Direction.OUT, HANDSHAKE_PROBE_SESSION, 0, None)
    tickets = Tickets(secret.session_secret(*settings))
    for serial in itertools.count(1):
        hello = DataHello(secret.run_tag, tickets.token(serial), *settings[:2], serial, None)
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            writer.write(encode_preamble(DATA_KIND) + hello.pack())
            target.count("handshakes")
            if await reader.read(1) == DATA_ACCEPTED:
                target.count("answers")
            writer.close()


async def _flood_echoes(target: Target, secret: RunSecret) -> None:
    settings = (Direction.OUT, DATAGRAM_PROBE_SESSION, 0, None)
    spec = SessionSpec(*settings, secret.session_secret(*settings).hex())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        address = ConnectTarget.from_address(secret.run_tag.hex(), ("127.0.0.1", target.port))
        await connect_datagrams(sock, spec, address, SocketOptions())
        for serial in itertools.count(1):
            with contextlib.suppress(OSError):
                sock.send(ProbeDatagram(serial, 1).pack(bytes.fromhex(spec.secret_hex)))
                target.count("datagrams")
                while sock.recv(256):
                    target.count("echoes")
            if serial % 20 == 0:
                target.report_strength()
                await asyncio.sleep(0.001)


ATTACKS_WITH_KEY: dict[str, Attack] = {
    attack.__name__: attack
    for attack in (
        *(never_starts, never_stops, never_reads, late_pings, largest_plan, stolen_tokens, crr_at_victim),
        *(reopened_sessions, probe_floods),
    )
}
