"""What the engine measures and says: samples, events and the summary of a run.

Pure data. `None` is unknown, `0` is measured. The events of a run are one stream; the run log stores
every one of them, and everything else (rows of the CSV, the summary, the gauges) can be made from them again.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from .host_info import HostInfo
from .plan import PerDirection, Plan, Settings
from .samples import ProbeSample, Sample
from .socket_info import SocketInfo

# What was held up somewhere and comes at once makes a rate a little more than a wire's for a moment.
_BEYOND: Final = 1.2


@dataclass(frozen=True, slots=True)
class ExpectedRate:
    """A rate to expect of a link, and where that comes from.

    Where it is one of transactions, `transactions_s` is what counts, and `bit_s` the payload that they carry.
    `most_bit_s` is what the wire of such a link can carry, where it has one that can be computed.
    """

    bit_s: int
    basis: Literal["documented", "computed"]
    source: str
    transactions_s: float | None = None
    most_bit_s: int | None = None

    def is_exceeded_by(self, bit_s: float | None) -> bool:
        """Return whether no such link carries a rate: it is another link, then."""
        return bit_s is not None and self.most_bit_s is not None and bit_s > _BEYOND * self.most_bit_s


@dataclass(frozen=True, slots=True)
class Expectation(PerDirection[ExpectedRate | None]):
    """The rates to expect of each direction and of both together; None where nothing can be expected."""

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
        """Whether the run went as the person wanted it to."""
        return self in {Reason.COMPLETED, Reason.STOPPED}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run ended: the reason for programs, the detail for people."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Started:
    """Both ends are ready and the clocks have started. Always a run's first event.

    `idle` is what the probe found before payload flowed.
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
    """A session is open at one end, with what the kernel granted it."""

    facts: SocketInfo


@dataclass(frozen=True, slots=True)
class Changed:
    """The person changed a setting; from here on samples are taken under the new ones."""

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
    """Something a person should know about the figures; the run goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Always a run's last event."""

    end: RunEnd


Event = Started | Opened | Changed | Sampled | Warned | Ended
