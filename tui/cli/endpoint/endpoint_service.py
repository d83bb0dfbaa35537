"""The far end as a service: its configuration, its setup, and serving until a signal ends it.

Reading a command line loads 12 MiB more than serving needs. So `linkgauge endpoint` replaces itself (execv(2)) with
this module, which keeps the process id, the descriptors and the environment.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from ....discovery.announcement import Announcement
from ....engine.control.tls import Certificate, format_fingerprint
from ....engine.far.endpoint import Endpoint
from ....engine.far.listener import get_inherited_listener, listen, notify_systemd, reachable_hosts
from ....engine.far.status import LogEntry, LogSink, LogValue
from ....engine.host.debug_log import configure_debug_log
from ....engine.host.event_loop import run
from ....engine.model.errors import (
    InvalidKeyError,
    InvalidLimitError,
    LinkgaugeError,
    TlsError,
    UsageError,
)
from ....engine.model.ip_address import check_zone, is_loopback_address
from ....engine.model.limits import Limits, limit_rules
from ....engine.model.peer import DEFAULT_PORT, Peer
from ....engine.model.shared_key import KEY_VARIABLE, SharedKey
from ....engine.model.shell_commands import shell_command
from ....engine.workloads.fastest_mode import ModeChooser
from ....metrics.publication import PublishingPlan
from ...endpoint.endpoint_log_lines import log_text
from ...session.credentials import key_from_environment, read_key_file
from ...session.storage import cache_dir
from ...words import numbers
from ..output import (
    emit_json,
    emit_json_line,
    emit_line,
    finish_output,
    log_stderr_line,
    prepare_streams,
    print_stderr,
    write_in_background,
)
from ..termination import handle_signals
from .endpoint_publication import EndpointPublication
from .iperf3_service import Iperf3Config, Iperf3Setup, prepare_iperf3, reload_users, serve_iperf3
from .key_file import saved_key
from .lan_announcement import announced_on_lan, check_announcement


@dataclass(frozen=True, slots=True)
class LimitSources:
    """The sources of the limits: a file, and the command line, which takes precedence."""

    file: str | None = None
    typed: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def read(self) -> Limits:
        """Return the limits; raise InvalidLimitError for the first bad one."""
        limits = Limits()
        if self.file is not None:
            try:
                limits = Limits.from_toml(Path(self.file).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not text"
                raise InvalidLimitError(f"the limits {self.file} cannot be read: {reason}") from error
            except InvalidLimitError as error:
                raise InvalidLimitError(f"{self.file}: {error}") from error
        typed: dict[str, object] = {}
        for text in self.typed:
            name, equals, value = text.partition("=")
            if not equals:
                raise InvalidLimitError(f"--limit {text[:40]}: give NAME=VALUE, such as clients=8")
            typed[name.strip()] = value
        networks = {"allow": self.allow, "deny": self.deny}
        return limits.with_changes({**typed, **{name: texts for name, texts in networks.items() if texts}})


def print_limits(sources: LimitSources, *, as_json: bool) -> int:
    """Print every limit as these sources set it; return the exit status."""
    values = sources.read().values()
    if as_json:
        emit_json({"limits": values})
        return 0
    for name, rule in limit_rules().items():
        value = values[name]
        text = (", ".join(value) or "none") if isinstance(value, list) else f"{value:,}".replace(",", " ")
        unit = "" if rule.unit == "networks" else rule.unit
        emit_line(f"{name:<20} {text:>16} {unit:<11} {rule.description}".rstrip())
    return 0


def check_access(
    bind: str | None, key_file: str | None, tls: tuple[str | None, str | None], *, is_open: bool
) -> tuple[str, str] | None:
    """Check the options that say who may connect, and how; return the files of the certificate, None without one.

    Raises:
        PlanError: The address to listen on has no interface, or one that cannot be.
        UsageError: Options exclude or need each other.
    """
    if is_open and key_file is not None:
        raise UsageError("--key-file and --open exclude each other; give one of them")
    certificate, key = tls
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key need each other; give both")
    if bind is not None:
        check_zone("--bind", bind)
    return None if certificate is None or key is None else (certificate, key)


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The configuration of an endpoint, as the command line states it."""

    bind: str | None
    port: int
    key_file: str | None = None
    is_open: bool = False
    tls: tuple[str, str] | None = None
    limits: LimitSources = LimitSources()
    as_json: bool = False
    log_as_json: bool = False
    iperf3: Iperf3Config | None = None
    metrics: PublishingPlan | None = None
    announce: str | None = None
    is_exclusive: bool = False

    def exec_endpoint(self) -> NoReturn:
        """Replace this process with an endpoint of this configuration."""
        sys.stdout.flush()
        sys.stderr.flush()
        module = f"{__package__}.endpoint_service"
        os.execv(sys.executable, [sys.executable, "-P", "-m", module, json.dumps(asdict(self))])  # noqa: S606

    @classmethod
    def from_json(cls, text: str) -> "EndpointConfig":
        """Return the configuration that `exec_endpoint` passed on."""
        values: dict[str, Any] = json.loads(text)
        limits: dict[str, Any] = values.pop("limits")
        file = limits.pop("file")
        sources = LimitSources(file, **{name: tuple(texts) for name, texts in limits.items()})
        tls: list[str] | None = values.pop("tls")
        iperf3: dict[str, Any] | None = values.pop("iperf3")
        metrics: dict[str, Any] | None = values.pop("metrics")
        return cls(
            **values,
            tls=None if tls is None else (tls[0], tls[1]),
            limits=sources,
            iperf3=None if iperf3 is None else Iperf3Config.from_values(iperf3),
            metrics=None if metrics is None else PublishingPlan.from_values(metrics),
        )


@dataclass(frozen=True, slots=True)
class EndpointSetup:
    """The resources of an endpoint: listening socket, limits, key and certificate, and those for iperf3.

    Without a key it is open.
    """

    listener: socket.socket
    limits: Limits
    key: SharedKey | None = None
    is_key_new: bool = False  # the key was generated at this start
    certificate: Certificate | None = None
    iperf3: Iperf3Setup | None = None

    @property
    def tls_option(self) -> str:
        """The option by which a near end trusts the certificate, after a space; empty without a certificate."""
        if self.certificate is None:
            return ""
        return f" --tls-fingerprint {format_fingerprint(self.certificate.fingerprint)}"

    @property
    def new_key(self) -> SharedKey | None:
        """The key that was generated at this start; None if the endpoint has another one or none."""
        return self.key if self.is_key_new else None

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can connect."""
        return is_loopback_address(self.listener.getsockname()[0])

    def describe_itself(self, name: str | None) -> Announcement | None:
        """Return the announcement of the endpoint on the LAN under a name; None without one."""
        if name is None:
            return None
        port, has_key, has_tls = self.listener.getsockname()[1], self.key is not None, self.certificate is not None
        iperf3_port = None if self.iperf3 is None else self.iperf3.port
        return Announcement(name, port, wants_key=has_key, wants_tls=has_tls, iperf3_port=iperf3_port)

    def find_peers(self) -> list[str]:
        """Return the addresses by which other hosts may reach the endpoint, with its port; the best one first."""
        port = self.listener.getsockname()[1]
        return [str(Peer(host, port)) for host in reachable_hosts(self.listener)]

    def near_command(self) -> str:
        """Return the command to paste at the near end, with the key if it is new."""
        peer = self.find_peers()[0].removesuffix(f":{DEFAULT_PORT}")
        key = [] if self.new_key is None else [f"{KEY_VARIABLE}={self.new_key.reveal()}"]
        return shell_command(*key, "linkgauge", "check", peer, *self.tls_option.split())

    def near_command_with_file(self) -> str:
        """Return the command for the near end, with the key in a file that has to be copied there."""
        peer = self.find_peers()[0].removesuffix(f":{DEFAULT_PORT}")
        return shell_command("linkgauge", "check", peer, "--key-file", "FILE", *self.tls_option.split())


def prepare_endpoint(config: EndpointConfig, log: LogSink) -> EndpointSetup:
    """Read the limits, the key and the certificate, and listen; raise LinkgaugeError if one of them fails."""
    limits = config.limits.read()
    if config.announce is not None:
        check_announcement(config.announce, config.port, config.bind)
    key = None if config.key_file is None else read_key_file(Path(config.key_file))
    key = key or key_from_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # no child process needs it
    certificate = None if config.tls is None else Certificate.load(*map(Path, config.tls))
    listener = get_inherited_listener(os.environ) or listen(config.bind, config.port)
    try:
        iperf3 = config.iperf3 and prepare_iperf3(config.iperf3, config.bind, is_open=config.is_open)
    except LinkgaugeError:
        listener.close()
        raise
    if config.is_open:
        text = "no key is required (--open): anybody who reaches this port can start tests with this host"
        log(LogEntry("open", text))
        return EndpointSetup(listener, limits, certificate=certificate, iperf3=iperf3)
    setup = EndpointSetup(listener, limits, key, certificate=certificate, iperf3=iperf3)
    if key is not None or setup.is_loopback:
        return setup
    return replace(setup, key=SharedKey.generate(), is_key_new=True)


def make_endpoint(config: EndpointConfig, setup: EndpointSetup, log: LogSink) -> Endpoint:
    """Return an endpoint that does not accept yet."""
    chooser = ModeChooser(cache_dir())
    endpoint = Endpoint(
        setup.listener,
        log,
        key=setup.key,
        limits=setup.limits,
        certificate=setup.certificate,
        mode_chooser=chooser,
    )
    endpoint.admission.turns.is_exclusive = config.is_exclusive
    return endpoint


def reload(config: EndpointConfig, setup: EndpointSetup, endpoint: Endpoint, log: LogSink) -> None:
    """Read limits, key, certificate and users again. A bad one is logged, and the earlier one stays in force."""
    try:
        endpoint.admission.limits = config.limits.read()
    except InvalidLimitError as error:
        log(LogEntry("not_reloaded", f"limits not changed: {error}"))
    else:
        log(LogEntry("reloaded", "limits read again: they apply to new connections"))
    if config.key_file is not None and not config.is_open:
        _reload_key(Path(config.key_file), endpoint, log)
    if config.tls is not None:
        _reload_certificate(config.tls, endpoint, log)
    if config.iperf3 is not None and setup.iperf3 is not None:
        reload_users(config.iperf3, setup.iperf3.users, log)


def _reload_key(path: Path, endpoint: Endpoint, log: LogSink) -> None:
    try:
        endpoint.key = read_key_file(path)
    except InvalidKeyError as error:
        log(LogEntry("not_reloaded", f"key not changed: {error}"))
        return
    log(LogEntry("reloaded", "key file read again: new connections need that key; running tests continue"))


def _reload_certificate(files: tuple[str, str], endpoint: Endpoint, log: LogSink) -> None:
    try:
        endpoint.certificate = certificate = Certificate.load(*map(Path, files))
    except TlsError as error:
        log(LogEntry("not_reloaded", f"certificate not changed: {error}"))
        return
    fingerprint = format_fingerprint(certificate.fingerprint)
    log(LogEntry("reloaded", f"certificate read again: new clients need --tls-fingerprint {fingerprint}"))


async def drain(endpoint: Endpoint, at_once: asyncio.Event, log: LogSink) -> None:
    """Wait until the current runs end, `drain_s` has passed or `at_once` is set. New clients are refused."""
    deadline_s = endpoint.admission.limits.drain_s
    log(LogEntry("draining", f"no new clients; running tests have {deadline_s} s to end", deadline_s=deadline_s))
    waiters = [asyncio.create_task(endpoint.drain(deadline_s)), asyncio.create_task(at_once.wait())]
    await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    for waiter in waiters:
        waiter.cancel()
    await asyncio.wait(waiters)


class _SignalReceiver:
    """Signals as events: SIGTERM sets `stop`; SIGINT or a second SIGTERM `stop_now` too; SIGHUP calls `reload`."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self.stop = asyncio.Event()
        self.stop_now = asyncio.Event()
        self._reload = reload
        # SIGHUP means reload for a config. With a terminal it means that the terminal has gone: then stop.
        self._has_terminal = sys.stdin.isatty()

    def receive(self, number: signal.Signals) -> None:
        """Act on a signal."""
        if number is signal.SIGHUP and not self._has_terminal:
            self._reload()
            return
        if number is not signal.SIGTERM or self.stop.is_set():
            self.stop_now.set()
        self.stop.set()


def serve_until_stopped(config: EndpointConfig) -> int:
    """Serve clients until a signal ends it. The first line on stdout states the address."""
    log = _json_log if config.log_as_json else _print_log
    setup = prepare_endpoint(config, log)
    with setup.listener:
        run(_serve(config, setup, log))
    return 0


async def _serve(config: EndpointConfig, setup: EndpointSetup, log: LogSink) -> None:
    with contextlib.ExitStack() as stack:
        key_file = None
        if setup.new_key is not None and not _has_private_output(as_json=config.as_json):
            key_file = stack.enter_context(saved_key(setup.new_key, setup.listener.getsockname()[1]))
        await _serve_clients(config, setup, log, key_file)


async def _serve_clients(config: EndpointConfig, setup: EndpointSetup, log: LogSink, key_file: Path | None) -> None:
    manager = os.environ.pop("NOTIFY_SOCKET", None)
    publication = EndpointPublication(config.metrics, log)
    async with (
        make_endpoint(config, setup, publication.log) as endpoint,
        serve_iperf3(setup.iperf3, endpoint, gives_json=config.as_json),
        publication.open(endpoint),
    ):

        def reload_files() -> None:
            reload(config, setup, endpoint, log)
            notify_systemd("READY=1", manager)

        signals = _SignalReceiver(reload_files)
        with handle_signals(signals.receive):
            _announce(config, endpoint.address, setup, key_file, publication.url)
            announcement = setup.describe_itself(config.announce)
            async with announced_on_lan(announcement, setup.listener, log, is_bound=config.bind is not None):
                notify_systemd("READY=1", manager)
                await signals.stop.wait()
                notify_systemd("STOPPING=1", manager)
            if not signals.stop_now.is_set():
                await drain(endpoint, signals.stop_now, log)


def _has_private_output(*, as_json: bool) -> bool:
    """Return whether a key may be printed: on a terminal, and as JSON to the program that reads it.

    A file, a supervisor's log and the journal are read by others, then or later.
    """
    if sys.stdout.isatty():
        return True
    mode = os.fstat(sys.stdout.fileno()).st_mode
    is_read_by_program = stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and "JOURNAL_STREAM" not in os.environ)
    return as_json and is_read_by_program


def _announce(
    config: EndpointConfig,
    address: tuple[str, int],
    setup: EndpointSetup,
    key_file: Path | None,
    metrics_url: str | None,
) -> None:
    """Print the address and the needs of a near end. A new key is printed only here, unless it is in a file."""
    host, port = address
    if config.as_json:
        facts: dict[str, Any] = {"host": host, "port": port, "asks_for_key": setup.key is not None}
        if setup.certificate is not None:
            facts["tls_fingerprint"] = format_fingerprint(setup.certificate.fingerprint)
        if setup.iperf3 is not None:
            facts["iperf3"] = setup.iperf3.facts()
        if metrics_url is not None:
            facts["metrics"] = metrics_url
        key = {} if setup.new_key is None else {"key": setup.new_key.reveal()}
        emit_json_line({"listening": facts, **(key if key_file is None else {"key_file": str(key_file)})})
        return
    emit_line(f"listening on {', '.join(setup.find_peers())}")
    if setup.iperf3 is not None:
        emit_line(f"iperf3 clients {setup.iperf3.access}, on port {setup.iperf3.port}:")
        emit_line(f"  {setup.iperf3.client_command}")
    if metrics_url is not None:
        emit_line(f"metrics: {metrics_url}")
    if setup.certificate is not None:
        emit_line(f"control connections use TLS; clients need:{setup.tls_option}")
    if key_file is not None:
        emit_line(f"New key, in {key_file}, which only you can read. With a copy of it, on the other host:")
        emit_line(f"  {setup.near_command_with_file()}")
    elif setup.new_key is not None:
        emit_line(f"New key, shown only once. On the other host:\n  {setup.near_command()}")


def _print_log(line: str) -> None:
    """Write a readable log line to stderr, with the local time."""
    log_stderr_line(f"{_local_time()} {numbers.sanitize(log_text(line))}", _lost_lines)


def _lost_lines(count: int) -> str:
    return f"{_local_time()} {numbers.quantity(count, 'line')} lost: the log was not read"


def _local_time() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"


def _json_log(line: str) -> None:
    """Write a log line to stderr as one JSON object, with the time."""
    event, facts = (line.event, line.fields) if isinstance(line, LogEntry) else ("said", {"text": line})
    log_stderr_line(_json_entry(event, facts), _lost_json_lines)


def _lost_json_lines(count: int) -> str:
    return _json_entry("lines_lost", {"lines": count})


def _json_entry(event: str, facts: Mapping[str, LogValue]) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    known = {key: value for key, value in facts.items() if value is not None}
    return json.dumps({"time": now, "event": event, **known}, ensure_ascii=False, allow_nan=False)


def serve(config: EndpointConfig) -> int:
    """Serve as the program of this process, until a signal ends it; return the exit status."""
    prepare_streams()
    configure_debug_log()
    write_in_background()
    return finish_output(_serve_and_explain(config), must_deliver=False)


def _serve_and_explain(config: EndpointConfig) -> int:
    try:
        return serve_until_stopped(config)
    except LinkgaugeError as error:
        print_stderr(str(error))
        return error.exit_status


if __name__ == "__main__":
    sys.exit(serve(EndpointConfig.from_json(sys.argv[1])))
