"""The events of a run: `Started`, then any others in order of time, then `Ended`; and their sentences.

Pure data; `None` is unknown, `0` is measured. The run log stores every event, and all else (the rows of the CSV,
the summary, the gauges) can be computed from them again. It stores the sentences of warnings and of a run's end as
text, so that the engine composes them: `WarningText.PROBE_LOST.format(reason=...)`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from .host_info import HostInfo
from .plan import PerDirection, Plan, Settings
from .samples import ProbeSample, Sample
from .socket_info import SocketInfo

# Bytes that were delayed and arrive at once exceed the rate of a wire a little for a moment.
_EXCESS: Final = 1.2


@dataclass(frozen=True, slots=True)
class ExpectedRate:
    """A rate to expect of a link, and its source.

    For transactions, `transactions_s` is the expected rate and `bit_s` the payload that they carry. `most_bit_s` is
    the capacity of the wire, where it can be computed.
    """

    bit_s: int
    basis: Literal["documented", "computed"]
    source: str
    transactions_s: float | None = None
    most_bit_s: int | None = None

    def is_exceeded_by(self, bit_s: float | None) -> bool:
        """Return whether a rate is more than such a link can carry: this must be another link."""
        return bit_s is not None and self.most_bit_s is not None and bit_s > _EXCESS * self.most_bit_s


@dataclass(frozen=True, slots=True)
class Expectation(PerDirection[ExpectedRate | None]):
    """The rates to expect of each direction and of both together; None where there is no expectation."""

    out: ExpectedRate | None = None
    in_: ExpectedRate | None = None
    total: ExpectedRate | None = None


class Reason(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"  # its duration was up
    STOPPED = "stopped"  # the person stopped it
    INTERRUPTED = "interrupted"  # a signal stopped the near end
    PEER_STOPPED = "peer_stopped"  # the far end stopped it
    PEER_LOST = "peer_lost"  # the far end vanished
    SESSION_LOST = "session_lost"  # a data connection broke
    WORKER_LOST = "worker_lost"  # a worker process ended by itself
    FAILED = "failed"  # anything else that broke

    @property
    def is_regular(self) -> bool:
        """Whether the run ended as the person wanted."""
        return self in {Reason.COMPLETED, Reason.STOPPED}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: the reason for programs, the detail for people."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Started:
    """Both ends are ready and the clocks have started: always the first event of a run.

    `idle` is the probe's sample from before payload flowed.
    """

    started_utc: str
    peer: str
    near: HostInfo
    far: HostInfo
    plan: Plan
    expectation: Expectation
    idle: ProbeSample | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session is open at one end, with the socket options that the kernel granted."""

    facts: SocketInfo


@dataclass(frozen=True, slots=True)
class Changed:
    """The person changed a setting: all later samples are taken under the new settings."""

    elapsed_ns: int
    settings: Settings
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class Sampled:
    """One end's sample, the settings it was taken under, and whether it belongs to a warm-up."""

    sample: Sample
    settings: Settings
    warmup: bool


@dataclass(frozen=True, slots=True)
class Warned:
    """A caution about the figures; the run continues."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over: always its last event."""

    end: RunEnd


Event = Started | Opened | Changed | Sampled | Warned | Ended


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
