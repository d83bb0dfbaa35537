"""`linkgauge endpoint --ui`: the far end with its screen, in one process; sessions live in workers as ever."""

import asyncio
import signal
import socket
from collections.abc import Callable
from datetime import datetime
from functools import partial

from ...engine.control.handshake import KEY_VARIABLE
from ...engine.control.tls import format_fingerprint
from ...engine.far.endpoint import Endpoint
from ...engine.far.event_log import LogEntry, LogSink
from ...engine.far.status import EndpointStatus
from ...engine.host.event_loop import run
from ...engine.model.peer import Peer
from ..endpoint_app import EndpointApp
from ..services.config import config_dir
from ..services.preferences import read_preferences, save_preferences
from ..state.endpoint import EndpointInfo, EndpointLog
from .endpoint_service import EndpointConfig, EndpointSetup, drain, prepare_endpoint, reload
from .signals import handle_signals


def serve_on_screen(service: EndpointConfig) -> int:
    """Serve clients and show it, until a person or a signal ends it."""
    journal = EndpointLog(lambda: datetime.now().astimezone())
    entrance = prepare_endpoint(service, journal.add)
    run(_serve(service, entrance, journal))
    return 0


class _Ending:
    """How an endpoint ends: its runs may end first, and the second time they may not; then `on_over` is called."""

    def __init__(self, endpoint: Endpoint, log: LogSink) -> None:
        self.on_over: Callable[[], object] = lambda: None
        self._endpoint, self._log = endpoint, log
        self._at_once = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to end, or hurry."""
        if self._draining is not None:
            self._at_once.set()
        else:
            self._draining = asyncio.create_task(self._drain())

    async def finish(self) -> None:
        """Wait for the end that was begun; where none was, as the screen broke, there is nothing to wait for."""
        if self._draining is not None:
            await self._draining

    async def _drain(self) -> None:
        await drain(self._endpoint, self._at_once, self._log)
        self.on_over()


class EndpointBackend:
    """What the screen needs of the endpoint, for real."""

    def __init__(
        self,
        service: EndpointConfig,
        entrance: EndpointSetup,
        endpoint: Endpoint,
        journal: EndpointLog,
        leave: Callable[[], None],
    ) -> None:
        self.info = endpoint_info(service, entrance, endpoint.address)
        self.log = journal
        self._service = service
        self._endpoint = endpoint
        self._leave = leave

    def status(self) -> EndpointStatus:
        """Return what the endpoint does now."""
        return self._endpoint.get_status()

    def reload(self) -> None:
        """Read limits and key again."""
        reload(self._service, self._endpoint, self.log.add)

    def shut_down(self) -> None:
        """End it, with its runs; a second time at once."""
        self._leave()


def endpoint_info(service: EndpointConfig, entrance: EndpointSetup, address: tuple[str, int]) -> EndpointInfo:
    """Return what stays as it is, in words."""
    every = address[0] in {"::", "0.0.0.0"}  # noqa: S104 - what a socket says
    where = f"port {address[1]}, every address" if every else str(Peer(*address))
    hint = ""
    if entrance.key is None:
        asks = "▲ open: it asks for no key" if service.is_open else "asks for no key: only this host can come"
    elif entrance.is_key_new:
        asks = "asks for its key, made at this start"
    else:
        asks = f"asks for the key of {service.key_file or KEY_VARIABLE}"
        hint = "the key must be there: LINKGAUGE_KEY, --key-file, or the keys file"
    return EndpointInfo(
        hostname=socket.gethostname(),
        address=where,
        access_policy=asks,
        command=entrance.near_command(service),
        tls=None if entrance.certificate is None else format_fingerprint(entrance.certificate.fingerprint),
        hint=hint,
        can_reload=service.limits.file is not None or service.key_file is not None,
    )


async def _serve(service: EndpointConfig, entrance: EndpointSetup, journal: EndpointLog) -> None:
    async with Endpoint(
        entrance.listener, journal.add, key=entrance.key, limits=entrance.limits, certificate=entrance.certificate
    ) as endpoint:
        ending = _Ending(endpoint, journal.add)
        world = EndpointBackend(service, entrance, endpoint, journal, ending.begin)
        journal.add(LogEntry("listening", f"listening on {world.info.address}"))
        app = EndpointApp(
            world,
            loaded=read_preferences(config_dir()),
            save=partial(save_preferences, config_dir()),
        )
        ending.on_over = app.exit

        def receive(number: signal.Signals) -> None:
            ending.begin()
            if number is signal.SIGHUP:  # to draw on a terminal that has gone would block for good
                app.exit()

        with handle_signals(receive):
            await app.run_async()
            await ending.finish()  # where the terminal has gone the runs may still end
