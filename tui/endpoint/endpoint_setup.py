"""What an endpoint is asked to be and what it needs for that: limits, key, certificate, listening sockets.

`linkgauge endpoint`, its screen and the endpoint in one file share this. It prints nothing.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ...discovery.announcement import Announcement
from ...engine.control.tls import Certificate, format_fingerprint
from ...engine.far.endpoint import Endpoint
from ...engine.far.listener import listen, reachable_hosts, spell_for_client
from ...engine.far.status import LogEntry, LogSink
from ...engine.model.errors import InvalidKeyError, InvalidLimitError, TlsError, UsageError
from ...engine.model.ip_address import check_zone, is_loopback_address
from ...engine.model.limits import Limits
from ...engine.model.peer import DEFAULT_PORT, Peer
from ...engine.model.shared_key import KEY_VARIABLE, SharedKey
from ...engine.model.texts.shell_commands import shell_command
from ...engine.workloads.fastest_mode import ModeChooser
from ...metrics.publication import Publication, PublishingPlan
from ..session.credentials import key_from_environment
from ..session.named_keys import default_key_file, read_named_keys
from ..session.storage import cache_dir
from .browser.browser_setup import BrowserConfig, BrowserSetup, prepare_browser
from .endpoint_publication import check_announcement, publish_endpoint
from .iperf3_service import Iperf3Config, Iperf3Setup, prepare_iperf3, reload_users, serve_iperf3
from .systemd import get_inherited_listener

_MAX_LIMITS_BYTES: Final = 256 * 1024


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
                limits = Limits.from_toml(_limits_text(Path(self.file)))
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


def _limits_text(path: Path) -> str:
    """Return the text of a file of limits. Raises OSError, UnicodeDecodeError or InvalidLimitError."""
    with path.open("rb") as stream:
        data = stream.read(_MAX_LIMITS_BYTES + 1)
    if len(data) > _MAX_LIMITS_BYTES:
        raise InvalidLimitError(f"it is larger than {_MAX_LIMITS_BYTES >> 10} KiB; is it a file of limits?")
    return data.decode()


def check_access(
    bind: str | None, key_file: str | None, tls: tuple[str | None, str | None], *, is_open: bool
) -> tuple[str, str] | None:
    """Check the options for access; return the files of the certificate, None without one.

    Raises:
        PlanError: The address to listen on lacks its interface, or names an impossible one.
        UsageError: Options exclude each other, or one lacks another.
    """
    if is_open and key_file is not None:
        raise UsageError("--key-file and --open exclude each other; give one of them")
    files = check_pair(*tls)
    if bind is not None:
        check_zone("--bind", bind)
    return files


def check_pair(certificate: str | None, key: str | None) -> tuple[str, str] | None:
    """Return the files of a certificate, None without one; raise UsageError for one without the other."""
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key need each other; give both")
    return None if certificate is None or key is None else (certificate, key)


@dataclass(frozen=True, slots=True)
class EndpointConfig:
    """The configuration of an endpoint, as the command line gives it."""

    bind: str | None
    port: int
    key_file: str | None = None
    is_open: bool = False
    tls: tuple[str, str] | None = None
    limits: LimitSources = LimitSources()
    as_json: bool = False
    log_as_json: bool = False
    log_file: str | None = None
    iperf3: Iperf3Config | None = None
    metrics: PublishingPlan | None = None
    announce: str | None = None
    is_exclusive: bool = False
    http: BrowserConfig | None = None

    @classmethod
    def from_json(cls, text: str) -> "EndpointConfig":
        """Return the configuration whose fields are this JSON: the process that serves gets it so."""
        values: dict[str, Any] = json.loads(text)
        limits: dict[str, Any] = values.pop("limits")
        file = limits.pop("file")
        sources = LimitSources(file, **{name: tuple(texts) for name, texts in limits.items()})
        tls: list[str] | None = values.pop("tls")
        iperf3: dict[str, Any] | None = values.pop("iperf3")
        metrics: dict[str, Any] | None = values.pop("metrics")
        http: dict[str, Any] | None = values.pop("http")
        return cls(
            **values,
            tls=None if tls is None else (tls[0], tls[1]),
            limits=sources,
            iperf3=None if iperf3 is None else Iperf3Config.from_values(iperf3),
            metrics=None if metrics is None else PublishingPlan.from_values(metrics),
            http=None if http is None else BrowserConfig.from_values(http),
        )


@dataclass(frozen=True)  # its hosts are kept in it
class EndpointSetup:
    """The resources of an endpoint: listening socket, limits, keys and certificate; those for iperf3 and browsers.

    Without keys the endpoint is open. `key_file` is the file that they come from.
    """

    listener: socket.socket
    limits: Limits
    keys: Sequence[SharedKey] | None = None
    new_key: SharedKey | None = None  # the only key, if it was generated at this start
    key_file: Path | None = None
    certificate: Certificate | None = None
    iperf3: Iperf3Setup | None = None
    browser: BrowserSetup | None = None

    @property
    def tls_option(self) -> str:
        """The option by which a near end trusts the certificate, after a space; empty without a certificate."""
        if self.certificate is None:
            return ""
        return f" --tls-fingerprint {format_fingerprint(self.certificate.fingerprint)}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can connect."""
        return is_loopback_address(self.listener.getsockname()[0])

    def announcement(self, name: str | None) -> Announcement | None:
        """Return the announcement of the endpoint on its LAN; None without a name."""
        if name is None:
            return None
        port, has_key, has_tls = self.listener.getsockname()[1], self.keys is not None, self.certificate is not None
        iperf3_port = None if self.iperf3 is None else self.iperf3.port
        return Announcement(name, port, wants_key=has_key, wants_tls=has_tls, iperf3_port=iperf3_port)

    @cached_property
    def hosts(self) -> list[str]:
        """The names and addresses by which other hosts may reach the endpoint, the best one first.

        The first look asks the resolver for this host's name, for up to a second.
        """
        return reachable_hosts(self.listener)

    def find_peers(self) -> list[str]:
        """Return `hosts`, each with the endpoint's port."""
        port = self.listener.getsockname()[1]
        return [str(Peer(host, port)) for host in self.hosts]

    def near_command(self, peer: str) -> str:
        """Return the command to paste at the near end, with the key if it is new; `peer` is of `find_peers`."""
        key = [] if self.new_key is None else [f"{KEY_VARIABLE}={self.new_key.reveal()}"]
        return shell_command(*key, "linkgauge", "check", _shortest(peer), *self.tls_option.split())

    def near_command_with_file(self, peer: str) -> str:
        """Return the command for the near end. The user must copy the file with the key there."""
        return shell_command("linkgauge", "check", _shortest(peer), "--key-file", "FILE", *self.tls_option.split())


def _shortest(peer: str) -> str:
    """Return the endpoint's address as a client may write it, without the usual port."""
    return spell_for_client(peer).removesuffix(f":{DEFAULT_PORT}")


def prepare_endpoint(config: EndpointConfig, log: LogSink) -> EndpointSetup:
    """Read the limits, the keys and the certificate, and listen. Raises LinkgaugeError if one of them fails."""
    limits = config.limits.read()
    if config.announce is not None:
        check_announcement(config.announce, config.port, config.bind)
    key_file, keys = _find_keys(config)
    certificate = None if config.tls is None else Certificate.load(*map(Path, config.tls))
    with ExitStack() as stack:
        listener = stack.enter_context(get_inherited_listener(os.environ) or listen(config.bind, config.port))
        iperf3 = config.iperf3 and prepare_iperf3(config.iperf3, config.bind, is_open=config.is_open)
        if iperf3 is not None:
            stack.enter_context(iperf3.listener)
        has_tls = certificate is not None
        browser = config.http and prepare_browser(config.http, config.bind, is_open=config.is_open, has_tls=has_tls)
        stack.pop_all()
    if config.is_open:
        text = "no key is required (--open): anybody who reaches this port can start tests with this host"
        log(LogEntry("open", text))
        return EndpointSetup(listener, limits, certificate=certificate, iperf3=iperf3, browser=browser)
    setup = EndpointSetup(listener, limits, keys, None, key_file, certificate, iperf3, browser)
    if keys is not None or (setup.is_loopback and not (browser is not None and browser.asks_for_key)):
        return setup
    key = SharedKey.generate()
    return replace(setup, keys=[key], new_key=key)


def _find_keys(config: EndpointConfig) -> tuple[Path | None, Sequence[SharedKey] | None]:
    """Return the key file, if there is one, and the keys: of the file given, the environment, or the usual file."""
    key = key_from_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # no child process needs it
    if config.key_file is not None:
        path = Path(config.key_file)
    elif key is not None or config.is_open or not os.path.lexists(default_key_file()):
        return None, None if key is None else [key]
    else:
        path = default_key_file()
    return path, read_named_keys(path)


@asynccontextmanager
async def open_endpoint(
    config: EndpointConfig, setup: EndpointSetup, log: LogSink
) -> AsyncGenerator[tuple[Endpoint, str | None]]:
    """Serve clients, those of iperf3 included, and publish metrics while the block lasts.

    Yields the endpoint, and the address that Prometheus scrapes if there is one. Raises EndpointError or
    OutputError if the metrics cannot be published.
    """
    publication: Publication | None = None

    def log_and_renew(line: str) -> None:
        log(line)
        if publication is not None and isinstance(line, LogEntry) and line.event == "run_ended":
            publication.changed()

    endpoint = Endpoint(
        setup.listener,
        log_and_renew,
        keys=setup.keys,
        limits=setup.limits,
        certificate=setup.certificate,
        mode_chooser=ModeChooser(cache_dir()),
    )
    endpoint.admission.turns.is_exclusive = config.is_exclusive
    async with (
        endpoint,
        serve_iperf3(setup.iperf3, endpoint, gives_json=config.as_json),
        _serve_browsers(setup.browser, endpoint),
        publish_endpoint(config.metrics, endpoint, log) as opened,
    ):
        publication = opened
        yield endpoint, None if opened is None else opened.url


def _serve_browsers(setup: BrowserSetup | None, endpoint: Endpoint) -> AbstractAsyncContextManager[object]:
    """Serve the page while the block lasts, unless `setup` is None."""
    if setup is None:
        return nullcontext()
    from .browser.browser_service import open_service  # here: endpoints without it do not need aiohttp
    from .browser.page_client import EndpointPages

    return open_service(setup, EndpointPages(endpoint, asks_for_key=setup.asks_for_key))


def reload(config: EndpointConfig, setup: EndpointSetup, endpoint: Endpoint, log: LogSink) -> None:
    """Read limits, keys, certificate and users again. A bad one is logged, and the earlier one stays in force."""
    try:
        endpoint.admission.limits = config.limits.read()
    except InvalidLimitError as error:
        log(LogEntry("not_reloaded", f"limits not changed: {error}"))
    else:
        log(LogEntry("reloaded", "limits read again: they apply to new connections"))
    if setup.key_file is not None:
        _reload_keys(setup.key_file, endpoint, log)
    if config.tls is not None:
        _reload_certificate(config.tls, endpoint, log)
    if config.iperf3 is not None and setup.iperf3 is not None:
        reload_users(config.iperf3, setup.iperf3.users, log)


def _reload_keys(path: Path, endpoint: Endpoint, log: LogSink) -> None:
    try:
        endpoint.keys = keys = read_named_keys(path)
    except InvalidKeyError as error:
        log(LogEntry("not_reloaded", f"key not changed: {error}"))
        return
    need = "that key" if len(keys) == 1 else f"one of its {len(keys)} keys"
    log(LogEntry("reloaded", f"key file read again: new connections need {need}; running tests continue"))


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
