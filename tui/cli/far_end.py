"""`linkgauge endpoint`: the far end as a command, and as a service, until a signal ends it."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ...engine.auth import Key, KeyProblem
from ...engine.endpoint import Endpoint, listen
from ...engine.errors import LinkgaugeError
from ...engine.greeting import KEY_VARIABLE, is_loopback
from ...engine.journal import Entry, Log
from ...engine.limits import LimitProblem, Limits, rules
from ...engine.loop import run
from ...engine.plan import DEFAULT_PORT, Peer
from ...engine.service import inherited_listener, notify
from ...engine.tls import Certificate, in_words
from ..keys import key_of_environment, read_key_file
from .output import emit_json, emit_json_line, emit_line, prepare_streams, say, say_json
from .service import LimitChoice, Service


@dataclass(frozen=True, slots=True)
class _Entrance:
    """The key that clients must have, if any, whether it was made just now, and what TLS is had with."""

    key: Key | None
    is_new: bool = False
    certificate: Certificate | None = None


def main() -> int:
    """Serve as this process was told to; return its exit status."""
    prepare_streams()
    try:
        return serve_until_stopped(Service.of_text(sys.argv[1]))
    except LinkgaugeError as error:
        from .status import status_of

        say(str(error))
        return status_of(error)


def show_limits(choice: LimitChoice, *, as_json: bool) -> int:
    """Print every limit as it would be in force."""
    found = choice.read().values()
    if as_json:
        emit_json({"limits": found})
        return 0
    for name, rule in rules().items():
        value = found[name]
        shown = (", ".join(value) or "none") if isinstance(value, list) else f"{value:,}".replace(",", " ")
        unit = "" if rule.unit == "networks" else rule.unit
        emit_line(f"{name:<20} {shown:>16} {unit:<11} {rule.about}".rstrip())
    return 0


def serve_until_stopped(service: Service) -> int:
    """Serve clients until a signal ends it; the first line of stdout says where it listens."""
    limits = service.limits.read()
    given = None if service.key_file is None else read_key_file(Path(service.key_file))
    given = given or key_of_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # what is started from here on has no use for it
    log = _json_log if service.log_as_json else say
    certificate = None if service.tls is None else Certificate.load(*map(Path, service.tls))
    listener = inherited_listener(os.environ) or listen(service.bind, service.port)
    entrance = replace(_entrance(service, given, listener, log), certificate=certificate)
    run(_serve(service, listener, entrance, limits, log))
    return 0


def _json_log(line: str) -> None:
    """Write a line of the log as one JSON object, with the time."""
    event, facts = (line.event, line.facts) if isinstance(line, Entry) else ("said", {"text": line})
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    say_json({"time": now, "event": event, **{key: value for key, value in facts.items() if value is not None}})


def _entrance(service: Service, given: Key | None, listener: socket.socket, log: Log) -> _Entrance:
    if service.is_open:
        text = "no key is asked for (--open): whoever reaches this port can have load sent to and from this host"
        log(Entry("open", text))
        return _Entrance(None)
    if given is not None or is_loopback(listener.getsockname()[0]):
        return _Entrance(given)
    return _Entrance(Key.new(), is_new=True)


class _Orders:
    """What signals tell an endpoint: SIGTERM to end with its runs, SIGINT at once, SIGHUP to read files again."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self.end = asyncio.Event()
        self.end_now = asyncio.Event()
        self._reload = reload
        # Without its terminal it would go on unseen; without one it is a service.
        self._has_terminal = sys.stdin.isatty()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._receive, number)

    def _receive(self, number: signal.Signals) -> None:
        if number is signal.SIGHUP and not self._has_terminal:
            self._reload()
            return
        if number is not signal.SIGTERM or self.end.is_set():
            self.end_now.set()
        self.end.set()


async def _serve(service: Service, listener: socket.socket, entrance: _Entrance, limits: Limits, log: Log) -> None:
    manager = os.environ.pop("NOTIFY_SOCKET", None)
    async with Endpoint(
        listener, log, key=entrance.key, limits=limits, certificate=entrance.certificate
    ) as endpoint:
        orders = _Orders(partial(_reload, service, endpoint, log, manager))
        _tell(service, endpoint.address, entrance)
        notify("READY=1", manager)
        await orders.end.wait()
        notify("STOPPING=1", manager)
        if not orders.end_now.is_set():
            await _drain(endpoint, orders, log)


async def _drain(endpoint: Endpoint, orders: _Orders, log: Log) -> None:
    """Wait for the runs that go on, as long as the limit says, or until a second signal comes."""
    deadline_s = endpoint.admission.limits.drain_s
    log(Entry("draining", f"no new clients; a run that goes on has {deadline_s} s to end", deadline_s=deadline_s))
    waits = [asyncio.create_task(endpoint.drain(deadline_s)), asyncio.create_task(orders.end_now.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)


def _reload(service: Service, endpoint: Endpoint, log: Log, manager: str | None) -> None:
    """Read the limits and the key file again; one that is not as it should be changes nothing, and is told."""
    try:
        endpoint.admission.limits = service.limits.read()
    except LimitProblem as error:
        log(Entry("not_reloaded", f"the limits stay as they were: {error}"))
    else:
        log(Entry("reloaded", "the limits were read again: they are in force for who comes from here on"))
    if service.key_file is not None and not service.is_open:
        _reload_key(Path(service.key_file), endpoint, log)
    notify("READY=1", manager)


def _reload_key(path: Path, endpoint: Endpoint, log: Log) -> None:
    try:
        endpoint.key = read_key_file(path)
    except KeyProblem as error:
        log(Entry("not_reloaded", f"the key stays as it was: {error}"))
        return
    log(Entry("reloaded", "the key file was read again: who comes from here on needs that key; runs go on"))


def _tell(service: Service, address: tuple[str, int], entrance: _Entrance) -> None:
    """Say where it listens, and what a near end needs: a key that was made now, once."""
    host, port = address
    fingerprint = None if entrance.certificate is None else in_words(entrance.certificate.fingerprint)
    if service.as_json:
        told: dict[str, Any] = {"host": host, "port": port, "asks_for_key": entrance.key is not None}
        if fingerprint is not None:
            told["tls_fingerprint"] = fingerprint
        key = {"key": entrance.key.reveal()} if entrance.key is not None and entrance.is_new else {}
        emit_json_line({"listening": told, **key})
        return
    emit_line(f"listening on {Peer(host, port)}")
    option = ""
    if fingerprint is not None:
        option = f" --tls-fingerprint {fingerprint}"
        emit_line(f"control connections are TLS; near ends need:{option}")
    if entrance.key is not None and entrance.is_new:
        known_as = service.bind or socket.gethostname()
        peer = known_as if port == DEFAULT_PORT else str(Peer(known_as, port))
        emit_line(
            "its key was made now and is shown this once; on the other host:\n"
            f"  {KEY_VARIABLE}={entrance.key.reveal()} linkgauge check auto {peer}{option}"
        )


if __name__ == "__main__":
    sys.exit(main())
