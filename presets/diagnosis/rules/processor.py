"""Findings about processors: a core that is full, at which end and with what; stolen time; offloads."""

from collections.abc import Iterator
from typing import Final

from ....engine.model.host_info import lacks_offloads
from .. import remedies
from ..budget import FlowView, end_name
from ..evidence import CoreLoad, EndEvidence
from ..finding import Finding

# A core counts as full from here on: its counters move in steps of 10 ms, and waking up takes its share.
_FULL: Final = 0.9
# One worker carries a session; the system call that it is in does most of TCP's work for it.
_FULL_WORKER: Final = 0.85
# A core that does nothing but packets for this share of the time drops behind.
_FULL_OF_PACKETS: Final = 0.7
_STEAL: Final = 0.05
# So much of a full core used by others means that they, and not the test, have filled it.
_OTHERS: Final = 0.25
_IDLE: Final = 0.5
# A packet through the kernel takes about a microsecond: from here on every packet for itself fills a core's tenth.
_MANY_PACKETS_S: Final = 100_000
_LEAST_SHARE: Final = 0.05
_MIB: Final = 1_048_576
# A slow path keeps the sender's buffer full: where that runs empty for this much of what is missing, the sender's
# core is behind the rest as well. On a crowded machine a path that was slow on purpose had up to 0.18.
_STARVED: Final = 0.25


def find_processor_limits(view: FlowView) -> Iterator[Finding]:
    """Give what cores held up: the sender's where it had nothing to send, the receiver's where it did not read."""
    yield from find_core_limits(view)
    if (share := view.budget.take("starved")) >= _LEAST_SHARE:
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
    """Give what full cores of either end account for."""
    yield from _steal(view)
    yield from _at(view, view.sender, ("starved",), ("network",))
    yield from _at(view, view.receiver, ("receiver",), ("network",))


def _at(view: FlowView, end: EndEvidence, waiting: tuple[str, ...], working: tuple[str, ...]) -> Iterator[Finding]:
    """Give what an end's cores account for: what waits for them, and what they do while TCP seems busy."""
    names = waiting if has_full_core(end) else ()
    if names and view.flow.busy is None:  # the kernel does not tell what the sender waited for
        names = (*waiting, *working)
    if names and end is view.sender and view.budget.starved >= _STARVED:
        names = (*waiting, "buffer", *working)  # nor does it write as soon as there is room
    packets = max((core.softirq for core in end.cores), default=0.0)
    if (end.busiest_worker or 0.0) >= _FULL_WORKER or packets >= _FULL_OF_PACKETS:
        names = (*waiting, *working)
    cutting = _cutting(view, end)
    if names and cutting is not None:  # the kernel cuts and joins while TCP counts as busy
        names = tuple(dict.fromkeys((*names, *waiting, *working)))
    if view.budget.remaining(*names) < _LEAST_SHARE:
        return
    share = view.budget.take(*names)
    if cutting is not None:
        yield _offloads(view, cutting, share)
    else:
        yield _full(view, end, share)
        yield from _too_few_sessions(view, end, share)


def _cutting(view: FlowView, end: EndEvidence) -> EndEvidence | None:
    """Return the end whose offloads are off, so that this end's cores have a packet at a time to do; None else.

    Where both ends are on one host, a packet that one of them has cut comes to the other as it is: no wire and no
    NIC in between joins it, and its cores are the same.
    """
    if _packets_s(view) < _MANY_PACKETS_S:
        return None
    other = view.receiver if end is view.sender else view.sender
    ends = (end, other) if view.evidence.is_same_host else (end,)
    return next((one for one in ends if one.nic is not None and lacks_offloads(one.nic)), None)


def _hottest(end: EndEvidence) -> tuple[int, CoreLoad] | None:
    return max(enumerate(end.cores), key=lambda each: each[1].busy, default=None)


def _hottest_busy(end: EndEvidence) -> float:
    found = _hottest(end)
    return 0.0 if found is None else found[1].busy


def _packets_s(view: FlowView) -> float:
    return view.target_bit_s / 8 / max(1, view.flow.mss_bytes or 1_448)


def has_full_core(end: EndEvidence) -> bool:
    """Return whether an end has a core that is full."""
    return _hottest_busy(end) >= _FULL


def describe_core_load(end: EndEvidence) -> str:
    """Write how full an end's hottest core is, and with what."""
    found = _hottest(end)
    if found is None:
        return "its cores are unknown"
    number, core = found
    parts = f"user {100 * core.user:.0f}, system {100 * core.system:.0f}, softirq {100 * core.softirq:.0f}"
    stolen = f", steal {100 * core.steal:.0f}" if core.steal >= 0.005 else ""
    worker = (
        "" if end.busiest_worker is None else f"; its busiest worker used {100 * end.busiest_worker:.0f} % of one"
    )
    return f"core {number} is {100 * core.busy:.0f} % busy ({parts}{stolen}){worker}"


def _full(view: FlowView, end: EndEvidence, share: float) -> Finding:
    found = _hottest(end)
    number = found[0] if found else 0
    own = end.process or 0.0
    if view.evidence.is_same_host:
        own = (view.sender.process or 0.0) + (view.receiver.process or 0.0)
    # The kernel's work on packets is the test's own as well, wherever it is done.
    others = max(0.0, sum(core.user + core.system for core in end.cores) - own)
    is_crowded = found is not None and found[1].busy >= _FULL and (end.busiest_worker or 0.0) < _FULL_WORKER
    if is_crowded and others >= _OTHERS:
        text = f"Core {number} of {end_name(end.end)} is full, and other processes fill it."
        remedy = f"{remedies.show_processes(end)}; end them, or keep clear of them with {_cores_option(end)}"
    elif not view.evidence.workload.is_bulk and view.evidence.is_same_host:
        text = f"Core {number} is full: between two ends of one host its time is all that a transaction takes."
        is_room = view.evidence.sessions < len(end.cores)
        remedy = f"linkgauge … --sessions {len(end.cores)}, for all cores" if is_room else "a faster machine"
    else:
        text = f"Core {number} of {end_name(end.end)} is full: one session is one core's work."
        remedy = _spread(view, end)
    evidence = f"{describe_core_load(end)}; other processes used {others:.1f} of {len(end.cores)} cores"
    confidence = 0.6 if view.flow.busy is None else 0.9
    return Finding("core-saturated", share, confidence, text, evidence, remedy, end.end, share)


def _cores_option(end: EndEvidence) -> str:
    return "--cores N" if end.end == "near" else "--far-cores N"


def _spread(view: FlowView, end: EndEvidence) -> str:
    if not view.evidence.workload.is_bulk:
        return f"linkgauge … --sessions {2 * len(end.cores)} --workers {len(end.cores)}, or a faster machine"
    if len(end.cores) > 2 and view.evidence.sessions == 1:
        more = min(4, len(end.cores) // 2)
        return f"linkgauge … --sessions {more} --workers {more}"
    core = _hottest(end)
    if core is not None and core[1].softirq >= _FULL_OF_PACKETS and remedies.is_linux(end) and end.nic is not None:
        return (
            f"at the {end.end} end, spread packets over cores: ethtool -L {end.nic.name} combined {len(end.cores)}"
        )
    return "linkgauge … --mode sendfile (or discard), a larger MTU, or a faster machine"


def _too_few_sessions(view: FlowView, end: EndEvidence, share: float) -> Iterator[Finding]:
    """Give the way out where one session fills its core and others are idle."""
    idle = sum(core.busy < _IDLE for core in end.cores)
    if view.evidence.sessions > 1 or not idle or (end.busiest_worker or 0.0) < _FULL_WORKER:
        return
    more = min(4, idle + 1)
    yield Finding(
        "sessions-few",
        share,
        0.5,
        "One session cannot use more than one core; others are idle.",
        f"{idle} of the {len(end.cores)} cores of {end_name(end.end)} are less than half busy",
        f"linkgauge … --sessions {more} --workers {more}",
        end.end,
    )


def _offloads(view: FlowView, end: EndEvidence, share: float) -> Finding:
    nic = end.nic
    assert nic is not None  # noqa: S101 - whose offloads are lacking is known
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
    """Write what moving payload costs linkgauge at an end; nothing where that is unknown."""
    if end.process is None or view.evidence.bit_s <= 0:
        return ""
    return f", and each MiB costs linkgauge there {end.process * 1e3 * _MIB * 8 / view.evidence.bit_s:.2g} ms"


def _steal(view: FlowView) -> Iterator[Finding]:
    """Give what a hypervisor took of the core that an end needed."""
    for end, names in ((view.sender, ("starved", "network")), (view.receiver, ("receiver", "network"))):
        stolen = max((core.steal for core in end.cores), default=0.0)
        if stolen < _STEAL or _hottest_busy(end) < _FULL or view.budget.remaining(*names) < _LEAST_SHARE:
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
