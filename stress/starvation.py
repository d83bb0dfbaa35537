"""Detection of a starved machine, and a record of its processes and connections.

A run that fails because a worker got no core for ten seconds is no failure of linkgauge.
"""

# pyright: basic

import asyncio
import hashlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from processes import process_tree

_PAUSE_S = 1.0
_WORK = bytes(4 << 20)  # hashed without the interpreter's lock: some milliseconds of a core
_SLOW = 4.0  # times as long as the work takes by itself
_LATE_S = 1.0
_LOAD_PER_CORE = 3.0
_STATES = {"01": "established", "03": "half open", "06": "time-wait", "08": "close-wait", "0A": "listening"}


class Starvation:
    """Does a little work every second in a thread, and records its worst slowdown and delay."""

    def __init__(self) -> None:
        self._slowdown = 1.0
        self._late_s = 0.0
        self._load = os.getloadavg()[0]
        threading.Thread(target=self._measure, daemon=True).start()

    def begin(self) -> None:
        """Forget the worst values so far."""
        self._slowdown, self._late_s, self._load = 1.0, 0.0, os.getloadavg()[0]

    def worst(self) -> dict[str, float]:
        """Return the worst values since `begin`."""
        load = max(self._load, os.getloadavg()[0])
        return {"slowdown": round(self._slowdown, 1), "late_s": round(self._late_s, 2), "load": round(load, 1)}

    @property
    def is_starved(self) -> bool:
        """Whether deadlines may have passed just because processes waited for a core."""
        worst = self.worst()
        per_core = worst["load"] / (os.cpu_count() or 1)
        return worst["slowdown"] >= _SLOW or worst["late_s"] >= _LATE_S or per_core >= _LOAD_PER_CORE

    def _measure(self) -> None:
        while True:
            asleep = time.perf_counter()
            time.sleep(_PAUSE_S)
            began, core = time.perf_counter(), time.thread_time()
            hashlib.sha256(_WORK).digest()
            took, worked = time.perf_counter() - began, time.thread_time() - core
            self._late_s = max(self._late_s, began - asleep - _PAUSE_S)
            self._slowdown = max(self._slowdown, took / max(worked, 1e-6))


def machine_state(port: int, roots: Iterable[int]) -> dict[str, Any]:
    """Return the state of these processes and their descendants, their connections, and the machine's load."""
    return {
        "load": Path("/proc/loadavg").read_text(encoding="ascii").strip(),
        "pressure": _first_line(Path("/proc/pressure/cpu")),
        "processes": [_doing(pid) for root in roots for pid in process_tree(root)],
        "connections": _connections(port),
        "waits": [_wait_of(task) for task in asyncio.all_tasks()],
    }


def _doing(pid: int) -> str:
    folder = Path(f"/proc/{pid}")
    try:
        fields = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        waited_ns = (folder / "schedstat").read_text(encoding="ascii").split()[1]
        count = len(list((folder / "fd").iterdir()))
    except (OSError, IndexError):
        return f"{pid} gone"
    core_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    where = _first_line(folder / "wchan") or "?"
    return (
        f"{pid} state {fields[0]} in {where}, {fields[17]} threads, {count} descriptors, {core_s:.1f} s on a core, "
        f"{int(waited_ns) / 1e9:.1f} s waiting for one: {command[-60:]}"
    )


def _connections(port: int) -> dict[str, int]:
    """Count the connections with a port by state, from /proc/net/tcp."""
    counts: Counter[str] = Counter()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        words = line.split()
        if f"{port:04X}" in (words[1].rpartition(":")[2], words[2].rpartition(":")[2]):
            counts[_STATES.get(words[3], words[3])] += 1
    return dict(counts)


def _wait_of(task: "asyncio.Task[Any]") -> str:
    stack = task.get_stack(limit=1)
    where = f"{Path(stack[-1].f_code.co_filename).name}:{stack[-1].f_lineno}" if stack else "nothing"
    return f"{task.get_name()} at {where}"


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return ""
