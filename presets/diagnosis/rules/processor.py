"""Processors that are too slow: full cores, stolen time, missing offloads, too few sessions.

Measured: how each core of both ends spent the time (/proc/stat, proc(5): user, system, softirq, steal, idle), the
CPU time of the busiest worker process and of all of linkgauge (getrusage(2)), and the offloads of both interfaces
(ethtool(8): TSO, GSO, GRO).

Meaning: one session is the work of one core at each end. A sender whose core is full has nothing to send in time
(the rest of tcpi_busy_time); a receiver whose core is full does not read, which closes its window. With offloads
the kernel handles packets of up to 64 KiB; without them each packet on the wire costs about a microsecond.

Findings: `steal` for a hypervisor, `offloads-off`, `core-saturated`, and with it `sessions-few` if other cores are
idle. `sender-starved` is a sender without data to send on a host without a full core.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.host_info import lacks_offloads
from ....engine.model.plan import MIB
from .. import remedies
from ..evidence import MIN_SHARE, CoreLoad, EndEvidence, FlowView, end_name
from ..finding import Finding

# Not 1.0: the counters of a core move in steps of 10 ms, and wake-ups take time.
_FULL: Final = 0.9
# The system calls of a session's worker do most of TCP's work, so that one worker can fill a core.
_FULL_WORKER: Final = 0.85
# A core that handles packets for this share of the time falls behind.
_FULL_OF_PACKETS: Final = 0.7
_MIN_STEAL: Final = 0.05
# Other processes that use this much of a core, and not the test, have filled it.
_MIN_OTHERS: Final = 0.25
_IDLE: Final = 0.5
# At a microsecond for each packet, this many fill a tenth of a core.
_MANY_PACKETS_S: Final = 100_000
# A slow path keeps the send buffer full. If it is empty for this share of the gap, the sender's core causes the
# rest, too. On a crowded machine, a deliberately slow path had up to 0.18.
_STARVED: Final = 0.25


def find_processor_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the cores of a sender without data and of a receiver that reads too slowly."""
    yield from find_core_limits(view)
    if (share := view.budget.take("starved")) >= MIN_SHARE:
        yield Finding(
            "sender-starved",
            share,
            0.6,
            f"The sending process of {end_name(view.sender.end)} was not let run, though no core was full.",
            f"it had nothing to send for {100 * (1 - (view.flow.busy or 0)):.0f} % of the time",
            f"at the {view.sender.end} end, look for a CPU quota: cat /sys/fs/cgroup/cpu.max"
            if remedies.is_linux(view.sender)
            else remedies.show_processes(view.sender),
            view.sender.end,
        )


def find_core_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about full cores of either end."""
    yield from _steal(view)
    yield from _at(view, view.sender, ("starved",), ("network",))
    yield from _at(view, view.receiver, ("receiver",), ("network",))


def _at(view: FlowView, end: EndEvidence, waiting: tuple[str, ...], working: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the findings about the cores of one end.

    `waiting` names the budget's shares of waiting for a core, `working` those of a core at work in TCP.
    """
    names = waiting if has_full_core(end) else ()
    if names and view.flow.busy is None:  # without the kernel's account the sender may have waited for either
        names = (*waiting, *working)
    if names and end is view.sender and view.budget.starved >= _STARVED:
        names = (*waiting, "buffer", *working)  # nor does it write as soon as there is room
    packets = max((core.softirq for core in end.cores), default=0.0)
    if (end.busiest_worker or 0.0) >= _FULL_WORKER or packets >= _FULL_OF_PACKETS:
        names = (*waiting, *working)
    cutting = _cutting(view, end)
    if names and cutting is not None:  # the kernel cuts and joins while TCP counts as busy
        names = tuple(dict.fromkeys((*names, *waiting, *working)))
    if view.budget.remaining(*names) < MIN_SHARE:
        return
    share = view.budget.take(*names)
    if cutting is not None:
        yield _offloads(view, cutting, share)
    else:
        yield _full_core(view, end, share)
        yield from _too_few_sessions(view, end, share)


def _cutting(view: FlowView, end: EndEvidence) -> EndEvidence | None:
    """Return the end whose missing offloads make this end handle single packets; None if there is none.

    On one host, packets that one end has segmented reach the other end as they are, since no NIC between them joins
    them again, and both ends use the same cores.
    """
    if _packets_s(view) < _MANY_PACKETS_S:
        return None
    other = view.receiver if end is view.sender else view.sender
    candidates = (end, other) if view.evidence.is_same_host else (end,)
    return next((each for each in candidates if each.nic is not None and lacks_offloads(each.nic)), None)


def _hottest(end: EndEvidence) -> tuple[int, CoreLoad] | None:
    return max(enumerate(end.cores), key=lambda each: each[1].busy, default=None)


def _hottest_busy(end: EndEvidence) -> float:
    hottest = _hottest(end)
    return 0.0 if hottest is None else hottest[1].busy


def _packets_s(view: FlowView) -> float:
    return view.target_bit_s / 8 / max(1, view.flow.mss_bytes or 1_448)


def has_full_core(end: EndEvidence) -> bool:
    """Return whether an end has a full core."""
    return _hottest_busy(end) >= _FULL


def describe_core_load(end: EndEvidence) -> str:
    """Return the load of an end's hottest core in words."""
    hottest = _hottest(end)
    if hottest is None:
        return "its cores are unknown"
    number, core = hottest
    parts = f"user {100 * core.user:.0f}, system {100 * core.system:.0f}, softirq {100 * core.softirq:.0f}"
    stolen = f", steal {100 * core.steal:.0f}" if core.steal >= 0.005 else ""
    worker = (
        "" if end.busiest_worker is None else f"; its busiest worker used {100 * end.busiest_worker:.0f} % of one"
    )
    return f"core {number} is {100 * core.busy:.0f} % busy ({parts}{stolen}){worker}"


def _full_core(view: FlowView, end: EndEvidence, share: float) -> Finding:
    hottest = _hottest(end)
    number = hottest[0] if hottest else 0
    own = end.process or 0.0
    if view.evidence.is_same_host:
        own = (view.sender.process or 0.0) + (view.receiver.process or 0.0)
    # The kernel's work on packets (softirq) belongs to the test, on whichever core it is done.
    others = max(0.0, sum(core.user + core.system for core in end.cores) - own)
    is_crowded = hottest is not None and hottest[1].busy >= _FULL and (end.busiest_worker or 0.0) < _FULL_WORKER
    if is_crowded and others >= _MIN_OTHERS:
        text = f"Core {number} of {end_name(end.end)} is full, and other processes fill it."
        remedy = f"{remedies.show_processes(end)}; end them, or keep clear of them with {_cores_option(end)}"
    elif not view.evidence.workload.is_bulk and view.evidence.is_same_host:
        text = f"Core {number} is full: between two ends of one host its time is all that a transaction takes."
        has_idle_core = view.evidence.sessions < len(end.cores)
        remedy = f"linkgauge … --sessions {len(end.cores)}, for all cores" if has_idle_core else "a faster machine"
    else:
        text = f"Core {number} of {end_name(end.end)} is full: one session is one core's work."
        remedy = _use_more_cores(view, end)
    evidence = f"{describe_core_load(end)}; other processes used {others:.1f} of {len(end.cores)} cores"
    confidence = 0.6 if view.flow.busy is None else 0.9
    return Finding("core-saturated", share, confidence, text, evidence, remedy, end.end, share)


def _cores_option(end: EndEvidence) -> str:
    return "--cores N" if end.end == "near" else "--far-cores N"


def _use_more_cores(view: FlowView, end: EndEvidence) -> str:
    if not view.evidence.workload.is_bulk:
        return f"linkgauge … --sessions {2 * len(end.cores)} --workers {len(end.cores)}, or a faster machine"
    if len(end.cores) > 2 and view.evidence.sessions == 1:
        workers = min(4, len(end.cores) // 2)
        return f"linkgauge … --sessions {workers} --workers {workers}"
    hottest = _hottest(end)
    if (
        hottest is not None
        and hottest[1].softirq >= _FULL_OF_PACKETS
        and remedies.is_linux(end)
        and end.nic is not None
    ):
        return (
            f"at the {end.end} end, spread packets over cores: ethtool -L {end.nic.name} combined {len(end.cores)}"
        )
    return "linkgauge … --mode sendfile (or discard), a larger MTU, or a faster machine"


def _too_few_sessions(view: FlowView, end: EndEvidence, share: float) -> Iterator[Finding]:
    """Yield a finding if one session fills its core and other cores are idle."""
    idle = sum(core.busy < _IDLE for core in end.cores)
    if view.evidence.sessions > 1 or not idle or (end.busiest_worker or 0.0) < _FULL_WORKER:
        return
    workers = min(4, idle + 1)
    yield Finding(
        "sessions-few",
        share,
        0.5,
        "One session cannot use more than one core; others are idle.",
        f"{idle} of the {len(end.cores)} cores of {end_name(end.end)} are less than half busy",
        f"linkgauge … --sessions {workers} --workers {workers}",
        end.end,
    )


def _offloads(view: FlowView, end: EndEvidence, share: float) -> Finding:
    nic = end.nic
    assert nic is not None  # noqa: S101 - `_cutting` returns only ends with a NIC
    words = {True: "on", False: "off", None: "unknown"}
    states = f"TSO {words[nic.tso]}, GSO {words[nic.gso]}, GRO {words[nic.gro]}"
    return Finding(
        "offloads-off",
        share,
        0.85,
        f"The offloads of {nic.name} at {end_name(end.end)} are off: each packet costs processor time.",
        f"{states}; {_packets_s(view):.0f} packets/s are needed{_cost(view, end)}; {describe_core_load(end)}",
        remedies.enable_offloads(end),
        end.end,
    )


def _cost(view: FlowView, end: EndEvidence) -> str:
    """Return linkgauge's CPU cost of a MiB in words; empty if it is unknown."""
    if end.process is None or view.evidence.bit_s <= 0:
        return ""
    return f", and each MiB costs linkgauge there {end.process * 1e3 * MIB * 8 / view.evidence.bit_s:.2g} ms"


def _steal(view: FlowView) -> Iterator[Finding]:
    """Yield the time that a hypervisor took from a full core."""
    for end, names in ((view.sender, ("starved", "network")), (view.receiver, ("receiver", "network"))):
        stolen = max((core.steal for core in end.cores), default=0.0)
        if stolen < _MIN_STEAL or _hottest_busy(end) < _FULL or view.budget.remaining(*names) < MIN_SHARE:
            continue
        share = view.budget.take(*names, limit=min(1.0, stolen / max(0.01, view.gap_bit_s / view.target_bit_s)))
        yield Finding(
            "steal",
            share,
            0.7,
            f"The hypervisor takes processor time away from {end_name(end.end)}.",
            f"up to {100 * stolen:.0f} % of a core was stolen; {describe_core_load(end)}",
            "give this virtual machine cores of its own, or a less busy host",
            end.end,
        )
