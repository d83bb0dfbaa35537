"""Clients that an endpoint must refuse or limit, and an operator who changes its key and limits meanwhile."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import random
import socket
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from endpoint_under_test import LIMITS, EndpointUnderTest
from faults import DEADLINE_S, carry_out
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, DATA_KIND, encode_preamble
from random_plans import plan_of
from strangers_beside import FIRST_BYTES


async def _answer_to(attempt: Awaitable[Any]) -> str:
    try:
        async with asyncio.timeout(DEADLINE_S):
            await attempt
    except LinkgaugeError as error:
        return type(error).__name__
    return "let in"


async def without_access(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Connect without a key, with a wrong one, and with the fingerprint of another certificate."""
    peers = [endpoint.with_key(None), endpoint.with_key(SharedKey.generate())]
    if endpoint.fingerprint is not None:
        peers.append(endpoint.with_key(endpoint.key, bytes(32)))
    return ", ".join([await _answer_to(query_host_info(peer)) for peer in peers])


async def beyond_limits(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Request more sessions, then a longer run, than the limits allow."""
    plans = (Plan(Settings(sessions=17)), Plan(duration_ns=600 * SECOND_NS))
    return ", ".join([await carry_out(endpoint.peer, plan) for plan in plans])


async def strangers_beside(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Carry out a run while strangers of the client's own address are at the endpoint."""
    program = Path(__file__).with_name("strangers_beside.py")
    words = [sys.executable, str(program), chance.choice(sorted(FIRST_BYTES)), endpoint.bind, str(endpoint.port)]
    strangers = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        if strangers.stdout is None or not await strangers.stdout.readline():
            return "no strangers"
        return await carry_out(endpoint.peer, plan_of(chance))
    finally:
        with contextlib.suppress(ProcessLookupError):
            strangers.terminate()
        await strangers.communicate()


async def key_change(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Change the key during a run: the run ends in order, the old key is refused, the new one accepted."""
    changed: list[asyncio.Task[list[str]]] = []
    old, new = endpoint.key, SharedKey.generate()

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and not changed:
            endpoint.write_key(new)
            changed.append(asyncio.create_task(endpoint.reload()))

    ended = await carry_out(endpoint.peer, plan_of(chance, 2.0), act)
    if not changed:
        return f"no run: {ended}"
    await changed[0]
    endpoint.key = new
    with_old = await _answer_to(query_host_info(endpoint.with_key(old)))
    return f"{ended}, {with_old}, {await _answer_to(query_host_info(endpoint.peer))}"


async def invalid_files(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Reload invalid files: key and limits stay as they were."""
    endpoint.write_key(None)
    endpoint.limits_file.write_text(
        chance.choice(("clients = 0", "no limits at all", "clients = [")), encoding="ascii"
    )
    refusals = await endpoint.reload()
    answer = await _answer_to(query_host_info(endpoint.peer))
    endpoint.write_key(endpoint.key)
    endpoint.limits_file.write_text(LIMITS, encoding="ascii")
    return ", ".join([*refusals, answer, *await endpoint.reload()])


async def few_descriptors(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Exhaust its descriptors with silent connections: a client with the key is still served."""
    socks: list[socket.socket] = []
    with endpoint.few_descriptors(40):
        try:
            for _ in range(100):
                address = (endpoint.bind, endpoint.port)
                socks += [await asyncio.to_thread(socket.create_connection, address, DEADLINE_S)]
            return await _answer_to(query_host_info(endpoint.peer))
        finally:
            for sock in socks:
                sock.close()


async def slow_handshake(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Send the handshake byte by byte, until the endpoint closes the connection."""
    handshakes = (encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES))
    connections = [await asyncio.open_connection(endpoint.bind, endpoint.port) for _ in handshakes]
    closed = asyncio.gather(*(_read_out(reader) for reader, _writer in connections))
    async with asyncio.timeout(DEADLINE_S):
        for at in range(10**6):
            for (_reader, writer), data in zip(connections, handshakes, strict=True):
                if at < len(data) - 1:
                    writer.write(data[at : at + 1])
            if (await asyncio.wait([closed], timeout=0.4))[0]:
                break
    for _reader, writer in connections:
        writer.close()
    return "closed"


async def _read_out(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(65_536):
            pass
