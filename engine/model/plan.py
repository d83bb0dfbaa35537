"""The plan of a run, frozen and validated: everything that the engine needs to carry it out.

Pure. Base units inside: bytes, nanoseconds, bits per second. Every limit on a plan is
here, so that the command line, the app and the far end refuse the same things in the same words.
"""

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, Self

from .directions import Direction
from .errors import PlanError
from .ip_address import check_zone
from .serialization import OMITTED_AT_DEFAULT
from .workload import MAX_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES, Mode, Workload, all_workloads

SECOND_NS: Final = 1_000_000_000
MIB: Final = 1_048_576
MAX_SESSIONS: Final = 128
MAX_BROWSER_SESSIONS: Final = 8  # more cost a phone's browser memory, and no link needs them
PROBE_SESSION: Final = 0  # the probe's number, below those of the sessions that carry payload
FLOW_SESSION: Final = 252  # a flow of a test of many flows, whose number is the generation
PATH_PROBE_SESSION: Final = 253  # the probes of the path's hops, which both ends send
HANDSHAKE_PROBE_SESSION: Final = 254  # the two probes of a responsiveness test, above those of the others
DATAGRAM_PROBE_SESSION: Final = 255
FURTHER_PROBE_SESSIONS: Final = (HANDSHAKE_PROBE_SESSION, DATAGRAM_PROBE_SESSION)
PROBE_SESSIONS: Final = (PROBE_SESSION, FLOW_SESSION, PATH_PROBE_SESSION, *FURTHER_PROBE_SESSIONS)
PROBE_PACE_NS: Final = 10_000_000
"""The time from one request of the probe to the next, while each is answered sooner than that."""
MIN_WINDOW_BYTES: Final = 2_048  # SOCK_MIN_RCVBUF and SOCK_MIN_SNDBUF of socket(7) are a little above it
MAX_WINDOW_BYTES: Final = 1 << 30  # TCP's largest window: 65,535 << 14 (RFC 7323, section 2.3)
MAX_DURATION_NS: Final = 86_400 * SECOND_NS
MIN_DURATION_NS: Final = SECOND_NS // 2
MAX_WAIT_NS: Final = 86_400 * SECOND_NS
MIN_INTERVAL_NS: Final = 50_000_000  # /proc/stat counts in steps of 10 ms
MAX_INTERVAL_NS: Final = 10 * SECOND_NS
MAX_PHASE_INTERVAL_NS: Final = SECOND_NS * 2 // 5  # phases are judged by means over so long
_MAX_WARMUP_NS: Final = 30 * SECOND_NS  # a rate that has not settled by then never will
MIN_BLOCK_BYTES: Final = 64
MAX_BLOCK_BYTES: Final = 16 * MIB
MIN_MSS_BYTES: Final = 88  # TCP_MIN_MSS of Linux
MAX_MSS_BYTES: Final = 32_767  # MAX_TCP_WINDOW of Linux
MAX_WORKERS: Final = 64
MAX_CORES: Final = 1_024
MAX_REQUEST_BYTES: Final = 16 * MIB
MAX_RESPONSE_BYTES: Final = 1 << 30
MAX_BURST: Final = 1_024
_SLOW_DATAGRAMS_S: Final = 10
_MIN_DATAGRAMS: Final = 2  # of a session: one alone does not show a rate
MIN_RATE_BIT_S: Final = 1_000
MAX_RATE_BIT_S: Final = 10**13
MAX_BYTES_LIMIT: Final = 900 << 50
MAX_PORT: Final = 65_535
DEFAULT_LOSS_GOAL_PPM: Final = 1_000
DEFAULT_INTERVAL_NS: Final = SECOND_NS // 4
_CONGESTION_NAME: Final = re.compile(r"[a-z0-9_]{1,15}", re.ASCII)  # TCP_CA_NAME_MAX is 16, tcp(7)


class Dialect(StrEnum):
    """The protocol between the two ends: linkgauge's own, or that of another program at the far end."""

    LINKGAUGE = "linkgauge"
    IPERF3 = "iperf3"
    BROWSER = "browser"
    NETWORKQUALITY = "networkquality"
    OBSERVED = "observed"  # a connection of another program, whose protocol is its own
    LIBRESPEED = "librespeed"
    NDT7 = "ndt7"

    @property
    def is_measured_here(self) -> bool:
        """Whether this end's kernel has the figures of both directions: the other program may be any."""
        return self not in {Dialect.LINKGAUGE, Dialect.IPERF3}


class ResponsivenessTest(StrEnum):
    """How a run measures latency under load.

    `phases` loads the link out, then in, then both ways, each until rate and latency are steady. `one-phase` loads
    it in the plan's direction alone, until they are. `alongside` measures during the load that the plan describes.
    """

    PHASES = "phases"
    ONE_PHASE = "one-phase"
    ALONGSIDE = "alongside"

    @property
    def has_phases(self) -> bool:
        """Whether the near end changes the settings by itself, and ends the run once all phases are over."""
        return self is not ResponsivenessTest.ALONGSIDE


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that can change during a run.

    `sessions` counts each direction: a duplex run of 5 has five TCP connections out and five in, as the
    AIX tables count them (Table 2, note 1). `window_bytes` None leaves the buffers to the kernel.

    The others are for datagrams. `rate_bit_s` is the UDP payload that the sessions of a direction send together;
    None means as fast as the receiver takes it, and with `floods` as fast as they can. With `searches_rate` a
    search for the capacity starts at it (RFC 9097). Neither goes above `search_max_bit_s`. `datagram_bytes` is the
    UDP payload of a datagram; None fills the path's MTU.
    """

    direction: Direction = Direction.OUT
    sessions: int = 1
    window_bytes: int | None = None
    rate_bit_s: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    datagram_bytes: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    searches_rate: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    search_max_bit_s: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    floods: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        if not 1 <= self.sessions <= MAX_SESSIONS:
            raise PlanError("sessions", self.sessions, f"give 1 to {MAX_SESSIONS}")
        window = self.window_bytes
        if window is not None and not MIN_WINDOW_BYTES <= window <= MAX_WINDOW_BYTES:
            raise PlanError("window", format_size(window), "give auto, or 2K to 1G")
        datagram = self.datagram_bytes
        for rate in (self.rate_bit_s, self.search_max_bit_s):
            if rate is not None and not MIN_RATE_BIT_S <= rate <= MAX_RATE_BIT_S:
                raise PlanError("rate", rate, "give 1K to 10T bits a second")
        if datagram is not None and not MIN_DATAGRAM_BYTES <= datagram <= MAX_DATAGRAM_BYTES:
            remedy = f"give auto, or {MIN_DATAGRAM_BYTES} to {MAX_DATAGRAM_BYTES} bytes"
            raise PlanError("datagram", datagram, remedy)
        if self.searches_rate and (self.sessions > 1 or self.rate_bit_s is None):
            raise PlanError("rate", "search", "a search has one session and a rate to start at; give --sessions 1")
        if self.floods and self.rate_bit_s is not None:
            raise PlanError("rate", self.rate_bit_s, "a flood has no rate; give flood or a number")

    @property
    def follows_receiver(self) -> bool:
        """Whether datagrams are sent as fast as their receiver takes them."""
        return self.rate_bit_s is None and not self.floods

    @property
    def connections(self) -> int:
        """The number of data connections in all directions."""
        return self.sessions * len(self.direction.flows)

    @property
    def slow_datagram_bytes(self) -> int | None:
        """The largest datagram of which each session sends several a second; None without a rate.

        At 32 kb/s in 16 sessions, datagrams of 1,472 bytes would be 6 s apart.
        """
        if self.rate_bit_s is None or self.searches_rate:
            return None
        return max(MIN_DATAGRAM_BYTES, self.rate_bit_s // (8 * self.sessions * _SLOW_DATAGRAMS_S))

    def with_changes(
        self,
        *,
        direction: Direction | None = None,
        sessions: int | None = None,
        window_bytes: int | Literal["auto"] | None = None,
        rate_bit_s: int | Literal["max", "flood"] | None = None,
        datagram_bytes: int | Literal["auto"] | None = None,
    ) -> Self:
        """Return these settings with the changes that are not None.

        Window and datagram `"auto"` leave the size to the kernel, rate `"max"` and `"flood"` remove the rate. A new
        rate ends a search.
        """
        window = self.window_bytes if window_bytes is None else window_bytes
        rate = self.rate_bit_s if rate_bit_s is None else rate_bit_s
        datagram = self.datagram_bytes if datagram_bytes is None else datagram_bytes
        return replace(
            self,
            direction=self.direction if direction is None else direction,
            sessions=self.sessions if sessions is None else sessions,
            window_bytes=None if window == "auto" else window,
            rate_bit_s=None if isinstance(rate, str) else rate,
            floods=self.floods if rate_bit_s is None else rate == "flood",
            datagram_bytes=None if datagram == "auto" else datagram,
            searches_rate=self.searches_rate and rate_bit_s is None,
        )


DEFAULT_SETTINGS: Final = Settings()


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The socket options of every data connection, at both ends; None leaves an option to the kernel.

    `congestion` names a congestion control, `mss_bytes` is TCP_MAXSEG, `nodelay` TCP_NODELAY (tcp(7)); `dscp` is
    the six bits of RFC 2474. `source` and `device` bind the near end's side to an address and an interface.
    """

    congestion: str | None = None
    mss_bytes: int | None = None
    dscp: int | None = None
    nodelay: bool = False
    source: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        name = self.congestion
        if name is not None and not _CONGESTION_NAME.fullmatch(name):
            raise PlanError("congestion control", repr(name), "give a name such as cubic, reno or bbr (tcp(7))")
        if self.mss_bytes is not None and not MIN_MSS_BYTES <= self.mss_bytes <= MAX_MSS_BYTES:
            raise PlanError("MSS", self.mss_bytes, f"give {MIN_MSS_BYTES} to {MAX_MSS_BYTES} bytes")
        if self.dscp is not None and not 0 <= self.dscp <= 63:
            raise PlanError("DSCP", self.dscp, "give 0 to 63 (RFC 2474)")
        for name, text in (("source", self.source), ("device", self.device)):
            if text is not None and not (0 < len(text) <= 64 and text.isprintable() and " " not in text):
                raise PlanError(
                    name, repr(text), f"give the {'address' if name == 'source' else 'name'} of an interface"
                )
        if self.source is not None:
            check_zone("source", self.source)


# Each option of a test is a field: the plan is what both ends, the run log and the command line agree on.
@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run.

    With `duration_ns` None it lasts until it is stopped. The warm-up is the first part of the duration. It is
    displayed and logged, but not measured; None is a fifth of the duration, at most a second. With `warmup_auto` it
    lasts until the rates have settled (warmup.py), at most half of the duration. `mode` None is copy or sendfile,
    whichever is faster on the sending host. `workers` is the number of worker processes at each end, None means
    as many as are useful; they are pinned to `near_cores` and `far_cores` in turn, if any. `request_bytes` and
    `response_bytes` None are the workload's defaults. `burst` is the number of requests in flight on each
    connection of `rr`. With `busy_poll` both ends of `rr` ask again and again for the next message, and so keep a
    core awake that would sleep until it arrives. With `probe` the near end sends small requests during a stream, to
    measure latency under load. `rate_bit_s` limits the rate of all sessions of a direction together. `bytes_limit`
    ends the run once the receiver of each direction has counted that many bytes. `client_port` is the near end's
    local port of the first data connection; later ones take the ports after it. `loss_goal_ppm` is the share of
    datagrams, in millionths, that may be lost at the rate that a search finds. With `responsiveness`, which needs
    `probe`, there are further probes, senders keep little unsent, and samples have the queue at the interface. With
    `path`, which needs `responsiveness`, both ends trace the hops between them meanwhile. The near end's
    probes come from the port `path_port` if it is free: runs with the same one take the same of parallel links.

    An `exclusive` run has the endpoint for itself. A run waits for its turn at a busy endpoint for up to `wait_ns`;
    with 0 it is refused at once.
    """

    settings: Settings = Settings()
    workload: Workload = Workload.STREAM
    duration_ns: int | None = 10 * SECOND_NS
    warmup_ns: int | None = None
    interval_ns: int = DEFAULT_INTERVAL_NS
    block_bytes: int = MIB
    mode: Mode | None = None
    socket: SocketOptions = SocketOptions()
    workers: int | None = None
    near_cores: tuple[int, ...] | None = None
    far_cores: tuple[int, ...] | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    burst: int = 1
    probe: bool = False
    warmup_auto: bool = False
    rate_bit_s: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    bytes_limit: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    client_port: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    loss_goal_ppm: int = field(default=DEFAULT_LOSS_GOAL_PPM, metadata=OMITTED_AT_DEFAULT)
    responsiveness: ResponsivenessTest | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    exclusive: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    wait_ns: int = field(default=0, metadata=OMITTED_AT_DEFAULT)
    path: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    busy_poll: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    path_port: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Raise PlanError for a value out of range."""
        duration = self.duration_ns
        if duration is not None and not MIN_DURATION_NS <= duration <= MAX_DURATION_NS:
            raise PlanError("duration", f"{duration / SECOND_NS:g}", "give 0.5 to 86400 seconds")
        if not MIN_INTERVAL_NS <= self.interval_ns <= MAX_INTERVAL_NS:
            raise PlanError("interval", f"{self.interval_ns / SECOND_NS:g}", "give 0.05 to 10 seconds")
        if self.warmup_ns is not None and not 0 <= self.warmup_ns <= (duration or MAX_DURATION_NS) * 0.9:
            raise PlanError("warm-up", f"{self.warmup_ns / SECOND_NS:g}", "give at most 90 % of --seconds")
        if self.warmup_auto and self.warmup_ns is not None:
            raise PlanError("warm-up", f"auto and {self.warmup_ns / SECOND_NS:g}", "give one of them")
        if not MIN_BLOCK_BYTES <= self.block_bytes <= MAX_BLOCK_BYTES:
            raise PlanError("block size", format_size(self.block_bytes), "give 64 to 16M")
        if self.workers is not None and not 1 <= self.workers <= MAX_WORKERS:
            raise PlanError("workers", self.workers, f"give 1 to {MAX_WORKERS}")
        for name, cores in (("cores", self.near_cores), ("far cores", self.far_cores)):
            for core in cores or ():
                if not 0 <= core < MAX_CORES:
                    raise PlanError(name, core, f"give 0 to {MAX_CORES - 1}")
        self._check_transactions()
        self._check_datagrams()
        self._check_limits()
        self._check_responsiveness()

    def _check_responsiveness(self) -> None:
        if self.responsiveness is None:
            if self.path:
                raise PlanError(
                    "path", "without a responsiveness test", "only a load shows which hop has the queue"
                )
            return
        if self.workload.is_transactional or self.workload.is_datagram:
            raise PlanError(
                "responsiveness", f"with {self.workload}", "only a TCP stream loads a link; leave it out"
            )
        if not self.probe:
            raise PlanError("responsiveness", "without a probe", "give --probe as well")
        if self.bytes_limit is not None:
            raise PlanError("bytes", self.bytes_limit, "a responsiveness test ends by itself; leave it out")
        if not self.responsiveness.has_phases:
            return
        if self.interval_ns > MAX_PHASE_INTERVAL_NS:
            longest = MAX_PHASE_INTERVAL_NS / SECOND_NS
            raise PlanError("interval", f"{self.interval_ns / SECOND_NS:g}", f"give 0.05 to {longest:g} seconds")
        if self.responsiveness is ResponsivenessTest.PHASES and self.settings.direction is not Direction.OUT:
            raise PlanError("direction", self.settings.direction, "the first phase loads the link out")

    def _check_datagrams(self) -> None:
        if not 0 <= self.loss_goal_ppm <= 1_000_000:
            raise PlanError("loss goal", f"{self.loss_goal_ppm} ppm", "give 0 to 100 %")
        workload, settings, mode = self.workload, self.settings, self.mode
        if mode is not None and mode.is_for_datagrams is not workload.is_datagram:
            allowed = [each.value for each in Mode if each.is_for_datagrams is workload.is_datagram]
            raise PlanError("mode", f"{mode} with {workload}", f"give {', '.join(allowed[:-1])} or {allowed[-1]}")
        if not workload.is_datagram:
            for name, value in (("rate", settings.rate_bit_s), ("datagram", settings.datagram_bytes)):
                if value is not None:
                    raise PlanError(name, f"{value} with {workload}", f"give --workload {_names_of('is_datagram')}")
            return
        self._check_datagram_pace()
        for name, value in (
            ("window", settings.window_bytes),
            ("bytes", self.bytes_limit),
            ("client port", self.client_port),
            ("congestion control", self.socket.congestion),
            ("MSS", self.socket.mss_bytes),
        ):
            if value is not None:
                raise PlanError(name, f"with {workload}", "only TCP connections have it; leave it out")

    def _check_datagram_pace(self) -> None:
        """Raise PlanError if the sessions would send no more than their first datagram."""
        settings, duration = self.settings, self.duration_ns
        size, rate = settings.datagram_bytes or settings.slow_datagram_bytes, settings.rate_bit_s
        if size is None or rate is None or duration is None or settings.searches_rate:
            return
        each_s = 8 * size * settings.sessions / rate
        seconds = duration / SECOND_NS
        if each_s <= seconds / _MIN_DATAGRAMS:
            return
        raise PlanError(
            "rate",
            rate,
            f"each session would send one datagram of {size} bytes every {each_s:.3g} s, "
            f"fewer than {_MIN_DATAGRAMS} in {seconds:g} s; "
            "give a higher --rate, a smaller --datagram, fewer --sessions, or more --seconds",
        )

    def _check_transactions(self) -> None:
        workload = self.workload
        for name, size, lowest, most in (
            ("request", self.request_bytes, workload.min_request_bytes, MAX_REQUEST_BYTES),
            ("response", self.response_bytes, 1, MAX_RESPONSE_BYTES),
        ):
            if size is None:
                continue
            if not workload.is_transactional:
                raise PlanError(
                    name,
                    format_size(size),
                    f"a stream has no {name}; give --workload {_names_of('is_transactional')}",
                )
            if not lowest <= size <= most:
                raise PlanError(name, format_size(size), f"give {lowest} to {format_size(most)}")
        if not 1 <= self.burst <= MAX_BURST:
            raise PlanError("burst", self.burst, f"give 1 to {MAX_BURST}")
        if self.probe and workload.is_transactional:
            raise PlanError(
                "probe", f"with {workload}", "only a stream has a probe; transactions measure latency anyway"
            )
        if self.burst > 1 and not workload.allows_burst:
            allowed = _names_of("allows_burst")
            raise PlanError("burst", self.burst, f"only {allowed} has several requests in flight; give 1")
        if self.busy_poll and (workload is not Workload.RR or self.burst > 1):
            in_flight = f", {self.burst} in flight" if self.burst > 1 else ""
            raise PlanError(
                "busy-poll", f"with {workload}{in_flight}", "only rr with one request in flight waits for an answer"
            )
        if self.burst * self.transaction_sizes[0] > MAX_REQUEST_BYTES:
            raise PlanError(
                "burst",
                self.burst,
                "all requests in flight together have at most 16M; give fewer, or a smaller --request",
            )

    def _check_limits(self) -> None:
        if not 0 <= self.wait_ns <= MAX_WAIT_NS:
            raise PlanError("wait", f"{self.wait_ns / SECOND_NS:g}", "give 0 to 86400 seconds")
        rate, limit, port = self.rate_bit_s, self.bytes_limit, self.client_port
        if rate is not None and not MIN_RATE_BIT_S <= rate <= MAX_RATE_BIT_S:
            raise PlanError("rate", rate, "give 1K to 10T bits a second")
        if rate is not None and (not self.workload.is_bulk or self.workload.is_datagram):
            raise PlanError("rate", f"with {self.workload}", f"give --workload {_names_of('is_bulk')}")
        if limit is not None and not 1 <= limit <= MAX_BYTES_LIMIT:
            raise PlanError("bytes", limit, "give 1 byte to 900P")
        if self.path_port is not None and not 1 <= self.path_port <= MAX_PORT:
            raise PlanError("path port", self.path_port, f"give 1 to {MAX_PORT}")
        if port is None:
            return
        connections = self.widest_settings.connections
        if not 1 <= port <= MAX_PORT + 1 - connections:
            raise PlanError("client port", port, f"give 1 to {MAX_PORT + 1 - connections}")
        if self.workload.opens_connections:
            raise PlanError(
                "client port", port, f"{self.workload} opens a connection for each request; give another --workload"
            )

    @property
    def transaction_sizes(self) -> tuple[int, int]:
        """The bytes of a request and of its response."""
        request, response = self.workload.transaction_sizes
        return self.request_bytes or request, self.response_bytes or response

    @property
    def sender_chooses_mode(self) -> bool:
        """Whether the sending host chooses how it sends: in a TCP stream whose plan says nothing about the sender.

        `discard` says how the receiver takes payload.
        """
        is_stream = not (self.workload.is_transactional or self.workload.is_datagram)
        return is_stream and self.mode in {None, Mode.DISCARD}

    @property
    def has_phases(self) -> bool:
        """Whether the near end changes the settings by itself, as a responsiveness test with phases does."""
        return self.responsiveness is not None and self.responsiveness.has_phases

    @property
    def has_end(self) -> bool:
        """Whether the run is to last a time, or until its bytes are through; else it lasts until it is stopped."""
        return self.duration_ns is not None or self.bytes_limit is not None

    @property
    def load_directions(self) -> tuple[Direction, ...]:
        """The directions in which a responsiveness test loads the link, in order; none without phases."""
        if not self.has_phases:
            return ()
        return tuple(Direction) if self.responsiveness is ResponsivenessTest.PHASES else (self.settings.direction,)

    @property
    def widest_settings(self) -> Settings:
        """The settings with the most sessions that the run opens by itself.

        The phases of a responsiveness test add sessions, up to twice as many, if the first ones do not fill the
        link.
        """
        directions = self.load_directions
        if not directions:
            return self.settings
        sessions = min(MAX_SESSIONS, 2 * self.settings.sessions)
        return replace(self.settings, direction=directions[-1], sessions=sessions)

    @property
    def needs_turns(self) -> bool:
        """Whether it asks for a turn at the endpoint: to have it alone, or after a wait."""
        return self.exclusive or self.wait_ns > 0

    @property
    def has_documented_transactions(self) -> bool:
        """Whether its transactions are those of the documents, so that the documents' rates apply."""
        return self.transaction_sizes == self.workload.transaction_sizes and self.burst == 1 and not self.busy_poll

    @property
    def effective_warmup_ns(self) -> int:
        """The warm-up in force, at the start and again after each change of settings; the longest one with auto."""
        if self.warmup_ns is not None:
            return self.warmup_ns
        if self.warmup_auto:
            return min(_MAX_WARMUP_NS, (self.duration_ns or MAX_DURATION_NS) // 2)
        if self.bytes_limit is not None:  # its transfer may be over in less than any warm-up
            return 0
        return SECOND_NS if self.duration_ns is None else min(SECOND_NS, self.duration_ns // 5)


def format_size(size_bytes: int) -> str:
    """Return a size as a user types it: `64K`, `1M`, `1500`."""
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size_bytes >= factor and not size_bytes % factor:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def _names_of(trait: Literal["is_transactional", "is_bulk", "allows_burst", "is_datagram"]) -> str:
    """Return the workloads that have a trait, as a choice: `rr, crr or fetch`."""
    *others, last = (workload for workload in all_workloads() if getattr(workload, trait))
    return f"{', '.join(others)} or {last}" if others else last
