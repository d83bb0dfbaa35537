"""Attacks on a real endpoint, one after another, while an honest client goes on measuring.

Usage: .venv/bin/python stress/attacks.py [--seconds 8] [--only NAME,NAME] [--deadline 15] [--runs 1]

For each attack: an endpoint as an operator runs it (key, limits, log), the attacker as a program of its own
(attackers.py), and honest runs from their start to their end, one after another. Prints a line for each attack:
its length, the honest runs and the slowest of them, the memory of the endpoint with its workers (proportional set
size) before, at its peak and after, and the verdict. Exits with 1 if an honest client was not served in time,
if memory, descriptors or processes do not return to their level, or if an attacker got what it wanted.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from attackers import ATTACKS
from attackers_of_iperf3 import ATTACKS_ON_IPERF3
from endpoint_under_test import LIMITS, EndpointUnderTest
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.iperf3.near.run import open_iperf3_run
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from processes import process_tree, resident_mib

_HERE = Path(__file__).parent
_START_S = 40.0  # the crowd needs ten thousand connections
_RELEASE_S = 60.0
_MEMORY_S = 10.0  # nothing gives memory back later than the last descriptor
_AFTER_MIB = 24.0  # an allocator keeps what it once had: if it is more, further rounds must come to a level
_LEVEL_MIB = 8.0
_LOOKS = 5
_ROUNDS = 8  # silent_tls comes to its level of 160 MiB in steps of 45, 32, 19, 14, 11 and 7 MiB
_DESCRIPTORS = 4
_VICTIM_BYTES = 4_096
_HONEST = (
    Plan(Settings(Direction.IN), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 4),
    Plan(Settings(Direction.DUPLEX), Workload.RR, duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 4),
    Plan(
        Settings(Direction.DUPLEX, rate_bit_s=1_000_000),
        Workload.UDP,
        duration_ns=SECOND_NS // 2,
        interval_ns=SECOND_NS // 4,
    ),
)


@dataclass(frozen=True)
class Scene:
    """The endpoint for an attack, and the memory that it may take at the peak beyond that of its start."""

    has_tls: bool = False
    peak_mib: float = 160.0
    limits: str = LIMITS
    options: tuple[str, ...] = ()
    has_reader: bool = True
    has_users: bool = False  # of iperf3: an honest client of it would need a password


_IPERF3 = ("--iperf3", "0")
_WIDE = LIMITS.replace("sessions = 16\n", "")
_SCENES = {
    "silent_tls": Scene(has_tls=True),
    "idle_crowd": Scene(limits=LIMITS.replace("handshake_s = 5", "handshake_s = 60") + "pending = 12000\n"),
    "denied": Scene(options=("--deny", "127.9.0.0/16")),
    "strangers": Scene(has_reader=False),
    "largest_plan": Scene(limits=_WIDE, peak_mib=1_024.0),
    "never_reads": Scene(limits=_WIDE, peak_mib=256.0),
    **dict.fromkeys(ATTACKS_ON_IPERF3, Scene(options=_IPERF3, peak_mib=256.0)),
    "iperf3_logins": Scene(options=_IPERF3, peak_mib=256.0, has_users=True),
}


@dataclass
class Outcome:
    """The outcome of an attack."""

    honest_s: list[float] = field(default_factory=list)
    before_mib: float = 0.0
    peak_mib: float = 0.0
    after_mib: float = 0.0
    took_s: float = 0.0
    cpu_s: float = 0.0
    did: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Return the line of the report."""
        slowest_s = max(self.honest_s, default=0.0)
        memory = f"{self.before_mib:5.0f} {self.peak_mib:5.0f} {self.after_mib:5.0f} MiB"
        did = ", ".join(f"{count} {what}" for what, count in self.did.items())
        verdict = "; ".join(self.problems) or "ok"
        honest = f"{len(self.honest_s):3} served, slowest {slowest_s:5.2f} s"
        cpu = f"CPU {100 * self.cpu_s / self.took_s:3.0f} %" if self.took_s else "no attack"
        return f"{name:18} {self.took_s:5.1f} s  {honest}  {memory}  {cpu}  {verdict}  ({did})"


@dataclass(frozen=True)
class _Level:
    """The descriptors of an endpoint's process and the number of its processes."""

    descriptors: int
    processes: int

    @classmethod
    def of(cls, pid: int) -> "_Level":
        return cls(len(list(Path(f"/proc/{pid}/fd").iterdir())), len(process_tree(pid)))


async def _honest_run(endpoint: EndpointUnderTest, plan: Plan, deadline_s: float) -> tuple[float, str | None]:
    """Carry out an honest run; return the seconds until its end, and what went wrong.

    If the endpoint serves iperf3 without users, an iperf3 client runs the streams.
    """
    peer, begin = endpoint.peer, open_run
    if endpoint.iperf3_port is not None and not endpoint.has_users and plan.workload is Workload.STREAM:
        peer, begin = Peer.parse(f"iperf3://{endpoint.bind}:{endpoint.iperf3_port}"), open_iperf3_run
    began = time.monotonic()
    problem: str | None = "no end"
    try:
        async with asyncio.timeout(deadline_s), begin(plan, peer) as honest_run:
            async for event in honest_run:
                if isinstance(event, Ended):
                    problem = None if event.end.reason is Reason.COMPLETED else str(event.end)
    except LinkgaugeError as error:
        problem = f"{type(error).__name__}: {error}"
    except TimeoutError:
        problem = f"not served in {deadline_s:g} s"
    return time.monotonic() - began, problem


async def _victim(received: dict[str, int]) -> asyncio.Server:
    """Listen as a foreign service, and count the bytes that the endpoint sends to it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received["connections"] += 1
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                received["bytes"] += len(data)
                writer.write(data)
        writer.close()

    return await asyncio.start_server(serve, "0.0.0.0", 0)  # noqa: S104 - at the addresses of every attacker


@asynccontextmanager
async def _attacker(
    name: str, endpoint: EndpointUnderTest, victim_port: int, did: dict[str, int]
) -> AsyncGenerator[None]:
    """Run the attacker until the end of the block; add to `did` what it counted."""
    port = endpoint.iperf3_port or endpoint.port
    command = [sys.executable, str(_HERE / "attackers.py"), name, "--port", str(port)]
    command += ["--victim-port", str(victim_port), "--tls", (endpoint.fingerprint or b"").hex()]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the attacker was started with pipes")
    process.stdin.write(endpoint.key.reveal().encode() + b"\n")
    try:
        with contextlib.suppress(TimeoutError):  # an endpoint that hangs keeps an attacker waiting, too
            async with asyncio.timeout(_START_S):
                if not (await process.stdout.readline()).startswith(b"under way"):
                    raise RuntimeError(f"the attacker {name} did not get under way")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(10):
                last = await process.stdout.read()
            did.update(json.loads(last.splitlines()[-1]) if last.strip() else {})
        except TimeoutError:
            process.kill()
        await process.wait()


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, without that of its workers."""
    user, system = (
        Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[11:13]
    )
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


async def _watch_memory(pid: int, outcome: Outcome) -> None:
    while True:
        outcome.peak_mib = max(outcome.peak_mib, await asyncio.to_thread(resident_mib, pid))
        await asyncio.sleep(0.3)


async def _released(
    endpoint: EndpointUnderTest, before: _Level, outcome: Outcome, most_mib: float
) -> dict[str, int]:
    """Wait until descriptors, processes and memory are near their level before; return what is not."""
    began, looks = time.monotonic(), 0
    while True:
        now = _Level.of(endpoint.pid)
        outcome.after_mib = await asyncio.to_thread(resident_mib, endpoint.pid)
        left = {
            "descriptors": now.descriptors - before.descriptors - _DESCRIPTORS,
            "processes": now.processes - before.processes,
            "MiB": round(outcome.after_mib - most_mib),
        }
        excess = [what for what, count in left.items() if count > 0]
        deadline_s = _MEMORY_S if excess == ["MiB"] else _RELEASE_S
        looks = 0 if excess else looks + 1  # a backlog is accepted one by one
        if looks >= _LOOKS or time.monotonic() > began + deadline_s:
            return {what: left[what] for what in excess}
        await asyncio.sleep(0.2)


async def _round(name: str, endpoint: EndpointUnderTest, outcome: Outcome, options: argparse.Namespace) -> None:
    """Attack for some seconds, and serve honest clients meanwhile."""
    received = {"connections": 0, "bytes": 0}
    victim = await _victim(received)
    watch = asyncio.create_task(_watch_memory(endpoint.pid, outcome))
    began, served, began_cpu_s = time.monotonic(), len(outcome.honest_s), _cpu_s(endpoint.pid)
    try:
        async with _attacker(name, endpoint, victim.sockets[0].getsockname()[1], outcome.did):
            while len(outcome.honest_s) < served + options.runs or time.monotonic() < began + options.seconds:
                plan = _HONEST[len(outcome.honest_s) % len(_HONEST)]
                took_s, problem = await _honest_run(endpoint, plan, options.deadline)
                outcome.honest_s.append(took_s)
                if problem is not None:
                    outcome.problems.append(f"HONEST CLIENT: {problem}")
                    if len(outcome.problems) >= options.runs:
                        break
    finally:
        outcome.took_s += time.monotonic() - began
        outcome.cpu_s += _cpu_s(endpoint.pid) - began_cpu_s
        watch.cancel()
        victim.close()
    if outcome.did.get("ADMITTED"):
        outcome.problems.append(f"ADMITTED {outcome.did['ADMITTED']} times")
    if received["bytes"] > _VICTIM_BYTES:
        outcome.problems.append(f"VICTIM got {received['bytes']} bytes in {received['connections']} connections")


async def _under_attack(
    name: str, scene: Scene, endpoint: EndpointUnderTest, options: argparse.Namespace
) -> Outcome:
    outcome = Outcome()
    for plan in _HONEST:  # once before, so that everything is imported
        _took_s, problem = await _honest_run(endpoint, plan, options.deadline)
        if problem is not None:
            outcome.problems.append(f"before the attack: {problem}")
            return outcome
    await asyncio.sleep(1.0)
    before, outcome.before_mib = _Level.of(endpoint.pid), resident_mib(endpoint.pid)
    await _round(name, endpoint, outcome, options)
    excess = await _released(endpoint, before, outcome, outcome.before_mib + _AFTER_MIB)
    rounds = 1
    while list(excess) == ["MiB"] and not outcome.problems and rounds < _ROUNDS:
        rounds += 1
        earlier_mib = outcome.after_mib
        await _round(name, endpoint, outcome, options)
        excess = await _released(endpoint, before, outcome, earlier_mib + _LEVEL_MIB)
    if excess:
        excess_text = ", ".join(f"{count} {what}" for what, count in excess.items())
        outcome.problems.append(f"KEPT {excess_text} more than a margin, after {rounds} rounds")
    grew_mib = outcome.peak_mib - outcome.before_mib
    if grew_mib > scene.peak_mib:
        outcome.problems.append(f"MEMORY rose by {grew_mib:.0f} MiB, {scene.peak_mib:.0f} are enough")
    return outcome


async def _attack(name: str, options: argparse.Namespace) -> bool:
    scene = _SCENES.get(name, Scene())
    with tempfile.TemporaryDirectory() as folder:
        endpoint = EndpointUnderTest(
            Path(folder),
            has_tls=scene.has_tls,
            limits=scene.limits,
            more_options=scene.options,
            has_reader=scene.has_reader,
            has_users=scene.has_users,
        )
        try:
            outcome = await _under_attack(name, scene, endpoint, options)
        finally:
            stray = endpoint.close()
    if stray:
        outcome.problems.append(f"STRAY LINES on standard error: {stray[-1][:200]}")
    print(outcome.line(name), flush=True)
    return not outcome.problems


def main() -> int:
    """Carry out the attacks; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each attack, at the least")
    parser.add_argument("--deadline", type=float, default=15.0, help="seconds for an honest run of half a second")
    parser.add_argument("--runs", type=int, default=1, help="honest runs during each attack, at the least")
    parser.add_argument("--only", help=f"some of {', '.join(ATTACKS)}")
    options = parser.parse_args()
    names = list(ATTACKS) if options.only is None else options.only.split(",")
    if unknown := set(names) - set(ATTACKS):
        parser.error(f"no such attack: {', '.join(sorted(unknown))}")
    print(f"{len(names)} attacks; memory before, at the peak, after; load {os.getloadavg()[0]:.1f}", flush=True)
    held = [name for name in names if run(_attack(name, options))]
    is_clean = len(held) == len(names)
    print(f"{len(held)} of {len(names)} attacks came to nothing; {'CLEAN' if is_clean else 'NOT CLEAN'}")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
