"""What a mesh costs its coordinator as hosts become more: CPU time, memory, and time besides that of the tests.

Usage: python bench/mesh_cost.py [--hosts 8 16 32 64] [--seconds 3]

The hosts are workers of a real Dask cluster on loopback, in a process of their own, whose tests take no time
(`simulated_hosts`): what is left is the coordinator's and Dask's. Each row has a process of its own. The CPU of the
coordinator includes decoding the events; `of the rounds` is its share of the time that the rounds would take with
tests of so many seconds, and a second more for each. `reading` is the search for slow hosts and paths in such a
matrix.
The last row is computed from the two largest meshes, in proportion to the cells.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.cluster import connect_cluster
from linkgauge.mesh.coordinator import open_mesh
from linkgauge.mesh.events import CellEnded, RoundBegan
from linkgauge.mesh.figures import CellFigure, MeshMatrix
from linkgauge.mesh.plan import CELL_OVERHEAD_NS, Host, MeshMode, MeshPlan
from linkgauge.mesh.reading import find_faults
from processes import process_cpu_s
from simulated_hosts import cell_plan

_HOSTS = Path(__file__).with_name("simulated_hosts.py")
_DEADLINE_S = 1800.0
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


async def measure_mesh(scheduler: str, hosts_pid: int, seconds: float) -> Cost:
    """Return what a mesh of all workers of a scheduler costs this process."""
    async with connect_cluster(scheduler) as cluster:
        plan = MeshPlan("mesh-cost", cluster.hosts, cell_plan(seconds))
        ended = failed = rounds = 0
        began = time.monotonic(), time.process_time(), process_cpu_s(hosts_pid)
        async with asyncio.timeout(_DEADLINE_S), open_mesh(plan, cluster) as mesh:
            async for event in mesh:
                rounds += isinstance(event, RoundBegan)
                if isinstance(event, CellEnded):
                    ended += 1
                    failed += event.failure is not None
                    if event.failure is not None and failed == 1:
                        print(event.failure, file=sys.stderr)
            costs = time.monotonic() - began[0], time.process_time() - began[1], process_cpu_s(hosts_pid) - began[2]
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = len(plan.hosts)
    return Cost(count, ended, rounds, costs[0], costs[1], mib, costs[2], reading_s(count), seconds, failed)


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


def measure_alone(count: int, seconds: float) -> Cost:
    """Return what a mesh of so many hosts costs, measured in a process of its own."""
    with subprocess.Popen(
        [sys.executable, str(_HOSTS), str(count), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as hosts:
        scheduler = hosts.stdout.readline().strip() if hosts.stdout else ""
        if not scheduler:
            raise SystemExit(f"{_HOSTS.name} did not start")
        command = [sys.executable, __file__, "--one", scheduler, str(hosts.pid), "--seconds", str(seconds)]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        except subprocess.CalledProcessError as error:
            raise SystemExit(error.returncode) from error
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


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
    parser.add_argument("--one", nargs=2, metavar=("SCHEDULER", "PID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        cost = asyncio.run(measure_mesh(options.one[0], int(options.one[1]), options.seconds))
        print(json.dumps(asdict(cost)))
        return
    print(f"| {' | '.join(_HEADINGS)} |\n|{' --- |' * len(_HEADINGS)}", flush=True)
    costs: list[Cost] = []
    for count in options.hosts:
        costs.append(measure_alone(count, options.seconds))
        print(f"| {' | '.join(costs[-1].row)} |", flush=True)
    if len({cost.cells for cost in costs}) > 1:
        print(f"| {' | '.join(extrapolate(costs, _LARGE).row)} |", flush=True)


if __name__ == "__main__":
    main()
