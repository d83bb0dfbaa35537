"""The events of a run: `Started`, then any number of the others in order of time, then `Ended`.

Pure data; `None` is unknown, `0` is measured. The run log stores every event, and all else (the rows of the CSV,
the summary, the gauges) can be computed from them again.
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
