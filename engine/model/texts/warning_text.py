"""The sentences of warnings, cautions about the figures of a running test, and their kinds for the diagnosis.

The run log stores a warning as text, so the engine composes it: `WarningText.PROBE_LOST.format(reason=...)`.
The sentences about a run's end are in `model/run_end`.
"""

from enum import StrEnum

from ..plan import SECOND_NS


class WarningKind(StrEnum):
    """What a warning means to the diagnosis. Its text does not say: the other end can send any text."""

    DATA_THROUGH_SSH = "data_through_ssh"
    OTHER_TRAFFIC = "other_traffic"
    OTHER = "other"


class WarningText(StrEnum):
    """Cautions about the figures of a running test."""

    WINDOW_REDUCED = (
        "window: the {end} kernel grants {granted} of the requested {requested} as {buffer} buffer; "
        "on Linux raise its limit there: sysctl -w {limit}={value}"
    )
    SENDS_REGARDLESS = (
        "rate max: the remote end's version sends as fast as it can and reports seldom, so that its datagrams or "
        "those that it receives may be lost in sockets; update linkgauge there"
    )
    MODE_DENIED = (
        "mode {mode}: the {end} system does not allow it to this process, as in some containers; payload is copied "
        "there instead"
    )
    MSS_REDUCED = (
        "MSS: the {end} host sends segments of {mss} bytes, but the MTU ({mtus}) allows {allowed}; "
        "look for a tunnel, a route with its own MTU, or a firewall on the path that clamps the MSS"
    )
    MTU_MISMATCH = (
        "MTU: {near} has {near_mtu}, {far} has {far_mtu}; "
        "without a router between them, large packets get lost: set both to the same MTU"
    )
    DUPLEX_MISMATCH = (
        "duplex: {near} is {near_duplex}, {far} is {far_duplex}; "
        "on one cable this loses packets under load: let both negotiate, or set both to the same duplex"
    )
    OFFLOADS_OFF = "offloads: {states}; without them each packet costs more CPU time: {commands}"
    DATA_THROUGH_SSH = (
        "through ssh: ssh encrypts the payload and carries it in its own connection, so this is the throughput of "
        "ssh, not of the link; windows, RTT, segments and retransmits are those of connections inside the hosts"
    )
    RATE_UNSETTLED = (
        "the rate was not steady {seconds:g} s after the settings came into force; the measurement started anyway"
    )
    FAR_SILENT = (
        "the remote host has sent no message for {seconds} s, but payload still moves; its samples may be late"
    )
    PAYLOAD_STALLED = "no payload has moved for {seconds} s, but the remote host still answers"
    PROBE_LOST = "the latency probe was lost: {reason}; latency under load is known up to here only"
    DATAGRAM_PROBE_UNOPENED = (
        "latency is measured over TCP alone, and not by direction, because UDP does not get through: {reason}"
    )
    DATAGRAM_PROBE_LOST = (
        "the UDP probes of latency get no echo any more: {reason}; what they measure is known up to here only"
    )
    PATH_UNTRACED = "the hops of the path are unknown: {reason}"
    OTHER_TESTS = "{kind} on this endpoint: {facts}"
    OTHER_TRAFFIC = "other traffic on {nic}: {facts}"
    END_UNCONFIRMED = "the remote host did not confirm the end of the test; its last samples may be missing"
    PAGE_HIDDEN = "the page was in the background for a time; browsers slow such pages down, sending above all"
    IPERF3_RESULTS_MISSING = (
        "the iperf3 server sent no results ({reason}): what it received is unknown, and the rate of out is that "
        "which the local kernel had acknowledged"
    )
    IPERF3_WARMUP = "warm-up: iperf3 leaves out whole seconds at the start of a test, here {seconds}"
    SETTINGS_FIXED = "{reason}; this test continues with its settings"
    NDT7_CUT = "duration: a test of NDT7 lasts {seconds} s at the most, and so does this one"
    CLOCKS_DIFFER = (
        "clocks: the test took {near} by the local clock and {far} by the remote one; "
        "rates received by the remote host are by its own clock"
    )
    BYTES_IMPLAUSIBLE = (
        "bytes: the remote host reports {received} received, but its kernel acknowledged {acknowledged}; "
        "its figures cannot be right"
    )
    DATAGRAMS_IMPLAUSIBLE = (
        "datagrams: the {receiver} host reports {received} different ones received, but the {sender} one {sent} "
        "sent; one of these figures cannot be right"
    )


def clocks_differ(*, near_ns: int, far_ns: int) -> str:
    """Return the warning that the clocks of both ends count the same test differently."""
    return WarningText.CLOCKS_DIFFER.format(near=seconds_text(near_ns), far=seconds_text(far_ns))


def bytes_implausible(*, received: int, acknowledged: int) -> str:
    """Return the warning that the far end reports more bytes than its kernel acknowledged."""
    return WarningText.BYTES_IMPLAUSIBLE.format(
        received=f"{received / 1e9:.1f} GB", acknowledged=f"{acknowledged / 1e9:.1f} GB"
    )


def seconds_text(ns: int) -> str:
    """Return a time for a sentence of the engine: `10.0 s`."""
    return f"{ns / SECOND_NS:.1f} s"


def rate_text(bit_s: float) -> str:
    """Return a rate for a sentence of the engine: `94.2 Mb/s`, `9.41 Mb/s`."""
    megabit_s = bit_s / 1e6
    return f"{megabit_s:.1f} Mb/s" if megabit_s >= 10 else f"{megabit_s:.3g} Mb/s"
