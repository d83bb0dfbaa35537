"""A soak test: runs and faults in random order against two endpoints, and their resources after each.

Usage: .venv/bin/python tests/stress/soak.py [--minutes 60] [--seed 1] [--note TEXT]

The endpoints are the real command with a key and limits, one of them with TLS. Prints a line for each action and a
report, also after SIGTERM; the report is written to tests/stress/results, too. Exits with 1 if an endpoint keeps a
descriptor, a thread, shared memory, a process or ever more memory, if it prints a traceback or a warning, or if an
action ends in an unexpected way. Unexpected ends on a starved machine are listed separately, with its state.
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
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from actions import ACTIONS, SoakAction
from endpoint_under_test import EndpointUnderTest, start_endpoints
from linkgauge import __version__
from linkgauge.engine.host.event_loop import loop_factory
from resources import Resources, resources_of, wait_for_release
from starvation import Starvation, machine_state

_RESULTS = Path(__file__).parent / "results"
_GIVE_BACK_S = 45.0  # a near end that is gone while payload still moves is waited for half a minute
_GIVE_BACK_STARVED_S = 300.0
# They take long and load nothing.
_NOT_IN_WARM_UP = {"near_frozen", "far_frozen", "silent_connections", "slow_handshake"}
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
        self.unexpected: list[dict[str, Any]] = []
        self.starved: list[dict[str, Any]] = []
        self.before: dict[str, Resources] = {}
        self.resident: dict[str, list[int]] = {}
        self.slowest_s = 0.0

    async def warm_up(self, endpoint: EndpointUnderTest) -> None:
        """Let the endpoint import and allocate everything once: that is no leak."""
        for action in ACTIONS:
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
            entry["log"] = endpoint.last_words()
            (self.starved if self.starvation.is_starved else self.unexpected).append(entry)
        left = await self._given_back(endpoint, what)
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


async def _soak(minutes: float, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    soak = _Soak(chance)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with start_endpoints() as (endpoints, said):
        for endpoint in endpoints:
            await soak.warm_up(endpoint)
        gc.collect()
        first, own, shared = dict(soak.before), resources_of(os.getpid()), _dev_shm()
        soak.began = time.monotonic()
        while time.monotonic() - soak.began < minutes * 60 and not stop.is_set():
            (action,) = chance.choices(ACTIONS, [action.weight for action in ACTIONS])
            await soak.step(chance.choice(endpoints), action)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _PAUSE_S)
        gc.collect()
        last = {endpoint.name: resources_of(endpoint.pid) for endpoint in endpoints}
        own_after, shared_after = resources_of(os.getpid()), _dev_shm()
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
        "unexpected": soak.unexpected,
        "starved": soak.starved,
        "said": said,
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
    return not (report["kept"] or report["unexpected"] or report["said"] or grows)


def _lines(entries: list[dict[str, Any]]) -> list[str]:
    """Return a line for each entry; the JSON report has all details."""
    return [
        f"    {each['at_s']:7.1f} s  {each['endpoint']:5}  {each['action']}: {each.get('left') or each['ended']}  "
        f"(work took {each['slowdown']:g} times as long, load {each['load']})"
        for each in entries
    ] or ["    nothing"]


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"soak of linkgauge {report['linkgauge']}: {report['minutes']} min, {report['actions']} runs and faults, "
        f"seed {report['seed']}" + (f" ({report['note']})" if report["note"] else ""),
        "",
        *(f"  {count:5}  {what}" for what, count in report["done"].items()),
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
        "  ended as it should not:",
        *_lines(report["unexpected"]),
        "  ended otherwise while the machine was busy with other things:",
        *_lines(report["starved"]),
        f"  said on standard error beside the log: {report['said'] or 'nothing'}",
        f"  {'CLEAN' if report['clean'] else 'NOT CLEAN'}",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Soak and report; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--note", default="", help="what the report should say of the circumstances")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        report = runner.run(_soak(options.minutes, options.seed))
    report["note"] = options.note
    report["clean"] = _is_clean(report)
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / "soak.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (_RESULTS / "soak.txt").write_text(_text(report), encoding="utf-8")
    print(_text(report), end="")
    return 0 if report["clean"] else 1


if __name__ == "__main__":
    sys.exit(main())
