"""The metrics of a watch, published while it goes on. prometheus_client is imported here, and only if asked for."""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ....metrics.publication import Publication, PublishingPlan, open_publication
from ....watch.events import ChangeFound, CheckEnded, WatchEnded, WatchEvent

if TYPE_CHECKING:
    from ....metrics.watch_metrics import WatchView


class WatchPublication:
    """Metrics of a watch: pass it each event. Without a plan of publishing it does nothing."""

    def __init__(self, publication: Publication | None) -> None:
        self._publication = publication

    @property
    def url(self) -> str | None:
        """The address that Prometheus scrapes; None without a server."""
        return None if self._publication is None else self._publication.url

    def observe(self, event: WatchEvent) -> None:
        """Renew the metrics after an event. Those of a decided test, a change or the end are worth a push."""
        if self._publication is not None:
            is_end = isinstance(event, ChangeFound | WatchEnded)
            is_result = is_end or (isinstance(event, CheckEnded) and event.decides)
            self._publication.changed(is_result=is_result)


@asynccontextmanager
async def open_watch_publication(
    plan: PublishingPlan | None, watch: "WatchView", notice: Callable[[str], None]
) -> AsyncGenerator[WatchPublication]:
    """Publish the metrics of a watch while the block lasts.

    Args:
        plan: where they go; None for nowhere.
        watch: the watch's session: its newest plan and statuses.
        notice: receives a sentence when a file or a gateway fails, and when it works again.

    Raises:
        EndpointError: the address cannot be listened on.
        OutputError: the file cannot be written.
    """
    if plan is None:
        yield WatchPublication(None)
        return
    from ....metrics.exposition import encode
    from ....metrics.watch_metrics import WatchMetrics

    metrics = WatchMetrics(watch)
    group = {"instance": socket.gethostname(), "watch": watch.plan.name}
    async with open_publication(
        plan, lambda accept: encode(metrics.read(), accept), group, notice, keeps_file=True
    ) as publication:
        yield WatchPublication(publication)
