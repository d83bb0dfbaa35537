"""`linkgauge endpoint` without a screen: it serves until a signal ends it, and prints its address and its log.

Reading a command line loads 12 MiB more than serving needs. So the command replaces itself (execv(2)) with this
module, which keeps the process id, the descriptors and the environment.
"""

import asyncio
import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from ....engine.control.tls import format_fingerprint
from ....engine.far.listener import CLIENT_INTERFACE
from ....engine.far.status import LogEntry, LogValue
from ....engine.host.debug_log import configure_debug_log
from ....engine.host.event_loop import run
from ....engine.host.shortage import told_in_one_line
from ....engine.model.errors import LinkgaugeError
from ....engine.model.limits import limit_rules
from ....engine.model.peer import Peer
from ...endpoint.browser.browser_setup import PLAIN_TEXT, WELL_KNOWN, BrowserSetup
from ...endpoint.browser.link_code import code_lines
from ...endpoint.endpoint_log import log_text
from ...endpoint.endpoint_publication import announced_on_lan
from ...endpoint.endpoint_setup import (
    EndpointConfig,
    EndpointSetup,
    LimitSources,
    drain,
    open_endpoint,
    prepare_endpoint,
    reload,
)
from ...endpoint.key_file import saved_key, saved_link
from ...endpoint.systemd import notify_systemd
from ...words import numbers
from ...words.redaction import REDACTION
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
from ..service_log import Priority, ServiceLog
from ..termination import handle_signals

_PRIORITIES: Final = {
    **dict.fromkeys(
        ("not_accepted", "not_reloaded", "not_recorded", "no_udp", "open", "left_out"), Priority.WARNING
    ),
    **dict.fromkeys(("dropped", "refused", "udp_dropped", "metrics"), Priority.NOTICE),
}


def exec_endpoint(config: EndpointConfig) -> NoReturn:
    """Replace this process with an endpoint of this configuration."""
    sys.stdout.flush()
    sys.stderr.flush()
    module = f"{__package__}.endpoint_runner"
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, json.dumps(asdict(config))])  # noqa: S606


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


class PrivateFiles(NamedTuple):
    """The files of a new key and of a link with a key, which are not printed; None if they are, or not there."""

    key: Path | None
    link: Path | None


class _SignalReceiver:
    """Signals as events: SIGTERM sets `stop`; SIGINT or a second SIGTERM `stop_now` too; SIGHUP calls `reload`."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self.stop = asyncio.Event()
        self.stop_now = asyncio.Event()
        self._reload = reload
        # SIGHUP asks a service to reload. With a terminal it means that the terminal has gone: then stop.
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
    log = _EndpointLog(as_json=config.log_as_json, path=config.log_file)
    try:
        setup = prepare_endpoint(config, log.add)
        with setup.listener:
            run(_serve(config, setup, log))
    finally:
        log.close()
    return 0


async def _serve(config: EndpointConfig, setup: EndpointSetup, log: "_EndpointLog") -> None:
    with contextlib.ExitStack() as stack:
        key_file = None
        if setup.new_key is not None and not _has_private_output(as_json=config.as_json):
            key_file = stack.enter_context(saved_key(setup.new_key, setup.listener.getsockname()[1]))
        link_file = None
        if setup.browser is not None and _hides_link(config, setup.browser):
            port = setup.browser.listener.getsockname()[1]
            link_file = stack.enter_context(saved_link(setup.browser.links(setup.keys)[0], port))
        await _serve_clients(config, setup, log, PrivateFiles(key_file, link_file))


async def _serve_clients(
    config: EndpointConfig, setup: EndpointSetup, service_log: "_EndpointLog", files: PrivateFiles
) -> None:
    manager, log = os.environ.pop("NOTIFY_SOCKET", None), service_log.add
    async with open_endpoint(config, setup, log) as (endpoint, metrics_url):

        def reload_files() -> None:
            service_log.reopen()
            reload(config, setup, endpoint, log)
            notify_systemd("READY=1", manager)

        signals = _SignalReceiver(reload_files)
        with handle_signals(signals.receive):
            _announce(config, endpoint.address, setup, files, metrics_url)
            announcement = setup.announcement(config.announce)
            async with announced_on_lan(announcement, lambda: setup.hosts, log, is_bound=config.bind is not None):
                notify_systemd("READY=1", manager)
                await signals.stop.wait()
                notify_systemd("STOPPING=1", manager)
            if not signals.stop_now.is_set():
                await drain(endpoint, signals.stop_now, log)


def _has_private_output(*, as_json: bool) -> bool:
    """Return whether a key may be printed: on a terminal, and as JSON to the program that reads it.

    Others may read a file, a supervisor's log or the journal.
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
    files: PrivateFiles,
    metrics_url: str | None,
) -> None:
    """Print the address, and what a near end needs. A new key is printed only here, unless it is in a file."""
    key_file = files.key
    host, port = address
    if config.as_json:
        facts: dict[str, Any] = {"host": host, "port": port, "asks_for_key": setup.keys is not None}
        if setup.certificate is not None:
            facts["tls_fingerprint"] = format_fingerprint(setup.certificate.fingerprint)
        if setup.iperf3 is not None:
            facts["iperf3"] = setup.iperf3.facts()
        if metrics_url is not None:
            facts["metrics"] = metrics_url
        if setup.browser is not None:
            facts["http"] = setup.browser.facts(_links(config, setup, setup.browser))
            if files.link is not None:
                facts["http"]["link_file"] = str(files.link)
        key = {} if setup.new_key is None else {"key": setup.new_key.reveal()}
        emit_json_line({"listening": facts, **(key if key_file is None else {"key_file": str(key_file)})})
        return
    _print_address(setup, key_file, metrics_url)
    if setup.browser is not None:
        _print_page(config, setup, setup.browser, files.link)


def _print_address(setup: EndpointSetup, key_file: Path | None, metrics_url: str | None) -> None:
    peers = setup.find_peers()
    emit_line(f"listening on {', '.join(peers)}")
    if setup.iperf3 is not None:
        emit_line(f"iperf3 clients {setup.iperf3.access}, on port {setup.iperf3.port}:")
        emit_line(f"  {setup.iperf3.client_command(Peer.parse(peers[0]).host)}")
    if metrics_url is not None:
        emit_line(f"metrics: {metrics_url}")
    if setup.certificate is not None:
        emit_line(f"control connections use TLS; clients need:{setup.tls_option}")
    if key_file is not None:
        emit_line(f"New key, in {key_file}, which only you can read. With a copy of it, on the other host:")
        emit_line(f"  {setup.near_command_with_file(peers[0])}")
    elif setup.new_key is not None:
        emit_line(f"New key, shown only once. On the other host:\n  {setup.near_command(peers[0])}")
    if "%" in peers[0]:
        emit_line(f"  {CLIENT_INTERFACE} is the other host's interface on this link: the address is link-local")


def _hides_link(config: EndpointConfig, browser: BrowserSetup) -> bool:
    """Return whether the link to the page has a key that may not be printed."""
    return browser.asks_for_key and not _has_private_output(as_json=config.as_json)


def _links(config: EndpointConfig, setup: EndpointSetup, browser: BrowserSetup) -> list[str]:
    """Return the links to the page for browsers, with a key only if it may be printed."""
    return browser.links(None if _hides_link(config, browser) else setup.keys)


def _print_page(
    config: EndpointConfig, setup: EndpointSetup, browser: BrowserSetup, link_file: Path | None
) -> None:
    """Print the links to the page for browsers, and the best one as a QR code on a terminal."""
    links = _links(config, setup, browser)
    if link_file is not None:
        emit_line(f"page for browsers: {links[0]}, behind a key; its whole link: cat {link_file}")
        if browser.quality_problem is None:
            emit_line(
                f"clients of networkQuality: networkQuality -k -C with that link, and {WELL_KNOWN} at its end"
            )
        return
    emit_line(f"page for browsers: {', '.join(links)}")
    command = browser.quality_command(links[0])
    if command is not None:
        emit_line(f"clients of networkQuality: {command}")
    if sys.stdout.isatty():
        for line in code_lines(links[0]):
            emit_line(line if "NO_COLOR" in os.environ else f"\x1b[97;40m{line}\x1b[0m")
    if not browser.has_tls:
        emit_line(PLAIN_TEXT)


class _EndpointLog:
    """The log of an endpoint: lines for the user with the local time, or JSON objects with UTC."""

    def __init__(self, *, as_json: bool, path: str | None) -> None:
        """Open the log; raise OutputError if the file cannot be written."""
        loss_text = _lost_json_lines if as_json else _lost_lines
        self._as_json = as_json
        self._log = ServiceLog(sys.stderr, partial(log_stderr_line, loss_text=loss_text), loss_text, path)
        self.reopen, self.close = self._log.reopen, self._log.close

    def add(self, line: str) -> None:
        """Write a line of the log."""
        event, facts = (line.event, line.fields) if isinstance(line, LogEntry) else ("said", {"text": line})
        if self._as_json:
            text = _json_entry(event, facts)
        else:
            time = "" if self._log.is_journal else f"{_local_time()} "
            text = f"{time}{numbers.sanitize(log_text(line))}"
        fields = {"key_name" if key == "key" else key: value for key, value in facts.items() if key != "text"}
        priority = _PRIORITIES.get(event, Priority.INFO)
        self._log.add(REDACTION.text(text), priority, REDACTION.document({"event": event, **fields}))


def _lost_lines(count: int) -> str:
    return f"{_local_time()} {numbers.quantity(count, 'line')} lost: the log was not read"


def _local_time() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"


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
    with told_in_one_line():
        sys.exit(serve(EndpointConfig.from_json(sys.argv[1])))
