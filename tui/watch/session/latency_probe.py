"""One probe of a watched peer: the latency and the loss of the idle link. It is no run of the run log."""

import logging

from ....engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS
from ....engine.near.connect import connect, open_far_end
from ....watch.events import CheckResult, CheckVerdict, Metric
from ....watch.watch_plan import WatchedPeer
from ...session.credentials import with_access
from .idle_latency import measure_round_trips

_log = logging.getLogger(__name__)


def can_be_probed(peer: Peer) -> bool:
    """Return whether a peer answers probes: an iperf3 server would take one for a test."""
    return why_unavailable(peer, Feature.PATH_MTU) is None


async def find_absence(watched: WatchedPeer) -> CheckResult | None:
    """Return why a peer cannot be tested now; None if it answers. This costs its path a handshake."""
    try:
        async with open_far_end(with_access(watched.peer)) as far, connect(far, watched.plan.socket):
            return None
    except LinkgaugeError as error:
        return _failure(watched, error)


async def probe_peer(watched: WatchedPeer) -> CheckResult:
    """Return what a probe says of a peer; one that cannot be reached is a failure with its sentence."""
    try:
        async with open_far_end(with_access(watched.peer)) as far:
            trips = await measure_round_trips(far, watched.plan.socket)
    except LinkgaugeError as error:
        return _failure(watched, error)
    figures: list[tuple[Metric, float]] = []
    if trips.median_ns is not None:
        figures.append((Metric.LATENCY_S, trips.median_ns / SECOND_NS))
    if trips.loss is not None:
        figures.append((Metric.LOSS, trips.loss))
    if trips.median_ns is None:
        return CheckResult(CheckVerdict.FAILED, trips.bytes, tuple(figures), detail="no datagram came back")
    return CheckResult(CheckVerdict.GOOD, trips.bytes, tuple(figures))


def _failure(watched: WatchedPeer, error: LinkgaugeError) -> CheckResult:
    _log.debug("probe of %s: %r", watched.name, error)
    return CheckResult(CheckVerdict.FAILED, detail=str(error))
