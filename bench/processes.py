"""CPU and memory of a process tree, read from /proc: the same measure for every tool."""

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (proc(5)); none if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return []


def process_tree(root: int) -> list[int]:
    """Return a process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    pids: list[int] = []
    pending = [root]
    while pending:
        pid = pending.pop()
        pids.append(pid)
        pending.extend(children.get(pid, []))
    return pids


def fork_server_pids(root: int) -> list[int]:
    """Return the fork servers of a linkgauge process: its own children."""
    return [int(pid) for pid in Path(f"/proc/{root}/task/{root}/children").read_text(encoding="ascii").split()]


def worker_pids(root: int) -> list[int]:
    """Return the worker processes of a linkgauge process: the children of its fork server."""
    own = set(fork_server_pids(root))
    return [pid for pid in process_tree(root)[1:] if pid not in own]


def process_cpu_s(pid: int) -> float:
    """Return user and system seconds of one process."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def tree_cpu_s(root: int) -> float:
    """Return user and system seconds of a process and its living descendants."""
    return sum(process_cpu_s(pid) for pid in process_tree(root))


def resident_mib(root: int) -> float:
    """Return the proportional set size of a process and its descendants, MiB."""
    total = 0
    for pid in process_tree(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


@contextmanager
def running(command: list[str], *, settle_s: float = 0.0) -> Generator[subprocess.Popen[str]]:
    """Start a process and yield it; end its process group with the `with` block."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        time.sleep(settle_s)
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
