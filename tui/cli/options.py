"""The options of the commands, as Typer wants them: each once, in the same words everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer, check_port
from ...engine.model.plan import Direction, Mode, Plan, Settings, SocketOptions
from ...engine.model.workload import Workload, all_workloads, workload_named
from ..text import parsing

_PANEL: Final = "Where PEER is ssh://[USER@]HOST[:PORT]"


def _ssh_option(kind: Any, help_: str, name: str, metavar: str, *, default: Any = None) -> Any:
    option = typer.Option(name, metavar=metavar, show_default=False, help=help_, rich_help_panel=_PANEL)
    return field(default=default, metadata={"option": Annotated[kind, option]})


@dataclass(frozen=True, slots=True)
class SshOptions:
    """How a far end is started through ssh, as typed: each field is an option of the commands with a PEER."""

    ssh_command: str | None = _ssh_option(
        str | None, "The ssh to use: 'ssh -i key'; or LINKGAUGE_SSH_COMMAND.", "--ssh-command", "TEXT"
    )
    data_port: str | None = _ssh_option(
        str | None, "The TCP port for data there, where a firewall lets only some through.", "--data-port", "N"
    )
    via_ssh: bool = _ssh_option(
        bool,
        "Have ssh carry the data too: measures what ssh lets through.",
        "--via-ssh",
        "",
        default=False,
    )

    def apply_to(self, peer: Peer) -> Peer:
        """Return the peer with these options; raise PlanError where they are not for it."""
        if peer.ssh is None:
            given = {"ssh command": self.ssh_command, "data port": self.data_port, "via ssh": self.via_ssh or None}
            for name, value in given.items():
                if value is not None:
                    raise PlanError(name, value, f"it is for a peer such as ssh://{peer.host}")
            return peer
        ssh = replace(
            peer.ssh,
            command=self.ssh_command,
            data_port=None if self.data_port is None else _port(self.data_port),
            is_data_tunneled=self.via_ssh,
        )
        return replace(peer, ssh=ssh)


def _port(text: str) -> int:
    return check_port(parsing.integer(text, "data port", "give a number from 1 to 65535"))


if TYPE_CHECKING:
    from ...presets.wire import Variant

_TEST: Final = "What is tested"
_SOCKETS: Final = "How it is carried"
_LINK: Final = "The link, where it is not quite the preset's: what to expect is then computed"
_ACCESS: Final = "What the far end is shown, and asked for"
_OUTPUT: Final = "What comes out"

PeerArgument = Annotated[
    str,
    typer.Argument(metavar="PEER", show_default=False, help="HOST[:PORT], ssh://[USER@]HOST[:PORT], or loopback."),
]
LangOption = Annotated[
    str | None,
    typer.Option(
        "--lang", metavar="en|ja", show_default="the locale's", help="The language that presets are named in."
    ),
]
PassMarkOption = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        show_default="the one in the app's settings, else 95",
        help="Share of the expected rate that is a pass.",
        rich_help_panel=_OUTPUT,
    ),
]
CsvOption = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        show_default=False,
        help="Write a row for each interval, direction and session as it comes; "
        "a file of earlier runs is continued.",
        rich_help_panel=_OUTPUT,
    ),
]
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="TEXT", show_default=False, help="A name for the run, to find it by.",
        rich_help_panel=_OUTPUT,
    ),
]  # fmt: skip
JsonOption = Annotated[
    bool, typer.Option("--json", metavar="", help="Print JSON, for programs.", rich_help_panel=_OUTPUT)
]


def _option(
    default: Any,
    kind: Any,
    help_: str,
    *,
    metavar: str | None = None,
    shown: str | bool = True,
    parser: Callable[[str], Any] | None = None,
) -> Any:
    """Return a field that is an option of every command that tests."""
    option = typer.Option(metavar=metavar, show_default=shown, help=help_, rich_help_panel=_TEST, parser=parser)
    return field(default=default, metadata={"option": Annotated[kind, option]})


def _workload(name: str) -> Workload:
    """Return a workload by its name, as Typer parses an option."""
    try:
        return workload_named(name)
    except ValueError:
        names = ", ".join(f"'{workload}'" for workload in all_workloads())
        raise typer.BadParameter(f"'{name}' is not one of {names}.") from None


def _tuning(kind: Any, help_: str, *, metavar: str | None = None, default: Any = None) -> Any:
    """Return a field that is an option few people need."""
    option = typer.Option(metavar=metavar, show_default=False, help=help_, rich_help_panel=_SOCKETS)
    return field(default=default, metadata={"option": Annotated[kind, option]})


def _of_link(kind: Any, names: tuple[str, ...], help_: str, metavar: str, shown: str, default: Any = None) -> Any:
    """Return a field that is an option of every command with a preset."""
    option = typer.Option(*names, metavar=metavar, show_default=shown, help=help_, rich_help_panel=_LINK)
    return field(default=default, metadata={"option": Annotated[kind, option]})


def _of_access(kind: Any, name: str, help_: str, *, metavar: str = "", default: Any = None) -> Any:
    """Return a field that is an option of every command that goes to a far end."""
    option = typer.Option(name, metavar=metavar, show_default=False, help=help_, rich_help_panel=_ACCESS)
    return field(default=default, metadata={"option": Annotated[kind, option]})


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """What a far end is shown and asked for, as typed: each field is an option of the commands that go to one."""

    key_file: Path | None = _of_access(
        Path | None,
        "--key-file",
        "A file with the far end's key, which only you can read; without it LINKGAUGE_KEY, or the keys file.",
        metavar="FILE",
    )
    open_: bool = _of_access(
        bool, "--open", "Take a far end that asks for no key, though there is one.", default=False
    )

    tls_fingerprint: str | None = _of_access(
        str | None,
        "--tls-fingerprint",
        "The SHA-256 of the far end's certificate, as it says it at its start: the control connection is then TLS.",
        metavar="SHA256",
    )

    def parse_peer(self, text: str) -> "Peer":
        """Return the peer that a person named, with what there is to bring to it."""
        from ..services.credentials import read_fingerprint, with_access

        pinned = None if self.tls_fingerprint is None else read_fingerprint(self.tls_fingerprint)
        return with_access(parsing.peer(text), key_file=self.key_file, may_be_open=self.open_, fingerprint=pinned)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """How a link differs from its preset's, as typed: each field is an option of the commands with a preset."""

    line_rate: str | None = _of_link(
        str | None,
        ("--line-rate",),
        "What the line carries: 100M, 2.5G, 10Gb.",
        "RATE",
        "the preset's; with auto what the NICs report",
    )
    mtu: str | None = _of_link(str | None, ("--mtu",), "The largest IP packet, bytes.", "N", "the preset's")
    ipv6: bool = _of_link(bool, ("--ipv6",), "IPv6 carries TCP.", "", "IPv4", default=False)
    vlan: str = _of_link(str, ("--vlan",), "VLAN tags of a frame: 1, or 2 for QinQ.", "N", "0", default="0")
    tunnel: str | None = _of_link(
        str | None,
        ("--tunnel",),
        "A tunnel in the link: vxlan, wireguard, gre or pppoe.",
        "NAME",
        "the preset's, if any",
    )
    timestamps: bool | None = _of_link(
        bool | None, ("--timestamps/--no-timestamps",), "TCP timestamps (RFC 7323).", "", "the preset's"
    )

    def to_variant(self) -> "Variant":
        """Return the options for the wire model; raise PlanError for the first that cannot be."""
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
class PlanOptions:
    """A plan as typed: each field is an option of the commands that test."""

    direction: Direction = _option(
        Direction.OUT, Direction, "Who sends, or asks: out this end, in the far end, duplex both at once."
    )
    sessions: str = _option("1", str, "TCP connections in each direction, 1 to 128.", metavar="N")
    window: str = _option("auto", str, "Socket buffers: auto, 56K, 1M, 65536.", metavar="SIZE")
    seconds: str | None = _option(
        None,
        str | None,
        "How long: 10, 1.5, 2m, or none for until Ctrl-C.",
        metavar="TIME",
        shown="10, in the app 30",
    )
    warmup: str | None = _option(
        None,
        str | None,
        "The part at the start that is left out of the result; auto leaves out all until the rate has settled.",
        metavar="TIME|auto",
        shown="a fifth of the test, at most 1 s",
    )
    interval: str = _option("0.25", str, "Time between samples, 50ms to 10.", metavar="TIME")
    workload: Workload = _option(
        Workload.STREAM,
        Workload,
        "What the sessions carry: a stream; rr requests and answers, crr each on a new connection, "
        "fetch with large answers.",
        metavar=f"<{'|'.join(all_workloads())}>",
        parser=_workload,
    )
    probe: bool = _option(
        False, bool, "Measure latency before the stream and under its load.", metavar="", shown=False
    )
    block: str = _option("1M", str, "What a session sends at once.", metavar="SIZE")
    congestion: str | None = _option(
        None,
        str | None,
        "Congestion control: cubic, reno, bbr, …",
        metavar="NAME",
        shown="the machine's own",
    )
    mode: Mode | None = _tuning(
        Mode | None, "How payload moves: copy, sendfile, or discard, which the receiving kernel drops unread."
    )
    request: str | None = _tuning(str | None, "Size of a request (rr 200, crr 64, fetch 20 bytes).", metavar="SIZE")
    response: str | None = _tuning(
        str | None, "Size of an answer (rr 1000, crr 8192, fetch 20000000 bytes).", metavar="SIZE"
    )
    burst: str | None = _tuning(str | None, "Requests in flight on each connection (rr).", metavar="N")
    workers: str | None = _tuning(str | None, "Worker processes at each end, 1 to 64.", metavar="N")
    cores: str | None = _tuning(str | None, "Cores the near end's workers stay on: 0,2 or 0-3.", metavar="LIST")
    far_cores: str | None = _tuning(str | None, "Cores the far end's workers stay on.", metavar="LIST")
    mss: str | None = _tuning(str | None, "Maximum segment size, bytes.", metavar="N")
    dscp: str | None = _tuning(str | None, "Differentiated services code point, 0 to 63.", metavar="N")
    nodelay: bool = _tuning(bool, "Send small segments at once (TCP_NODELAY).", metavar="", default=False)
    source: str | None = _tuning(str | None, "The near end's address.", metavar="ADDRESS")
    device: str | None = _tuning(str | None, "The near end's interface.", metavar="NAME")

    def to_plan(self, seconds: str = "10") -> Plan:
        """Return the plan, of `seconds` where none are given; raise PlanError for the first thing wrong."""
        auto = self.warmup is not None and self.warmup.strip().lower() == "auto"
        return Plan(
            settings=Settings(self.direction, parsing.sessions(self.sessions), parsing.window_bytes(self.window)),
            workload=self.workload,
            duration_ns=self.duration_ns(seconds),
            warmup_ns=None if self.warmup is None or auto else parsing.time_ns(self.warmup, "warm-up", _WARMUP),
            warmup_auto=auto,
            interval_ns=parsing.time_ns(self.interval, "interval", _INTERVAL),
            block_bytes=parsing.block_bytes(self.block),
            mode=self.mode,
            socket=SocketOptions(
                congestion=self.congestion,
                mss_bytes=None
                if self.mss is None
                else parsing.integer(self.mss, "MSS", "give bytes, such as 1448"),
                dscp=None if self.dscp is None else parsing.integer(self.dscp, "DSCP", "give 0 to 63 (RFC 2474)"),
                nodelay=self.nodelay,
                source=self.source,
                device=self.device,
            ),
            request_bytes=None if self.request is None else parsing.message_bytes(self.request, "request"),
            response_bytes=None if self.response is None else parsing.message_bytes(self.response, "response"),
            probe=self.probe,
            burst=1 if self.burst is None else parsing.integer(self.burst, "burst", "give 1 to 1024 requests"),
            workers=None if self.workers is None else parsing.integer(self.workers, "workers", "give 1 to 64"),
            near_cores=None if self.cores is None else parsing.cores(self.cores),
            far_cores=None if self.far_cores is None else parsing.cores(self.far_cores),
        )

    def duration_ns(self, default: str) -> int | None:
        """Return how long the test lasts; raise PlanError where that cannot be."""
        return parsing.duration_ns(default if self.seconds is None else self.seconds)


@dataclass(frozen=True, slots=True)
class TestOptions(PlanOptions):
    """A plan as typed for a test that may end by how well its result is known."""

    until_ci: str | None = _option(
        None,
        str | None,
        "Go on until the mean is known within this: its 95 % confidence interval reaches no further to each side.",
        metavar="PERCENT",
        shown=False,
    )
    max_seconds: str | None = _option(
        None, str | None, "How long at most, with --until-ci.", metavar="TIME", shown="60"
    )

    def target_ci_percent(self) -> float | None:
        """Return how well the mean is to be known, in percent of it; None where the duration alone counts."""
        return None if self.until_ci is None else parsing.ci_percent(self.until_ci)

    def duration_ns(self, default: str) -> int | None:
        """Return how long the test lasts, at most; raise PlanError where that cannot be."""
        if self.until_ci is None:
            if self.max_seconds is not None:
                raise PlanError("--max-seconds", repr(self.max_seconds), "it goes with --until-ci")
            return super(TestOptions, self).duration_ns(default)
        if self.seconds is not None:
            raise PlanError("--seconds", repr(self.seconds), "with --until-ci give --max-seconds")
        return parsing.duration_ns("60" if self.max_seconds is None else self.max_seconds)


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with every field of its groups of options as an option.

    They take the place of the command's argument of the group's class. Typer reads a function's signature; this one
    is made, so that these options stand in one place.
    """
    groups: dict[str, type[PlanOptions | TestOptions | LinkOptions | AccessOptions | SshOptions]] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        if parameter.annotation in {PlanOptions, TestOptions, LinkOptions, AccessOptions, SshOptions}:
            groups[parameter.name] = parameter.annotation
            parameters += [
                Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.metadata["option"])
                for one in fields(parameter.annotation)
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    def with_groups(**given: Any) -> int:
        asked = {name: of(**{one.name: given.pop(one.name) for one in fields(of)}) for name, of in groups.items()}
        return command(**asked, **given)

    # Typer also looks at these two: a function without annotations of its own has only its signature.
    with_groups.__signature__ = Signature(parameters, return_annotation=int)  # pyright: ignore[reportFunctionMemberAccess]
    with_groups.__annotations__ = {}
    with_groups.__doc__ = command.__doc__
    with_groups.__name__ = command.__name__
    return with_groups


_WARMUP: Final = "give auto, or seconds such as 0, 0.5 or 2"
_INTERVAL: Final = "give a time such as 0.25 or 100ms (0.05 s to 10 s)"
