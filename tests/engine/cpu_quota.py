"""A cgroup with a CPU quota, of either version, for tests and the grid of causes."""

import contextlib
import os
import time
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

import pytest

_PERIOD_US: Final = 100_000
_ROOTS: Final = (("/sys/fs/cgroup", "cpu.max"), ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us"))
_DEADLINE_S: Final = 10.0


def make_quota_group(percent: float) -> Path | None:
    """Return a new cgroup with a quota in percent of a core; None where this machine has none to give."""
    quota_us = round(percent * _PERIOD_US / 100)
    for root, name in _ROOTS:
        group = Path(root, f"linkgauge-test-{os.getpid()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / name).exists():
                (group / name).write_text(f"{quota_us} {_PERIOD_US}" if name == "cpu.max" else str(quota_us))
                return group
            group.rmdir()
    return None


def move_processes(group: Path, pids: Iterable[int]) -> None:
    """Move processes into a cgroup, as far as they still run."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")


def remove_group(group: Path) -> None:
    """Remove a cgroup; processes that are still in it go to the one around it."""
    move_processes(group.parent, map(int, (group / "cgroup.procs").read_text(encoding="ascii").split()))
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def enter_group(group: Path) -> list[str]:
    """Return the beginning of a command line that runs a command in a cgroup."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]


@contextlib.contextmanager
def cpu_quota(percent: float) -> Generator[list[str]]:
    """Yield the beginning of a command line with a quota; skip the test where cgroups cannot be written."""
    group = make_quota_group(percent)
    if group is None:
        pytest.skip("no cgroup with the cpu controller can be made here; it needs root")
    try:
        yield enter_group(group)
    finally:
        remove_group(group)
