"""The grid of queues: paths whose queues are known, and what a responsiveness test says of them.

Usage: make stress ARGS="queues --seed 7 --repeats 10"

Each cell is a path of near host, router and far host with a queue of 10 to 400 ms at 10 or 100 Mb/s, in the
router or at the sending host's own interface, in one direction or in both. `tc -s qdisc` reads it 20 times a
second while `linkgauge respond` measures. A test is right where the rise of latency is within 10 % or 2 ms of what
the queues held in the same time, its peak likewise of the size of a queue that was full, and the findings name the
end and the direction of each queue and no other. Healthy links must have no queue. `--held-back` tries sizes,
rates and options that the rules were not written with. A test is void if the hypervisor took more than 5 % of the
machine's time.

Prints each test with its figures, then a row for each cell, and CLEAN if at least 9 of 10 tests of each are
right. `--keep FOLDER` keeps the runs as a data directory, labelled with their cells. Half a minute a test; the
order is drawn from the seed. Needs root, iproute2 and ethtool, and a quiet machine.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from end_to_end.queue_cells import Cell, grid_cells, healthy_cells, held_back_cells
from end_to_end.queue_judge import Judgement, report
from end_to_end.queue_run import run_cell
from linkgauge.engine.host.cpu import read_core_times
from stolen_time import MOST_STOLEN, stolen_share

_LEAST_RIGHT: Final = 0.9


def _try(cell: Cell, environment: dict[str, str]) -> Judgement | str:
    """Test a cell; return why there is no judgement if there is none."""

    def start(*arguments: str, within: Sequence[str]) -> "subprocess.Popen[str]":
        command = [*within, sys.executable, "-m", "linkgauge", *arguments]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, env=environment, **pipes)

    before = read_core_times()
    try:
        judgement = run_cell(cell, start)
    except (AssertionError, subprocess.SubprocessError) as error:
        return f"{cell.name}: not run: {error}"
    if (stolen := stolen_share(before)) > MOST_STOLEN:
        return f"{cell.name}: void, {stolen:.0%} of this machine's time was stolen"
    return judgement


def _run(cells: list[Cell], options: argparse.Namespace) -> dict[str, list[Judgement | None]]:
    """Test every cell so often, in an order drawn from the seed; None is a test that was not carried out."""
    judgements: dict[str, list[Judgement | None]] = {cell.name: [] for cell in cells}
    order = cells * options.repeats
    random.Random(options.seed).shuffle(order)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(options.keep or folder)}
        for cell in order:
            answer = _try(cell, environment)
            if isinstance(answer, Judgement):
                print(report([answer]), flush=True)
                judgements[cell.name].append(answer)
            else:
                print(answer, flush=True)
                if "void" not in answer:
                    judgements[cell.name].append(None)
    return judgements


def _print_table(judgements: dict[str, list[Judgement | None]]) -> int:
    """Print how many tests of each cell were right, and its worst errors; return how many cells were not."""
    print(f"\n{'cell':<52} {'right':>7}  wrong")
    missed = 0
    for name, tests in judgements.items():
        right = sum(test is not None and not test.problems for test in tests)
        problems: dict[str, int] = defaultdict(int)
        for test in tests:
            for problem in ["not run"] if test is None else test.problems:
                problems[problem] += 1
        missed += right < _LEAST_RIGHT * len(tests) or not tests
        print(f"{name:<52} {right:>3}/{len(tests):<3}  {'; '.join(list(problems)[:3])}")
    return missed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1, help="tests of each cell")
    parser.add_argument("--only", help="cells whose name contains this")
    parser.add_argument("--held-back", action="store_true", help="the other sizes, rates and options instead")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the runs there: LINKGAUGE_DATA_DIR shows them"
    )
    return parser.parse_args()


def main() -> None:
    """Run the grid, and exit with 1 if a cell was not right often enough."""
    if os.geteuid() != 0:
        sys.exit("paths with queues are made of network namespaces: run it as root")
    options = _options()
    cells = list(held_back_cells() if options.held_back else chain(grid_cells(), healthy_cells()))
    cells = [cell for cell in cells if options.only is None or options.only in cell.name]
    if not cells:
        sys.exit(f"no cell has {options.only!r} in its name")
    missed = _print_table(_run(cells, options))
    print("CLEAN" if missed == 0 else f"{missed} of {len(cells)} cells were not right often enough")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
