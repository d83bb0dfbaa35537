"""The announcement of an endpoint on this LAN (`--announce`), while it serves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ....engine.far.listener import reachable_hosts
from ....engine.far.status import LogEntry, LogSink
from ....engine.model.errors import UsageError
from ....engine.model.peer import is_loopback_address

if TYPE_CHECKING:
    from .endpoint_service import EndpointConfig, EndpointSetup


def check_announcement(config: "EndpointConfig") -> None:
    """Raise PlanError for a name that cannot be announced, UsageError for an endpoint on loopback."""
    if config.announce is None:
        return
    from ....discovery.announcement import Announcement

    Announcement(config.announce, config.port, wants_key=False, wants_tls=False)
    if config.bind is not None and _is_loopback(config.bind):
        raise UsageError(f"--announce is for other hosts, and none of them reaches {config.bind}")


@asynccontextmanager
async def announced_on_lan(config: "EndpointConfig", setup: "EndpointSetup", log: LogSink) -> AsyncGenerator[None]:
    """Announce the endpoint in the background while the block lasts, if it is asked for."""
    if config.announce is None:
        yield
        return
    from ....discovery.announcement import Announcement
    from ....discovery.announcer import announced

    announcement = Announcement(
        config.announce,
        setup.listener.getsockname()[1],
        wants_key=setup.key is not None,
        wants_tls=setup.certificate is not None,
        iperf3_port=None if setup.iperf3 is None else setup.iperf3.port,
    )

    def add(text: str) -> None:
        log(LogEntry("announced", text))

    is_bound = config.bind is not None
    async with announced(announcement, reachable_hosts(setup.listener), is_bound=is_bound, log=add):
        yield


def _is_loopback(bind: str) -> bool:
    try:
        return bind == "localhost" or is_loopback_address(bind)
    except ValueError:
        return False
