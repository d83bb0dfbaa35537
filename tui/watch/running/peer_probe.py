"""A probe of a watched peer: the latency and the loss of the idle path, by a few small datagrams. It is not a run.

The endpoint's own process answers the datagrams, so that no worker starts and nothing is stored. They are those of
the path MTU's measurement (path_probe.py), as short as possible. If no UDP comes through, small requests over TCP
measure the latency, and the loss stays unknown.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

from ....engine.model.counters.latency_histogram import LatencySummary
from ....engine.model.errors import (
    ConnectionClosed,
    ConnectionTampered,
    LinkgaugeError,
    PeerBusy,
    PeerError,
    RemoteProtocolError,
)
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS, Plan, SocketOptions
from ....engine.model.run_end import Reason, RunEnd
from ....engine.model.workload import Workload
from ....engine.near.connect import CHECK_RUNS, FarEnd, connect, open_far_end
from ....engine.near.path_mtu import open_path_socket, prepare_path_session
from ....engine.near.run import open_run
from ....engine.protocol.foreign.missing_features import Feature, why_unavailable
from ....engine.protocol.messages import Stop
from ....engine.protocol.path_probe import PATH_HEADER_BYTES, PathDatagram, PathKind, decode_path_datagram
from ....engine.results.meter import Meter
from ....engine.workloads.udp.df_socket import DfSocket
from ....watch.events import CheckResult, CheckVerdict, Metric
from ....watch.watch_plan import WatchedPeer
from ...session.credentials import with_access
from .peer_test import failure_of

COUNT: Final = 20
DEADLINE_S: Final = 20.0
_PACE_S: Final = 0.02
_TAIL_S: Final = 1.0  # a datagram without an answer by then is lost
_UDP_DEADLINE_S: Final = 4.0
_UNBOUND: Final = SocketOptions()
_REQUESTS: Final = Plan(
    workload=Workload.RR,
    duration_ns=SECOND_NS // 2,
    warmup_ns=0,
    interval_ns=SECOND_NS // 10,
    request_bytes=64,
    response_bytes=64,
)
_log = logging.getLogger(__name__)


def can_be_probed(peer: Peer) -> bool:
    """Return whether a peer answers probes: an iperf3 server would take one for a test."""
    return why_unavailable(peer, Feature.PATH_MTU) is None


async def find_absence(watched: WatchedPeer, newest: CheckResult | None) -> CheckResult | None:
    """Return why a peer cannot be tested now; None if it answers, or did so for its newest test or probe.

    The path carries only a handshake. This does not hold the interface: a peer that is down must not keep it from
    the tests of others.
    """
    has_answered = newest is not None and newest.verdict is not CheckVerdict.FAILED
    if has_answered or not can_be_probed(watched.peer):
        return None
    try:
        async with open_far_end(with_access(watched.peer)) as far, connect(far, watched.plan.socket):
            return None
    except LinkgaugeError as error:
        return _failure(watched, error)


async def probe_peer(watched: WatchedPeer) -> CheckResult:
    """Probe a peer; return its latency and loss, or a failure with the reason if it cannot be reached.

    Raises PeerBusy while a test has the endpoint for itself.
    """
    try:
        async with open_far_end(with_access(watched.peer)) as far:
            trips = await measure_round_trips(far, watched.plan.socket)
    except PeerBusy:
        raise
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
    return failure_of(error)


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The round trips of a probe.

    Args:
        median_ns: the median of those that came back; None if none did.
        loss: the share that did not come back, 0 to 1; None if it is unknown.
        bytes: the payload of both directions.
    """

    median_ns: int | None
    loss: float | None
    bytes: int


async def measure_round_trips(peer: FarEnd, binding: SocketOptions = _UNBOUND, count: int = COUNT) -> RoundTrips:
    """Return the round trips of `count` datagrams, or of requests if no UDP comes through.

    Raises PeerError if the peer cannot be used, and PlanError if this machine lacks the interface of the binding.
    """
    reason = why_unavailable(peer, Feature.PATH_MTU) if isinstance(peer, Peer) else None
    if reason is not None:
        raise PeerError(f"{peer}: {reason}")
    try:
        async with asyncio.timeout(DEADLINE_S):
            try:
                async with _open_echo(peer, binding) as (sock, secret):
                    return await _Echoes(sock, secret).measure(count)
            except OSError as error:  # no UDP on this path, or on this system
                _log.debug("%s: no datagrams come back: %s", peer, error)
                return await _measure_requests(peer, binding)
    except TimeoutError as error:
        raise PeerError(f"{peer} did not answer within {DEADLINE_S:g} s; {CHECK_RUNS}") from error


@asynccontextmanager
async def _open_echo(peer: FarEnd, binding: SocketOptions) -> AsyncGenerator[tuple[DfSocket, bytes]]:
    """Yield a socket over which the far end answers. Raises OSError if no UDP comes through, else PeerError."""
    async with connect(peer, binding) as (control, ends):
        if ends.is_data_tunneled:
            raise OSError("ssh carries no datagrams")
        try:
            secret = await prepare_path_session(control, peer)
            async with contextlib.AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(_UDP_DEADLINE_S):
                        opened = await stack.enter_async_context(open_path_socket(control, secret, binding))
                except TimeoutError as error:
                    raise OSError(f"no answer in {_UDP_DEADLINE_S:g} s") from error
                yield opened
        except (ConnectionClosed, ConnectionTampered, RemoteProtocolError) as error:
            raise PeerError(f"{peer} was lost: {error}; {CHECK_RUNS}") from error
        finally:
            control.try_send(Stop(RunEnd(Reason.STOPPED, "")))


class _Echoes:
    """Datagrams that the far end answers, and when each came back."""

    def __init__(self, sock: DfSocket, secret: bytes) -> None:
        self._sock, self._secret = sock, secret
        self._sent: dict[int, int] = {}
        self._round_trips_ns: list[int] = []
        self._news = asyncio.Event()

    async def measure(self, count: int) -> RoundTrips:
        """Send `count` datagrams, one after the other, and wait for the last answers."""
        self._sock.watch(self._read)
        for serial in range(1, count + 1):
            data = PathDatagram(PathKind.PROBE, serial, PATH_HEADER_BYTES).pack(self._secret)
            self._sent[serial] = time.perf_counter_ns()
            with contextlib.suppress(OSError):  # a datagram that this host cannot send counts as lost
                self._sock.send(data)
            await asyncio.sleep(_PACE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TAIL_S):
                while self._sent:
                    self._news.clear()
                    await self._news.wait()
        came = self._round_trips_ns
        return RoundTrips(
            round(median(came)) if came else None,
            1 - len(came) / count,
            (count + len(came)) * PATH_HEADER_BYTES,
        )

    def _read(self) -> None:
        now_ns = time.perf_counter_ns()
        self._sock.take_errors()
        while (data := self._sock.receive()) is not None:
            datagram = decode_path_datagram(data, self._secret)
            if datagram is None or datagram.kind is not PathKind.REACHED:
                continue
            sent_ns = self._sent.pop(datagram.serial, None)
            if sent_ns is not None:
                self._round_trips_ns.append(now_ns - sent_ns)
                self._news.set()


async def _measure_requests(peer: FarEnd, binding: SocketOptions) -> RoundTrips:
    """Return the round trips of small requests over TCP; the loss is unknown."""
    plan = replace(_REQUESTS, socket=binding)
    meter = Meter()
    async with open_run(plan, peer) as run:
        async for event in run:
            meter.feed(event)
            total = meter.summary().measured.total
            if total is not None and (total.transactions or 0) >= COUNT:
                run.stop(Reason.COMPLETED)
    meter.flush()
    total = meter.summary().measured.total
    latency: LatencySummary | None = None if total is None else total.latency
    if total is None or latency is None:
        raise PeerError(f"{peer}: no request was answered; {CHECK_RUNS}")
    return RoundTrips(round(latency.p50_ns), None, (total.transactions or 0) * sum(plan.transaction_sizes))
