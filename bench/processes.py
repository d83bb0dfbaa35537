"""What a process and all it started cost, read from outside: the same yardstick for every tool."""

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return /proc/PID/stat's fields from the third on (proc(5)); empty where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return []


def tree(root: int) -> list[int]:
    """Return a process and all its living descendants."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(folder.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    todo = [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, []))
    return found


def workers(root: int) -> list[int]:
    """Return the workers of a linkgauge process: what the process that starts them has forked."""
    own = {int(pid) for pid in Path(f"/proc/{root}/task/{root}/children").read_text(encoding="ascii").split()}
    return [pid for pid in tree(root)[1:] if pid not in own]


def own_cpu_s(pid: int) -> float:
    """Return user and system seconds of a process alone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) * _TICK_S if fields else 0.0


def cpu_s(root: int) -> float:
    """Return user and system seconds of a process and its living descendants."""
    return sum(own_cpu_s(pid) for pid in tree(root))


def resident_mib(root: int) -> float:
    """Return the proportional set size of a process and its descendants, MiB."""
    total = 0
    for pid in tree(root):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


@contextmanager
def running(command: list[str], *, settle_s: float = 0.0) -> Generator[subprocess.Popen[str]]:
    """Give a started process; end it, by its group, when the block does."""
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
