"""What can happen to an endpoint: runs of every kind, and everything that goes wrong with them, one function each.

Each takes the endpoint and a source of chance, and returns a word for how it ended. ACTIONS says how often each
is done, and how it may end.
"""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from ground import Ground
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Hello
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, DATA_KIND, encode_preamble
from processes import tree, workers

DEADLINE_S = 300.0  # of a machine that is busy with other things; what is tested has deadlines of its own
_HELLO = encode_frame(Hello(HostInfo("soak", "Linux", 2, "linkgauge", "uvloop")))
_CLIENT = """
import asyncio, sys
from linkgauge.engine.protocol.auth import Access, Key
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Direction, Plan, Settings
from linkgauge.engine.near.run import open_run

async def main(port, key, fingerprint):
    access = Access(Key(key), fingerprint=bytes.fromhex(fingerprint) or None)
    plan = Plan(Settings(Direction.DUPLEX, 2, 65_536), duration_ns=60 * 10**9, block_bytes=4_096)
    async with open_run(plan, Peer("127.0.0.1", port, access)) as one:
        print("running", flush=True)
        async for event in one:
            pass
    print(event.end.reason, flush=True)

run(main(int(sys.argv[1]), sys.stdin.readline().strip(), sys.argv[2]))
"""

Action = Callable[[Ground, random.Random], Awaitable[str]]


def plan_of(chance: random.Random, seconds: float = 1.0) -> Plan:
    """Return a run of any kind."""
    workload = chance.choice([*Workload, Workload.STREAM])
    settings = Settings(chance.choice(list(Direction)), chance.choice((1, 2, 5)), chance.choice((None, 65_536)))
    size = 65_536 if workload is Workload.FETCH else None
    return Plan(
        settings,
        workload,
        duration_ns=int(seconds * SECOND_NS),
        interval_ns=SECOND_NS // 10,
        block_bytes=chance.choice((4_096, 65_536)),
        response_bytes=size,
    )


async def carry_out(peer: Peer, plan: Plan, act: Callable[[Any, Any], None] = lambda _run, _event: None) -> str:
    """Carry a run out, with something done at each of its events; return its reason, or why there was none."""
    said = "nothing"
    async with asyncio.timeout(DEADLINE_S):
        try:
            async with open_run(plan, peer) as run:
                async for event in run:
                    act(run, event)
                    if isinstance(event, Ended):
                        said = event.end.reason.value
        except LinkgaugeError as error:
            return type(error).__name__
    return said


async def plain_run(ground: Ground, chance: random.Random) -> str:
    """Carry a run out as it should be."""
    return await carry_out(ground.peer, plan_of(chance))


async def changing_run(ground: Ground, chance: random.Random) -> str:
    """Lean on the keys while it runs, up to its very end."""

    def act(run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and chance.random() < 0.5:
            window = chance.choice(("auto", 65_536, 131_072))
            direction = chance.choice(list(Direction))
            run.change(
                run.settings.with_changes(direction=direction, sessions=chance.randint(1, 6), window_bytes=window)
            )

    return await carry_out(ground.peer, plan_of(chance), act)


async def abandoned_run(ground: Ground, chance: random.Random) -> str:
    """Cancel a run anywhere between its first packet and its last."""
    task = asyncio.create_task(carry_out(ground.peer, plan_of(chance, 5.0)))
    await asyncio.wait([task], timeout=chance.uniform(0.0, 1.5))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return "cancelled"


async def far_worker_killed(ground: Ground, chance: random.Random) -> str:
    """Kill one of the endpoint's workers in the middle of a run."""

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and (found := workers(ground.pid)):
            with contextlib.suppress(ProcessLookupError):  # it may be on its way out
                os.kill(chance.choice(found), signal.SIGKILL)

    return await carry_out(ground.peer, plan_of(chance, 5.0), act)


async def far_starter_killed(ground: Ground, chance: random.Random) -> str:
    """Kill what starts the endpoint's workers in the middle of a run, which does not need it any more."""

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2:
            for pid in set(tree(ground.pid)[1:]) - set(workers(ground.pid)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    return await carry_out(ground.peer, plan_of(chance), act)


async def _with_client(ground: Ground, act: Callable[[list[int]], Awaitable[None]]) -> str:
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CLIENT, str(ground.port), (ground.fingerprint or b"").hex()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        client.stdin.write(ground.key.reveal().encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            if await client.stdout.readline() != b"running\n":
                return "did not start"
            await act(tree(client.pid))
            said, _ = await client.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            client.kill()
        await client.wait()
    return said.decode().strip() or "killed"


async def near_killed(ground: Ground, _chance: random.Random) -> str:
    """Kill a near end in the middle of its run; its workers see that and end."""

    async def act(pids: list[int]) -> None:
        os.kill(pids[0], signal.SIGKILL)

    return await _with_client(ground, act)


async def near_frozen(ground: Ground, _chance: random.Random) -> str:
    """Freeze a near end and its workers until the endpoint has given it up, then let it go on."""

    async def act(pids: list[int]) -> None:
        for one in pids:
            os.kill(one, signal.SIGSTOP)
        await asyncio.sleep(7)
        for one in reversed(pids):
            os.kill(one, signal.SIGCONT)

    return await _with_client(ground, act)


async def far_frozen(ground: Ground, chance: random.Random) -> str:
    """Freeze the endpoint and its workers until the near end has given it up, then let it go on."""
    frozen: list[int] = []

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and not frozen:
            frozen.extend(tree(ground.pid))
            for one in frozen:
                os.kill(one, signal.SIGSTOP)

    try:
        return await carry_out(ground.peer, plan_of(chance, 30.0), act)
    finally:
        for one in reversed(frozen):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


async def garbage(ground: Ground, chance: random.Random) -> str:
    """Say what is no linkgauge, or only begins as one, on twenty connections."""
    for _ in range(20):
        said = chance.randbytes(chance.choice((1, 12, 60, 5_000)))
        head = chance.choice(
            (b"", encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND), encode_preamble(CONTROL_KIND) + _HELLO)
        )
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ground.port), 10) as sock:
            sock.sendall(head + said)
            if chance.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
    return "dropped"


async def silence(ground: Ground, chance: random.Random) -> str:
    """Open connections that say nothing, or half of something, and let them be closed by the other end."""
    halves = (
        b"",
        encode_preamble(CONTROL_KIND)[:5],
        encode_preamble(CONTROL_KIND) + _HELLO[:9],
        encode_preamble(DATA_KIND),
    )
    said = chance.choice((*halves, encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES - 1)))
    readers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(chance.choice((1, 50, 200))):
        reader, writer = await asyncio.open_connection("127.0.0.1", ground.port)
        writer.write(said)
        readers.append((reader, writer))
    facts = await query_host_info(ground.peer)  # others are served all the while
    async with asyncio.timeout(DEADLINE_S):
        for reader, writer in readers:
            with contextlib.suppress(OSError):
                await reader.read()
            writer.close()
    return "served" if facts.cores else "unknown"


async def crowd(ground: Ground, _chance: random.Random) -> str:
    """Ask for twelve runs at once, where ten are served."""
    plan = Plan(Settings(window_bytes=65_536), Workload.RR, duration_ns=SECOND_NS, interval_ns=SECOND_NS // 4)
    ends = await asyncio.gather(*(carry_out(ground.peer, plan) for _ in range(12)))
    return ", ".join(sorted(set(ends)))
