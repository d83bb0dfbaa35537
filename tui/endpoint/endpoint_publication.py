"""What an endpoint makes known while it serves: its metrics, and with `--announce` itself on this LAN."""

import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from ...discovery.announcement import Announcement
from ...engine.far.endpoint import Endpoint
from ...engine.far.status import LogEntry, LogSink
from ...engine.model.errors import UsageError
from ...engine.model.ip_address import is_loopback_address
from ...metrics.publication import Publication, PublishingPlan


@asynccontextmanager
async def publish_endpoint(
    plan: PublishingPlan | None, endpoint: Endpoint, log: LogSink
) -> AsyncGenerator[Publication | None]:
    """Publish the metrics of an endpoint while the block lasts; yield None without a plan.

    Problems go to the log. Raises EndpointError or OutputError if it is impossible.
    """
    if plan is None:
        yield None
        return
    from ...metrics.endpoint_metrics import EndpointMetrics
    from ...metrics.publication import open_publication

    def notice(text: str) -> None:
        log(LogEntry("metrics", text))

    group = {"instance": f"{socket.gethostname()}:{endpoint.address[1]}"}
    read = EndpointMetrics(endpoint.get_status).read
    async with open_publication(plan, read, group, notice, keeps_file=False) as publication:
        yield publication


def check_announcement(name: str, port: int, bind: str | None) -> None:
    """Raise PlanError for a name that cannot be announced, UsageError for an endpoint on loopback."""
    Announcement(name, port, wants_key=False, wants_tls=False)
    if bind is not None and _is_loopback(bind):
        raise UsageError(f"--announce is for other hosts, and none of them reaches {bind}")


@asynccontextmanager
async def announced_on_lan(
    announcement: Announcement | None, find_hosts: Callable[[], Sequence[str]], log: LogSink, *, is_bound: bool
) -> AsyncGenerator[None]:
    """Announce an endpoint in the background while the block lasts; do nothing for None.

    `find_hosts` returns its names and addresses, of which the addresses are announced.
    """
    if announcement is None:
        yield
        return
    from ...discovery.announcer import announced  # here: few endpoints need zeroconf

    def log_text(text: str) -> None:
        log(LogEntry("announced", text))

    async with announced(announcement, find_hosts(), is_bound=is_bound, log=log_text):
        yield


def _is_loopback(bind: str) -> bool:
    try:
        return bind == "localhost" or is_loopback_address(bind)
    except ValueError:
        return False
