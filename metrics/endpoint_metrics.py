"""The metrics of an endpoint, read from its status at the moment of a scrape. Pure."""

from collections.abc import Callable, Iterator

from .. import __version__
from ..engine.far.status import EndpointStatus
from ..engine.model.run_end import Reason
from . import families
from .families import Reading


class EndpointMetrics:
    """Reads an endpoint by its `get_status`, which only reads values: a scrape delays no test."""

    def __init__(self, get_status: Callable[[], EndpointStatus]) -> None:
        self._get_status = get_status
        self._received_bytes = self._sent_bytes = 0

    def read(self) -> Iterator[Reading]:
        """Yield every reading that is known now."""
        status = self._get_status()
        totals = status.totals
        runs = [client.run for client in status.clients if client.run is not None]
        yield Reading(families.BUILD_INFO, 1, (__version__,))
        yield Reading(families.CLIENTS, len(status.clients))
        yield Reading(families.CLIENT_LIMIT, status.limits.clients)
        yield Reading(families.RUNS, len(runs))
        yield Reading(families.PENDING, status.pending)
        yield Reading(families.DRAINING, status.is_closed)
        for name in dict.fromkeys(("", *status.key_names)):
            yield Reading(families.ADMITTED, totals.clients_by_key.get(name, 0), (name,))
        for reason in Reason:
            yield Reading(families.ENDED_RUNS, totals.runs.get(reason, 0), (reason,))
        yield Reading(families.PROBES, totals.probes)
        for reason, count in sorted(totals.rejections.items()):
            yield Reading(families.REJECTIONS, count, (reason,))
        # A counter must not fall, and a run that could not be prepared takes its few bytes with it.
        received = totals.received_bytes + sum(run.received_bytes for run in runs)
        sent = totals.sent_bytes + sum(run.sent_bytes for run in runs)
        self._received_bytes = max(self._received_bytes, received)
        self._sent_bytes = max(self._sent_bytes, sent)
        yield Reading(families.RECEIVED, self._received_bytes)
        yield Reading(families.SENT, self._sent_bytes)
