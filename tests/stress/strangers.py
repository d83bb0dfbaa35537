"""Those that an endpoint should not let in, or not so far, and what an operator does to it meanwhile."""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import random
import socket
from collections.abc import Awaitable
from typing import Any

from faults import DEADLINE_S, carry_out, plan_of
from ground import LIMITS, Ground
from linkgauge.engine.model.access import SharedKey
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, DATA_KIND, encode_preamble


async def _said_to(attempt: Awaitable[Any]) -> str:
    try:
        async with asyncio.timeout(DEADLINE_S):
            await attempt
    except LinkgaugeError as error:
        return type(error).__name__
    return "let in"


async def strangers(ground: Ground, _chance: random.Random) -> str:
    """Come without a key, with another one, and to another certificate."""
    peers = [ground.with_key(None), ground.with_key(SharedKey.generate())]
    if ground.fingerprint is not None:
        peers.append(ground.with_key(ground.key, bytes(32)))
    return ", ".join([await _said_to(query_host_info(peer)) for peer in peers])


async def too_much(ground: Ground, _chance: random.Random) -> str:
    """Ask for more sessions, and for a longer run, than the limits allow."""
    plans = (Plan(Settings(sessions=17)), Plan(duration_ns=600 * SECOND_NS))
    return ", ".join([await carry_out(ground.peer, plan) for plan in plans])


async def new_key(ground: Ground, chance: random.Random) -> str:
    """Change the key while a run goes on: it ends in order, the old key lets nobody in, the new one does."""
    changed: list[asyncio.Task[list[str]]] = []
    old, new = ground.key, SharedKey.generate()

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and not changed:
            ground.write_key(new)
            changed.append(asyncio.create_task(ground.reload()))

    ended = await carry_out(ground.peer, plan_of(chance, 2.0), act)
    if not changed:
        return f"no run: {ended}"
    await changed[0]
    ground.key = new
    with_old = await _said_to(query_host_info(ground.with_key(old)))
    return f"{ended}, {with_old}, {await _said_to(query_host_info(ground.peer))}"


async def bad_files(ground: Ground, chance: random.Random) -> str:
    """Have files read that are wrong: all stays as it was."""
    ground.write_key(None)
    ground.limits_file.write_text(
        chance.choice(("clients = 0", "no limits at all", "clients = [")), encoding="ascii"
    )
    said = await ground.reload()
    let_in = await _said_to(query_host_info(ground.peer))
    ground.write_key(ground.key)
    ground.limits_file.write_text(LIMITS, encoding="ascii")
    return ", ".join([*said, let_in, *await ground.reload()])


async def few_descriptors(ground: Ground, _chance: random.Random) -> str:
    """Take its descriptors by connections that say nothing: who has the key is served all the same."""
    socks: list[socket.socket] = []
    with ground.few_descriptors(40):
        try:
            for _ in range(100):
                socks += [await asyncio.to_thread(socket.create_connection, ("127.0.0.1", ground.port), DEADLINE_S)]
            return await _said_to(query_host_info(ground.peer))
        finally:
            for sock in socks:
                sock.close()


async def drip(ground: Ground, _chance: random.Random) -> str:
    """Say the first words byte by byte, until the endpoint has had enough."""
    words = (encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES))
    ways = [await asyncio.open_connection("127.0.0.1", ground.port) for _ in words]
    closed = asyncio.gather(*(_read_out(reader) for reader, _writer in ways))
    async with asyncio.timeout(DEADLINE_S):
        for at in range(10**6):
            for (_reader, writer), said in zip(ways, words, strict=True):
                if at < len(said) - 1:
                    writer.write(said[at : at + 1])
            if (await asyncio.wait([closed], timeout=0.4))[0]:
                break
    for _reader, writer in ways:
        writer.close()
    return "closed"


async def _read_out(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(65_536):
            pass
