"""The cores that the workers of a run use: those that a plan names, or both ends of a transaction on one core."""

import os
from dataclasses import replace

from ..model.errors import PlanError
from ..model.host_info import HostInfo
from ..model.plan import MAX_WORKERS, Plan


def usable_cores() -> list[int]:
    """Return the cores that this process may use, ascending; all cores if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check_cores(cores: tuple[int, ...] | None, field: str) -> None:
    """Raise PlanError if this process cannot use one of the cores; `field` is `cores` or `far cores`."""
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
    """Return the plan with cores for the workers of its transactions, if both ends are on one host.

    Both ends of a session then share a core, and sessions are spread over as many cores as there are sessions at
    the start. A plan with a number of workers, or with cores, is returned unchanged, as is one that polls: each of
    its ends keeps a core busy.

    A transaction is the work of one end at a time. If its two ends are on two cores of one host, each message
    wakes a sleeping core, and on loopback that is most of a transaction's cost: one pair of `rr`
    made 58,900 a second on one core and 32,900 on two, of `crr` 20,800 and 11,900, medians of 7 rounds in turn.

    Raises:
        PlanError: both ends of a plan that polls are on one core.
    """
    is_free = plan.workers is None and plan.near_cores is None and plan.far_cores is None
    cores = tuple(reversed(usable_cores()))  # the first is the busiest: most systems take their interrupts there
    if plan.workload.is_bulk or not are_same_host(near, far):
        return plan
    if plan.busy_poll and (len(cores) < 2 or shares_cores(plan)):
        raise PlanError("busy-poll", "with both ends on one core", "each end keeps a core busy; leave it out")
    if not is_free or plan.busy_poll or len(cores) < 2:
        return plan
    workers = min(MAX_WORKERS, len(cores), plan.settings.connections)
    return replace(plan, workers=workers, near_cores=cores, far_cores=cores)


def shares_cores(plan: Plan) -> bool:
    """Return whether both ends of each transaction of a plan share a core."""
    return not plan.workload.is_bulk and plan.near_cores is not None and plan.near_cores == plan.far_cores
