"""`linkgauge endpoint`: the far end, and the keys of its clients."""

import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from ....engine.model.errors import UsageError, require_extra
from ....engine.model.peer import DEFAULT_PORT, IPERF3_PORT
from ...words import parsing
from ..click_extension.command_groups import CommandWithMore, DefaultGroup
from ..click_extension.option_fields import argument, flag, group, option, setting_option
from ..metrics_options import MetricsOptions
from ..output import emit_json, emit_line, print_stderr
from ..output_options import json_flag

if TYPE_CHECKING:
    from ....metrics.publication import PublishingPlan
    from ...endpoint.endpoint_setup import EndpointConfig, LimitSources
    from ...endpoint.iperf3_service import Iperf3Config

_ENDPOINT: Final = "Endpoint"
_IPERF3: Final = "iperf3"
_LIMITS: Final = "Limits"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """The options of an endpoint: where it listens, its key and its certificate."""

    bind: str | None = setting_option("bind", _ENDPOINT)
    port: str = option(
        _ENDPOINT,
        "TCP port to listen on; 0 takes a free one.",
        brief="TCP port to listen on. [5820]",
        default=str(DEFAULT_PORT),
        metavar="N",
    )
    key_file: Path | None = setting_option("endpoint_key_file", _ENDPOINT)
    open_: bool = flag(_ENDPOINT, "Ask for no key: serve everybody.", brief="Ask for no key: serve everybody.")
    tls_cert: Path | None = option(
        _ENDPOINT,
        "Certificate (PEM): control connections use TLS. SIGHUP reads it again.",
        brief="Certificate (PEM): connections use TLS.",
        metavar="FILE",
    )
    tls_key: Path | None = option(
        _ENDPOINT,
        "Private key of the certificate (PEM); only you may read it.",
        brief="Private key of the certificate (PEM).",
        metavar="FILE",
    )
    exclusive: bool = flag(
        _ENDPOINT,
        "Carry out one test at a time; others are refused, or wait if they have --wait.",
        brief="Carry out one test at a time.",
    )
    ui: bool = flag(
        _ENDPOINT,
        "Show clients, rates and the log on a screen.",
        brief="Show clients, rates and the log on a screen.",
    )
    http: str | None = option(
        _ENDPOINT,
        "Serve a page that tests with browsers of other devices, at this port. Its link carries a key, except with "
        "--open or on a loopback address.",
        brief="Serve a page for tests with browsers.",
        metavar="[ADDR:]PORT",
    )
    announce: str | None = option(
        _ENDPOINT,
        "Announce it on this LAN by this name, with its port and whether it wants a key or TLS.",
        brief="Announce it on this LAN by this name.",
        metavar="NAME",
    )
    log_json: bool = flag(_ENDPOINT, "Log one JSON object a line.")
    log_file: Path | None = option(
        _ENDPOINT,
        "Append the log to this file; SIGHUP opens it again, after a rotation.",
        metavar="FILE",
        shown="stderr",
    )

    def to_config(
        self,
        limits: "LimitSources",
        iperf3: "Iperf3Config | None",
        metrics: "PublishingPlan | None",
        *,
        as_json: bool,
    ) -> "EndpointConfig":
        """Return the configuration; raise UsageError for options that exclude each other."""
        from ...endpoint.browser.browser_setup import BrowserConfig
        from ...endpoint.endpoint_setup import EndpointConfig, check_access

        key_file, tls_cert, tls_key = (
            None if path is None else str(path) for path in (self.key_file, self.tls_cert, self.tls_key)
        )
        tls = check_access(self.bind, key_file, (tls_cert, tls_key), is_open=self.open_)
        if self.announce is not None:
            require_extra("--announce needs multicast DNS", "discover", "zeroconf")
        http = None
        if self.http is not None:
            require_extra("--http needs a server and QR codes", "http", "aiohttp", "segno")
            http = BrowserConfig(*parsing.http_address(self.http))
        return EndpointConfig(
            self.bind,
            parsing.listening_port(self.port),
            key_file,
            is_open=self.open_,
            is_exclusive=self.exclusive,
            tls=tls,
            limits=limits,
            as_json=as_json,
            log_as_json=self.log_json,
            log_file=None if self.log_file is None else str(self.log_file.absolute()),
            iperf3=iperf3,
            metrics=metrics,
            announce=self.announce,
            http=http,
        )


@dataclass(frozen=True, slots=True)
class Iperf3ServiceOptions:
    """The options of an endpoint that serves clients of iperf3 as well."""

    iperf3: str | None = option(
        _IPERF3,
        f"Serve clients of iperf3 as well, on this port or on {IPERF3_PORT}. They prove no key: it takes --open, "
        "--iperf3-users or a loopback address.",
        brief="Serve clients of iperf3 as well. [5201]",
        metavar="[PORT]",
        is_flag=False,
        flag_value=str(IPERF3_PORT),
    )
    users: Path | None = option(
        _IPERF3,
        "Users of iperf3 clients, NAME,HASH each, as iperf3 has them; only you may read it. SIGHUP reads it again.",
        "--iperf3-users",
        metavar="FILE",
    )
    key: Path | None = option(
        _IPERF3,
        "RSA private key for the passwords of these users (PEM); only you may read it.",
        "--iperf3-key",
        metavar="FILE",
    )
    accepts_pkcs1: bool = flag(
        _IPERF3,
        "Accept the passwords of clients before iperf3 3.17 as well: their encryption is weaker.",
        "--iperf3-pkcs1",
    )

    def to_config(self) -> "Iperf3Config | None":
        """Return the configuration, None without iperf3; raise UsageError for options that need each other."""
        from ...endpoint.iperf3_service import Iperf3Config

        if (self.users is None) != (self.key is None):
            raise UsageError("--iperf3-users and --iperf3-key need each other; give both")
        if self.accepts_pkcs1 and self.users is None:
            raise UsageError("--iperf3-pkcs1 is about passwords; give --iperf3-users and --iperf3-key, too")
        if self.iperf3 is None:
            if self.users is not None:
                raise UsageError("--iperf3-users and --iperf3-key go with --iperf3; give it, too")
            return None
        users = None if self.users is None or self.key is None else (str(self.users), str(self.key))
        return Iperf3Config(parsing.iperf3_port(self.iperf3), users, accepts_pkcs1=self.accepts_pkcs1)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The options that limit what an endpoint does for its clients."""

    limits: Path | None = option(
        _LIMITS, "TOML file of limits, NAME = VALUE each. SIGHUP reads it again.", metavar="FILE"
    )
    limit: tuple[str, ...] = option(
        _LIMITS,
        "One limit; may be repeated.",
        brief="One limit; may be repeated.",
        default=(),
        metavar="NAME=VALUE",
    )
    allow: tuple[str, ...] = option(
        _LIMITS,
        "Serve only this network; may be repeated.",
        brief="Serve only this network; may be repeated.",
        default=(),
        metavar="NETWORK",
        shown="all",
    )
    deny: tuple[str, ...] = option(
        _LIMITS, "Refuse this network, even if allowed; may be repeated.", default=(), metavar="NETWORK"
    )
    show_limits: bool = flag(_LIMITS, "Print all limits and exit.", brief="Print all limits and exit.")

    def to_sources(self) -> "LimitSources":
        """Return the file and the limits as typed."""
        from ...endpoint.endpoint_setup import LimitSources

        file = None if self.limits is None else str(self.limits)
        return LimitSources(file, self.limit, self.allow, self.deny)


@dataclass(frozen=True, slots=True)
class EndpointCommandOptions:
    """An endpoint, and how it reports."""

    endpoint: EndpointOptions = group(EndpointOptions)
    iperf3_service: Iperf3ServiceOptions = group(Iperf3ServiceOptions)
    limited: LimitOptions = group(LimitOptions)
    publishing: MetricsOptions = group(MetricsOptions)
    stdio: int | None = option("", "The protocol of the near end that starts this process by ssh.", hidden=True)
    as_json: bool = json_flag()


def endpoint(options: EndpointCommandOptions) -> int:
    """Serve tests from other hosts: be their remote end.

    It serves many clients at once until Ctrl-C; SIGTERM lets the running tests end first. Clients need a key,
    except on a loopback address.
    """
    if options.stdio is not None:
        return _serve_ssh(options.stdio)
    limits, iperf3, metrics = options.limited, options.iperf3_service.to_config(), options.publishing.to_plan()
    config = options.endpoint.to_config(limits.to_sources(), iperf3, metrics, as_json=options.as_json)
    if limits.show_limits:
        from ..runners.endpoint_runner import print_limits

        return print_limits(config.limits, as_json=options.as_json)
    return _serve_on_screen(config) if options.endpoint.ui else _serve_without_screen(config)


def _serve_without_screen(config: "EndpointConfig") -> NoReturn:
    from ..runners.endpoint_runner import exec_endpoint

    exec_endpoint(config)


def _serve_on_screen(config: "EndpointConfig") -> int:
    if config.as_json or config.log_as_json or config.log_file is not None:
        raise UsageError("--ui needs the whole terminal; give neither --json nor --log-json nor --log-file with it")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("--ui needs a terminal; without one: linkgauge endpoint")
    from ..output import keep_log_off_screen
    from ..runners.endpoint_on_screen import serve_on_screen

    keep_log_off_screen()
    return serve_on_screen(config)


def _serve_ssh(protocol: int) -> int:
    """Serve the near end that started this process through ssh; refuse another protocol version."""
    from ....engine.protocol.preamble import PROTOCOL_VERSION
    from ....engine.ssh.remote_main import main

    if protocol != PROTOCOL_VERSION:
        raise UsageError(f"this linkgauge speaks protocol {PROTOCOL_VERSION}, not {protocol}")
    main()
    return 0


@dataclass(frozen=True, slots=True)
class KeyFileOptions:
    """A key file, and how the answer is printed."""

    key_file: Path | None = option(
        "",
        "The key file.",
        metavar="FILE",
        setting="endpoint_key_file",
        shown="endpoint-keys in the configuration directory",
    )
    as_json: bool = json_flag()

    def find(self) -> Path:
        """Return the file. The usual one's folder is made if it is missing; InvalidKeyError if that fails."""
        from ....engine.host.saved_files import create_private_directory
        from ....engine.model.errors import InvalidKeyError, explain_os_error
        from ...session.named_keys import default_key_file

        if self.key_file is not None:
            return self.key_file
        path = default_key_file()
        try:
            create_private_directory(path.parent)
        except OSError as error:
            why = f"{path.parent} cannot be made: {explain_os_error(error)}"
            raise InvalidKeyError(f"the directory {why}; give a file elsewhere with --key-file") from error
        return path


@dataclass(frozen=True, slots=True)
class NamedKeyOptions(KeyFileOptions):
    """A key of a key file."""

    name: str = argument("NAME", "Name of the key: of the client or user who gets it.")


def add_named_key(options: NamedKeyOptions) -> int:
    """Make a new key of this name, and print it once, with the command for the client.

    The file is made if it is missing, for you alone. The key counts from the endpoint's next start, or as soon as
    it reads the file again: SIGHUP, or systemctl reload linkgauge.
    """
    from ....engine.model.shared_key import KEY_VARIABLE
    from ....engine.model.texts.shell_commands import shell_command
    from ...session.named_keys import FORMER_NAME, add_key

    path = options.find()
    key, has_named = add_key(path, options.name)
    if has_named:
        print_stderr(f"the key that {path} had so far stays valid, by the name {FORMER_NAME}")
    if options.as_json:
        emit_json({"name": options.name, "key": key.reveal(), "key_file": str(path)})
        return 0
    emit_line(f"New key of {options.name}, shown only once. On the other host:")
    emit_line(f"  {shell_command(f'{KEY_VARIABLE}={key.reveal()}', 'linkgauge', 'check', socket.gethostname())}")
    return 0


def list_named_keys(options: KeyFileOptions) -> int:
    """List the names in the key file, and when each key was added; never a key (the default command)."""
    from ...session.named_keys import read_key_lines

    path = options.find()
    known = [] if not path.exists() else read_key_lines(path, may_be_empty=True)
    lines = [line for line in known if line.key is not None]
    names = ["" if line.key is None else line.key.name for line in lines]
    if options.as_json:
        rows = [{"name": name or None, "added": line.added} for name, line in zip(names, lines, strict=True)]
        emit_json({"key_file": str(path), "keys": rows})
        return 0
    if not lines:
        print_stderr(f"no keys in {path}" if path.exists() else f"no keys: there is no file {path}")
    width = max(map(len, names), default=0)
    for name, line in zip(names, lines, strict=True):
        added = "" if line.added is None else f"  added {line.added}"
        emit_line(f"{name or 'a key without a name':<{width}}{added}".rstrip())
    return 0


def remove_named_key(options: NamedKeyOptions) -> int:
    """Take the key of this name out of the file; running tests go on.

    It counts until the endpoint reads the file again: SIGHUP, or systemctl reload linkgauge.
    """
    from ...session.named_keys import remove_key
    from ...words.numbers import quantity

    path = options.find()
    removed = remove_key(path, options.name)
    if options.as_json:
        emit_json({"name": options.name, "removed": removed, "key_file": str(path)})
        return 0
    emit_line(f"{quantity(removed, 'key')} of {options.name} removed from {path}")
    return 0


KEY: Final = DefaultGroup(
    "key",
    "List, add and remove the keys of clients.\n\nEach has a name, which log, screen and metrics show.",
    {"list": list_named_keys, "add": add_named_key, "remove": remove_named_key},
)
ENDPOINT: Final = CommandWithMore("endpoint", endpoint, {KEY.name or "key": KEY})
