"""The options that make up the plan of a test: who sends what, for how long, by which sockets, and in whose turn.

Each option is declared once and reads the same in every command. A group of options is a dataclass with one field
for each option, as typed; see click_extension/option_fields.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError, UsageError
from ...engine.model.plan import (
    DEFAULT_INTERVAL_NS,
    DEFAULT_LOSS_GOAL_PPM,
    MIB,
    SECOND_NS,
    Mode,
    Plan,
    Settings,
    SocketOptions,
)
from ...engine.model.workload import Workload, all_workloads
from ..readings.setting_steps import check_options_used
from ..session.setting_table import INTERVAL_REMEDY
from ..words import parsing
from .click_extension.option_fields import flag, group, is_typed, option, setting_option

if TYPE_CHECKING:
    from ...presets.sending_rate import SendingRate

_SEARCH_SECONDS: Final = "120"  # a search ends by itself: ten seconds, and less than five for each step downwards

# Sections of the help.
TEST: Final = "Test"
_SOCKETS: Final = "Sockets and processes"

_WAIT_REMEDY: Final = "give seconds, or a time such as 5m"
_WARMUP_REMEDY: Final = "give auto, or seconds such as 0, 0.5 or 2"


def congestion_option(panel: str) -> Any:
    """Return the option of the congestion control."""
    return option(panel, "Congestion control: cubic, reno, bbr.", metavar="NAME", shown="the kernel's")


def dscp_option(panel: str) -> Any:
    """Return the option of the priority of packets."""
    return option(panel, "Differentiated services code point, 0 to 63.", metavar="N")


def source_option(panel: str) -> Any:
    """Return the option of the address that a test comes from."""
    return option(panel, "Local address to connect from.", metavar="ADDRESS")


def device_option(panel: str) -> Any:
    """Return the option of the interface that a test comes from."""
    return option(panel, "Local interface to connect from.", metavar="NAME")


@dataclass(frozen=True, slots=True)
class DirectionOptions:
    """Which end sends."""

    direction: Direction | None = option(
        TEST,
        "Who sends: out this host, in the remote host, duplex both at once.",
        brief="Who sends: this host, the remote, or both. [out]",
        shown="out",
    )
    reverse: bool = flag(TEST, "Same as --direction in.", "-R", brief="Same as --direction in.")
    bidir: bool = flag(TEST, "Same as --direction duplex.")

    def find(self) -> Direction:
        """Return the direction of --direction, -R and --bidir; raise UsageError if they differ."""
        typed = {
            f"--direction {self.direction}": self.direction,
            "-R (--reverse)": Direction.IN if self.reverse else None,
            "--bidir": Direction.DUPLEX if self.bidir else None,
        }
        directions = {name: direction for name, direction in typed.items() if direction is not None}
        if len(set(directions.values())) > 1:
            raise UsageError(f"{' and '.join(directions)} contradict each other; give one of them")
        return next(iter(directions.values()), Direction.OUT)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How payload moves, what is requested, and the workers and sockets that do it."""

    mode: Mode | None = option(
        _SOCKETS,
        "How payload moves: copy, sendfile, or discard (the receiving kernel drops it unread). With udp: "
        "rate, datagrams in groups, or quality, each on its own with a time stamp of the kernel.",
    )
    request: str | None = option(
        _SOCKETS, "Size of a request.", metavar="SIZE", shown="rr 200, crr 64, fetch 20 bytes"
    )
    response: str | None = option(
        _SOCKETS, "Size of a response.", metavar="SIZE", shown="rr 1000, crr 8192, fetch 20000000 bytes"
    )
    burst: str | None = option(_SOCKETS, "Requests in flight on each connection, with rr.", metavar="N", shown="1")
    busy_poll: bool = flag(
        _SOCKETS, "Both ends poll for messages, with rr: the latency without the time to wake up a core."
    )
    workers: str | None = option(_SOCKETS, "Worker processes at each end, 1 to 64.", metavar="N")
    cores: str | None = option(_SOCKETS, "Run the local workers on these CPU cores: 0,2 or 0-3.", metavar="LIST")
    far_cores: str | None = option(_SOCKETS, "Run the remote workers on these CPU cores.", metavar="LIST")
    mss: str | None = option(_SOCKETS, "Maximum segment size in bytes.", metavar="N")
    dscp: str | None = dscp_option(_SOCKETS)
    nodelay: bool = flag(_SOCKETS, "Send small segments at once (TCP_NODELAY).")
    source: str | None = source_option(_SOCKETS)
    device: str | None = device_option(_SOCKETS)
    cport: str | None = option(
        _SOCKETS, "Local port of the first data connection; others take the next.", metavar="N"
    )


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options that make up a plan."""

    seconds: str | None = setting_option("seconds", TEST)
    directions: DirectionOptions = group(DirectionOptions)
    sessions: str = setting_option("sessions", TEST)
    window: str = setting_option("window", TEST)
    rate: str | None = option(
        TEST,
        "Limit each direction to this rate, over all sessions: 100M; with udp also expected, search, max or flood.",
        "-b",
        brief="Limit the rate: 100M; udp also search, max.",
        metavar="RATE",
        shown="no limit; with udp the expected rate, else 10M",
    )
    datagram: str | None = option(
        TEST,
        "UDP payload of a datagram, with udp: auto for the largest that the path's MTU holds, or bytes: 64, 1400.",
        metavar="SIZE",
        shown="auto",
    )
    loss_goal: str | None = option(
        TEST,
        "Datagrams that may be lost, with udp: at each step of check, or in the second part of a search.",
        metavar="PERCENT",
        shown="0.1%",
    )
    bytes_: str | None = option(
        TEST,
        "Send this many bytes in each direction, then end: 100M, 10G.",
        "-n",
        metavar="SIZE",
    )
    warmup: str | None = option(
        TEST,
        "Time at the start that does not count; auto waits until the rate is steady.",
        metavar="TIME",
        shown="a fifth of the test, at most 1 s",
    )
    interval: str | None = setting_option("interval", TEST)
    workload: Workload = option(
        TEST,
        "stream: data one way; rr: requests and responses; crr: each on a new connection; fetch: large responses; "
        "udp: datagrams at a rate, with loss and jitter.",
        brief="Data one way, transactions, datagrams. [stream]",
        default=Workload.STREAM,
        choices=all_workloads(),
    )
    probe: bool = flag(
        TEST,
        "Measure latency before the stream and under its load.",
        brief="Measure latency before and under the load too.",
    )
    block: str | None = option(TEST, "Size of one send call.", metavar="SIZE", shown="1M")
    congestion: str | None = congestion_option(TEST)
    connections: ConnectionOptions = group(ConnectionOptions)

    def to_plan(self, default_seconds: str = "10") -> Plan:
        """Return the plan; `default_seconds` applies without --seconds. Raise PlanError for the first bad value."""
        more = self.connections
        warmup_auto = self.warmup is not None and self.warmup.strip().lower() == "auto"
        plan = Plan(
            settings=self._settings(),
            workload=self.workload,
            duration_ns=self.duration_ns(default_seconds),
            warmup_ns=None
            if self.warmup is None or warmup_auto
            else parsing.time_ns(self.warmup, "warm-up", _WARMUP_REMEDY),
            warmup_auto=warmup_auto,
            interval_ns=DEFAULT_INTERVAL_NS if self.interval_ns is None else self.interval_ns,
            block_bytes=MIB if self.block is None else parsing.block_bytes(self.block),
            mode=more.mode,
            socket=self._socket_options(),
            request_bytes=None if more.request is None else parsing.message_bytes(more.request, "request"),
            response_bytes=None if more.response is None else parsing.message_bytes(more.response, "response"),
            probe=self.probe,
            burst=1 if more.burst is None else parsing.integer(more.burst, "burst", "give 1 to 1024 requests"),
            busy_poll=more.busy_poll,
            workers=_optional_integer(more.workers, "workers", "give 1 to 64"),
            near_cores=None if more.cores is None else parsing.cores(more.cores),
            far_cores=None if more.far_cores is None else parsing.cores(more.far_cores),
            rate_bit_s=None if self.rate is None or self.workload.is_datagram else parsing.rate_bit_s(self.rate),
            bytes_limit=None if self.bytes_ is None else parsing.bytes_limit(self.bytes_),
            client_port=_optional_integer(more.cport, "client port", "give a port number, 1 to 65535"),
            loss_goal_ppm=self._loss_goal_ppm(),
        )
        _check_samples(plan)
        check_options_used(plan)
        if self.workload.is_datagram and self.block is not None:
            raise PlanError(
                "block size",
                f"{self.block} with {self.workload}",
                "give the size of each datagram: --datagram SIZE",
            )
        return plan

    @property
    def interval_ns(self) -> int | None:
        """The time between samples if it was given; raise PlanError for a bad one."""
        return None if self.interval is None else parsing.time_ns(self.interval, "interval", INTERVAL_REMEDY)

    def sending_rate(self) -> "SendingRate | None":
        """Return the requested rate of datagrams; None for the default and for TCP. Raise PlanError."""
        if self.rate is None or not self.workload.is_datagram:
            return None
        return parsing.sending_rate(self.rate)

    def _loss_goal_ppm(self) -> int:
        if self.loss_goal is None:
            return DEFAULT_LOSS_GOAL_PPM
        if not self.workload.is_datagram:
            raise UsageError("--loss-goal is for datagrams; give --workload udp")
        return parsing.loss_goal_ppm(self.loss_goal)

    def _settings(self) -> Settings:
        """Return the settings; a rate of datagrams that depends on the preset is not in them yet."""
        rate = self.sending_rate()
        return Settings(
            self.directions.find(),
            parsing.sessions(self.sessions),
            parsing.window_bytes(self.window),
            rate if isinstance(rate, int) else None,
            None if self.datagram is None else parsing.datagram_bytes(self.datagram),
        )

    def _socket_options(self) -> SocketOptions:
        more = self.connections
        return SocketOptions(
            congestion=self.congestion,
            mss_bytes=_optional_integer(more.mss, "MSS", "give bytes, such as 1448"),
            dscp=_optional_integer(more.dscp, "DSCP", "give 0 to 63 (RFC 2474)"),
            nodelay=more.nodelay,
            source=more.source,
            device=more.device,
        )

    def duration_ns(self, default_seconds: str) -> int | None:
        """Return the duration of the test, None without a limit; raise PlanError for a bad one."""
        seconds = self.seconds
        if seconds is None and self.bytes_ is not None:
            return None
        if self.rate == "search" and not is_typed("seconds"):
            seconds = _SEARCH_SECONDS
        return parsing.duration_ns(default_seconds if seconds is None else seconds)


def _max_duration_ns(text: str) -> int | None:
    """Return the duration of --max-seconds; raise PlanError, which names this option, for a bad one."""
    try:
        duration_ns = parsing.duration_ns(text)
        Plan(duration_ns=duration_ns)
    except PlanError as error:
        raise PlanError("--max-seconds", error.value, error.allowed) from None
    return duration_ns


def _check_samples(plan: Plan) -> None:
    """Raise PlanError for an interval so long that the test ends before a sample begins after the warm-up."""
    if plan.duration_ns is None or plan.warmup_auto:
        return
    warmup_ns, interval_ns = plan.effective_warmup_ns, plan.interval_ns
    if -(-warmup_ns // interval_ns) * interval_ns >= plan.duration_ns:
        seconds, warmup_s, longest_s = (
            f"{value_ns / SECOND_NS:g}" for value_ns in (plan.duration_ns, warmup_ns, plan.duration_ns - warmup_ns)
        )
        raise PlanError(
            "interval",
            f"{interval_ns / SECOND_NS:g}",
            f"a test of {seconds} s with a warm-up of {warmup_s} s would measure nothing: give at most {longest_s},"
            " or --warmup 0",
        )


def _optional_integer(text: str | None, name: str, remedy: str) -> int | None:
    return None if text is None else parsing.integer(text, name, remedy)


@dataclass(frozen=True, slots=True)
class TestOptions(PlanOptions):
    """The options of a plan for a test that may end once its result is precise enough."""

    until_ci: str | None = option(
        TEST,
        "End the test once the mean is this precise: 95 % confidence, plus or minus PERCENT.",
        metavar="PERCENT",
    )
    max_seconds: str | None = option(TEST, "Longest duration with --until-ci.", metavar="TIME", shown="60")

    def target_ci_percent(self) -> float | None:
        """Return the half width of the confidence interval that ends the test, in percent of the mean, if any."""
        return None if self.until_ci is None else parsing.ci_percent(self.until_ci)

    def duration_ns(self, default_seconds: str) -> int | None:
        """Return the maximum duration of the test; raise PlanError for a bad one."""
        if self.until_ci is None:
            if self.max_seconds is not None:
                raise UsageError("--max-seconds needs --until-ci; without it give --seconds")
            # With slots the decorator makes a second class, which super() without arguments does not know.
            return super(TestOptions, self).duration_ns(default_seconds)
        if self.seconds is not None:
            raise UsageError("--seconds and --until-ci exclude each other; with --until-ci give --max-seconds")
        return _max_duration_ns("60" if self.max_seconds is None else self.max_seconds)


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Whether a test has the endpoint for itself, and how long it waits for its turn."""

    exclusive: bool = flag(
        TEST, "Have the endpoint alone: it refuses this test while others run, and others while this one runs."
    )
    wait: str | None = option(
        TEST,
        "Wait so long for a turn at a busy endpoint, instead of being refused: 60, 5m.",
        metavar="TIME",
        shown="0",
    )

    def apply_to(self, plan: Plan) -> Plan:
        """Return the plan with these options; raise PlanError for a bad one."""
        wait_ns = plan.wait_ns if self.wait is None else parsing.time_ns(self.wait, "wait", _WAIT_REMEDY)
        return replace(plan, exclusive=plan.exclusive or self.exclusive, wait_ns=wait_ns)
