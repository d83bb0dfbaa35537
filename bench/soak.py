"""Runs and faults in random order against one endpoint, and what it still holds after each of them.

Usage: .venv/bin/python bench/soak.py [--minutes 60] [--seed 1] [--note TEXT]

Prints a line for each thing that was done, and a report, which is written to bench/results as well. Exits with 1
where the endpoint kept anything: a descriptor, a block of shared memory, a process, or memory that keeps growing.
"""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import gc
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from faults import ACTIONS
from held import Held, endpoint, held_by, wait_until
from linkgauge import __version__
from linkgauge.engine.loop import loop_factory

_RESULTS = Path(__file__).parent / "results"
_GIVE_BACK_S = 45.0  # a near end that is gone while payload still moves is waited for half a minute
_WARM_UP = 20  # what is imported and allocated once is no leak
_MARGIN_KIB = 64 * 1024  # in one step; what grows slowly is told by the medians
_GROWTH_KIB = 8 * 1024  # from the second quarter's median to the last one's
_PAUSE_S = 0.5


async def _soak(minutes: float, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    began = time.monotonic()
    done: Counter[str] = Counter()
    kept: list[dict[str, Any]] = []
    raised: list[dict[str, Any]] = []
    resident: list[int] = []
    slowest_s = 0.0
    with endpoint() as (pid, peer):
        await _warm_up(pid, peer, chance)
        before, own = held_by(pid), _own()
        while time.monotonic() - began < minutes * 60:
            (action,) = chance.choices(list(ACTIONS), list(ACTIONS.values()))
            at_s = time.monotonic() - began
            try:
                ended = await action(pid, peer, chance)
            except Exception as error:  # noqa: BLE001 - it is what a soak looks for
                ended = f"{type(error).__name__}: {error}"
                raised.append({"at_s": round(at_s, 1), "action": action.__name__, "raised": ended})
            took_s, left = await asyncio.to_thread(wait_until, pid, before, _GIVE_BACK_S, _MARGIN_KIB)
            slowest_s = max(slowest_s, took_s)
            done[f"{action.__name__}: {ended}"] += 1
            resident.append(held_by(pid).resident_kib)
            print(f"{at_s:7.1f} s  {action.__name__:18} {ended:24} {resident[-1]:7} KiB  {left or ''}", flush=True)
            if left:
                kept.append({"at_s": round(at_s, 1), "action": action.__name__, "left": left})
                before = held_by(pid)
            await asyncio.sleep(_PAUSE_S)
        gc.collect()
        after, own_after = held_by(pid), _own()
    return {
        "linkgauge": __version__,
        "minutes": round((time.monotonic() - began) / 60, 1),
        "seed": seed,
        "done": dict(sorted(done.items())),
        "actions": done.total(),
        "longest_until_given_back_s": round(slowest_s, 1),
        "endpoint_before": vars(before),
        "endpoint_after": vars(after),
        "resident_kib_by_quarter": _quarters(resident),
        "near_end_before": vars(own),
        "near_end_after": vars(own_after),
        "kept": kept,
        "raised": raised,
    }


async def _warm_up(pid: int, peer: Any, chance: random.Random) -> None:
    for action in list(ACTIONS) * (_WARM_UP // len(ACTIONS)):
        if action.__name__ not in {"near_frozen", "far_frozen"}:
            await action(pid, peer, chance)
    while held_by(pid).children:  # noqa: ASYNC110 - only looking tells of another process
        await asyncio.sleep(0.1)
    gc.collect()


def _own() -> Held:
    return held_by(os.getpid())


def _quarters(values: Sequence[int]) -> list[int]:
    size = max(1, len(values) // 4)
    return [round(median(values[start : start + size])) for start in range(0, size * 4, size) if values[start:]]


def _is_clean(report: dict[str, Any]) -> bool:
    quarters: list[int] = report["resident_kib_by_quarter"]
    grows = len(quarters) == 4 and quarters[3] > quarters[1] + _GROWTH_KIB
    return not report["kept"] and not grows


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"soak of linkgauge {report['linkgauge']}: {report['minutes']} min, {report['actions']} runs and faults, "
        f"seed {report['seed']}" + (f" ({report['note']})" if report["note"] else ""),
        "",
        *(f"  {count:5}  {what}" for what, count in report["done"].items()),
        "",
    ]
    for name in ("endpoint", "near_end"):
        lines.append(f"  {name:9} before {report[f'{name}_before']}")
        lines.append(f"  {name:9} after  {report[f'{name}_after']}")
    lines += [
        f"  endpoint's resident memory, median of each quarter: {report['resident_kib_by_quarter']} KiB",
        f"  longest until all was given back: {report['longest_until_given_back_s']} s",
        f"  kept: {report['kept'] or 'nothing'}",
        f"  could not be carried out in a minute, or at all: {report['raised'] or 'nothing'}",
        f"  {'CLEAN' if report['clean'] else 'NOT CLEAN'}",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Soak, report, and tell by the exit status whether anything was kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--note", default="", help="what the report should say of the circumstances")
    asked = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        report = runner.run(_soak(asked.minutes, asked.seed))
    report["note"] = asked.note
    report["clean"] = _is_clean(report)
    _RESULTS.mkdir(exist_ok=True)
    (_RESULTS / "soak.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (_RESULTS / "soak.txt").write_text(_text(report), encoding="utf-8")
    print(_text(report), end="")
    return 0 if report["clean"] else 1


if __name__ == "__main__":
    sys.exit(main())
