"""The events of a run: `Started`, then any others in order of time, then `Ended`; and their sentences.

Pure data; `None` is unknown, `0` is measured. The run log stores every event: the rows of the CSV, the summary and
the gauges can be computed from them again. It stores the sentences of warnings and of a run's end as text, so the
engine composes them: `WarningText.PROBE_LOST.format(reason=...)`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
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

    `idle` is the probe's sample from before payload flowed. `ip_version` (4 or 6) and `address` are those of the
    connections to the far end. `observed` is the connection of another program that the samples are of: then it is
    no test, the plan has only the direction, and nothing is known of the far end.
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
        """The end that sends no samples: iperf3, a browser or another program; None if both are linkgauge's."""
        if self.far.is_unseen:
            return End.FAR
        return End.NEAR if self.near.is_unseen else None

    @property
    def dialect(self) -> Dialect:
        """The protocol of the two ends."""
        if self.far.is_browser:
            return Dialect.BROWSER
        if self.observed is not None:
            return Dialect.OBSERVED
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


class WarningKind(StrEnum):
    """What a warning means to the diagnosis. Its text does not say: the other end can send any text."""

    DATA_THROUGH_SSH = "data_through_ssh"
    OTHER_TRAFFIC = "other_traffic"
    OTHER = "other"


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
    IPERF3_FIXED = "{reason}; this test continues with its settings"
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
