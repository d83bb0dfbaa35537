"""One look at the connections of this host: rates, processes, findings. Values for the command line and the screen.

Pure. Base units: bytes, nanoseconds, bits per second, shares of 0 to 1; `None` is unknown, `0` is measured.
`Direction.OUT` is what this host sends, `IN` what it receives. Text of other programs is cleaned.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple

from ..engine.host.sockets.socket_message import BbrState, SocketAddress
from ..engine.model.counters.samples import SessionSample
from ..engine.model.directions import Direction
from ..engine.model.events import Opened, Sampled, Started
from ..engine.model.expected_rate import ExpectedRate
from ..engine.model.host_info import NicInfo
from ..engine.results.run_totals import OpenSockets
from ..engine.results.sums.sample_sum import SampleSum
from ..presets.diagnosis.finding import Finding
from ..presets.diagnosis.period_sums import PeriodSums
from ..presets.diagnosis.window_bounds import FlowWindows


class ConnectionKey(NamedTuple):
    """The identity of a socket: its addresses, and the cookie that the kernel gives no second one."""

    protocol: Literal["tcp", "udp"]
    local: SocketAddress
    remote: SocketAddress
    cookie: int


@dataclass(frozen=True, slots=True)
class Owner:
    """The process of a socket, and how many `others` have it open as well. `name` and `user` are cleaned."""

    pid: int
    name: str
    user: str
    others: int = 0


class Status(StrEnum):
    """The result for a connection. Only `limited` and `unknown` have findings."""

    NEW = "new"  # measured for less than half a second
    IDLE = "idle"  # no payload in the last seconds
    APP_LIMITED = "app-limited"  # the sending program gives less than TCP could send
    HEALTHY = "healthy"  # it reaches the expected rate, or all that the path carries
    LIMITED = "limited"  # the first finding is the reason
    UNKNOWN = "unknown"  # this end does not show the reason
    ENDED = "ended"  # it ended in this interval


@dataclass(frozen=True, slots=True)
class FlowFigures:
    """One direction of a connection.

    `bit_s` is the goodput of the last interval: payload that the other end's kernel acknowledged, or that arrived.
    `bytes` is the payload since it was first seen, `rates` the goodput of the last intervals, at most 120, the
    oldest first. `sample` has the newest TCP counters (counters/samples.py); only a sender has RTT and windows.
    The shares are means over the last three seconds: with data to send, limited by the other end's window, limited
    by the send buffer, sent again; and of the receive buffer, not read by the program. `retransmits` are segments
    in these seconds.
    """

    direction: Direction
    bit_s: float = 0.0
    bytes: int = 0
    rates: tuple[float, ...] = ()
    sample: SessionSample | None = None
    busy: float | None = None
    rwnd_limited: float | None = None
    sndbuf_limited: float | None = None
    retransmitted: float | None = None
    retransmits: int | None = None
    unread: float | None = None


@dataclass(frozen=True, slots=True)
class ConnectionEvents:
    """An interval of a connection in its main direction, as the events of a run whose far end is unknown.

    The first two are the same in each interval, but for what is known of the process and of the socket; the time in
    `started` is empty. The samples count from the first look at the connection.
    """

    started: Started
    opened: Opened
    samples: tuple[Sampled, ...] = ()

    def period_sums(self, sums: SampleSum) -> PeriodSums:
        """Return sums of its samples as the rules read them."""
        sockets = OpenSockets()
        sockets.add_session(self.opened)
        return PeriodSums(self.started, self.started.plan.settings, sums, sockets)


@dataclass(frozen=True, slots=True)
class ObservedConnection:
    """A TCP connection that this program did not make.

    `owner` is None if this user may not see the process; `user` is always known. `expected` is the rate that its
    interface allows in its main direction, and `windows` and `events` are of that direction. `reason` is a sentence
    about `status`: the first finding's text, or why there is none.
    """

    key: ConnectionKey
    state: str
    user: str
    out: FlowFigures
    in_: FlowFigures
    status: Status
    reason: str
    findings: tuple[Finding, ...] = ()
    owner: Owner | None = None
    congestion: str | None = None
    bbr: BbrState | None = None
    nic: NicInfo | None = None
    expected: ExpectedRate | None = None
    observed_ns: int = 0
    windows: tuple[FlowWindows, ...] = ()
    events: ConnectionEvents | None = None

    @property
    def direction(self) -> Direction:
        """The main direction: the one with more goodput, or with more payload so far."""
        out, in_ = self.out, self.in_
        return Direction.IN if (in_.bit_s, in_.bytes) > (out.bit_s, out.bytes) else Direction.OUT

    @property
    def main(self) -> FlowFigures:
        """The figures of the main direction."""
        return self.out if self.direction is Direction.OUT else self.in_

    @property
    def bit_s(self) -> float:
        """The goodput of the main direction."""
        return self.main.bit_s


@dataclass(frozen=True, slots=True)
class DatagramSocket:
    """A UDP socket whose queue holds something, or that dropped something since it was first seen.

    The kernel counts no payload of UDP. `dropped` are datagrams for which its receive buffer had no room since the
    first look, `dropped_total` since it was opened.
    """

    key: ConnectionKey
    user: str
    receive_queue_bytes: int
    send_queue_bytes: int
    dropped: int
    dropped_total: int
    buffer_bytes: int
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class InterfaceRates:
    """All traffic of an interface that a shown connection uses, headers included (/proc/net/dev)."""

    name: str
    out_bit_s: float
    in_bit_s: float
    nic: NicInfo | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """All TCP connections that match, shown or not.

    `sockets` were in the last dump, and `moving` of them moved payload since the one before. `ended` connections
    ended in the interval; `short_lived` of them began in it as well, with `short_lived_bytes` of payload both ways.
    `unowned` shown rows have a process that this user may not see.
    """

    sockets: int = 0
    moving: int = 0
    out_bit_s: float = 0.0
    in_bit_s: float = 0.0
    ended: int = 0
    short_lived: int = 0
    short_lived_bytes: int = 0
    unowned: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of an interval: `connections` by goodput, the fastest first, at most as many as were asked for.

    `notes` are sentences about what is not visible, and why. `cost_ns` is the CPU time of this process for it.
    """

    started_utc: str
    elapsed_ns: int
    interval_ns: int
    connections: tuple[ObservedConnection, ...] = ()
    datagrams: tuple[DatagramSocket, ...] = ()
    interfaces: tuple[InterfaceRates, ...] = ()
    totals: Totals = Totals()
    notes: tuple[str, ...] = ()
    cost_ns: int = 0
