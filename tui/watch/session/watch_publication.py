"""The metrics of a watch, published while it goes on. prometheus_client is imported here, and only if asked for."""

import socket
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

from ....metrics.families import Reading
from ....metrics.publication import PublishingPlan, open_publication
from ....watch.events import ChangeFound, CheckEnded, WatchEnded, WatchEvent
from .watch_session import WatchSession


@asynccontextmanager
async def publish_watch(plan: PublishingPlan | None, watch: WatchSession) -> AsyncGenerator[str | None]:
    """Publish the metrics of a watch while the block lasts, if there is a plan for it.

    Yields the address that Prometheus scrapes; None without a server. Raises EndpointError where the address cannot
    be listened on, OutputError where the file cannot be written.
    """
    if plan is None:
        yield None
        return
    from ....metrics.watch_metrics import read_watch

    def read() -> Iterator[Reading]:
        return read_watch(watch.plan, watch.statuses, time.time())

    group = {"instance": socket.gethostname(), "watch": watch.plan.name}
    async with open_publication(plan, read, group, watch.report, keeps_file=True) as publication:
        watch.events.subscribe(lambda event: publication.changed(is_result=_is_result(event)))
        yield publication.url


def _is_result(event: WatchEvent) -> bool:
    """Return whether an event is worth a push: the end of a cycle, a change, the end of the watch."""
    return isinstance(event, ChangeFound | WatchEnded) or (isinstance(event, CheckEnded) and event.decides)
