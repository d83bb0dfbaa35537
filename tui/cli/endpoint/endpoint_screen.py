"""`linkgauge endpoint --ui`: an endpoint and its screen in one process; sessions run in workers."""

import asyncio
import signal
import socket
from collections.abc import Callable
from datetime import datetime
from functools import partial

from ....engine.control.tls import format_fingerprint
from ....engine.far.endpoint import Endpoint
from ....engine.far.status import EndpointStatus, LogEntry, LogSink
from ....engine.host.event_loop import run
from ....engine.model.shared_key import KEY_VARIABLE
from ...app.app import EndpointApp
from ...endpoint.endpoint_values import EndpointInfo, EndpointLog
from ...session.preferences import read_preferences, save_preferences
from ...session.storage import config_dir
from ..termination import handle_signals
from .endpoint_publication import EndpointPublication
from .endpoint_service import EndpointConfig, EndpointSetup, drain, make_endpoint, prepare_endpoint, reload
from .iperf3_service import serve_iperf3
from .lan_announcement import announced_on_lan


def serve_on_screen(config: EndpointConfig) -> int:
    """Serve clients behind the screen until the user or a signal ends it; return the exit status."""
    log = EndpointLog(lambda: datetime.now().astimezone())
    setup = prepare_endpoint(config, log.add)
    run(_serve(config, setup, log))
    return 0


class _Shutdown:
    """The shutdown of an endpoint: it waits for the runs, or hurries at a second `begin`; then calls `on_end`."""

    def __init__(self, endpoint: Endpoint, log: LogSink) -> None:
        self.on_end: Callable[[], object] = lambda: None
        self._endpoint, self._log = endpoint, log
        self._at_once = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to drain the endpoint; at the second call end it at once."""
        if self._draining is not None:
            self._at_once.set()
        else:
            self._draining = asyncio.create_task(self._drain())

    async def finish(self) -> None:
        """Wait for a shutdown in progress. There is none where the screen failed."""
        if self._draining is not None:
            await self._draining

    async def _drain(self) -> None:
        await drain(self._endpoint, self._at_once, self._log)
        self.on_end()


class EndpointBackend:
    """The endpoint as its screen sees it.

    Args:
        config: The endpoint's configuration, for its description.
        setup: Its listener, key and certificate.
        endpoint: The endpoint itself.
        log: The lines that the screen shows.
        shut_down: Ends the endpoint; a second call ends it at once.
    """

    def __init__(
        self,
        config: EndpointConfig,
        setup: EndpointSetup,
        endpoint: Endpoint,
        log: EndpointLog,
        shut_down: Callable[[], None],
    ) -> None:
        self.info = endpoint_info(config, setup)
        self.log = log
        self._config = config
        self._setup = setup
        self._endpoint = endpoint
        self._shut_down = shut_down

    def status(self) -> EndpointStatus:
        """Return a snapshot of the clients and runs."""
        return self._endpoint.get_status()

    def reload(self) -> None:
        """Read the limits, the key, the certificate and the users of iperf3 again."""
        reload(self._config, self._setup, self._endpoint, self.log.add)

    def shut_down(self) -> None:
        """Shut down after the current runs; at the second call at once."""
        self._shut_down()


def endpoint_info(config: EndpointConfig, setup: EndpointSetup) -> EndpointInfo:
    """Return the texts of the screen that do not change while the endpoint serves."""
    where = ", ".join(setup.find_peers())
    hint = ""
    if setup.key is None:
        access_policy = (
            "▲ open: no key required" if config.is_open else "no key required: only this host can connect"
        )
    elif setup.new_key is not None:
        access_policy = "key required: new at this start, y copies it"
    else:
        access_policy = f"key required: the one in {config.key_file or KEY_VARIABLE}"
        hint = "it needs the key there: LINKGAUGE_KEY, --key-file or the keys file"
    return EndpointInfo(
        hostname=socket.gethostname(),
        address=where,
        access_policy=access_policy,
        command=setup.near_command(),
        tls=None if setup.certificate is None else format_fingerprint(setup.certificate.fingerprint),
        hint=hint,
        can_reload=any((config.limits.file, config.key_file, config.tls, setup.iperf3 and setup.iperf3.users)),
        is_loopback=setup.is_loopback,
        iperf3=None if setup.iperf3 is None else f"port {setup.iperf3.port}, {setup.iperf3.access}",
    )


async def _serve(config: EndpointConfig, setup: EndpointSetup, log: EndpointLog) -> None:
    publication = EndpointPublication(config.metrics, log.add)
    async with (
        make_endpoint(config, setup, publication.log) as endpoint,
        serve_iperf3(setup.iperf3, endpoint, gives_json=False),
        publication.open(endpoint),
    ):
        shutdown = _Shutdown(endpoint, log.add)
        backend = EndpointBackend(config, setup, endpoint, log, shutdown.begin)
        log.add(LogEntry("listening", f"listening on {backend.info.address}"))
        if publication.url is not None:
            log.add(LogEntry("listening", f"metrics: {publication.url}"))
        app = EndpointApp(
            backend,
            loaded=read_preferences(config_dir()),
            save=partial(save_preferences, config_dir()),
        )
        shutdown.on_end = app.exit

        def receive(number: signal.Signals) -> None:
            app.is_ended_by_signal = True
            shutdown.begin()
            if number is signal.SIGHUP:  # drawing on a closed terminal would block for ever
                app.exit()

        with handle_signals(receive, draws=True):
            announcement = setup.describe_itself(config.announce)
            async with announced_on_lan(announcement, setup.listener, log.add, is_bound=config.bind is not None):
                await app.run_async()
            await shutdown.finish()  # without the terminal the runs still have their time to end
