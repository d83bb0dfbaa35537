"""CPU times of the cores of this host, from /proc/stat, or from psutil where there is no /proc."""

import os
from pathlib import Path

from ..model.plan import SECOND_NS
from ..model.samples import CoreTimes

_STAT = Path("/proc/stat")


def parse_proc_stat(text: str, tick_ns: int) -> tuple[CoreTimes, ...]:
    """Return the time of each core since boot out of /proc/stat (proc(5)).

    Columns: user nice system idle iowait irq softirq steal; guest time is already in user. Niced time is
    user time here, interrupts count as softirq, waiting for a disk is idle.
    """
    cores: list[CoreTimes] = []
    for line in text.splitlines():
        name, *columns = line.split()
        if not name.startswith("cpu"):
            break
        if name == "cpu":
            continue
        user, nice, system, idle, iowait, irq, softirq, steal = (int(c) * tick_ns for c in columns[:8])
        cores.append(CoreTimes(user + nice, system, irq + softirq, steal, idle + iowait))
    return tuple(cores)


def read_core_times() -> tuple[CoreTimes, ...] | None:
    """Return the time of each core of this host since boot; None where unknown."""
    try:
        text = _STAT.read_text(encoding="ascii")
    except OSError:
        return _read_psutil()
    return parse_proc_stat(text, SECOND_NS // os.sysconf("SC_CLK_TCK"))


def _read_psutil() -> tuple[CoreTimes, ...] | None:
    try:
        import psutil  # pyright: ignore[reportMissingModuleSource] - not installed on Linux
    except ImportError:
        return None
    return tuple(
        CoreTimes(
            int((t.user + getattr(t, "nice", 0.0)) * SECOND_NS),
            int(t.system * SECOND_NS),
            int((getattr(t, "softirq", 0.0) + getattr(t, "irq", 0.0)) * SECOND_NS),
            int(getattr(t, "steal", 0.0) * SECOND_NS),
            int((t.idle + getattr(t, "iowait", 0.0)) * SECOND_NS),
        )
        for t in psutil.cpu_times(percpu=True)
    )


def subtract_core_times(
    before: tuple[CoreTimes, ...] | None, after: tuple[CoreTimes, ...] | None
) -> tuple[CoreTimes, ...] | None:
    """Return the time of each core between two readings; None where unknown, or the number of cores changed."""
    if before is None or after is None or len(before) != len(after):
        return None
    # Idle and iowait may step back a little on Linux (proc(5)): never below nothing.
    return tuple(
        CoreTimes(
            max(0, b.user_ns - a.user_ns),
            max(0, b.system_ns - a.system_ns),
            max(0, b.softirq_ns - a.softirq_ns),
            max(0, b.steal_ns - a.steal_ns),
            max(0, b.idle_ns - a.idle_ns),
        )
        for a, b in zip(before, after, strict=True)
    )
