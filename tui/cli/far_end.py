"""`linkgauge endpoint`: the far end as a command, and as a service, until a signal ends it."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ...engine.endpoint import Endpoint
from ...engine.errors import LinkgaugeError
from ...engine.journal import Entry, Log
from ...engine.limits import rules
from ...engine.loop import run
from ...engine.plan import Peer
from ...engine.service import notify
from ...engine.tls import in_words
from .entrance import Entrance, drain, open_entrance, reload
from .output import emit_json, emit_json_line, emit_line, prepare_streams, say, say_json
from .service import LimitChoice, Service


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
    log = _json_log if service.log_as_json else say
    run(_serve(service, open_entrance(service, log), log))
    return 0


def _json_log(line: str) -> None:
    """Write a line of the log as one JSON object, with the time."""
    event, facts = (line.event, line.facts) if isinstance(line, Entry) else ("said", {"text": line})
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    say_json({"time": now, "event": event, **{key: value for key, value in facts.items() if value is not None}})


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


async def _serve(service: Service, entrance: Entrance, log: Log) -> None:
    manager = os.environ.pop("NOTIFY_SOCKET", None)
    async with Endpoint(
        entrance.listener, log, key=entrance.key, limits=entrance.limits, certificate=entrance.certificate
    ) as endpoint:

        def read_again() -> None:
            reload(service, endpoint, log)
            notify("READY=1", manager)

        orders = _Orders(read_again)
        _tell(service, endpoint.address, entrance)
        notify("READY=1", manager)
        await orders.end.wait()
        notify("STOPPING=1", manager)
        if not orders.end_now.is_set():
            await drain(endpoint, orders.end_now, log)


def _tell(service: Service, address: tuple[str, int], entrance: Entrance) -> None:
    """Say where it listens, and what a near end needs: a key that was made now, once."""
    host, port = address
    if service.as_json:
        told: dict[str, Any] = {"host": host, "port": port, "asks_for_key": entrance.key is not None}
        if entrance.certificate is not None:
            told["tls_fingerprint"] = in_words(entrance.certificate.fingerprint)
        key = {"key": entrance.key.reveal()} if entrance.key is not None and entrance.is_new else {}
        emit_json_line({"listening": told, **key})
        return
    emit_line(f"listening on {Peer(host, port)}")
    if entrance.certificate is not None:
        emit_line(f"control connections are TLS; near ends need:{entrance.tls_option}")
    if entrance.key is not None and entrance.is_new:
        emit_line(f"its key was made now and is shown this once; on the other host:\n  {entrance.command(service)}")


if __name__ == "__main__":
    sys.exit(main())
