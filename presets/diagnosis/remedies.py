"""Remedies: the command to type at an end, for the operating system of that end."""

from typing import Final

from ...engine.model.plan import MIB, Mode, sender_of
from ..number_text import format_bytes
from .evidence import EndEvidence, Evidence

_MIN_WINDOW_BYTES: Final = 65_536
_KIB: Final = 1_024


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


def format_window(size_bytes: int) -> str:
    """Return a size as the command line takes it: `512K`, `4M`."""
    return f"{size_bytes // MIB}M" if size_bytes % MIB == 0 else f"{size_bytes // _KIB}K"


def cheaper_mode(evidence: Evidence, end: EndEvidence | None = None) -> str:
    """Return the mode that saves CPU time, as an option; empty if the run has it already.

    With `end`, it is a mode that helps this end: sendfile saves the sender's copy, discard the receiver's.
    """
    if not evidence.workload.is_bulk or evidence.mode is Mode.DISCARD:
        return ""
    senders = {sender_of(flow.direction, evidence.workload) for flow in evidence.flows}
    if evidence.mode is Mode.COPY and (end is None or end.end in senders):
        return "--mode sendfile"
    return "--mode discard" if end is None or end.end.other in senders else ""


def raise_buffer_limit(end: EndEvidence, size_bytes: int, *, is_sender: bool) -> str:
    """Return the command that raises the limit for buffers that a program sets."""
    if is_linux(end):
        return f"at the {end.end.label} end: sysctl -w net.core.{'w' if is_sender else 'r'}mem_max={size_bytes}"
    if is_bsd(end):
        return f"at the {end.end.label} end: sysctl -w kern.ipc.maxsockbuf={2 * size_bytes}"
    return f"at the {end.end.label} end: allow socket buffers of {format_bytes(size_bytes)}"


def raise_autotuning_limit(end: EndEvidence, size_bytes: int, *, is_sender: bool) -> str:
    """Return the command that raises the limit of autotuned buffers.

    On Linux a window is about half a buffer.
    """
    if is_linux(end):
        name, default = ("tcp_wmem", 16_384) if is_sender else ("tcp_rmem", 131_072)
        most = 2 * size_bytes
        return f"at the {end.end.label} end: sysctl -w net.ipv4.{name}='4096 {min(default, most)} {most}'"
    if is_bsd(end):
        names = ("sendbuf_max", "autosndbufmax") if is_sender else ("recvbuf_max", "autorcvbufmax")
        name = names[end.system.startswith("Darwin")]
        return f"at the {end.end.label} end: sysctl -w net.inet.tcp.{name}={2 * size_bytes}"
    return f"at the {end.end.label} end: let TCP grow its buffers to {format_bytes(2 * size_bytes)}"


def enable_tcp_option(end: EndEvidence, option: str) -> str:
    """Return the command that enables an option of RFC 7323: `window_scaling` or `timestamps`."""
    if is_linux(end):
        return f"at the {end.end.label} end: sysctl -w net.ipv4.tcp_{option}=1"
    if is_bsd(end):
        return f"at the {end.end.label} end: sysctl -w net.inet.tcp.rfc1323=1"
    return f"at the {end.end.label} end: switch RFC 7323 on"


def enable_offloads(end: EndEvidence) -> str:
    """Return the command that lets the NIC segment and join packets itself."""
    name = _nic_name(end)
    if is_linux(end) or not is_bsd(end):
        return f"at the {end.end.label} end: ethtool -K {name} tso on gso on gro on"
    return f"at the {end.end.label} end: ifconfig {name} tso lro"


def show_processes(end: EndEvidence) -> str:
    """Return the command that lists the processes by their use of the cores."""
    if is_linux(end):
        return f"at the {end.end.label} end: ps -eo pid,psr,pcpu,comm --sort=-pcpu | head"
    return f"at the {end.end.label} end: top -o cpu"


def set_mtu(end: EndEvidence, mtu_bytes: int) -> str:
    """Return the command that sets the MTU of the interface."""
    name = _nic_name(end)
    if is_linux(end):
        return f"at the {end.end.label} end: ip link set {name} mtu {mtu_bytes}"
    return f"at the {end.end.label} end: ifconfig {name} mtu {mtu_bytes}"


def show_nic(end: EndEvidence) -> str:
    """Return the command that shows the speed and duplex of the interface."""
    return f"at the {end.end.label} end: {'ethtool' if is_linux(end) else 'ifconfig'} {_nic_name(end)}"


def show_nic_errors(end: EndEvidence) -> str:
    """Return the command that shows the error counters of the interface."""
    return f"at the {end.end.label} end: ip -s -s link show {_nic_name(end)}" if is_linux(end) else show_nic(end)


def show_queue(end: EndEvidence) -> str:
    """Return the command that shows the queueing discipline of the interface."""
    if not is_linux(end):
        return show_nic(end)
    qdisc = f" ({end.nic.qdisc})" if end.nic is not None and end.nic.qdisc else ""
    return f"at the {end.end.label} end: tc -s qdisc show dev {_nic_name(end)}{qdisc}"


def _nic_name(end: EndEvidence) -> str:
    return end.nic.name if end.nic else "NIC"
