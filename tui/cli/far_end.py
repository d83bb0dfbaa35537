"""`linkgauge endpoint`: the far end as a command, until a signal ends it."""

import asyncio
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...engine.auth import Key
from ...engine.endpoint import Endpoint, listen
from ...engine.greeting import KEY_VARIABLE, is_loopback
from ...engine.loop import run
from ...engine.plan import DEFAULT_PORT, Peer
from ..keys import key_of_environment, read_key_file
from .output import emit_json_line, emit_line, say


@dataclass(frozen=True, slots=True)
class Service:
    """What a far end is started with."""

    bind: str | None
    port: int
    key_file: Path | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class _Entrance:
    """The key that clients must have, if any, and whether it was made just now."""

    key: Key | None
    is_new: bool = False


def serve_until_stopped(service: Service, *, as_json: bool) -> int:
    """Serve clients until SIGINT, SIGTERM or SIGHUP; the first line of stdout says where it listens."""
    given = None if service.key_file is None else read_key_file(service.key_file)
    given = given or key_of_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # what is started from here on has no use for it
    listener = listen(service.bind, service.port)
    entrance = _entrance(service, given, listener)
    run(_serve(service, listener, entrance, as_json=as_json))
    return 0


def _entrance(service: Service, given: Key | None, listener: socket.socket) -> _Entrance:
    if service.is_open:
        say("no key is asked for (--open): whoever reaches this port can have load sent to and from this host")
        return _Entrance(None)
    if given is not None or is_loopback(listener.getsockname()[0]):
        return _Entrance(given)
    return _Entrance(Key.new(), is_new=True)


async def _serve(service: Service, listener: socket.socket, entrance: _Entrance, *, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    async with Endpoint(listener, say, key=entrance.key) as endpoint:
        _tell(service, endpoint.address, entrance, as_json=as_json)
        await stop.wait()


def _tell(service: Service, address: tuple[str, int], entrance: _Entrance, *, as_json: bool) -> None:
    """Say where it listens, and what a near end needs: a key that was made now, once."""
    host, port = address
    if as_json:
        told: dict[str, Any] = {"host": host, "port": port, "asks_for_key": entrance.key is not None}
        key = {"key": entrance.key.reveal()} if entrance.key is not None and entrance.is_new else {}
        emit_json_line({"listening": told, **key})
        return
    emit_line(f"listening on {Peer(host, port)}")
    if entrance.key is not None and entrance.is_new:
        known_as = service.bind or socket.gethostname()
        peer = known_as if port == DEFAULT_PORT else str(Peer(known_as, port))
        emit_line(
            "its key was made now and is shown this once; on the other host:\n"
            f"  {KEY_VARIABLE}={entrance.key.reveal()} linkgauge check auto {peer}"
        )
