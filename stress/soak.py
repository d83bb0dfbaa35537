"""A soak test: runs and faults in random order over a link, with what must hold checked after each.

Usage: .venv/bin/python stress/soak.py [--minutes 60] [--seed 1] [--only cable_pulled] [--results DIR]

Two endpoints, the real command with a key and limits, one of them with TLS, are in a network namespace of their
own; near ends are in another, and a pair of virtual interfaces joins both. Faults hit the link, processes of either
end, the disk and the lock of the run log; others are hostile clients and an operator who changes files. Wall clocks
are left alone: a time namespace has none of its own, and to step the machine's would disturb everything on it
(tests/end_to_end/test_clock_steps.py covers them).

After each: every run has ended at both ends; the endpoint has released descriptors, threads, shared memory, workers
and memory; this process has no child left; the endpoint serves; the run log can be read, and each run's document
agrees with its events. Prints a line for each, then a table and CLEAN or what was violated, also after SIGTERM, and
writes that to stress/results. Exits with 1 if anything was. Unexpected ends on a starved machine are listed
separately, with its state. Needs the rights for namespaces and mounts.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from actions import ACTIONS, SoakAction
from endpoint_under_test import EndpointUnderTest, start_endpoints
from linkgauge import __version__
from linkgauge.engine.host.event_loop import loop_factory
from linkgauge.engine.lab.namespaces import unshare
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.near.connect import query_host_info
from processes import process_tree
from resources import Resources, resources_of, wait_for_release
from soak_link import SoakLink
from soak_log import SoakLog
from starvation import Starvation, machine_state

_RESULTS = Path(__file__).parent / "results"
_GIVE_BACK_S = 45.0  # a near end that is gone while payload still moves is waited for half a minute
_GIVE_BACK_STARVED_S = 300.0
_SERVES_S = 5.0
# They take long and load nothing.
_NOT_IN_WARM_UP = {"near_frozen", "far_frozen", "silent_connections", "slow_handshake", "cable_gone", "far_killed"}
_CLONE_NEWNS = 0x0002_0000  # linux/sched.h
_MARGIN_KIB = 64 * 1024  # in one step; what grows slowly is told by the medians
_GROWTH_KIB = 8 * 1024  # from the second quarter's median to the last one's
_PAUSE_S = 0.5


class _Soak:
    """Carries out one action after another, and collects the results."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.starvation = Starvation()
        self.began = time.monotonic()
        self.done: Counter[str] = Counter()
        self.kept: list[dict[str, Any]] = []
        self.violated: list[dict[str, Any]] = []
        self.unexpected: list[dict[str, Any]] = []
        self.starved: list[dict[str, Any]] = []
        self.before: dict[str, Resources] = {}
        self.resident: dict[str, list[int]] = {}
        self.slowest_s = 0.0

    async def warm_up(self, endpoint: EndpointUnderTest, actions: Sequence[SoakAction]) -> None:
        """Let the endpoint import and allocate everything once: that is no leak."""
        for action in actions:
            if action.name not in _NOT_IN_WARM_UP:
                await action.function(endpoint, self.chance)
        while resources_of(endpoint.pid).workers:  # noqa: ASYNC110 - only looking tells of another process
            await asyncio.sleep(0.1)
        self.before[endpoint.name] = resources_of(endpoint.pid)
        self.resident[endpoint.name] = []

    async def step(self, endpoint: EndpointUnderTest, action: SoakAction) -> None:
        """Carry out an action, and wait until the endpoint has released its resources."""
        at_s = round(time.monotonic() - self.began, 1)
        self.starvation.begin()
        try:
            ended = await action.function(endpoint, self.chance)
        except Exception as error:  # noqa: BLE001 - it is what a soak looks for
            ended = f"{type(error).__name__}: {error}"
        what = {"at_s": at_s, "action": action.name, "endpoint": endpoint.name, "ended": ended}
        if ended not in action.expected_ends:
            entry = what | self.starvation.worst() | machine_state(endpoint.port, (endpoint.pid, os.getpid()))
            entry |= {"detail": endpoint.end_detail, "log": endpoint.last_words()}
            (self.starved if self.starvation.is_starved else self.unexpected).append(entry)
        left = await self._given_back(endpoint, what)
        violations = await _violations(endpoint)
        if violations:
            left = left | dict.fromkeys(violations, 1)
            self.violated.append(what | {"left": "; ".join(violations)} | self.starvation.worst())
        self.done[f"{action.name}: {ended}"] += 1
        resident = resources_of(endpoint.pid).resident_kib
        self.resident[endpoint.name].append(resident)
        worst = " ".join(f"{name} {value:g}" for name, value in self.starvation.worst().items())
        what_ended = f"{endpoint.name:5}  {action.name:18} {ended:32}"
        print(f"{at_s:7.1f} s  {what_ended} {resident:6} KiB  {worst}  {left or ''}", flush=True)

    async def _given_back(self, endpoint: EndpointUnderTest, what: dict[str, Any]) -> dict[str, int]:
        before = self.before[endpoint.name]
        took_s, left = await asyncio.to_thread(wait_for_release, endpoint.pid, before, _GIVE_BACK_S, _MARGIN_KIB)
        if left and self.starvation.is_starved:
            more_s, left = await asyncio.to_thread(
                wait_for_release, endpoint.pid, before, _GIVE_BACK_STARVED_S, _MARGIN_KIB
            )
            took_s += more_s
        self.slowest_s = max(self.slowest_s, took_s)
        if left:
            state = machine_state(endpoint.port, (endpoint.pid, os.getpid()))
            self.kept.append(what | {"left": left} | self.starvation.worst() | state)
            self.before[endpoint.name] = resources_of(endpoint.pid)
        return left


async def _violations(endpoint: EndpointUnderTest) -> list[str]:
    """Return what does not hold at rest; wait for it until a deadline."""
    problems = await asyncio.to_thread(endpoint.run_log.check)
    deadline = time.monotonic() + _SERVES_S
    while True:  # the kernel asks for a neighbour's address once a second, and gives up after three
        try:
            await query_host_info(endpoint.peer)
            break
        except LinkgaugeError as error:
            if time.monotonic() > deadline:
                problems.append(f"it does not serve: {error}")
                break
    deadline = time.monotonic() + _GIVE_BACK_S
    while (left := _at_rest(endpoint)) and time.monotonic() < deadline:  # noqa: ASYNC110 - only looking tells
        await asyncio.sleep(0.1)
    return problems + left


def _at_rest(endpoint: EndpointUnderTest) -> list[str]:
    """Return the runs that have not ended at the endpoint, and the children of this process that are left."""
    endpoints = set(endpoint.link.endpoint_pids)
    children = [
        pid
        for pid in map(int, Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text("ascii").split())
        if pid not in endpoints
    ]
    left = [f"process {pid} is left" for child in children for pid in process_tree(child)]
    runs = endpoint.open_runs()
    return left + ([f"{runs} runs have not ended at the endpoint"] if runs else [])


async def _soak(
    minutes: float, seed: int, actions: Sequence[SoakAction], link: SoakLink, run_log: SoakLog
) -> dict[str, Any]:
    chance = random.Random(seed)
    soak = _Soak(chance)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with start_endpoints(link, run_log) as (endpoints, stderr_lines):
        link.endpoints = endpoints
        for endpoint in endpoints:
            await soak.warm_up(endpoint, actions)
        gc.collect()
        first, own, shared = dict(soak.before), resources_of(os.getpid()), _dev_shm()
        soak.began = time.monotonic()
        while time.monotonic() - soak.began < minutes * 60 and not stop.is_set():
            (action,) = chance.choices(actions, [action.weight for action in actions])
            await soak.step(chance.choice(endpoints), action)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _PAUSE_S)
        gc.collect()
        last = {endpoint.name: resources_of(endpoint.pid) for endpoint in endpoints}
        own_after, shared_after = resources_of(os.getpid()), _dev_shm()
    remaining = await asyncio.to_thread(link.remaining_processes)
    return {
        "linkgauge": __version__,
        "minutes": round((time.monotonic() - soak.began) / 60, 1),
        "seed": seed,
        "done": dict(sorted(soak.done.items())),
        "actions": soak.done.total(),
        "longest_until_given_back_s": round(soak.slowest_s, 1),
        "endpoints": {
            name: {
                "before": vars(first[name]),
                "after": vars(last[name]),
                "resident_kib_by_quarter": _quarters(soak.resident[name]),
            }
            for name in first
        },
        "near_end": {"before": vars(own), "after": vars(own_after)},
        "dev_shm_files": {"before": shared, "after": shared_after},
        "kept": soak.kept,
        "violated": soak.violated,
        "processes_left_in_namespaces": remaining,
        "unexpected": soak.unexpected,
        "starved": soak.starved,
        "stderr_lines": stderr_lines,
    }


def _dev_shm() -> int:
    """Return the number of files in /dev/shm, of any process."""
    return len(list(Path("/dev/shm").iterdir()))


def _quarters(values: Sequence[int]) -> list[int]:
    size = max(1, len(values) // 4)
    return [round(median(values[start : start + size])) for start in range(0, size * 4, size) if values[start:]]


def _grows(endpoint: dict[str, Any]) -> bool:
    quarters: list[int] = endpoint["resident_kib_by_quarter"]
    return len(quarters) == 4 and quarters[3] > quarters[1] + _GROWTH_KIB


def _is_clean(report: dict[str, Any]) -> bool:
    grows = any(map(_grows, report["endpoints"].values()))
    wrong = ("kept", "violated", "unexpected", "stderr_lines", "processes_left_in_namespaces")
    return not (grows or any(report[name] for name in wrong))


def _lines(entries: list[dict[str, Any]]) -> list[str]:
    """Return a line for each entry; the JSON report has all details."""
    return [
        f"    {each['at_s']:7.1f} s  {each['endpoint']:5}  {each['action']}: {each.get('left') or each['ended']}  "
        f"(work took {each['slowdown']:g} times as long, load {each['load']})"
        for each in entries
    ] or ["    nothing"]


def _table(done: dict[str, int]) -> list[str]:
    """Return a line for each fault: its name, how often, and the ends of its runs."""
    ends: dict[str, list[str]] = {}
    times: Counter[str] = Counter()
    for what, count in done.items():
        name, _, end = what.partition(": ")
        times[name] += count
        ends.setdefault(name, []).append(f"{count} {end}")
    return [f"  {name:24} {times[name]:5}  {' | '.join(ends[name])}" for name in ends]


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"soak of linkgauge {report['linkgauge']}: {report['minutes']} min, {report['actions']} runs and faults, "
        f"seed {report['seed']}" + (f" ({report['note']})" if report["note"] else ""),
        "",
        *_table(report["done"]),
        "",
    ]
    for name, resources in [*report["endpoints"].items(), ("near end", report["near_end"])]:
        lines.append(f"  {name:9} before {resources['before']}")
        lines.append(f"  {name:9} after  {resources['after']}")
        if name in report["endpoints"]:
            lines.append(
                f"  {name:9} resident memory, median of each quarter: {resources['resident_kib_by_quarter']} KiB"
            )
    shared = report["dev_shm_files"]
    lines += [
        f"  files in /dev/shm: {shared['before']} before, {shared['after']} after",
        f"  longest until all was given back: {report['longest_until_given_back_s']} s",
        "  kept:",
        *_lines(report["kept"]),
        "  violated:",
        *_lines(report["violated"]),
        "  ended as it should not:",
        *_lines(report["unexpected"]),
        "  ended otherwise while the machine was busy with other things:",
        *_lines(report["starved"]),
        f"  said on standard error beside the log: {report['stderr_lines'] or 'nothing'}",
        f"  {'CLEAN' if report['clean'] else 'NOT CLEAN'}",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Soak and report; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--note", default="", help="what the report should say of the circumstances")
    parser.add_argument(
        "--results",
        type=Path,
        default=_RESULTS,
        metavar="DIR",
        help="where to write the report (stress/results)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[action.name for action in ACTIONS],
        metavar="ACTION",
        help="carry out these runs and faults alone; by default all of stress/actions.py",
    )
    options = parser.parse_args()
    actions = [action for action in ACTIONS if options.only is None or action.name in options.only]
    unshare(_CLONE_NEWNS)
    subprocess.run(["/bin/mount", "--make-rprivate", "/"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        run_log = SoakLog(Path(folder))
        try:
            link = SoakLink()
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                report = runner.run(_soak(options.minutes, options.seed, actions, link, run_log))
        finally:
            run_log.close()
    report["note"] = options.note
    report["clean"] = _is_clean(report)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "soak.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (options.results / "soak.txt").write_text(_text(report), encoding="utf-8")
    print(_text(report), end="")
    return 0 if report["clean"] else 1


if __name__ == "__main__":
    sys.exit(main())
