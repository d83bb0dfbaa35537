"""Runs of every kind against an endpoint, and faults in the middle of them: one function each.

Each takes the endpoint and a random generator, and returns a word for how it ended. `actions` has the frequency and
the expected ends of each.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
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

from endpoint_under_test import EndpointUnderTest
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.framing import encode_frame
from linkgauge.engine.protocol.messages import Hello
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_HELLO_BYTES, DATA_KIND, encode_preamble
from processes import fork_server_pids, process_tree, worker_pids
from random_plans import change_of, plan_of

DEADLINE_S = 300.0  # generous: the machine may be busy, and the endpoint has its own, shorter deadlines
_HELLO = encode_frame(Hello())
_CLIENT = """
import asyncio, sys
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.near.run import open_run

async def main(host, port, key, fingerprint):
    access = Access(SharedKey(key), fingerprint=bytes.fromhex(fingerprint) or None)
    plan = Plan(Settings(Direction.DUPLEX, 2, 65_536), duration_ns=60 * 10**9, block_bytes=4_096)
    async with open_run(plan, Peer(host, port, access)) as one:
        print("running", flush=True)
        async for event in one:
            pass
    print(event.end.reason, flush=True)

run(main(sys.argv[1], int(sys.argv[2]), sys.stdin.readline().strip(), sys.argv[3]))
"""

Fault = Callable[[EndpointUnderTest, random.Random], Awaitable[str]]


async def carry_out(peer: Peer, plan: Plan, act: Callable[[Any, Any], None] = lambda _run, _event: None) -> str:
    """Carry out a run, calling `act` at each event; return the reason of its end, or the error's name."""
    result = "nothing"
    async with asyncio.timeout(DEADLINE_S):
        try:
            async with open_run(plan, peer) as run:
                async for event in run:
                    act(run, event)
                    if isinstance(event, Ended):
                        result = event.end.reason.value
        except LinkgaugeError as error:
            return type(error).__name__
    return result


async def plain_run(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Carry out a run without any fault."""
    return await carry_out(endpoint.peer, plan_of(chance))


async def changing_run(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Change the settings at random, up to the end of the run."""
    return await carry_out(endpoint.peer, plan_of(chance), _change_at_times(chance))


async def datagram_run(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Send datagrams, and change their rate, their size, sessions and direction at random."""
    return await carry_out(endpoint.peer, plan_of(chance, workload=Workload.UDP), _change_at_times(chance))


def _change_at_times(chance: random.Random) -> Callable[[Any, Any], None]:
    def act(run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and chance.random() < 0.5:
            run.change_settings(change_of(chance, run.settings))

    return act


async def abandoned_run(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Cancel a run at a random moment."""
    task = asyncio.create_task(carry_out(endpoint.peer, plan_of(chance, 5.0)))
    await asyncio.wait([task], timeout=chance.uniform(0.0, 1.5))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await task
    return "cancelled"


async def far_worker_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill one of the endpoint's workers in the middle of a run."""

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and (pids := worker_pids(endpoint.pid)):
            with contextlib.suppress(ProcessLookupError):  # it may be ending already
                os.kill(chance.choice(pids), signal.SIGKILL)

    return await carry_out(endpoint.peer, plan_of(chance, 5.0), act)


async def far_fork_server_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill the endpoint's fork server in the middle of a run, which does not need it any more."""

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2:
            for pid in fork_server_pids(endpoint.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    return await carry_out(endpoint.peer, plan_of(chance), act)


async def _with_client(endpoint: EndpointUnderTest, act: Callable[[list[int]], Awaitable[None]]) -> str:
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _CLIENT, endpoint.bind, str(endpoint.port), (endpoint.fingerprint or b"").hex()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        client.stdin.write(endpoint.key.reveal().encode() + b"\n")
        async with asyncio.timeout(DEADLINE_S):
            if await client.stdout.readline() != b"running\n":
                return "did not start"
            await act(process_tree(client.pid))
            output, _ = await client.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            client.kill()
        await client.wait()
    return output.decode().strip() or "killed"


async def near_killed(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Kill a near end in the middle of its run; its workers notice and end."""

    async def act(pids: list[int]) -> None:
        os.kill(pids[0], signal.SIGKILL)

    return await _with_client(endpoint, act)


async def near_frozen(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Freeze a near end and its workers until the endpoint gives it up, then resume it."""

    async def act(pids: list[int]) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(7)
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)

    return await _with_client(endpoint, act)


async def far_frozen(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Freeze the endpoint and its workers until the near end gives it up, then resume it."""
    frozen: list[int] = []

    def act(_run: Any, event: Any) -> None:
        if isinstance(event, Sampled) and event.sample.index == 2 and not frozen:
            frozen.extend(process_tree(endpoint.pid))
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)

    try:
        return await carry_out(endpoint.peer, plan_of(chance, 30.0), act)
    finally:
        for pid in reversed(frozen):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


async def garbage(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Send random bytes, some after a valid beginning, on twenty connections."""
    for _ in range(20):
        payload = chance.randbytes(chance.choice((1, 12, 60, 5_000)))
        head = chance.choice(
            (b"", encode_preamble(CONTROL_KIND), encode_preamble(DATA_KIND), encode_preamble(CONTROL_KIND) + _HELLO)
        )
        with contextlib.suppress(OSError), socket.create_connection((endpoint.bind, endpoint.port), 10) as sock:
            sock.sendall(head + payload)
            if chance.random() < 0.5:
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(65_536):
                    pass
    return "dropped"


async def silent_connections(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Open connections that send nothing, or half a message, and wait until the endpoint closes them."""
    partial = (
        b"",
        encode_preamble(CONTROL_KIND)[:5],
        encode_preamble(CONTROL_KIND) + _HELLO[:9],
        encode_preamble(DATA_KIND),
    )
    data = chance.choice((*partial, encode_preamble(DATA_KIND) + bytes(DATA_HELLO_BYTES - 1)))
    readers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(chance.choice((1, 50, 200))):
        reader, writer = await asyncio.open_connection(endpoint.bind, endpoint.port)
        writer.write(data)
        readers.append((reader, writer))
    info = await query_host_info(endpoint.peer)  # others are served meanwhile
    async with asyncio.timeout(DEADLINE_S):
        for reader, writer in readers:
            with contextlib.suppress(OSError):
                await reader.read()
            writer.close()
    return "served" if info.cores else "unknown"


async def too_many_runs(endpoint: EndpointUnderTest, _chance: random.Random) -> str:
    """Start twelve runs at once if the limits allow ten."""
    plan = Plan(Settings(window_bytes=65_536), Workload.RR, duration_ns=SECOND_NS, interval_ns=SECOND_NS // 4)
    ends = await asyncio.gather(*(carry_out(endpoint.peer, plan) for _ in range(12)))
    return ", ".join(sorted(set(ends)))
