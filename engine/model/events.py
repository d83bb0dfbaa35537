"""The events of a run: `Started`, then any others in order of time, then `Ended`.

Pure data; `None` is unknown, `0` is measured. The run log stores every event: the rows of the CSV, the summary and
the gauges can be computed from them again.
"""

from dataclasses import dataclass, field
from typing import Final

from .counters.path_trace import PathTrace
from .counters.samples import ProbeSample, Sample
from .counters.session_counters import SocketInfo
from .directions import Direction, End
from .expected_rate import Expectation
from .host_info import HostInfo
from .plan import Dialect, Plan, Settings
from .run_end import RunEnd
from .serialization import OMITTED_AT_DEFAULT
from .texts.warning_text import WarningKind

_MAX_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class ObservedSocket:
    """A TCP connection of another program: its addresses, as `HOST:PORT`, its user and its process.

    `program` and `pid` are None if the process was not visible. A user or a program may have any name.
    """

    local: str
    remote: str
    user: str
    program: str | None = None
    pid: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a text that no socket has: a stored one may be damaged."""
        if max(map(len, (self.local, self.remote, self.user, self.program or ""))) > _MAX_NAME:
            raise ValueError(f"a name or an address of more than {_MAX_NAME} characters")

    @property
    def remote_host(self) -> str:
        """The remote host as a peer of the command line: IPv6 in brackets."""
        return self.remote.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class Started:
    """Both ends are ready and the clocks have started: always the first event of a run.

    `idle` is the probe's sample from before payload flowed. `ip_version` (4 or 6) and `address` belong to the
    connections to the far end. `observed` is the connection of another program that was sampled: then the run is
    not a test, the plan has only the direction, and nothing is known of the far end.
    """

    started_utc: str
    peer: str
    near: HostInfo
    far: HostInfo
    plan: Plan
    expectation: Expectation
    idle: ProbeSample | None = None
    ip_version: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    address: str | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    observed: ObservedSocket | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    @property
    def unseen_end(self) -> End | None:
        """The end that is another program, which shows nothing of its host; None if both are linkgauge's."""
        if self.far.is_unseen:
            return End.FAR
        return End.NEAR if self.near.is_unseen else None

    @property
    def dialect(self) -> Dialect:
        """The protocol of the two ends."""
        if self.far.is_browser:
            return Dialect.BROWSER
        if self.far.is_quality_client:
            return Dialect.NETWORKQUALITY
        if self.observed is not None:
            return Dialect.OBSERVED
        if self.far.speed_protocol is not None:
            return Dialect(self.far.speed_protocol.value)
        return Dialect.LINKGAUGE if self.unseen_end is None else Dialect.IPERF3


@dataclass(frozen=True, slots=True)
class Opened:
    """A session is open at one end, with the socket options that the kernel granted."""

    facts: SocketInfo


@dataclass(frozen=True, slots=True)
class Changed:
    """The user changed a setting: all later samples are taken under the new settings."""

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
class SessionTotal:
    """One session over the measured time, as counted by an end without samples; None is unknown.

    `bytes` are the payload that it received or sent, over `span_ns` of its own clock. `retransmits` are segments of
    its TCP socket if it sends. The others are of UDP. A receiver has the datagrams that were `received` (repeated
    ones included) and `lost`, and the jitter at the end. A sender has those that were `sent`, and of them those
    `lost` behind the last one that arrived.
    """

    direction: Direction
    session: int
    bytes: int
    span_ns: int
    retransmits: int | None = None
    sent: int | None = None
    received: int | None = None
    lost: int | None = None
    jitter_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of an end that sends no samples, without the warm-up; it reports them once, after the last sample.

    They are the result of the directions that this end receives: the samples in their place have only the sender's
    counts (`Sample.is_from_sender`). `cpu_ns` is the CPU time of its process over `span_ns`.
    """

    end: End
    span_ns: int
    sessions: tuple[SessionTotal, ...]
    cpu_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PathTraced:
    """An end has traced the path to the other one, up to the end of the run."""

    trace: PathTrace


@dataclass(frozen=True, slots=True)
class Warned:
    """A caution about the figures; the run continues. Runs that an earlier version has stored have no kind."""

    text: str
    kind: WarningKind | None = field(default=None, metadata=OMITTED_AT_DEFAULT)


@dataclass(frozen=True, slots=True)
class Ended:
    """The run is over: always its last event."""

    end: RunEnd


Event = Started | Opened | Changed | Sampled | Totals | PathTraced | Warned | Ended
