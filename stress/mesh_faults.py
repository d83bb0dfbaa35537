"""Meshes of emulated hosts with one known fault, again and again: how often exactly that is named.

Usage: make stress ARGS="mesh_faults --repeats 10 --seed 7"

Each test builds 8 hosts in two racks at 100 Mb/s, one Dask worker on each, and measures all pairs in both
directions. One host's link is at half its rate, one direction of one pair loses 0.5 to 5 % of its packets, the
racks are joined by half a link, or nothing is wrong. A test is right if `mesh.reading.find_faults` names the
fault, and nothing else; every cell must have a result. A test is void if the hypervisor took more than 5 % of the
time.

Prints each test, then a row for each fault, and CLEAN if at least 9 of 10 tests of each are right. About a
minute a test on two cores; the order, the hosts and the order of pairs are drawn from the seed. Needs root,
iproute2 and a quiet machine.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from end_to_end.mesh_cases import Fault, MeshCase, draw_case, run_case
from linkgauge.engine.host.cpu import read_core_times
from linkgauge.engine.model.errors import LabError
from stolen_time import MOST_STOLEN, stolen_share

_LEAST_RIGHT: Final = 0.9


def _try(case: MeshCase, seconds: float, seed: int) -> list[str] | None:
    """Run a test and print it; return its problems, None if it is void."""
    before = read_core_times()
    try:
        problems = case.problems(run_case(case, seconds, seed))
    except (AssertionError, LabError, subprocess.SubprocessError) as error:
        problems = [f"not run: {error}"]
    if (stolen := stolen_share(before)) > MOST_STOLEN:
        print(f"{case.fault}, seed {seed}: void, {stolen:.0%} of this machine's time was stolen", flush=True)
        return None
    lossy = case.lossy and f"{' to '.join(case.lossy)}, {case.loss_percent:g} % lost"
    what = lossy or ", ".join(case.slow) or "nothing"
    print(f"{case.fault} ({what}), seed {seed}: {'; '.join(problems) or 'right'}", flush=True)
    return problems


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1, help="tests of each fault")
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of each cell")
    parser.add_argument("--only", help="faults whose name contains this")
    return parser.parse_args()


def main() -> None:
    """Run the tests, and exit with 1 if a fault was not named often enough."""
    if os.geteuid() != 0:
        sys.exit("emulated hosts with lossy paths need root")
    options = _options()
    faults = [fault for fault in Fault if options.only is None or options.only in fault]
    if not faults:
        sys.exit(f"no fault has {options.only!r} in its name")
    order = [(fault, options.seed + number) for fault in faults for number in range(options.repeats)]
    random.Random(options.seed).shuffle(order)
    tests: dict[Fault, list[list[str]]] = {fault: [] for fault in faults}
    for fault, seed in order:
        problems = _try(draw_case(fault, options.hosts, seed), options.seconds, seed)
        if problems is not None:
            tests[fault].append(problems)
    print(f"\n{'fault':<40} {'right':>7}")
    missed = 0
    for fault, problems in tests.items():
        right = sum(not each for each in problems)
        missed += right < _LEAST_RIGHT * len(problems) or not problems
        print(f"{fault:<40} {right:>3}/{len(problems):<3}")
    print("CLEAN" if missed == 0 else f"{missed} of {len(faults)} faults were not named often enough")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
