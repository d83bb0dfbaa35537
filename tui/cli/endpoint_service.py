"""`linkgauge endpoint`: its configuration, its set-up, and the service, which a signal ends.

Reading a command line loads 12 MiB more than serving needs. So the command replaces itself (execv(2)) with this
module, which keeps the process id, the descriptors and the environment.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NoReturn

from ...engine.control.handshake import KEY_VARIABLE
from ...engine.control.tls import Certificate, format_fingerprint
from ...engine.far.endpoint import Endpoint, listen
from ...engine.far.event_log import LogEntry, LogSink
from ...engine.far.systemd import get_inherited_listener, notify_systemd
from ...engine.host.debug_log import configure_debug_log
from ...engine.host.event_loop import run
from ...engine.model.access import SharedKey
from ...engine.model.errors import InvalidKeyError, InvalidLimitError, LinkgaugeError
from ...engine.model.ip_address import is_loopback_address
from ...engine.model.limits import Limits, limit_rules
from ...engine.model.peer import DEFAULT_PORT, Peer
from ..services.credentials import key_from_environment, read_key_file
from .output import emit_json, emit_json_line, emit_line, prepare_streams, print_stderr, print_stderr_json
from .signals import handle_signals


@dataclass(frozen=True, slots=True)
class LimitSources:
    """Where limits come from: a file, and what was typed, which comes first."""

    file: str | None = None
    typed: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def read(self) -> "Limits":
        """Return the limits; raise LimitProblem for the first thing that is wrong."""
        from ...engine.model.errors import InvalidLimitError
        from ...engine.model.limits import Limits

        limits = Limits()
        if self.file is not None:
            try:
                limits = Limits.from_toml(Path(self.file).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise InvalidLimitError(f"the limits {self.file} cannot be read: {why}") from error
            except InvalidLimitError as error:
                raise InvalidLimitError(f"{self.file}: {error}") from error
        typed: dict[str, object] = {}
        for text in self.typed:
            name, equals, value = text.partition("=")
            if not equals:
                raise InvalidLimitError(f"--limit {text[:40]}: give NAME=VALUE, such as clients=8")
            typed[name.strip()] = value
        networks = {"allow": self.allow, "deny": self.deny}
        return limits.with_changes({**typed, **{name: given for name, given in networks.items() if given}})


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The configuration of an endpoint."""

    bind: str | None
    port: int
    key_file: str | None = None
    is_open: bool = False
    tls: tuple[str, str] | None = None
    limits: LimitSources = LimitSources()
    as_json: bool = False
    log_as_json: bool = False

    def exec_endpoint(self) -> NoReturn:
        """Replace this process with an endpoint of this configuration."""
        sys.stdout.flush()
        sys.stderr.flush()
        module = f"{__package__}.endpoint_service"
        os.execv(sys.executable, [sys.executable, "-P", "-m", module, json.dumps(asdict(self))])  # noqa: S606

    @classmethod
    def from_json(cls, text: str) -> "EndpointConfig":
        """Return the configuration that `exec_endpoint` passed on."""
        given: dict[str, Any] = json.loads(text)
        limits: dict[str, Any] = given.pop("limits")
        file = limits.pop("file")
        choice = LimitSources(file, **{name: tuple(texts) for name, texts in limits.items()})
        tls: list[str] | None = given.pop("tls")
        return cls(**given, tls=None if tls is None else (tls[0], tls[1]), limits=choice)


@dataclass(frozen=True, slots=True)
class EndpointSetup:
    """Where it listens, what it allows, the key that clients must have, if any, and what TLS is had with."""

    listener: socket.socket
    limits: Limits
    key: SharedKey | None = None
    is_key_new: bool = False  # the key was made just now
    certificate: Certificate | None = None

    @property
    def tls_option(self) -> str:
        """What a near end gives to trust the certificate, with a space before it; empty without one."""
        if self.certificate is None:
            return ""
        return f" --tls-fingerprint {format_fingerprint(self.certificate.fingerprint)}"

    def near_command(self, service: EndpointConfig) -> str:
        """Return what is to be pasted at the near end; a key that was made now goes with it."""
        port = self.listener.getsockname()[1]
        known_as = socket.gethostname() if service.bind is None or _is_any(service.bind) else service.bind
        peer = known_as if port == DEFAULT_PORT else str(Peer(known_as, port))
        key = f"{KEY_VARIABLE}={self.key.reveal()} " if self.key is not None and self.is_key_new else ""
        return f"{key}linkgauge check auto {peer}{self.tls_option}"


def prepare_endpoint(service: EndpointConfig, log: LogSink) -> EndpointSetup:
    """Read what a far end is started with, and listen; raise LinkgaugeError for what cannot be."""
    limits = service.limits.read()
    given = None if service.key_file is None else read_key_file(Path(service.key_file))
    given = given or key_from_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # what is started from here on has no use for it
    certificate = None if service.tls is None else Certificate.load(*map(Path, service.tls))
    listener = get_inherited_listener(os.environ) or listen(service.bind, service.port)
    if service.is_open:
        text = "no key is asked for (--open): whoever reaches this port can have load sent to and from this host"
        log(LogEntry("open", text))
        return EndpointSetup(listener, limits, certificate=certificate)
    if given is not None or is_loopback_address(listener.getsockname()[0]):
        return EndpointSetup(listener, limits, given, certificate=certificate)
    return EndpointSetup(listener, limits, SharedKey.generate(), is_key_new=True, certificate=certificate)


def _is_any(bind: str) -> bool:
    try:
        return ip_address(bind).is_unspecified
    except ValueError:
        return False


async def drain(endpoint: Endpoint, at_once: asyncio.Event, log: LogSink) -> None:
    """Wait for the runs that go on, as long as the limit says, or until it is to be at once."""
    deadline_s = endpoint.admission.limits.drain_s
    log(
        LogEntry("draining", f"no new clients; a run that goes on has {deadline_s} s to end", deadline_s=deadline_s)
    )
    waits = [asyncio.create_task(endpoint.drain(deadline_s)), asyncio.create_task(at_once.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)


def reload(service: EndpointConfig, endpoint: Endpoint, log: LogSink) -> None:
    """Read the limits and the key file again; one that is not as it should be changes nothing, and is told."""
    try:
        endpoint.admission.limits = service.limits.read()
    except InvalidLimitError as error:
        log(LogEntry("not_reloaded", f"the limits stay as they were: {error}"))
    else:
        log(LogEntry("reloaded", "the limits were read again: they are in force for who comes from here on"))
    if service.key_file is not None and not service.is_open:
        _reload_key(Path(service.key_file), endpoint, log)


def _reload_key(path: Path, endpoint: Endpoint, log: LogSink) -> None:
    try:
        endpoint.key = read_key_file(path)
    except InvalidKeyError as error:
        log(LogEntry("not_reloaded", f"the key stays as it was: {error}"))
        return
    log(LogEntry("reloaded", "the key file was read again: who comes from here on needs that key; runs go on"))


def main() -> int:
    """Serve with the configuration in the first argument; return the exit status."""
    prepare_streams()
    configure_debug_log()
    try:
        return serve_until_stopped(EndpointConfig.from_json(sys.argv[1]))
    except LinkgaugeError as error:
        from .exit_status import error_exit_status

        print_stderr(str(error))
        return error_exit_status(error)


def show_limits(choice: LimitSources, *, as_json: bool) -> int:
    """Print every limit as it would be in force."""
    found = choice.read().values()
    if as_json:
        emit_json({"limits": found})
        return 0
    for name, rule in limit_rules().items():
        value = found[name]
        shown = (", ".join(value) or "none") if isinstance(value, list) else f"{value:,}".replace(",", " ")
        unit = "" if rule.unit == "networks" else rule.unit
        emit_line(f"{name:<20} {shown:>16} {unit:<11} {rule.description}".rstrip())
    return 0


def serve_until_stopped(service: EndpointConfig) -> int:
    """Serve clients until a signal ends it; the first line of stdout says where it listens."""
    log = _json_log if service.log_as_json else print_stderr
    run(_serve(service, prepare_endpoint(service, log), log))
    return 0


def _json_log(line: str) -> None:
    """Write a line of the log as one JSON object, with the time."""
    event, facts = (line.event, line.fields) if isinstance(line, LogEntry) else ("said", {"text": line})
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    print_stderr_json(
        {"time": now, "event": event, **{key: value for key, value in facts.items() if value is not None}}
    )


class _Orders:
    """Orders by signal: SIGTERM ends the endpoint with its runs, SIGINT at once; SIGHUP reads its files again."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self.end = asyncio.Event()
        self.end_now = asyncio.Event()
        self._reload = reload
        # Without its terminal it would go on unseen; without one it is a service.
        self._has_terminal = sys.stdin.isatty()

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        if number is signal.SIGHUP and not self._has_terminal:
            self._reload()
            return
        if number is not signal.SIGTERM or self.end.is_set():
            self.end_now.set()
        self.end.set()


async def _serve(service: EndpointConfig, entrance: EndpointSetup, log: LogSink) -> None:
    manager = os.environ.pop("NOTIFY_SOCKET", None)
    async with Endpoint(
        entrance.listener, log, key=entrance.key, limits=entrance.limits, certificate=entrance.certificate
    ) as endpoint:

        def read_again() -> None:
            reload(service, endpoint, log)
            notify_systemd("READY=1", manager)

        orders = _Orders(read_again)
        with handle_signals(orders.receive):
            _tell(service, endpoint.address, entrance)
            notify_systemd("READY=1", manager)
            await orders.end.wait()
            notify_systemd("STOPPING=1", manager)
            if not orders.end_now.is_set():
                await drain(endpoint, orders.end_now, log)


def _tell(service: EndpointConfig, address: tuple[str, int], entrance: EndpointSetup) -> None:
    """Say where it listens, and what a near end needs: a key that was made now, once."""
    host, port = address
    if service.as_json:
        told: dict[str, Any] = {"host": host, "port": port, "asks_for_key": entrance.key is not None}
        if entrance.certificate is not None:
            told["tls_fingerprint"] = format_fingerprint(entrance.certificate.fingerprint)
        key = {"key": entrance.key.reveal()} if entrance.key is not None and entrance.is_key_new else {}
        emit_json_line({"listening": told, **key})
        return
    emit_line(f"listening on {Peer(host, port)}")
    if entrance.certificate is not None:
        emit_line(f"control connections are TLS; near ends need:{entrance.tls_option}")
    if entrance.key is not None and entrance.is_key_new:
        emit_line(
            f"its key was made now and is shown this once; on the other host:\n  {entrance.near_command(service)}"
        )


if __name__ == "__main__":
    sys.exit(main())
