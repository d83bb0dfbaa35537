"""Faults of a link, of processes and of the run log's disk, in the middle of a recorded run; one function each.

The near end is a program of its own (soak_client.py). Each function returns a word for how its run ended.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from endpoint_under_test import EndpointUnderTest
from processes import fork_server_pids, process_tree, worker_pids
from random_plans import SIZES

_CLIENT = Path(__file__).with_name("soak_client.py")
_DEADLINE_S = 120.0
_SIZE_REFUSED = re.compile(
    r" (?:in|out) was lost: a datagram of (\d+) bytes does not fit the path's MTU of \d+ bytes.*at most (\d+) bytes"
)
_WORKLOADS = ("stream", "stream", "rr", "crr", "fetch", "udp", "udp")

Act = Callable[[asyncio.subprocess.Process], Awaitable[None]]


async def _nothing(_client: asyncio.subprocess.Process) -> None:
    """Let the run be."""


async def _run_client(
    endpoint: EndpointUnderTest, chance: random.Random, act: Act = _nothing, *, seconds: float = 2.0
) -> dict[str, Any]:
    """Carry out a recorded run, and act once it is running; return its end. One that is killed has none."""
    command = [
        *(sys.executable, str(_CLIENT), f"{endpoint.bind}:{endpoint.port}"),
        *(
            "--seconds",
            str(seconds),
            "--seed",
            str(chance.randrange(10**6)),
            "--workload",
            chance.choice(_WORKLOADS),
        ),
        *("--tls", (endpoint.fingerprint or b"").hex()),
    ]
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(endpoint.run_log.folder)}
    endpoint.end_detail = ""
    client = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=environment)
    if client.stdin is None or client.stdout is None:
        raise RuntimeError("the client was started with pipes")
    try:
        async with asyncio.timeout(_DEADLINE_S):
            client.stdin.write(endpoint.key.reveal().encode() + b"\n")
            first = await client.stdout.readline()
            if first.startswith(b"running"):
                await act(client)
                first = await client.stdout.readline()
            await client.wait()
            end = json.loads(first) if first.strip() else {"reason": "killed", "detail": ""}
            endpoint.end_detail = f"{end['detail']} ({' '.join(command[3:9])})"
            return end
    except TimeoutError:
        return {"reason": f"no end in {_DEADLINE_S:g} s", "detail": ""}
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()


def _word(end: dict[str, Any]) -> str:
    problem = end.get("problem")
    return end["reason"] if not problem else f"{end['reason']}, not saved"


async def recorded_run(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Carry out a run with changes of its settings, and no fault."""
    return _word(await _run_client(endpoint, chance))


async def near_address_lost(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Take the near end's address away for a moment."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        endpoint.link.remove_near_address()
        await asyncio.sleep(chance.choice((0.2, 1.0, 6.0)))
        endpoint.link.restore()

    return _word(await _run_client(endpoint, chance, act))


async def far_address_lost(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Take the far end's address away for a moment."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        with endpoint.link.without_far_address():
            await asyncio.sleep(chance.choice((0.2, 1.0, 6.0)))

    return _word(await _run_client(endpoint, chance, act))


async def mtu_changed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Change the MTU of either end, alike or not."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        for _ in range(3):
            endpoint.link.set_mtu(chance.choice((576, 1_500, 9_000)), chance.choice((576, 1_500, 9_000)))
            await asyncio.sleep(0.4)
        endpoint.link.restore()

    end = await _run_client(endpoint, chance, act)
    refused = _SIZE_REFUSED.search(end["detail"])
    if refused and int(refused[1]) in SIZES and int(refused[1]) > int(refused[2]):
        return "too large, and which size fits"
    return _word(end)


async def cable_pulled(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Pull the cable for half a second."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        endpoint.link.set_far_state("down")
        await asyncio.sleep(0.5)
        endpoint.link.restore()

    return _word(await _run_client(endpoint, chance, act))


async def cable_gone(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Pull the cable until both ends have given the run up."""

    async def act(client: asyncio.subprocess.Process) -> None:
        endpoint.link.set_far_state("down")
        await client.wait()
        await _until(lambda: endpoint.open_runs() == 0)
        endpoint.link.restore()

    try:
        return _word(await _run_client(endpoint, chance, act, seconds=20.0))
    finally:
        endpoint.link.restore()


async def near_worker_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill a worker of the near end."""

    async def act(client: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(worker_pids(client.pid)), signal.SIGKILL)

    return _word(await _run_client(endpoint, chance, act, seconds=10.0))


async def near_fork_server_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill the near end's fork server: the run does not need it any more."""

    async def act(client: asyncio.subprocess.Process) -> None:
        for pid in fork_server_pids(client.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    return _word(await _run_client(endpoint, chance, act))


async def recording_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill the near end while it records."""

    async def act(client: asyncio.subprocess.Process) -> None:
        await asyncio.sleep(chance.uniform(0.0, 1.0))
        client.kill()

    return _word(await _run_client(endpoint, chance, act, seconds=10.0))


async def near_paused(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Suspend the near end and its workers for a second."""

    async def act(client: asyncio.subprocess.Process) -> None:
        await _pause(process_tree(client.pid), 1.0)

    return _word(await _run_client(endpoint, chance, act))


async def far_paused(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Suspend the endpoint and its workers for a second."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        await _pause(process_tree(endpoint.pid), 1.0)

    return _word(await _run_client(endpoint, chance, act))


async def far_killed(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Kill the endpoint; its workers end by themselves. Start it again."""
    tree: list[int] = []

    async def act(_client: asyncio.subprocess.Process) -> None:
        tree.extend(process_tree(endpoint.pid))
        os.kill(endpoint.pid, signal.SIGKILL)

    end = await _run_client(endpoint, chance, act, seconds=20.0)
    endpoint.process.wait()
    gone = await _until(lambda: not [pid for pid in tree if Path(f"/proc/{pid}/cmdline").exists() and _lives(pid)])
    await asyncio.to_thread(endpoint.start)
    return _word(end) if gone else f"{_word(end)}, processes left"


async def disk_full(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Fill the run log's disk while a run is recorded."""

    async def act(client: asyncio.subprocess.Process) -> None:
        with endpoint.run_log.full_disk():
            await client.wait()

    return _word(await _run_client(endpoint, chance, act))


async def log_locked(endpoint: EndpointUnderTest, chance: random.Random) -> str:
    """Lock the run log in another process while a run is recorded, and unlock it before the end."""

    async def act(_client: asyncio.subprocess.Process) -> None:
        with endpoint.run_log.locked():
            await asyncio.sleep(2.0)

    end = await _run_client(endpoint, chance, act, seconds=3.0)
    saved = end.get("problem") is not None or endpoint.run_log.has(end.get("run_id"))
    return _word(end) if saved else f"{_word(end)}, lost from the log"


async def _pause(pids: list[int], seconds: float) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    await asyncio.sleep(seconds)
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _lives(pid: int) -> bool:
    try:
        state = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0]
        )
    except OSError:
        return False
    return state != "Z"


async def _until(is_so: Callable[[], bool]) -> bool:
    """Wait until something is so; return whether it came to be before the deadline."""
    deadline = time.monotonic() + _DEADLINE_S / 2
    while not is_so():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.1)
    return True
