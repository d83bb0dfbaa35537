"""The options of the commands: each is declared once and reads the same in every command.

A group of options is a dataclass with one field for each option, as typed. A command takes the groups it needs as
parameters, and `with_options` turns their fields into options of the command.
"""

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

if TYPE_CHECKING:
    from ...presets.wire import Variant

# Panels of the help.
_TEST: Final = "What is tested"
_SOCKETS: Final = "How it is carried"
_LINK: Final = "The link, where it is not quite the preset's: what to expect is then computed"
_ACCESS: Final = "What the far end is shown, and asked for"
_SSH: Final = "Where PEER is ssh://[USER@]HOST[:PORT]"
_OUTPUT: Final = "What comes out"

_WARMUP_REMEDY: Final = "give auto, or seconds such as 0, 0.5 or 2"
_INTERVAL_REMEDY: Final = "give a time such as 0.25 or 100ms (0.05 s to 10 s)"

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
    panel: str,
    kind: Any,
    help_: str,
    *names: str,
    default: Any = None,
    metavar: str | None = None,
    shown: str | bool = False,
    parser: Callable[[str], Any] | None = None,
) -> Any:
    """Return a dataclass field that `with_options` turns into an option.

    Args:
        panel: the panel of the help that lists the option.
        kind: the type of the value.
        help_: the help text.
        names: the names, such as `--mtu`; without any, Typer derives one from the field's name.
        default: the value where the option is absent.
        metavar: the placeholder of the value in the help; "" for none, None for Typer's own.
        shown: the default as help shows it; True for `default` itself, False for nothing.
        parser: converts the text, where Typer cannot.
    """
    option = typer.Option(
        *names, metavar=metavar, show_default=shown, help=help_, rich_help_panel=panel, parser=parser
    )
    return field(default=default, metadata={"option": Annotated[kind, option]})


def _parse_workload(name: str) -> Workload:
    try:
        return workload_named(name)
    except ValueError:
        names = ", ".join(f"'{workload}'" for workload in all_workloads())
        raise typer.BadParameter(f"'{name}' is not one of {names}.") from None


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options that make up a plan."""

    direction: Direction = _option(
        _TEST,
        Direction,
        "Who sends, or asks: out this end, in the far end, duplex both at once.",
        default=Direction.OUT,
        shown=True,
    )
    sessions: str = _option(
        _TEST, str, "TCP connections in each direction, 1 to 128.", default="1", metavar="N", shown=True
    )
    window: str = _option(
        _TEST, str, "Socket buffers: auto, 56K, 1M, 65536.", default="auto", metavar="SIZE", shown=True
    )
    seconds: str | None = _option(
        _TEST,
        str | None,
        "How long: 10, 1.5, 2m, or none for until Ctrl-C.",
        metavar="TIME",
        shown="10, in the app 30",
    )
    warmup: str | None = _option(
        _TEST,
        str | None,
        "The part at the start that is left out of the result; auto leaves out all until the rate has settled.",
        metavar="TIME|auto",
        shown="a fifth of the test, at most 1 s",
    )
    interval: str = _option(
        _TEST, str, "Time between samples, 50ms to 10.", default="0.25", metavar="TIME", shown=True
    )
    workload: Workload = _option(
        _TEST,
        Workload,
        "What the sessions carry: a stream; rr requests and answers, crr each on a new connection, "
        "fetch with large answers.",
        default=Workload.STREAM,
        metavar=f"<{'|'.join(all_workloads())}>",
        shown=True,
        parser=_parse_workload,
    )
    probe: bool = _option(
        _TEST, bool, "Measure latency before the stream and under its load.", default=False, metavar=""
    )
    block: str = _option(_TEST, str, "What a session sends at once.", default="1M", metavar="SIZE", shown=True)
    congestion: str | None = _option(
        _TEST, str | None, "Congestion control: cubic, reno, bbr, …", metavar="NAME", shown="the machine's own"
    )
    mode: Mode | None = _option(
        _SOCKETS,
        Mode | None,
        "How payload moves: copy, sendfile, or discard, which the receiving kernel drops unread.",
    )
    request: str | None = _option(
        _SOCKETS, str | None, "Size of a request (rr 200, crr 64, fetch 20 bytes).", metavar="SIZE"
    )
    response: str | None = _option(
        _SOCKETS, str | None, "Size of an answer (rr 1000, crr 8192, fetch 20000000 bytes).", metavar="SIZE"
    )
    burst: str | None = _option(_SOCKETS, str | None, "Requests in flight on each connection (rr).", metavar="N")
    workers: str | None = _option(_SOCKETS, str | None, "Worker processes at each end, 1 to 64.", metavar="N")
    cores: str | None = _option(
        _SOCKETS, str | None, "Cores the near end's workers stay on: 0,2 or 0-3.", metavar="LIST"
    )
    far_cores: str | None = _option(_SOCKETS, str | None, "Cores the far end's workers stay on.", metavar="LIST")
    mss: str | None = _option(_SOCKETS, str | None, "Maximum segment size, bytes.", metavar="N")
    dscp: str | None = _option(_SOCKETS, str | None, "Differentiated services code point, 0 to 63.", metavar="N")
    nodelay: bool = _option(_SOCKETS, bool, "Send small segments at once (TCP_NODELAY).", default=False, metavar="")
    source: str | None = _option(_SOCKETS, str | None, "The near end's address.", metavar="ADDRESS")
    device: str | None = _option(_SOCKETS, str | None, "The near end's interface.", metavar="NAME")

    def to_plan(self, default_seconds: str = "10") -> Plan:
        """Return the plan; `default_seconds` applies without --seconds. Raise PlanError for the first bad value."""
        warmup_auto = self.warmup is not None and self.warmup.strip().lower() == "auto"
        return Plan(
            settings=Settings(self.direction, parsing.sessions(self.sessions), parsing.window_bytes(self.window)),
            workload=self.workload,
            duration_ns=self.duration_ns(default_seconds),
            warmup_ns=None
            if self.warmup is None or warmup_auto
            else parsing.time_ns(self.warmup, "warm-up", _WARMUP_REMEDY),
            warmup_auto=warmup_auto,
            interval_ns=parsing.time_ns(self.interval, "interval", _INTERVAL_REMEDY),
            block_bytes=parsing.block_bytes(self.block),
            mode=self.mode,
            socket=SocketOptions(
                congestion=self.congestion,
                mss_bytes=_optional_integer(self.mss, "MSS", "give bytes, such as 1448"),
                dscp=_optional_integer(self.dscp, "DSCP", "give 0 to 63 (RFC 2474)"),
                nodelay=self.nodelay,
                source=self.source,
                device=self.device,
            ),
            request_bytes=None if self.request is None else parsing.message_bytes(self.request, "request"),
            response_bytes=None if self.response is None else parsing.message_bytes(self.response, "response"),
            probe=self.probe,
            burst=1 if self.burst is None else parsing.integer(self.burst, "burst", "give 1 to 1024 requests"),
            workers=_optional_integer(self.workers, "workers", "give 1 to 64"),
            near_cores=None if self.cores is None else parsing.cores(self.cores),
            far_cores=None if self.far_cores is None else parsing.cores(self.far_cores),
        )

    def duration_ns(self, default_seconds: str) -> int | None:
        """Return the duration of the test, None without a limit; raise PlanError for a bad one."""
        return parsing.duration_ns(default_seconds if self.seconds is None else self.seconds)


def _optional_integer(text: str | None, name: str, remedy: str) -> int | None:
    return None if text is None else parsing.integer(text, name, remedy)


@dataclass(frozen=True, slots=True)
class TestOptions(PlanOptions):
    """The options of a plan for a test that may end once its result is precise enough."""

    until_ci: str | None = _option(
        _TEST,
        str | None,
        "Go on until the mean is known within this: its 95 % confidence interval reaches no further to each side.",
        metavar="PERCENT",
    )
    max_seconds: str | None = _option(
        _TEST, str | None, "How long at most, with --until-ci.", metavar="TIME", shown="60"
    )

    def target_ci_percent(self) -> float | None:
        """Return the half width of the confidence interval that ends the test, in percent of the mean, if any."""
        return None if self.until_ci is None else parsing.ci_percent(self.until_ci)

    def duration_ns(self, default_seconds: str) -> int | None:
        """Return the maximum duration of the test; raise PlanError for a bad one."""
        if self.until_ci is None:
            if self.max_seconds is not None:
                raise PlanError("--max-seconds", repr(self.max_seconds), "it goes with --until-ci")
            # With slots the decorator makes a second class, which super() without arguments does not know.
            return super(TestOptions, self).duration_ns(default_seconds)
        if self.seconds is not None:
            raise PlanError("--seconds", repr(self.seconds), "with --until-ci give --max-seconds")
        return parsing.duration_ns("60" if self.max_seconds is None else self.max_seconds)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """The differences of a link from its preset's."""

    line_rate: str | None = _option(
        _LINK,
        str | None,
        "What the line carries: 100M, 2.5G, 10Gb.",
        "--line-rate",
        metavar="RATE",
        shown="the preset's; with auto what the NICs report",
    )
    mtu: str | None = _option(
        _LINK, str | None, "The largest IP packet, bytes.", "--mtu", metavar="N", shown="the preset's"
    )
    ipv6: bool = _option(_LINK, bool, "IPv6 carries TCP.", "--ipv6", default=False, metavar="", shown="IPv4")
    vlan: str = _option(
        _LINK, str, "VLAN tags of a frame: 1, or 2 for QinQ.", "--vlan", default="0", metavar="N", shown="0"
    )
    tunnel: str | None = _option(
        _LINK,
        str | None,
        "A tunnel in the link: vxlan, wireguard, gre or pppoe.",
        "--tunnel",
        metavar="NAME",
        shown="the preset's, if any",
    )
    timestamps: bool | None = _option(
        _LINK,
        bool | None,
        "TCP timestamps (RFC 7323).",
        "--timestamps/--no-timestamps",
        metavar="",
        shown="the preset's",
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
class AccessOptions:
    """The credentials for a far end, and the demands on it."""

    key_file: Path | None = _option(
        _ACCESS,
        Path | None,
        "A file with the far end's key, which only you can read; without it LINKGAUGE_KEY, or the keys file.",
        "--key-file",
        metavar="FILE",
    )
    open_: bool = _option(
        _ACCESS,
        bool,
        "Take a far end that asks for no key, though there is one.",
        "--open",
        default=False,
        metavar="",
    )
    tls_fingerprint: str | None = _option(
        _ACCESS,
        str | None,
        "The SHA-256 of the far end's certificate, as it says it at its start: the control connection is then TLS.",
        "--tls-fingerprint",
        metavar="SHA256",
    )

    def parse_peer(self, text: str) -> Peer:
        """Return the peer of this text, with the credentials for it."""
        from ..services.credentials import read_fingerprint, with_access

        fingerprint = None if self.tls_fingerprint is None else read_fingerprint(self.tls_fingerprint)
        return with_access(
            parsing.peer(text), key_file=self.key_file, may_be_open=self.open_, fingerprint=fingerprint
        )


@dataclass(frozen=True, slots=True)
class SshOptions:
    """The way ssh starts a far end."""

    ssh_command: str | None = _option(
        _SSH,
        str | None,
        "The ssh to use: 'ssh -i key'; or LINKGAUGE_SSH_COMMAND.",
        "--ssh-command",
        metavar="TEXT",
    )
    data_port: str | None = _option(
        _SSH,
        str | None,
        "The TCP port for data there, where a firewall lets only some through.",
        "--data-port",
        metavar="N",
    )
    via_ssh: bool = _option(
        _SSH,
        bool,
        "Have ssh carry the data too: measures what ssh lets through.",
        "--via-ssh",
        default=False,
        metavar="",
    )

    def apply_to(self, peer: Peer) -> Peer:
        """Return the peer with these options; raise PlanError where ssh does not start it."""
        if peer.ssh is None:
            options = {
                "ssh command": self.ssh_command,
                "data port": self.data_port,
                "via ssh": self.via_ssh or None,
            }
            for name, value in options.items():
                if value is not None:
                    raise PlanError(name, value, f"it is for a peer such as ssh://{peer.host}")
            return peer
        ssh = replace(
            peer.ssh,
            command=self.ssh_command,
            data_port=None if self.data_port is None else _parse_port(self.data_port),
            is_data_tunneled=self.via_ssh,
        )
        return replace(peer, ssh=ssh)


def _parse_port(text: str) -> int:
    return check_port(parsing.integer(text, "data port", "give a number from 1 to 65535"))


_GROUPS: Final = (PlanOptions, TestOptions, LinkOptions, AccessOptions, SshOptions)


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with an option for every field of its groups of options.

    The options take the place of the parameter that has the group as its annotation. Typer reads the signature of a
    function, so the returned function has one that is built here.
    """
    groups: dict[str, Any] = {}
    parameters: list[Parameter] = []
    for parameter in signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if group in _GROUPS:
            groups[parameter.name] = group
            parameters += [
                Parameter(
                    option.name,
                    Parameter.KEYWORD_ONLY,
                    default=option.default,
                    annotation=option.metadata["option"],
                )
                for option in fields(group)
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    def with_groups(**values: Any) -> int:
        options = {
            name: group(**{option.name: values.pop(option.name) for option in fields(group)})
            for name, group in groups.items()
        }
        return command(**options, **values)

    # Typer reads these as well. Without annotations, the function has only its signature.
    with_groups.__signature__ = Signature(parameters, return_annotation=int)  # pyright: ignore[reportFunctionMemberAccess]
    with_groups.__annotations__ = {}
    with_groups.__doc__ = command.__doc__
    with_groups.__name__ = command.__name__
    return with_groups
