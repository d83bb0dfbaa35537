"""The sentences of warnings and of a run's end, each under its code.

The engine composes them because the run log and the JSON document store them as text. Each member is a
template: `WarningText.PROBE_LOST.format(reason=...)`. Its name is the code.
"""

from enum import StrEnum


class WarningText(StrEnum):
    """Cautions about the figures of a running test."""

    WINDOW_REDUCED = (
        "window: the {end} end's kernel grants {granted} of {requested} bytes as {buffer} buffer; "
        "on Linux raise the limit there: sysctl -w {limit}={requested}"
    )
    MSS_REDUCED = (
        "MSS: the {end} end sends segments of {mss} bytes where the MTU ({mtus}) allows {allowed}; "
        "look for a tunnel, a route with an MTU of its own, or a firewall that clamps the MSS on the way"
    )
    MTU_MISMATCH = (
        "MTU: {near} has {near_mtu}, {far} has {far_mtu}; "
        "without a router between them, the larger packets of one are lost at the other: set both alike"
    )
    DUPLEX_MISMATCH = (
        "duplex: {near} is {near_duplex}, {far} is {far_duplex}; "
        "on one cable that loses packets under load: let both negotiate, or set both alike"
    )
    OFFLOADS_OFF = "offloads: {states}; what is off costs processor time for each packet: {commands}"
    DATA_THROUGH_SSH = (
        "through ssh: ssh carries the payload in its own connection, encrypted; this is what ssh lets through and "
        "not what the link carries, and windows, RTT, segments and retransmits are those of connections within the "
        "hosts"
    )
    RATE_UNSETTLED = (
        "the rate had not settled {seconds:g} s after the settings came; what follows is measured all the same"
    )
    FAR_SILENT = "the far end has said nothing for {seconds} s, and payload still moves; its samples may come late"
    PAYLOAD_STALLED = "no payload has moved for {seconds} s, and the far end still answers"
    PROBE_LOST = "the probe was lost: {reason}; latency under load is that of the time before"
    END_UNCONFIRMED = "the far end did not confirm the end of the run; its last samples may be missing"
    CLOCKS_DIFFER = (
        "clocks: the far end's counted {far} of a run that took {near} here; "
        "what the far end received is a rate by its own clock"
    )
    BYTES_IMPLAUSIBLE = (
        "bytes: the far end says that it received {received}, and its kernel acknowledged {acknowledged}; "
        "its figures cannot be right"
    )


class EndText(StrEnum):
    """Details of the end of a run: the text of `RunEnd.detail`."""

    DURATION_UP = "its duration is up"
    STOPPED_HERE = "stopped at the near end"
    RUN_CLOSED = "the run was closed"
    RUN_ABANDONED = "the run was abandoned"
    LOG_CUT_OFF = "the run was cut off before it told why"
    SESSION_LOST = "session {session} {direction} was lost: {reason}"
    NEAR_WORKER_LOST = "at the near end {reason}"
    FAR_WORKER_LOST = "at the far end {reason}"
    FAR_GONE = "the far end is gone: {error}"
    FAR_SILENT = "the far end has been silent for {seconds:.0f} s"
    FAR_NOT_UNDERSTOOD = "the far end cannot be understood: {error}"
    FAR_SHUTDOWN = "the far end is shutting down"
    NEAR_GONE = "the near end is gone: {error}"
    NEAR_SILENT = "the near end has been silent for {seconds:.0f} s"
    NEAR_NOT_READING = "the near end does not read its samples"
    START_OVERDUE = "the near end did not start the run in time"
    STOP_OVERDUE = "the near end did not stop when the run's duration was up"
