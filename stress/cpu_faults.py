"""What takes the cores from one end of a run: processes beside it on its core, and a CPU quota."""

# pyright: basic

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from cpu_quota import make_quota_group, move_processes, remove_group
from processes import process_tree

_BUSY_LOOP: Final = """
import os, sys
os.nice(int(sys.argv[2]))
os.sched_setaffinity(0, {int(sys.argv[1])})
while True:
    pass
"""


@contextmanager
def competitors(count: int, core: int, nice: int) -> Generator[None]:
    """Keep a core busy with some processes for a `with` block."""
    command = [sys.executable, "-c", _BUSY_LOOP, str(core), str(nice)]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


@contextmanager
def limited(root: int, percent: float) -> Generator[None]:
    """Give a process and its descendants a CPU quota in percent of a core for a `with` block."""
    group = make_quota_group(percent)
    if group is None:
        raise SystemExit("no cgroup with the cpu controller can be made here: leave the family quota out")
    try:
        move_processes(group, [root, *process_tree(root)])
        yield
    finally:
        remove_group(group)


def last_core() -> int:
    """Return the last core that this process may use."""
    return max(os.sched_getaffinity(0))
