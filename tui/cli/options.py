"""The options of the commands: each is declared once and reads the same in every command.

A group of options is a dataclass with one field for each option, as typed; see typer_extension.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ...engine.model.errors import PlanError, UsageError
from ...engine.model.plan import DEFAULT_LOSS_GOAL_PPM, SECOND_NS, Direction, Mode, Plan, Settings, SocketOptions
from ...engine.model.workload import Workload, all_workloads, workload_named
from ..text import parsing
from .output import check_output_file
from .typer_extension import option
from .usage_errors import join_choices

if TYPE_CHECKING:
    from ...presets.sending_rate import SendingRate
    from ...presets.wire import Variant
    from ..services.run_spec import Outputs

_SEARCH_SECONDS: Final = "120"  # a search ends by itself: ten seconds, and less than five for each step downwards

# Sections of the help.
TEST: Final = "Test"
_SOCKETS: Final = "Sockets and processes"
_LINK: Final = "Link, where it differs from the preset's"
OUTPUT: Final = "Output"

_WARMUP_REMEDY: Final = "give auto, or seconds such as 0, 0.5 or 2"
_INTERVAL_REMEDY: Final = "give a time such as 0.25 or 100ms (0.05 s to 10 s)"

LangOption = Annotated[
    str | None,
    typer.Option("--lang", metavar="en|ja", show_default=False, help="Language of the presets' names."),
]
JsonOption = Annotated[bool, typer.Option("--json", "-J", metavar="", help="Print JSON.", rich_help_panel=OUTPUT)]


def _parse_workload(name: str) -> Workload:
    try:
        return workload_named(name)
    except ValueError:
        raise typer.BadParameter(f"'{name}' is invalid; give {join_choices(all_workloads())}") from None


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options that make up a plan."""

    seconds: str | None = option(
        TEST,
        str | None,
        "Duration: 10, 1.5, 2m, or none to test until Ctrl-C.",
        "--seconds",
        "-t",
        metavar="TIME",
        default_text="10; in the app 30",
    )
    direction: Direction | None = option(
        TEST,
        Direction | None,
        "Who sends: out this host, in the remote host, duplex both at once.",
        default_text="out",
    )
    reverse: bool = option(TEST, bool, "Same as --direction in.", "--reverse", "-R", default=False, metavar="")
    bidir: bool = option(TEST, bool, "Same as --direction duplex.", "--bidir", default=False, metavar="")
    sessions: str = option(
        TEST,
        str,
        "TCP connections, or UDP flows, in each direction, 1 to 128.",
        "--sessions",
        "-P",
        default="1",
        metavar="N",
        default_text=True,
    )
    window: str = option(
        TEST,
        str,
        "Socket buffers: auto, or a size such as 56K or 1M.",
        "--window",
        "-w",
        default="auto",
        metavar="SIZE",
        default_text=True,
    )
    rate: str | None = option(
        TEST,
        str | None,
        "Limit each direction to this rate, over all sessions: 100M, 2.5G; with udp also expected, search or max.",
        "--rate",
        "-b",
        metavar="RATE",
        default_text="no limit; with udp the expected rate, else 10M",
    )
    datagram: str | None = option(
        TEST,
        str | None,
        "UDP payload of a datagram, with udp: auto for what the path's MTU holds, or bytes: 64, 1400.",
        "--datagram",
        metavar="SIZE",
        default_text="auto",
    )
    loss_goal: str | None = option(
        TEST,
        str | None,
        "Datagrams that may be lost, with udp: at each step of check, or in the second part of a search.",
        "--loss-goal",
        metavar="PERCENT",
        default_text="0.1%",
    )
    bytes_: str | None = option(
        TEST,
        str | None,
        "Send so many bytes in each direction, then end: 100M, 10G.",
        "--bytes",
        "-n",
        metavar="SIZE",
    )
    warmup: str | None = option(
        TEST,
        str | None,
        "Time at the start that does not count; auto waits until the rate is steady.",
        metavar="TIME",
        default_text="a fifth of the test, at most 1 s",
    )
    interval: str = option(
        TEST,
        str,
        "Time between samples, 50ms to 10.",
        "--interval",
        "-i",
        default="0.25",
        metavar="TIME",
        default_text=True,
    )
    workload: Workload = option(
        TEST,
        Workload,
        "stream: data one way; rr: requests and responses; crr: each on a new connection; fetch: large responses; "
        "udp: datagrams at a rate, with loss and jitter.",
        default=Workload.STREAM,
        metavar="|".join(all_workloads()),
        default_text=True,
        parser=_parse_workload,
    )
    probe: bool = option(
        TEST,
        bool,
        "Measure latency before the stream and under its load.",
        "--probe",
        default=False,
        metavar="",
    )
    block: str = option(TEST, str, "Size of one send call.", default="1M", metavar="SIZE", default_text=True)
    congestion: str | None = option(
        TEST, str | None, "Congestion control: cubic, reno, bbr.", metavar="NAME", default_text="the kernel's"
    )
    mode: Mode | None = option(
        _SOCKETS,
        Mode | None,
        "How payload moves: copy, sendfile, or discard, where the receiving kernel drops it unread. With udp: "
        "rate, datagrams in groups, or quality, each on its own with a time stamp of the kernel.",
    )
    request: str | None = option(
        _SOCKETS, str | None, "Size of a request.", metavar="SIZE", default_text="rr 200, crr 64, fetch 20 bytes"
    )
    response: str | None = option(
        _SOCKETS,
        str | None,
        "Size of a response.",
        metavar="SIZE",
        default_text="rr 1000, crr 8192, fetch 20000000 bytes",
    )
    burst: str | None = option(
        _SOCKETS, str | None, "Requests in flight on each connection, with rr.", metavar="N", default_text="1"
    )
    workers: str | None = option(_SOCKETS, str | None, "Worker processes at each end, 1 to 64.", metavar="N")
    cores: str | None = option(
        _SOCKETS, str | None, "Run the local workers on these CPU cores: 0,2 or 0-3.", metavar="LIST"
    )
    far_cores: str | None = option(
        _SOCKETS, str | None, "Run the remote workers on these CPU cores.", metavar="LIST"
    )
    mss: str | None = option(_SOCKETS, str | None, "Maximum segment size in bytes.", metavar="N")
    dscp: str | None = option(_SOCKETS, str | None, "Differentiated services code point, 0 to 63.", metavar="N")
    nodelay: bool = option(
        _SOCKETS, bool, "Send small segments at once (TCP_NODELAY).", "--nodelay", default=False, metavar=""
    )
    source: str | None = option(_SOCKETS, str | None, "Local address to connect from.", metavar="ADDRESS")
    device: str | None = option(_SOCKETS, str | None, "Local interface to connect from.", metavar="NAME")
    cport: str | None = option(
        _SOCKETS, str | None, "Local port of the first data connection; others take the next.", metavar="N"
    )

    def to_plan(self, default_seconds: str = "10") -> Plan:
        """Return the plan; `default_seconds` applies without --seconds. Raise PlanError for the first bad value."""
        warmup_auto = self.warmup is not None and self.warmup.strip().lower() == "auto"
        plan = Plan(
            settings=self._settings(),
            workload=self.workload,
            duration_ns=self.duration_ns(default_seconds),
            warmup_ns=None
            if self.warmup is None or warmup_auto
            else parsing.time_ns(self.warmup, "warm-up", _WARMUP_REMEDY),
            warmup_auto=warmup_auto,
            interval_ns=parsing.time_ns(self.interval, "interval", _INTERVAL_REMEDY),
            block_bytes=parsing.block_bytes(self.block),
            mode=self.mode,
            socket=self._socket_options(),
            request_bytes=None if self.request is None else parsing.message_bytes(self.request, "request"),
            response_bytes=None if self.response is None else parsing.message_bytes(self.response, "response"),
            probe=self.probe,
            burst=1 if self.burst is None else parsing.integer(self.burst, "burst", "give 1 to 1024 requests"),
            workers=_optional_integer(self.workers, "workers", "give 1 to 64"),
            near_cores=None if self.cores is None else parsing.cores(self.cores),
            far_cores=None if self.far_cores is None else parsing.cores(self.far_cores),
            rate_bit_s=None if self.rate is None or self.workload.is_datagram else parsing.rate_bit_s(self.rate),
            bytes_limit=None if self.bytes_ is None else parsing.bytes_limit(self.bytes_),
            client_port=_optional_integer(self.cport, "client port", "give a port number, 1 to 65535"),
            loss_goal_ppm=self._loss_goal_ppm(),
        )
        _check_samples(plan)
        return plan

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
            self._direction(),
            parsing.sessions(self.sessions),
            parsing.window_bytes(self.window),
            rate if isinstance(rate, int) else None,
            None if self.datagram is None else parsing.datagram_bytes(self.datagram),
        )

    def _direction(self) -> Direction:
        """Return the direction of --direction, -R and --bidir; raise UsageError where they differ."""
        typed = {
            f"--direction {self.direction}": self.direction,
            "-R (--reverse)": Direction.IN if self.reverse else None,
            "--bidir": Direction.DUPLEX if self.bidir else None,
        }
        directions = {name: direction for name, direction in typed.items() if direction is not None}
        if len(set(directions.values())) > 1:
            raise UsageError(f"{' and '.join(directions)} contradict each other; give one of them")
        return next(iter(directions.values()), Direction.OUT)

    def _socket_options(self) -> SocketOptions:
        return SocketOptions(
            congestion=self.congestion,
            mss_bytes=_optional_integer(self.mss, "MSS", "give bytes, such as 1448"),
            dscp=_optional_integer(self.dscp, "DSCP", "give 0 to 63 (RFC 2474)"),
            nodelay=self.nodelay,
            source=self.source,
            device=self.device,
        )

    def duration_ns(self, default_seconds: str) -> int | None:
        """Return the duration of the test, None without a limit; raise PlanError for a bad one."""
        if self.seconds is None and self.bytes_ is not None:
            return None
        if self.rate == "search":
            default_seconds = _SEARCH_SECONDS
        return parsing.duration_ns(default_seconds if self.seconds is None else self.seconds)


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
        str | None,
        "End the test once the mean is this precise: 95 % confidence, plus or minus PERCENT.",
        metavar="PERCENT",
    )
    max_seconds: str | None = option(
        TEST, str | None, "Longest duration with --until-ci.", metavar="TIME", default_text="60"
    )

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
class LinkOptions:
    """The differences of a link from its preset's."""

    line_rate: str | None = option(
        _LINK,
        str | None,
        "Line rate: 100M, 2.5G, 10Gb.",
        "--line-rate",
        metavar="RATE",
        default_text="the preset's, or what the NICs report",
    )
    mtu: str | None = option(
        _LINK, str | None, "Largest IP packet in bytes.", "--mtu", metavar="N", default_text="the preset's"
    )
    ipv6: bool = option(_LINK, bool, "TCP over IPv6 instead of IPv4.", "--ipv6", default=False, metavar="")
    vlan: str = option(
        _LINK,
        str,
        "VLAN tags of a frame: 0, 1, or 2 for QinQ.",
        "--vlan",
        default="0",
        metavar="N",
        default_text="0",
    )
    tunnel: str | None = option(
        _LINK,
        str | None,
        "Tunnel in the link: vxlan, wireguard, gre or pppoe.",
        "--tunnel",
        metavar="NAME",
        default_text="the preset's, if any",
    )
    timestamps: bool | None = option(
        _LINK,
        bool | None,
        "TCP timestamps (RFC 7323) in use, or not.",
        "--timestamps/--no-timestamps",
        metavar="",
        default_text="the preset's",
    )

    def to_variant(self) -> "Variant":
        """Return the variant for the wire model; raise PlanError for the first bad value."""
        from ...presets.wire import Variant

        return Variant(
            ip=6 if self.ipv6 else 4,
            timestamps=self.timestamps,
            vlan_tags=parsing.integer(self.vlan, "VLAN tags", "give 0, 1 or 2 (QinQ)"),
            tunnel=None if self.tunnel is None else parsing.tunnel(self.tunnel),
            line_rate_bit_s=None if self.line_rate is None else parsing.line_rate_bit_s(self.line_rate),
            mtu_bytes=None if self.mtu is None else parsing.mtu_bytes(self.mtu),
        )


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Where the results of a test go."""

    label: str | None = option(OUTPUT, str | None, "Name of the run, to find it again.", metavar="TEXT")
    csv: Path | None = option(
        OUTPUT,
        Path | None,
        "Append a row for each interval, direction and session to this file.",
        "--csv",
        metavar="FILE",
    )
    as_json: bool = option(OUTPUT, bool, "Print JSON.", "--json", "-J", default=False, metavar="")
    as_json_stream: bool = option(
        OUTPUT, bool, "Print JSON lines while the test is running.", "--json-stream", default=False, metavar=""
    )

    def to_outputs(self) -> "Outputs":
        """Return the outputs; raise UsageError for two kinds of JSON."""
        from ..services.run_spec import Outputs

        return Outputs(csv=self.csv, as_json=self.as_json, as_json_stream=self.as_json_stream)


@dataclass(frozen=True, slots=True)
class SeriesOutputOptions:
    """Where the result of a series of runs goes."""

    csv: Path | None = option(OUTPUT, Path | None, "Write a row for each run.", "--csv", metavar="FILE")
    report: Path | None = option(OUTPUT, Path | None, "Write an HTML page with plots.", metavar="FILE")
    force: bool = option(
        OUTPUT, bool, "Replace the files if they exist.", "--force", "-f", default=False, metavar=""
    )
    as_json: bool = option(OUTPUT, bool, "Print JSON.", "--json", "-J", default=False, metavar="")
    as_json_stream: bool = option(
        OUTPUT, bool, "Print JSON lines while the test is running.", "--json-stream", default=False, metavar=""
    )

    def to_outputs(self) -> "Outputs":
        """Return the outputs. Raises PlanError if a file cannot be written, UsageError for both kinds of JSON."""
        from ..services.run_spec import Outputs

        page = self.report
        if page is not None:
            from ..report.html import check_report_path

            page = check_report_path(page)
        check_output_file("CSV file", self.csv, force=self.force)
        check_output_file("report", page, force=self.force)
        return Outputs(csv=self.csv, report=page, as_json=self.as_json, as_json_stream=self.as_json_stream)

    @property
    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        files = {"--csv": self.csv, "--report": self.report}
        flags = {"--force": self.force, "--json": self.as_json, "--json-stream": self.as_json_stream}
        return [
            *(word for name, path in files.items() if path is not None for word in (name, str(path))),
            *(name for name, is_given in flags.items() if is_given),
        ]


@dataclass(frozen=True, slots=True)
class OutputOptions(ResultOptions):
    """The same, and what is a pass."""

    pass_mark: str | None = option(
        OUTPUT,
        str | None,
        "Percent of the expected rate that is a pass.",
        metavar="PERCENT",
        default_text="the one in your settings, else 95",
    )
    why: bool = option(
        OUTPUT, bool, "Say what limits the rate, even without an expected rate.", "--why", default=False, metavar=""
    )
    confirm: bool = option(
        OUTPUT,
        bool,
        "The same as --why, and then test once more, with one option changed: is the first finding the limit?",
        "--confirm",
        default=False,
        metavar="",
    )
