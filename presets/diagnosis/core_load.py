"""The time of an end's cores and workers: at work, waiting, stopped by a quota, or taken by a hypervisor.

Shares are 0 to 1. `None` is unknown.
"""

from typing import Final

from ..number_text import format_share
from .evidence import CoreLoad, EndEvidence, Evidence
from .flow_view import FlowView

# Not 1.0: the counters of a core move in steps of 10 ms, and wake-ups take time.
FULL: Final = 0.9
_SHOWN_STEAL: Final = 0.005


def used_or_waited(end: EndEvidence) -> float | None:
    """Return the share of time for which an end's busiest worker ran or waited for a core; None if unknown."""
    return None if end.waiting is None else min(1.0, (end.busiest_worker or 0.0) + end.waiting)


def throttled_share(end: EndEvidence) -> float:
    """Return the share of time for which a quota stopped the worker, which is a part of its wait."""
    throttled = end.throttled or 0.0
    return throttled if end.waiting is None else min(throttled, end.waiting)


def crowded_out(end: EndEvidence) -> float:
    """Return the share of time for which something else had the core of a worker that was ready to run."""
    return (end.waiting or 0.0) - throttled_share(end)


def hottest_core(end: EndEvidence, given: tuple[int, ...] | None = None) -> tuple[int, CoreLoad] | None:
    """Return the number and the load of an end's busiest core, of those given to its workers."""
    cores = [each for each in enumerate(end.cores) if given is None or each[0] in given]
    return max(cores or enumerate(end.cores), key=lambda each: each[1].busy, default=None)


def hottest_busy(end: EndEvidence) -> float:
    """Return the busy share of an end's busiest core; 0 if no core is known."""
    hottest = hottest_core(end)
    return 0.0 if hottest is None else hottest[1].busy


def has_full_core(end: EndEvidence) -> bool:
    """Return whether an end has a full core."""
    return hottest_busy(end) >= FULL


def describe_core_load(evidence: Evidence, end: EndEvidence, given: tuple[int, ...] | None = None) -> str:
    """Return the load of an end's busiest core in words, of those given to its workers."""
    hottest = hottest_core(end, given)
    if hottest is None:
        return "core load unknown"
    number, core = hottest
    names = ("user", "system", "softirq", *(["steal"] if core.steal >= _SHOWN_STEAL else []))
    parts = ", ".join(f"{name} {100 * getattr(core, name):.0f}" for name in names)
    was = evidence.tense("is", "was")
    return f"core {number} {was} {format_share(core.busy)} busy ({parts}){describe_worker(end, '; ')}"


def describe_worker(end: EndEvidence, separator: str) -> str:
    """Return the busiest worker's time and the longest wait for a core in words, to follow other evidence."""
    used, waiting = end.busiest_worker, end.waiting
    text = "" if used is None else f"{separator}the busiest worker used {format_share(used)} of a core"
    wait = "" if waiting is None else f", and one worker waited for a CPU core {format_share(waiting)} of the time"
    return text + wait


def other_processes(view: FlowView, end: EndEvidence) -> float:
    """Return the number of cores that processes other than linkgauge's used at an end."""
    own = end.process or 0.0
    if view.evidence.is_same_host:
        own = (view.sender.process or 0.0) + (view.receiver.process or 0.0)
    # The kernel's work on packets (softirq) belongs to the test, on whichever core it is done.
    return max(0.0, sum(core.user + core.system for core in end.cores) - own)


def stolen_share(end: EndEvidence) -> float:
    """Return the largest share of a core that a hypervisor took."""
    return max((core.steal for core in end.cores), default=0.0)
