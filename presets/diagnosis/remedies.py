"""Remedies: the command to type at an end, for the operating system of that end.

Every word that an end has sent goes through `shell_command`: the user may paste the line as root.
"""

import math
import re
from typing import Final, Literal, NamedTuple

from ...engine.model.directions import sender_of
from ...engine.model.plan import MAX_BURST, MAX_DURATION_NS, MAX_SESSIONS, MIN_RATE_BIT_S, SECOND_NS, Mode
from ...engine.model.texts.shell_commands import (
    enable_offloads_command,
    negotiate_command,
    set_mtu_command,
    set_sysctl_command,
    shell_command,
)
from ..number_text import format_bytes
from .evidence import EndEvidence, Evidence, FlowEvidence
from .trial import Trial

SHOW_BUCKET: Final = "linkgauge shape PEER measures its rate and burst"
"""The command for the numbers of a policer or shaper."""
FREE_DEVICE: Final = "close the device's other programs and tabs, or test with another device"
"""What may help a device whose browser reads slowly: it has no command line."""
_MIN_WINDOW_BYTES: Final = 65_536
_SHAPERS: Final = {"tbf", "htb", "hfsc", "cbq"}
_BELOW: Final = 0.95  # of a link's rate, so that the link's own queue stays empty
_SHORT_RING: Final = 128
_TOKEN: Final = re.compile(r"[\w.-]{1,32}", re.ASCII)


class Remedy(NamedTuple):
    """The text of a remedy, and the trial that it names; None if it names no option of a test."""

    text: str
    trial: Trial | None = None


def is_linux(end: EndEvidence) -> bool:
    """Return whether an end runs Linux."""
    return end.system.startswith("Linux")


def is_bsd(end: EndEvidence) -> bool:
    """Return whether an end runs FreeBSD or macOS, which share their sysctls."""
    return end.system.startswith(("Darwin", "FreeBSD"))


def round_window(needed_bytes: float) -> int:
    """Return the power of two of at least 1.5 times a window, a margin for the variation of TCP's rate."""
    size = _MIN_WINDOW_BYTES
    while size < 1.5 * needed_bytes:
        size *= 2
    return size


def cheaper_mode(evidence: Evidence, end: EndEvidence | None = None) -> Trial | None:
    """Return the mode that saves CPU time; None if the run has it already.

    With `end`, it is a mode that helps this end: sendfile saves the sender's copy, discard the receiver's.
    """
    if not evidence.workload.is_bulk or evidence.mode is Mode.DISCARD or evidence.mode.is_for_datagrams:
        return None
    senders = {sender_of(flow.direction, evidence.workload) for flow in evidence.flows}
    if evidence.mode is Mode.COPY and (end is None or end.end in senders):
        return Trial(mode=Mode.SENDFILE)
    return Trial(mode=Mode.DISCARD) if end is None or end.end.other in senders else None


def test_alone(flow: FlowEvidence) -> Remedy:
    """Return the test of one direction alone."""
    alone = Trial(direction=flow.direction)
    return Remedy(f"linkgauge … {alone} shows what this direction carries alone", alone)


def more_sessions(sessions: int, first: int) -> Trial | None:
    """Return twice the sessions, or `first` sessions instead of one; None at the limit."""
    more = first if sessions == 1 else min(MAX_SESSIONS, 2 * sessions)
    return Trial(sessions=more) if more > sessions else None


def larger_burst(evidence: Evidence) -> Trial | None:
    """Return twice the requests in flight; None if the workload or the limit does not allow them."""
    burst = 10 if evidence.burst == 1 else min(MAX_BURST, 2 * evidence.burst)
    return Trial(burst=burst) if evidence.workload.allows_burst and burst > evidence.burst else None


def longer_run(evidence: Evidence, warmup_ns: int | None = None) -> Trial:
    """Return a longer duration: a minute, or twice the measured time."""
    seconds = max(60, math.ceil(2 * evidence.span_ns / SECOND_NS))
    return Trial(duration_ns=min(seconds * SECOND_NS, MAX_DURATION_NS), warmup_ns=warmup_ns)


def other_congestion_control(flow: FlowEvidence) -> Trial:
    """Return a congestion control to compare with: one that ignores loss, or one that heeds it."""
    return Trial(congestion="cubic" if flow.is_bbr else "bbr")


def lower_rate(bit_s: float) -> Trial:
    """Return a rate a little below one: 5 % less, to two or more digits."""
    target = 0.95 * bit_s
    for size in (10**9, 10**6, 10**3):
        if target >= 10 * size:
            return Trial(rate_bit_s=math.floor(target / size) * size)
    return Trial(rate_bit_s=max(MIN_RATE_BIT_S, math.floor(target)))


def find_interruption(sender: EndEvidence, receiver: EndEvidence) -> str:
    """Return the places that note an interruption of the path: link down, a new route, a failover."""
    places = "look for this time in the logs of the switches and routers between"
    logs = [_at(end, "journalctl -k --since -10min") for end in (sender, receiver) if is_linux(end)]
    return "; ".join([*logs, places, "linkgauge watch PEER tells whether it comes again"])


def show_drops(end: EndEvidence) -> str:
    """Return the commands that show which UDP datagrams the kernel drops, and where."""
    if not is_linux(end):
        return _at(end, "netstat -s -p udp")
    return _at(end, "nstat -az 'Udp*'; ss -uanpm")


def lengthen_backlog(end: EndEvidence) -> str:
    """Return the command that lets more packets wait for a core."""
    return _at(end, set_sysctl_command("net.core.netdev_max_backlog", 10_000))


def lengthen_send_queue(end: EndEvidence) -> str:
    """Return the command that lets more packets wait for the interface."""
    if not is_linux(end):
        return show_nic(end)
    return _at(end, shell_command("ip", "link", "set", "dev", _nic_name(end), "txqueuelen", 10_000))


def shape_below(end: EndEvidence, flow: FlowEvidence, trial: Trial) -> str:
    """Return the trial of a policer's rate, and the command that keeps an end below it."""
    text = f"{SHOW_BUCKET}; linkgauge … {trial} has no loss if so; ask for the policer's rate and burst"
    if not is_linux(end):
        return text
    queue = ("rate", _shaper_rate(flow.bit_s), "burst", "32kb", "latency", "50ms")
    command = shell_command("tc", "qdisc", "replace", "dev", _nic_name(end), "root", "tbf", *queue)
    return f"{text}, or keep below it, {_at(end, command)}"


def manage_queue(end: EndEvidence, qdisc: str | None, drain_bit_s: float | None) -> str:
    """Return the command that keeps the queue of an end's interface short.

    A shaper is replaced by one with such a queue: without a shaper, the queue would only move on.
    """
    if not is_linux(end):
        return _at(end, "send less than the link carries, or let the next router manage its queue (fq_codel, CAKE)")
    if qdisc in _SHAPERS and drain_bit_s:
        return _at(end, _cake_command(end, drain_bit_s))
    return _at(end, shell_command("tc", "qdisc", "replace", "dev", _nic_name(end), "root", "fq_codel"))


def shape_before_path(end: EndEvidence, rate_bit_s: float | None, *, is_far: bool) -> str:
    """Return the command that limits an end to a little less than a slow link carries, so that its queue is empty.

    `rate_bit_s` is the rate of the slow link, with all headers; None if it is unknown.
    """
    place = (
        "; or the same at the router before the slow link" if is_far else "; or at the router before the slow link"
    )
    if not is_linux(end) or not rate_bit_s:
        return f"at the router before the slow link, for what the {end.end.label} end sends: fq_codel or CAKE"
    return f"{_at(end, _cake_command(end, rate_bit_s))}{place}"


def find_slow_direction() -> str:
    """Return how to find the direction of a queue in the path, and what keeps it short."""
    return "load one direction at a time to see which one fills it; fq_codel or CAKE at the router before it"


def shorten_send_ring(end: EndEvidence) -> str:
    """Return the command that lets fewer packets wait in the interface itself."""
    if not is_linux(end):
        return show_nic(end)
    return _at(end, shell_command("ethtool", "-G", _nic_name(end), "tx", _SHORT_RING))


def _cake_command(end: EndEvidence, bit_s: float) -> str:
    rate = ("bandwidth", _shaper_rate(bit_s))
    return shell_command("tc", "qdisc", "replace", "dev", _nic_name(end), "root", "cake", *rate)


def _shaper_rate(bit_s: float) -> str:
    """Return a rate a little below a measured one as tc(8) takes it, with three digits."""
    below = _BELOW * bit_s
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6)):
        if below >= factor:
            return f"{float(f'{below / factor:.3g}'):g}{unit}"
    return f"{max(1, round(below / 1e3))}kbit"


def raise_buffer_limit(end: EndEvidence, size_bytes: int, *, is_sender: bool) -> str:
    """Return the command that raises the limit for buffers that a program sets."""
    if is_linux(end):
        return _at(end, set_sysctl_command(f"net.core.{'w' if is_sender else 'r'}mem_max", size_bytes))
    if is_bsd(end):
        return _at(end, set_sysctl_command("kern.ipc.maxsockbuf", 2 * size_bytes))
    return _at(end, f"allow socket buffers of {format_bytes(size_bytes)}")


def raise_autotuning_limit(end: EndEvidence, size_bytes: int, *, is_sender: bool) -> str:
    """Return the command that raises the limit of autotuned buffers.

    On Linux a window is about half a buffer.
    """
    most = 2 * size_bytes
    if is_linux(end):
        name, default = ("tcp_wmem", 16_384) if is_sender else ("tcp_rmem", 131_072)
        return _at(end, set_sysctl_command(f"net.ipv4.{name}", f"4096 {min(default, most)} {most}"))
    if is_bsd(end):
        names = ("sendbuf_max", "autosndbufmax") if is_sender else ("recvbuf_max", "autorcvbufmax")
        return _at(end, set_sysctl_command(f"net.inet.tcp.{names[end.system.startswith('Darwin')]}", most))
    return _at(end, f"let TCP grow its buffers to {format_bytes(most)}")


def let_window_grow(end: EndEvidence, has_large_buffer: bool) -> str:
    """Return the commands that show why a receive window stays small though its kernel would let it grow.

    If the buffer is much larger than the window, a route's `window` (ip-route(8)) may be the reason.
    """
    if not is_linux(end):
        return _at(end, "let TCP grow its receive window")
    route = "a route's `window` limits it: ip route get PEER"
    sysctl = set_sysctl_command("net.ipv4.tcp_moderate_rcvbuf", 1)
    return _at(end, f"{route}; or {sysctl}" if has_large_buffer else f"{sysctl}; or {route}")


def enable_tcp_option(end: EndEvidence, option: Literal["window_scaling", "timestamps"]) -> str:
    """Return the command that enables an option of RFC 7323."""
    if is_linux(end):
        return _at(end, set_sysctl_command(f"net.ipv4.tcp_{option}", 1))
    if is_bsd(end):
        return _at(end, set_sysctl_command("net.inet.tcp.rfc1323", 1))
    return _at(end, "switch RFC 7323 on")


def enable_sack() -> str:
    """Return the command that enables selective acknowledgements; either end may have them off."""
    command = set_sysctl_command("net.ipv4.tcp_sack", 1)
    return f"at both ends: {command}; if it is on, look for a firewall on the path that strips it"


def enable_offloads(end: EndEvidence) -> str:
    """Return the command that lets the NIC segment and join packets itself."""
    return _at(end, enable_offloads_command(_nic_name(end), is_bsd=is_bsd(end)))


def negotiate(end: EndEvidence) -> str:
    """Return the command that lets the interface negotiate its speed and duplex, without the end."""
    return negotiate_command(_nic_name(end), is_bsd=is_bsd(end))


def show_processes(end: EndEvidence) -> str:
    """Return the command that lists the processes by their use of the cores."""
    if is_linux(end):
        return _at(end, "ps -eo pid,psr,pcpu,comm --sort=-pcpu | head")
    return _at(end, "top -o cpu")


def show_states(end: EndEvidence) -> str:
    """Return the command that shows whether a process is stopped, or waits for something other than a core."""
    if is_linux(end):
        return _at(end, "see what stops it (T stopped, D waits for a disk): ps -eo pid,stat,wchan:20,comm")
    return _at(end, "see what stops it: ps -axo pid,stat,wchan,comm")


def show_quota(end: EndEvidence) -> str:
    """Return the place of a CPU quota, and the command that shows it."""
    quota = "CPUQuota= of a service, --cpus of a container"
    return _at(end, f"raise or remove its CPU quota ({quota}): cat /sys/fs/cgroup/cpu.max")


def set_mtu(end: EndEvidence, mtu_bytes: int) -> str:
    """Return the command that sets the MTU of the interface."""
    return _at(end, set_mtu_command(_nic_name(end), mtu_bytes, is_linux=is_linux(end)))


def show_nic(end: EndEvidence) -> str:
    """Return the command that shows the speed and duplex of the interface."""
    return _at(end, shell_command("ethtool" if is_linux(end) else "ifconfig", _nic_name(end)))


def enlarge_receive_ring(end: EndEvidence) -> str:
    """Return the command that lets the interface hold more frames for a slow host."""
    return _at(end, shell_command("ethtool", "-G", _nic_name(end), "rx", 4_096))


def spread_packets(end: EndEvidence) -> str:
    """Return the command that gives the interface a queue for each core."""
    command = shell_command("ethtool", "-L", _nic_name(end), "combined", len(end.cores))
    return f"at the {end.end.label} end, spread packets over cores: {command}"


def show_nic_errors(end: EndEvidence) -> str:
    """Return the command that shows the error counters of the interface."""
    if not is_linux(end):
        return show_nic(end)
    return _at(end, shell_command("ip", "-s", "-s", "link", "show", _nic_name(end)))


def show_queue(end: EndEvidence) -> str:
    """Return the command that shows the queueing discipline of the interface."""
    if not is_linux(end):
        return show_nic(end)
    command = shell_command("tc", "-s", "qdisc", "show", "dev", _nic_name(end))
    qdisc = qdisc_name(None if end.nic is None else end.nic.qdisc)
    return _at(end, command if qdisc is None else f"{command} ({qdisc})")


def qdisc_name(kind: str | None) -> str | None:
    """Return the kind of a queueing discipline if it is a plain word: a remote host may send any text."""
    return kind if kind and _TOKEN.fullmatch(kind) else None


def show_pacing(end: EndEvidence) -> str:
    """Return the commands that show the pacing rates of sockets, and the settings behind them."""
    if not is_linux(end):
        return _at(end, "look for a limit of the program or the service that sends")
    queue = shell_command("tc", "qdisc", "show", "dev", _nic_name(end))
    return _at(
        end, f"ss -tni shows pacing_rate; a service's limit (SO_MAX_PACING_RATE) or fq's maxrate sets it: {queue}"
    )


def avoid_pacing(end: EndEvidence, trial: Trial | None) -> str:
    """Return the trial of a congestion control that does not pace, and the command that makes it the default.

    Without a trial it is for a connection of another program, and the command alone.
    """
    option = "" if trial is None else f"linkgauge … {trial}"
    if not is_linux(end):
        return option or _at(end, "have the program choose another congestion control")
    command = _at(end, set_sysctl_command("net.ipv4.tcp_congestion_control", "cubic"))
    return f"{option}; for every program, {command}" if option else command


def _at(end: EndEvidence, command: str) -> str:
    return f"at the {end.end.label} end: {command}"


def _nic_name(end: EndEvidence) -> str:
    return end.nic.name if end.nic else "NIC"
