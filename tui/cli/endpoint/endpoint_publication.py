"""The metrics of an endpoint, published while it serves."""

import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from ....engine.far.endpoint import Endpoint
from ....engine.far.status import LogEntry, LogSink
from ....metrics.publication import Publication, PublishingPlan


class EndpointPublication:
    """The way from an endpoint's log to its metrics: pass `log` to the endpoint, and open it once that serves.

    Args:
        plan: where the metrics go; None for nowhere.
        log: receives the entries of the endpoint's log, and the messages of the publication.
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
        """Publish while the block lasts; raise EndpointError or OutputError if that is impossible."""
        if self._plan is None:
            yield
            return
        from ....metrics.endpoint_metrics import EndpointMetrics
        from ....metrics.publication import open_publication

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
