"""Processors that are too slow: full cores, stolen time, quotas, missing offloads, too few sessions.

Measured: how each core of both ends spent the time (/proc/stat, proc(5): user, system, softirq, steal, idle), the
CPU time of the busiest worker process and of all of linkgauge (getrusage(2)), and the offloads of both interfaces
(ethtool(8): TSO, GSO, GRO). For the workers also the time in which one was ready to run and had no
core (/proc/PID/schedstat), and the part of it in which a CPU quota stopped it (cpu.stat of its cgroup).

Meaning: one session is the work of one core at each end. A sender whose core is full has nothing to send in time
(the rest of tcpi_busy_time); a receiver whose core is full does not read, which closes its window. With offloads
the kernel handles packets of up to 64 KiB; without them each packet on the wire costs about a microsecond.

A worker that runs or waits for a core for nearly all of the time is the limit, at its own end. The load of the
host's cores does not matter then: both ends of one host have the same cores. A worker that sleeps waits for
something else.

Findings: `steal` for a hypervisor, if it takes more than quotas and other processes do, `cpu-quota`,
`offloads-off`, `core-saturated`, and with it `sessions-few` if other cores are idle. `sender-starved` is a sender
without data to send for another reason. `ssh-data-path` replaces all of them if ssh carries the payload.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import End
from ....engine.model.host_info import lacks_offloads
from ....engine.model.plan import MIB
from ...number_text import format_quantity, format_share, format_time, group_digits
from .. import remedies
from ..core_load import (
    FULL,
    crowded_out,
    describe_core_load,
    has_full_core,
    hottest_busy,
    hottest_core,
    other_processes,
    stolen_share,
    throttled_share,
    used_or_waited,
)
from ..evidence import MIN_SHARE, EndEvidence, Evidence, describe_unseen, end_name
from ..finding import Finding
from ..flow_view import FlowView
from ..trial import Trial

OTHER_PROCESSES: Final = "Other processes"
"""The beginning of a finding's text if the worker shares its core."""

_ONE_THREAD: Final = 1.1  # cores: more than this is the work of several threads
# The system calls of a session's worker do most of TCP's work, so one worker can fill a core.
_FULL_WORKER: Final = 0.85
# A core that handles packets for this share of the time falls behind.
_FULL_OF_PACKETS: Final = 0.7
_MIN_PAUSE: Final = 0.03  # of the time: a sender that has data for all the rest does not lack data
_MIN_STEAL: Final = 0.05
# Wake-ups on a busy machine take less of a worker's time than this.
_MIN_WAIT: Final = 0.1
# If TCP waited for an end, and that end waited for its core for half of this time, the core is the cause.
HELD_UP: Final = 0.5
# From this share of the other end's wait on, the waits of two workers are alike.
_ALIKE: Final = 0.5
# If other processes use this much of a core, they have filled it, and not the test.
_MIN_OTHERS: Final = 0.25
_IDLE: Final = 0.5
_MOST_CORES_NAMED: Final = 4
# At a microsecond for each packet, so many fill a tenth of a core.
_MANY_PACKETS_S: Final = 100_000
# The part of a full core's share that too few sessions explain: they are its reason, and not another finding.
_OF_SESSIONS: Final = 0.25
# A slow path keeps the send buffer full. If it is empty for this share of the gap, the sender's core causes the
# rest, too. On a crowded machine, a path that was slow on purpose had up to 0.18.
_STARVED: Final = 0.25


def find_processor_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the cores of a sender without data and of a receiver that reads too slowly."""
    yield from find_core_limits(view)
    if 1 - (view.flow.busy or 0.0) < _MIN_PAUSE:
        return
    if (share := view.budget.take("starved")) >= MIN_SHARE:
        yield _starved(view, share)


def _starved(view: FlowView, share: float) -> Finding:
    sender = view.sender
    evidence = f"it had no data to send for {format_share(1 - (view.flow.busy or 0))} of the time"
    if sender.waiting is not None:
        text = f"The {sender.end.label} sender had nothing to send: its worker stood still."
        evidence += f", and its worker used {format_share(sender.busiest_worker)} of a core, "
        evidence += f"and waited {format_share(sender.waiting)} of the time for one"
        remedy = remedies.show_states(sender)
    else:
        text = f"The {sender.end.label} sender was starved of CPU time."
        evidence += "" if has_full_core(sender) else f", and no core {view.evidence.tense('is', 'was')} full"
        remedy = remedies.show_quota(sender) if remedies.is_linux(sender) else remedies.show_processes(sender)
    used = used_or_waited(sender)
    confidence = 0.6 if used is None or used >= HELD_UP else 0.85
    return Finding("sender-starved", share, confidence, text, evidence, remedy, sender.end)


def find_core_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about the cores of either end, the busier end first."""
    ends = [
        (view.sender, ("starved",), ("starved", "buffer", "network")),
        (view.receiver, ("receiver",), ("receiver", "buffer", "network")),
    ]
    ends.sort(key=lambda each: -(used_or_waited(each[0]) or 0.0))
    for end, waiting, _ in ends:
        if _is_mostly_stolen(view, end):
            yield from _steal(view, end, *waiting)
    for end, _, names in ends:
        yield from _quota(view, end, names)
        yield from _unseen_process(view, end, names)
    for end, waiting, _ in ends:
        yield from _at(view, end, waiting, ("network",))


def _is_held_up(view: FlowView, end: EndEvidence) -> bool:
    """Return whether the cores of an end are its limit: a worker that mostly sleeps waits for something else."""
    if view.evidence.busy_poll:
        return False  # the test itself keeps a core busy at each end
    used = used_or_waited(end)
    # A transaction's two ends take turns, so that neither of their workers runs all the time.
    if used is None or end.waiting is None or not view.evidence.workload.is_bulk:
        return has_full_core(end)
    if used >= _FULL_WORKER or _core_of_packets(view, end) is not None:
        return True
    stopped = 1 - (view.flow.busy or 0.0) if end is view.sender else view.flow.receiver_limited
    return end.waiting >= max(_MIN_WAIT, HELD_UP * stopped)


def _core_of_packets(view: FlowView, end: EndEvidence) -> int | None:
    """Return the number of the core that the kernel's work on packets fills; None if there is none.

    Most packets arrive, so on one host the core counts as the receiver's.
    """
    number, core = max(enumerate(end.cores), key=lambda each: each[1].softirq, default=(0, None))
    if core is None or core.softirq < _FULL_OF_PACKETS:
        return None
    return None if end is view.sender and view.evidence.is_same_host else number


def _quota(view: FlowView, end: EndEvidence, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the time for which a CPU quota stopped an end, as far as it explains the gap."""
    throttled = throttled_share(end)
    wasted = _wasted(view, end)
    if max(throttled, wasted) < _MIN_WAIT or view.budget.remaining(*names) < MIN_SHARE:
        return
    share = view.budget.take(*names, limit=_part_of_gap(view, max(throttled, wasted)))
    if share < MIN_SHARE:
        return
    used = "" if end.process is None else f"; linkgauge used {end.process:.2f} of a core"
    yield Finding(
        "cpu-quota",
        share,
        0.9 if throttled >= _MIN_WAIT else 0.75,
        f"A CPU quota {view.evidence.tense('stops', 'stopped')} linkgauge at {end_name(end.end)}.",
        f"its cgroup's quota stopped it for {format_share(throttled)} of the time{used}"
        if throttled >= wasted
        else f"its worker waited {format_share(end.waiting)} of the time for a core, while one was idle{used}",
        remedies.show_quota(end),
        end.end,
    )


def _wasted(view: FlowView, end: EndEvidence) -> float:
    """Return the share of time for which a worker waited although a core that it may use was idle.

    Only a limit of its cgroup keeps it from such a core. If another core is full, it may be bound to that one.
    """
    if has_full_core(end):
        return 0.0
    given = view.evidence.cores_of(end.end)
    least_busy = min(
        (core.busy for number, core in enumerate(end.cores) if not given or number in given), default=1.0
    )
    return max(0.0, (end.waiting or 0.0) - least_busy)


def _unseen_process(view: FlowView, end: EndEvidence, names: tuple[str, ...]) -> Iterator[Finding]:
    """Yield an iperf3 that used a whole core for each of its threads, by its own count at the end.

    It has one thread up to version 3.15, and then one for each session and direction.
    """
    evidence, process = view.evidence, end.process
    if end.end is not evidence.unseen_end or process is None:
        return
    threads = max(1, evidence.sessions * len(evidence.flows))
    is_full = FULL <= process <= _ONE_THREAD or process >= FULL * threads
    if not is_full or view.budget.remaining(*names) < MIN_SHARE:
        return
    yield Finding(
        "core-saturated",
        view.budget.take(*names),
        0.7,
        f"The {end.end.label} iperf3 {evidence.tense('uses', 'used')} all of its core.",
        f"{process:.2f} of a core by its own count; {describe_unseen(evidence, end.end)}",
        f"linkgauge endpoint on the {end.end.label} host; or more --sessions, if its iperf3 is 3.16 or newer",
        end.end,
    )


def _part_of_gap(view: FlowView, lost: float) -> float:
    """Return the part of the gap that a lost share of the time explains."""
    return min(1.0, lost / max(0.01, view.gap_bit_s / view.target_bit_s))


def _at(view: FlowView, end: EndEvidence, waiting: tuple[str, ...], working: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the findings about the cores of one end.

    `waiting` names the budget's shares of waiting for a core, `working` those of a core at work in TCP.
    """
    is_held_up = _is_held_up(view, end)
    names = waiting if is_held_up else ()
    if names and view.flow.busy is None and view.probe_rise_ns is None:  # without clocks it may be either
        names = (*waiting, *working)
    if names and end is view.sender and view.budget.starved >= _STARVED:
        names = (*waiting, "buffer", *working)  # it does not write as soon as there is room either
    if (end.busiest_worker or 0.0) >= _FULL_WORKER or (is_held_up and _core_of_packets(view, end) is not None):
        names = (*waiting, *working)
    if is_held_up and (used_or_waited(end) or 0.0) >= _FULL_WORKER:
        names = tuple(dict.fromkeys((*names, *waiting, *working)))
    cutting = _cutting(view, end)
    if names and cutting is not None:  # TCP counts as busy while the kernel cuts and joins
        names = tuple(dict.fromkeys((*names, *waiting, *working)))
    if not names or view.budget.remaining(*names) < MIN_SHARE:
        return
    share = view.budget.take(*names)
    if cutting is not None:
        yield _offloads(view, cutting, share)
    else:
        few = list(_too_few_sessions(view, end, _OF_SESSIONS * share))
        for each, part in _crowded_ends(view, end, share - sum(finding.share or 0.0 for finding in few)):
            yield _full_core(view, each, part)
        yield from few


def _cutting(view: FlowView, end: EndEvidence) -> EndEvidence | None:
    """Return the end whose missing offloads make this end handle single packets; None if there is none.

    On one host, packets that one end has segmented reach the other end unchanged: no NIC between them joins them
    again, and both ends use the same cores.
    """
    if _packets_s(view) < _MANY_PACKETS_S:
        return None
    other = view.other_end(end)
    candidates = (end, other) if view.evidence.is_same_host else (end,)
    return next((each for each in candidates if each.nic is not None and lacks_offloads(each.nic)), None)


def _packets_s(view: FlowView) -> float:
    return view.target_bit_s / 8 / max(1, view.flow.mss_bytes or 1_448)


def _crowded_ends(view: FlowView, end: EndEvidence, share: float) -> list[tuple[EndEvidence, float]]:
    """Return the ends that share a finding of one of them: both, if other processes crowd out both alike.

    TCP then waits for the sender, even if the receiver is the slow one.
    """
    other = view.other_end(end)
    own, others = crowded_out(end), crowded_out(other)
    if not (_has_competitors(view, end) and _has_competitors(view, other)) or others < _ALIKE * own:
        return [(end, share)]
    return [(end, share * own / (own + others)), (other, share * others / (own + others))]


def _has_competitors(view: FlowView, end: EndEvidence) -> bool:
    """Return whether other processes have the core of a worker that is ready to run."""
    is_worker_full = (end.busiest_worker or 0.0) >= _FULL_WORKER
    return not is_worker_full and crowded_out(end) >= _MIN_WAIT and other_processes(view, end) >= _MIN_OTHERS


def _full_core(view: FlowView, end: EndEvidence, share: float) -> Finding:
    """Return the finding about a core that a worker fills, or must leave to other processes."""
    evidence, packets = view.evidence, _core_of_packets(view, end)
    is_worker_full = (end.busiest_worker or 0.0) >= _FULL_WORKER
    where: End | None = end.end
    load = describe_core_load(view.evidence, end, view.evidence.cores_of(end.end))
    if packets is None or is_worker_full or not evidence.workload.is_bulk:
        text, remedy = _explain_full_core(view, end)
    else:
        core = f"one CPU core of {end_name(end.end)}"
        if evidence.shares_cores:
            core, where = "one CPU core, which both ends share", None
        fill, handles = evidence.tense("fill", "filled"), evidence.tense("handles", "handled")
        text, remedy = f"Packets {fill} {core}.", _use_more_cores(view, end)
        load = f"the kernel {handles} all of them on core {packets}; {load}"
    others = other_processes(view, end)
    cores = format_quantity(len(end.cores), "core")
    numbers = f"{load}; other processes used {others:.1f} of {cores}"
    confidence = 0.6 if view.flow.busy is None else 0.9
    return Finding(
        "core-saturated", share, confidence, text, numbers, remedy.text, where, share, trial=remedy.trial
    )


def _explain_full_core(view: FlowView, end: EndEvidence) -> tuple[str, remedies.Remedy]:
    """Return the text and the remedy for a full core: the processes' own CPU times show what fills it."""
    evidence = view.evidence
    hottest = hottest_core(end, evidence.cores_of(end.end))
    is_full = hottest is not None and hottest[1].busy >= FULL
    is_worker_full = (end.busiest_worker or 0.0) >= _FULL_WORKER
    is_or_was = evidence.tense("is", "was")
    subject = f"A {end.end.label} CPU core {is_or_was} saturated"
    if not is_full:  # the kernel moves a worker between cores
        subject = f"The {end.end.label} worker {evidence.tense('needs', 'needed')} more than a core"
    if not is_worker_full and other_processes(view, end) >= _MIN_OTHERS and _is_crowded_out(end):
        text, trial = _choose_idle_cores(view, end)
        remedy = remedies.Remedy(f"{remedies.show_processes(end)}; end them, or {text}", trial)
        if end.waiting is not None:
            return (
                f"{OTHER_PROCESSES} {evidence.tense('take', 'took')} the core of the {end.end.label} worker.",
                remedy,
            )
        return f"{subject} by other processes.", remedy
    if is_full and not evidence.workload.is_bulk and evidence.is_same_host:
        has_idle_core = evidence.sessions < len(end.cores)
        remedy = remedies.Remedy("a faster machine")
        if has_idle_core:
            trial = Trial(sessions=len(end.cores))
            remedy = remedies.Remedy(f"linkgauge … {trial}, for all cores", trial)
        share = evidence.tense("share", "shared")
        return f"A CPU core {is_or_was} saturated: both ends of the transactions {share} it.", remedy
    if is_worker_full:
        which = "one session" if evidence.sessions == 1 else "the sessions of one worker"
        text = f"{subject}; {which} can use one core." if is_full else f"{subject} for its sessions."
        return text, _use_more_cores(view, end)
    if crowded_out(end) >= _MIN_WAIT:
        shares = f"The {end.end.label} worker {evidence.tense('shares', 'shared')} its core"
        return f"{shares} with other work of this test.", _use_more_cores(view, end)
    return f"{subject}.", _use_more_cores(view, end)


def _is_crowded_out(end: EndEvidence) -> bool:
    """Return whether another process had the worker's core; without its waits, whether a core is full."""
    if end.waiting is not None:
        return crowded_out(end) >= _MIN_WAIT
    return has_full_core(end)


def find_ssh_limit(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about payload that ssh carries: the TCP values of the run are not of the link."""
    ends = (view.sender, view.receiver)
    end = max(ends, key=hottest_busy)
    others = " and ".join(f"{other_processes(view, each):.1f} cores at {end_name(each.end)}" for each in ends)
    yield Finding(
        "ssh-data-path",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.9 if has_full_core(end) else 0.6,
        "ssh carries and encrypts the payload: it is the bottleneck, not the link.",
        f"{end.end.label} {describe_core_load(view.evidence, end)}; ssh and other processes used {others}",
        "linkgauge … without --via-ssh; if a firewall blocks its data connections, open one port for --data-port",
    )


def _cores_option(end: EndEvidence) -> str:
    return "--cores" if end.end is End.NEAR else "--far-cores"


def _choose_idle_cores(view: FlowView, end: EndEvidence) -> remedies.Remedy:
    """Return the option that moves the workers to idle cores, or the advice to test at another time."""
    own_cores = view.evidence.cores_of(end.end) or ()
    idle = [number for number, core in enumerate(end.cores) if core.busy < _IDLE and number not in own_cores]
    if not idle:
        return remedies.Remedy("test at a time when a core is idle")
    cores = tuple(idle[:_MOST_CORES_NAMED])
    trial = Trial(near_cores=cores) if end.end is End.NEAR else Trial(far_cores=cores)
    return remedies.Remedy(f"choose idle cores: linkgauge … {trial}", trial)


def _use_more_cores(view: FlowView, end: EndEvidence) -> remedies.Remedy:
    """Return the options or the command that relieve a full core, if the run does not have them yet."""
    evidence = view.evidence
    if more := _more_workers(evidence, end):
        return remedies.Remedy(f"linkgauge … {more.text}", more.trial)
    is_full_of_packets = evidence.workload.is_bulk and _core_of_packets(view, end) is not None
    if is_full_of_packets and remedies.is_linux(end) and end.nic is not None and end.nic.sort != "loopback":
        return remedies.Remedy(remedies.spread_packets(end))
    mode = remedies.cheaper_mode(evidence, end)
    larger = "a larger MTU, or " if evidence.workload.is_bulk else ""
    return remedies.Remedy(f"{f'linkgauge … {mode}, ' if mode else ''}{larger}a faster machine", mode)


def _more_workers(evidence: Evidence, end: EndEvidence) -> remedies.Remedy | None:
    """Return the options with which the sessions use all cores of an end; None if they do already."""
    cores, workers, own_cores = len(end.cores), evidence.workers, evidence.cores_of(end.end)
    if workers is not None and workers > cores > 0 and crowded_out(end) >= _MIN_WAIT:
        return _option(Trial(workers=cores))
    if not evidence.workload.is_bulk:
        more = Trial(sessions=2 * cores, workers=cores)
        is_more = evidence.sessions < 2 * cores
        return remedies.Remedy(f"{more}, or a faster machine", more) if is_more else None
    if own_cores is not None and len(own_cores) < cores:
        own = format_quantity(len(own_cores), "core")
        return remedies.Remedy(f"without {_cores_option(end)}, or with more than {own}")
    most = min(evidence.sessions, cores)
    if workers is not None and workers < most:
        return _option(Trial(workers=most))
    if cores > 2 and evidence.sessions == 1:
        sessions = max(2, min(4, cores // 2))
        return _option(Trial(sessions=sessions, workers=sessions))
    return None


def _option(trial: Trial) -> remedies.Remedy:
    return remedies.Remedy(str(trial), trial)


def _too_few_sessions(view: FlowView, end: EndEvidence, share: float) -> Iterator[Finding]:
    """Yield a finding if one session fills its core and other cores are idle."""
    idle = sum(core.busy < _IDLE for core in end.cores)
    if view.evidence.sessions > 1 or not idle or (end.busiest_worker or 0.0) < _FULL_WORKER:
        return
    workers = min(4, idle + 1)
    trial = Trial(sessions=workers, workers=workers)
    yield Finding(
        "sessions-few",
        share,
        0.5,
        "One session can use one core; others are idle.",
        f"{format_quantity(idle, 'core')} of {len(end.cores)} at {end_name(end.end)} less than half busy",
        f"linkgauge … {trial}",
        end.end,
        trial=trial,
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
        f"{states}; {group_digits(_packets_s(view))} packets/s needed{_cost(view, end)}; "
        f"{describe_core_load(view.evidence, end)}",
        remedies.enable_offloads(end),
        end.end,
    )


def _cost(view: FlowView, end: EndEvidence) -> str:
    """Return linkgauge's CPU cost of a MiB in words; empty if it is unknown."""
    if end.process is None or view.evidence.bit_s <= 0:
        return ""
    cost_us = end.process * 1e6 * MIB * 8 / view.evidence.bit_s
    return f", {format_time(cost_us)} of CPU time per MiB"


def _is_mostly_stolen(view: FlowView, end: EndEvidence) -> bool:
    """Return whether a hypervisor takes more of an end's cores than other processes and quotas do."""
    if end.waiting is not None:
        return stolen_share(end) > end.waiting
    return stolen_share(end) >= other_processes(view, end)


def _steal(view: FlowView, end: EndEvidence, name: str) -> Iterator[Finding]:
    """Yield the time that a hypervisor took from a full core of an end, as far as it explains the gap."""
    stolen = stolen_share(end)
    if stolen < _MIN_STEAL or not has_full_core(end) or view.budget.remaining(name, "network") < MIN_SHARE:
        return
    yield Finding(
        "steal",
        view.budget.take(name, "network", limit=_part_of_gap(view, stolen)),
        0.7,
        f"The hypervisor {view.evidence.tense('takes', 'took')} CPU time from {end_name(end.end)}.",
        f"{format_share(stolen)} of a core was stolen; {describe_core_load(view.evidence, end)}",
        "give this virtual machine dedicated cores, or a less busy host",
        end.end,
    )
