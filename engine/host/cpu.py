"""CPU cores of this host: their times, and which of them the workers of a run use."""

import os
from dataclasses import replace
from pathlib import Path

from ..model.errors import PlanError
from ..model.host_info import HostInfo
from ..model.plan import MAX_WORKERS, SECOND_NS, Plan
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


def usable_cores() -> list[int]:
    """Return the cores that this process may use, ascending; all cores where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check_cores(cores: tuple[int, ...] | None, field: str) -> None:
    """Raise PlanError where this process cannot use one of the cores; `field` is `cores` or `far cores`."""
    usable = usable_cores()
    missing = [core for core in cores or () if core not in usable]
    if missing:
        host = "the remote host" if field == "far cores" else "this machine"
        known = f"core {usable[0]}" if len(usable) == 1 else f"cores {_format_cores(usable)}"
        raise PlanError(field, _format_cores(missing), f"{host} has {known}")


def _format_cores(cores: list[int]) -> str:
    """Return cores as they are typed: `0-3,6`."""
    spans: list[list[int]] = []
    for core in cores:
        if spans and core == spans[-1][1] + 1:
            spans[-1][1] = core
        else:
            spans.append([core, core])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def are_same_host(near: HostInfo, far: HostInfo) -> bool:
    """Return whether both ends are on one host, connected over loopback and not through an ssh forward."""
    is_loopback = all(end.nic is not None and end.nic.sort == "loopback" for end in (near, far))
    return is_loopback and near.hostname == far.hostname


def assign_core_affinity(plan: Plan, near: HostInfo, far: HostInfo) -> Plan:
    """Return the plan with cores for the workers of its transactions, where both ends are on one host.

    Both ends of a session then share a core, and sessions are spread over as many cores as there are sessions at
    the start. A plan with a number of workers, or with cores, is returned unchanged.

    A transaction is the work of one end at a time. Where its two ends are on two cores of one host, each message
    wakes a core that has gone to sleep, and on loopback that is most of what a transaction costs: one pair of `rr`
    made 58,900 a second on one core and 32,900 on two, of `crr` 20,800 and 11,900, medians of 7 rounds in turn.
    """
    is_free = plan.workers is None and plan.near_cores is None and plan.far_cores is None
    cores = tuple(reversed(usable_cores()))  # the first is the busiest: most systems take their interrupts there
    if not is_free or plan.workload.is_bulk or len(cores) < 2 or not are_same_host(near, far):
        return plan
    workers = min(MAX_WORKERS, len(cores), plan.settings.connections)
    return replace(plan, workers=workers, near_cores=cores, far_cores=cores)


def shares_cores(plan: Plan) -> bool:
    """Return whether both ends of each transaction of a plan share a core."""
    return not plan.workload.is_bulk and plan.near_cores is not None and plan.near_cores == plan.far_cores
