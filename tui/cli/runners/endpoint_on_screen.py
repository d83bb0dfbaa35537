"""`linkgauge endpoint --ui`: an endpoint and its screen in one process; sessions run in workers."""

import signal
from datetime import datetime
from functools import partial

from ....engine.far.status import LogEntry
from ....engine.host.event_loop import run
from ...app.app import EndpointApp
from ...app.look import read_look
from ...endpoint.endpoint_log import EndpointLog
from ...endpoint.endpoint_publication import announced_on_lan
from ...endpoint.endpoint_setup import EndpointConfig, EndpointSetup, open_endpoint, prepare_endpoint
from ...endpoint.served_endpoint import ServedEndpoint
from ...session.preferences import Preferences, save_preferences
from ...session.storage import config_dir
from ..termination import handle_signals


def serve_on_screen(config: EndpointConfig) -> int:
    """Serve clients behind the screen until the user or a signal ends it; return the exit status."""
    preferences = read_look()
    log = EndpointLog(lambda: datetime.now().astimezone())
    setup = prepare_endpoint(config, log.append_entry)
    run(_serve(config, setup, log, preferences))
    return 0


async def _serve(config: EndpointConfig, setup: EndpointSetup, log: EndpointLog, preferences: Preferences) -> None:
    async with open_endpoint(config, setup, log.append_entry) as (endpoint, metrics_url):
        served = ServedEndpoint(config, setup, endpoint, log)
        log.append_entry(LogEntry("listening", f"listening on {served.info.address}"))
        if served.info.page is not None:
            log.append_entry(LogEntry("listening", f"page for browsers: {served.info.page}"))
        command = None if setup.browser is None else setup.browser.quality_command(served.info.page or "")
        if command is not None:
            log.append_entry(LogEntry("listening", f"clients of networkQuality: {command}"))
        if metrics_url is not None:
            log.append_entry(LogEntry("listening", f"metrics: {metrics_url}"))
        app = EndpointApp(served, preferences=preferences, save=partial(save_preferences, config_dir()))
        served.on_end = app.exit

        def receive(number: signal.Signals) -> None:
            app.is_ended_by_signal = True
            served.shut_down()
            if number is signal.SIGHUP:  # drawing on a closed terminal would block for ever
                app.exit()

        with handle_signals(receive, draws=True):
            announcement = setup.announcement(config.announce)
            async with announced_on_lan(
                announcement, lambda: setup.hosts, log.append_entry, is_bound=config.bind is not None
            ):
                await app.run_async()
            await served.finish()  # without the terminal the runs still have their time to end
