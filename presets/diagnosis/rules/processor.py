"""Processors that are too slow: full cores, stolen time, missing offloads, too few sessions.

Measured: how each core of both ends spent the time (/proc/stat, proc(5): user, system, softirq, steal, idle), the
CPU time of the busiest worker process and of all of linkgauge (getrusage(2)), and the offloads of both interfaces
(ethtool(8): TSO, GSO, GRO).

Meaning: one session is the work of one core at each end. A sender whose core is full has nothing to send in time
(the rest of tcpi_busy_time); a receiver whose core is full does not read, which closes its window. With offloads
the kernel handles packets of up to 64 KiB; without them each packet on the wire costs about a microsecond.

Findings: `steal` for a hypervisor, `offloads-off`, `core-saturated`, and with it `sessions-few` if other cores are
idle. `sender-starved` is a sender without data to send on a host without a full core. `ssh-data-path` replaces all
of them if ssh carries the payload.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.host_info import lacks_offloads
from ....engine.model.plan import MIB, End
from ...number_text import format_milliseconds, format_quantity, group_digits
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
# What too few sessions explain of a full core's share: they are its reason, and not another one.
_OF_SESSIONS: Final = 0.25
# A slow path keeps the send buffer full. If it is empty for this share of the gap, the sender's core causes the
# rest, too. On a crowded machine, a deliberately slow path had up to 0.18.
_STARVED: Final = 0.25


def find_processor_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the cores of a sender without data and of a receiver that reads too slowly."""
    yield from find_core_limits(view)
    if (share := view.budget.take("starved")) >= MIN_SHARE:
        without_data = f"{100 * (1 - (view.flow.busy or 0)):.0f} %"
        yield Finding(
            "sender-starved",
            share,
            0.6,
            f"The {view.sender.end.label} sender was starved of CPU time.",
            f"it had no data to send for {without_data} of the time, and no core is full",
            f"at {end_name(view.sender.end)}, look for a CPU quota: cat /sys/fs/cgroup/cpu.max"
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
        few = list(_too_few_sessions(view, end, _OF_SESSIONS * share))
        yield _full_core(view, end, share - sum(finding.share or 0.0 for finding in few))
        yield from few


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
    """Return the load of an end's busiest core in words."""
    hottest = _hottest(end)
    if hottest is None:
        return "core load unknown"
    number, core = hottest
    parts = f"user {100 * core.user:.0f}, system {100 * core.system:.0f}, softirq {100 * core.softirq:.0f}"
    stolen = f", steal {100 * core.steal:.0f}" if core.steal >= 0.005 else ""
    worker = (
        ""
        if end.busiest_worker is None
        else f"; the busiest worker used {100 * end.busiest_worker:.0f} % of a core"
    )
    return f"core {number} is {100 * core.busy:.0f} % busy ({parts}{stolen}){worker}"


def _full_core(view: FlowView, end: EndEvidence, share: float) -> Finding:
    """Return the finding about a full core, with the cause that the processes' own CPU times show."""
    evidence, hottest = view.evidence, _hottest(end)
    number, load = hottest if hottest is not None else (0, None)
    core = f"{end.end.label.capitalize()} CPU core {number}"
    is_worker_full = (end.busiest_worker or 0.0) >= _FULL_WORKER
    others = _other_processes(view, end)
    if load is not None and load.busy >= _FULL and not is_worker_full and others >= _MIN_OTHERS:
        text = f"{core} is saturated by other processes."
        remedy = (
            f"{remedies.show_processes(end)}; end them, or choose other cores: linkgauge … {_cores_option(end)}"
        )
    elif not evidence.workload.is_bulk and evidence.is_same_host:
        text = f"CPU core {number} is saturated: both ends of the transactions share it."
        has_idle_core = evidence.sessions < len(end.cores)
        remedy = f"linkgauge … --sessions {len(end.cores)}, for all cores" if has_idle_core else "a faster machine"
    elif is_worker_full and evidence.sessions == 1:
        text = f"{core} is saturated; one session can use one core."
        remedy = _use_more_cores(view, end)
    else:
        text = f"{core} is saturated."
        remedy = _use_more_cores(view, end)
    numbers = (
        f"{describe_core_load(end)}; other processes used {others:.1f} of {format_quantity(len(end.cores), 'core')}"
    )
    confidence = 0.6 if view.flow.busy is None else 0.9
    return Finding("core-saturated", share, confidence, text, numbers, remedy, end.end, share)


def _other_processes(view: FlowView, end: EndEvidence) -> float:
    """Return the number of cores that processes other than linkgauge's used at an end."""
    own = end.process or 0.0
    if view.evidence.is_same_host:
        own = (view.sender.process or 0.0) + (view.receiver.process or 0.0)
    # The kernel's work on packets (softirq) belongs to the test, on whichever core it is done.
    return max(0.0, sum(core.user + core.system for core in end.cores) - own)


def find_ssh_limit(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about payload that ssh carries: no TCP value of the run is one of the link."""
    ends = (view.sender, view.receiver)
    end = max(ends, key=_hottest_busy)
    others = " and ".join(f"{_other_processes(view, each):.1f} cores at {end_name(each.end)}" for each in ends)
    yield Finding(
        "ssh-data-path",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.9 if has_full_core(end) else 0.6,
        "ssh carries and encrypts the payload: it is the bottleneck, not the link.",
        f"{end.end.label} {describe_core_load(end)}; ssh and other processes used {others}",
        "linkgauge … without --via-ssh; if a firewall blocks its data connections, open one port for --data-port",
    )


def _cores_option(end: EndEvidence) -> str:
    return "--cores N" if end.end is End.NEAR else "--far-cores N"


def _use_more_cores(view: FlowView, end: EndEvidence) -> str:
    """Return the options or the command that relieve a full core, of those that the run does not have yet."""
    evidence, hottest = view.evidence, _hottest(end)
    if not evidence.workload.is_bulk:
        more = f"linkgauge … --sessions {2 * len(end.cores)} --workers {len(end.cores)}, or "
        return f"{more if evidence.sessions < 2 * len(end.cores) else ''}a faster machine"
    if len(end.cores) > 2 and evidence.sessions == 1:
        workers = max(2, min(4, len(end.cores) // 2))
        return f"linkgauge … --sessions {workers} --workers {workers}"
    is_full_of_packets = hottest is not None and hottest[1].softirq >= _FULL_OF_PACKETS
    if is_full_of_packets and remedies.is_linux(end) and end.nic is not None and end.nic.sort != "loopback":
        return remedies.spread_packets(end)
    mode = remedies.cheaper_mode(evidence, end)
    return f"{f'linkgauge … {mode}, ' if mode else ''}a larger MTU, or a faster machine"


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
        "One session can use one core; others are idle.",
        f"{format_quantity(idle, 'core')} of {len(end.cores)} at {end_name(end.end)} less than half busy",
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
        f"The offloads of {end.end.label} {nic.name} are off: each packet costs CPU time.",
        f"{states}; {group_digits(_packets_s(view))} packets/s needed{_cost(view, end)}; {describe_core_load(end)}",
        remedies.enable_offloads(end),
        end.end,
    )


def _cost(view: FlowView, end: EndEvidence) -> str:
    """Return linkgauge's CPU cost of a MiB in words; empty if it is unknown."""
    if end.process is None or view.evidence.bit_s <= 0:
        return ""
    cost_us = end.process * 1e6 * MIB * 8 / view.evidence.bit_s
    return f", {format_milliseconds(cost_us)} of CPU time per MiB"


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
            f"The hypervisor takes CPU time from {end_name(end.end)}.",
            f"{100 * stolen:.0f} % of a core was stolen; {describe_core_load(end)}",
            "give this virtual machine dedicated cores, or a less busy host",
            end.end,
        )
