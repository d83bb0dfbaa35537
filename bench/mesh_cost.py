"""What a mesh costs its coordinator as hosts become more: CPU time, memory, and time besides that of the tests.

Usage: python bench/mesh_cost.py [--hosts 8 16 32 64] [--seconds 3]

The coordinator is the command `linkgauge mesh --json`, whole: its start, Dask's client, decoding, the run log, the
verdict and the findings. The hosts are workers of a real Dask cluster on loopback, in a process of their own, whose
tests take no time (`simulated_hosts`). `of the rounds` is the coordinator's share of the time that the rounds would
take with tests of so many seconds, and a second more for each. `reading` is the search for slow hosts and paths in
such a matrix.
The last row is computed from the two largest meshes, in proportion to the cells.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.figures import CellFigure, MeshMatrix
from linkgauge.mesh.plan import CELL_OVERHEAD_NS, Host, MeshMode, MeshPlan
from linkgauge.mesh.reading import find_faults
from processes import process_cpu_s

_HOSTS = Path(__file__).with_name("simulated_hosts.py")
# A rate below the preset's, which is then what each test should reach.
_COMMAND = (
    *(sys.executable, "-P", "-m", "linkgauge", "mesh", "--json", "--headless"),
    *("--rate", "1G", "--preset", "10gbe-1500"),
)
_LARGE = 1000
_HEADINGS = (
    *("hosts", "cells", "rounds", "wall time"),
    *("coordinator CPU", "of the rounds", "per cell", "memory", "scheduler and workers CPU", "reading"),
)


@dataclass(frozen=True)
class Cost:
    """What a mesh of so many hosts cost; seconds and MiB. `hosts_cpu_s` is of the scheduler and all workers."""

    hosts: int
    cells: int
    rounds: int
    wall_s: float
    cpu_s: float
    mib: float
    hosts_cpu_s: float
    reading_s: float
    test_s: float
    failed: int = 0

    @property
    def round_share(self) -> float:
        """The coordinator's CPU time by what the rounds would take on real hosts: above 1 it would be late."""
        return self.cpu_s / (self.rounds * 2 * (self.test_s + CELL_OVERHEAD_NS / SECOND_NS))

    @property
    def row(self) -> tuple[str, ...]:
        """The cells of its row."""
        return (
            f"{self.hosts:,}",
            f"{self.cells:,}" + (f" ({self.failed} failed)" if self.failed else ""),
            f"{self.rounds:,}",
            f"{self.wall_s:.1f} s",
            f"{self.cpu_s:.2f} s",
            f"{100 * self.round_share:.1f} %",
            f"{1e3 * self.cpu_s / self.cells:.2f} ms",
            f"{self.mib:.0f} MiB",
            f"{self.hosts_cpu_s:.2f} s",
            f"{self.reading_s:.3f} s",
        )


def reading_s(count: int) -> float:
    """Return the CPU seconds that slow hosts and paths of so many hosts take to be found."""
    matrix = make_matrix(count)
    began = time.process_time()
    find_faults(matrix)
    return time.process_time() - began


def make_matrix(count: int) -> MeshMatrix:
    """Return a matrix in which one host in eight receives half as much."""
    draw = random.Random(1)
    hosts = tuple(Host(f"host-{number:04}", f"rack-{number // 16}") for number in range(count))
    slow = {host.name for host in hosts[::8]}
    figures = {
        cell: CellFigure(
            cell, bit_s=draw.gauss(940e6, 20e6) / (2 if cell.receiver in slow else 1), expected_bit_s=941e6
        )
        for cell in MeshPlan("mesh-cost", hosts, Plan()).cells
    }
    return MeshMatrix("mesh-cost", MeshMode.ROUNDS, hosts, figures)


def measure_mesh(count: int, seconds: float) -> Cost:
    """Return what a mesh of so many hosts costs the command."""
    with subprocess.Popen(
        [sys.executable, str(_HOSTS), str(count), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as hosts:
        scheduler = hosts.stdout.readline().strip() if hosts.stdout else ""
        if not scheduler:
            raise SystemExit(f"{_HOSTS.name} did not start")
        hosts_before, began = process_cpu_s(hosts.pid), time.monotonic()
        document, usage = run_command([*_COMMAND, "--scheduler", scheduler, "--seconds", str(seconds)])
        wall_s, hosts_cpu_s = time.monotonic() - began, process_cpu_s(hosts.pid) - hosts_before
    failed = sum(cell["failure"] is not None for cell in document["cells"])
    return Cost(
        count,
        len(document["cells"]),
        count - 1 + count % 2,
        wall_s,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        hosts_cpu_s,
        reading_s(count),
        seconds,
        failed,
    )


def run_command(command: Sequence[str]) -> tuple[dict[str, Any], resource.struct_rusage]:
    """Run a mesh with a run log of its own; return its document, and what the process has used."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        environment = {**os.environ, "LINKGAUGE_DATA_DIR": folder}
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, env=environment)
        words = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if not text:
        raise SystemExit(words.decode())
    return json.loads(text), usage


def extrapolate(costs: Sequence[Cost], count: int) -> Cost:
    """Return what a mesh of so many hosts would cost by the two largest of at least two meshes.

    CPU and the time of reading grow with the cells; memory has a part for each cell and one that stays. The wall
    time is that of all rounds at what a pair takes, as the pairs share one core here.
    """
    small, large = sorted(costs, key=lambda cost: cost.cells)[-2:]
    cells = count * (count - 1)
    factor = cells / large.cells

    def line(first: float, second: float) -> float:
        return max(second, second + (second - first) / (large.cells - small.cells) * (cells - large.cells))

    return Cost(
        count,
        cells,
        count - 1 if count % 2 == 0 else count,
        large.wall_s * factor,
        line(small.cpu_s, large.cpu_s),
        line(small.mib, large.mib),
        line(small.hosts_cpu_s, large.hosts_cpu_s),
        line(small.reading_s, large.reading_s),
        large.test_s,
    )


def main() -> None:
    """Parse the command line, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16, 32, 64], help="how many hosts: rows")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the test whose events each cell has")
    options = parser.parse_args()
    print(f"| {' | '.join(_HEADINGS)} |\n|{' --- |' * len(_HEADINGS)}", flush=True)
    costs: list[Cost] = []
    for count in options.hosts:
        costs.append(measure_mesh(count, options.seconds))
        print(f"| {' | '.join(costs[-1].row)} |", flush=True)
    if len({cost.cells for cost in costs}) > 1:
        print(f"| {' | '.join(extrapolate(costs, _LARGE).row)} |", flush=True)


if __name__ == "__main__":
    main()
