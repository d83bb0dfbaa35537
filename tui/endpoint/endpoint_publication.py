"""What an endpoint makes known while it serves: its metrics, and with `--announce` itself on this LAN."""

import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from ...discovery.announcement import Announcement
from ...engine.far.endpoint import Endpoint
from ...engine.far.listener import reachable_hosts
from ...engine.far.status import LogEntry, LogSink
from ...engine.model.errors import UsageError
from ...engine.model.ip_address import is_loopback_address
from ...metrics.publication import Publication, PublishingPlan


class EndpointPublication:
    """The metrics of an endpoint. Give `log` to the endpoint, and open this once the endpoint serves.

    Args:
        plan: where the metrics go; None for nowhere.
        log: receives the entries of the endpoint's log, and problems of the publication.
    """

    def __init__(self, plan: PublishingPlan | None, log: LogSink) -> None:
        self._plan = plan
        self._log = log
        self._publication: Publication | None = None

    def log(self, line: str) -> None:
        """Pass an entry of the log on. The end of a run renews the metrics."""
        self._log(line)
        if self._publication is not None and isinstance(line, LogEntry) and line.event == "run_ended":
            self._publication.changed()

    @property
    def url(self) -> str | None:
        """The address that Prometheus scrapes; None without a server."""
        return None if self._publication is None else self._publication.url

    @asynccontextmanager
    async def open(self, endpoint: Endpoint) -> AsyncGenerator[None]:
        """Publish while the block lasts. Raises EndpointError or OutputError if that is impossible."""
        if self._plan is None:
            yield
            return
        from ...metrics.endpoint_metrics import EndpointMetrics
        from ...metrics.publication import open_publication

        metrics = EndpointMetrics(endpoint.get_status)
        group = {"instance": f"{socket.gethostname()}:{endpoint.address[1]}"}

        def notice(text: str) -> None:
            self._log(LogEntry("metrics", text))

        async with AsyncExitStack() as stack:
            self._publication = await stack.enter_async_context(
                open_publication(self._plan, metrics.read, group, notice, keeps_file=False)
            )
            stack.callback(self._forget)
            yield

    def _forget(self) -> None:
        self._publication = None


def check_announcement(name: str, port: int, bind: str | None) -> None:
    """Raise PlanError for a name that cannot be announced, UsageError for an endpoint on loopback."""
    Announcement(name, port, wants_key=False, wants_tls=False)
    if bind is not None and _is_loopback(bind):
        raise UsageError(f"--announce is for other hosts, and none of them reaches {bind}")


@asynccontextmanager
async def announced_on_lan(
    announcement: Announcement | None, listener: socket.socket, log: LogSink, *, is_bound: bool
) -> AsyncGenerator[None]:
    """Announce an endpoint in the background while the block lasts; do nothing for None."""
    if announcement is None:
        yield
        return
    from ...discovery.announcer import announced  # here: few endpoints need zeroconf

    def log_text(text: str) -> None:
        log(LogEntry("announced", text))

    async with announced(announcement, reachable_hosts(listener), is_bound=is_bound, log=log_text):
        yield


def _is_loopback(bind: str) -> bool:
    try:
        return bind == "localhost" or is_loopback_address(bind)
    except ValueError:
        return False
