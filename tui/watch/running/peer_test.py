"""One full test of a watched peer: an ordinary run, and the result of the peer that follows from it.

A peer that is down, refuses, or breaks off has a result as well: a failure with its reason.
"""

import asyncio
import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from ....engine.host.shortage import find_shortage_in
from ....engine.model.directions import Direction
from ....engine.model.errors import (
    LinkgaugeError,
    PeerBusy,
    PeerKeyRequired,
    PeerLacksTurns,
    PeerUntrusted,
    PeerVersionMismatch,
    UsageError,
)
from ....engine.model.plan import SECOND_NS, Plan
from ....engine.model.run_end import Reason
from ....engine.near.connect import open_far_end
from ....engine.protocol.foreign.missing_features import Feature, why_unavailable
from ....engine.results.measured_result import MeasuredResult
from ....engine.results.path.path_document import PathFigures
from ....engine.results.run_log import RunLog
from ....engine.results.run_result import RunResult
from ....presets.catalog import Catalog
from ....presets.verdict import NO_LIMITS, AcceptanceLimits
from ....watch.events import CheckResult, CheckVerdict, Metric, Route
from ....watch.watch_plan import WatchedPeer
from ...session.credentials import with_access
from ...session.run_session import RunSession, open_run_session
from ...session.run_spec import Judging, Record, RunSpec, complete_spec, find_preset

_MARGIN_S: Final = 90.0  # to connect, to log in by ssh, to start workers, to wait for the last samples
_TURN_NS: Final = 30 * SECOND_NS  # so long it holds its interface: in line, behind short tests of others
_TURN_PAUSE_S: Final = 60.0
_LEAST_PAUSE_S: Final = 1.0
_MOST_DOUBLINGS: Final = 10
_STOPPED: Final = "the watch was ended"
_GIGABYTE: Final = 1e9
_MOST_LOST: Final = 0.999
_FIRST_PATH_PORT: Final = 61_000
_PATH_PORTS: Final = 4_000
_LASTING: Final = (PeerKeyRequired, PeerUntrusted, PeerVersionMismatch)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WatchContext:
    """What all tests of a watch share: the run log, the presets, the group of the runs."""

    log: RunLog
    catalog: Catalog
    group: str


class PeerTest:
    """One test. Call `carry_out` once; `stop` may come at any time."""

    def __init__(self, watched: WatchedPeer, context: WatchContext, run_id: str) -> None:
        self._watched, self._context, self.run_id = watched, context, run_id
        self._session: RunSession | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_stopped = False
        self.notices: tuple[str, ...] = ()
        """Why its rate is not judged, if the preset was to be chosen and none could be."""

    def stop(self) -> None:
        """End the test in order. The part that it has measured is in the run log and does not count."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._session is not None:
            self._session.stop(Reason.INTERRUPTED, _STOPPED)
        elif self._task is not None:
            self._task.cancel()

    async def carry_out(self) -> CheckResult | None:
        """Return the result, once its run is in the run log; None if the test was stopped.

        Raises PeerBusy if other tests have the endpoint.
        """
        if self._is_stopped:
            return None
        self._task = asyncio.current_task()
        plan = _with_turn(self._watched)
        deadline_s = ((plan.duration_ns or 0) + plan.wait_ns) / SECOND_NS + _MARGIN_S
        try:
            async with asyncio.timeout(deadline_s):
                try:
                    result = await self._measure(plan)
                except PeerLacksTurns:
                    result = await self._measure(self._watched.plan)
        except (asyncio.CancelledError, PeerBusy):
            if not self._is_stopped:
                raise
            return None
        except LinkgaugeError as error:
            _log.debug("check %s of %s: %r", self.run_id, self._watched.name, error)
            result = failure_of(error)
        except (RuntimeError, MemoryError) as error:
            detail = find_shortage_in(str(error) or type(error).__name__)
            if detail is None:
                raise
            result = CheckResult(CheckVerdict.FAILED, detail=detail)
        except TimeoutError:
            detail = f"{self._watched.peer} did not end its test within {deadline_s:g} s"
            result = CheckResult(CheckVerdict.FAILED, detail=detail)
        return None if self._is_stopped else result

    def _spec(self, plan: Plan) -> RunSpec:
        """Return the run of a plan that the watch asks for. Raises UnknownPreset."""
        watched, context = self._watched, self._context
        preset = find_preset(watched.preset, context.catalog)
        if plan.path:
            plan = replace(plan, path_port=path_port_of(context.group, watched))
        return RunSpec(
            plan,
            watched.peer,
            Judging(preset, watched.variant, watched.pass_percent, watched.limits.latency, is_rate_expected=True),
            Record(label=watched.name, group=context.group, run_id=self.run_id),
            sending_rate=watched.plan.settings.rate_bit_s,
        )

    async def _measure(self, plan: Plan) -> CheckResult:
        """Carry out the run of a plan. Raises LinkgaugeError if there is none."""
        watched, context = self._watched, self._context
        async with open_far_end(with_access(watched.peer)) as far:
            spec = await complete_spec(self._spec(plan), far if watched.peer.ssh else watched.peer)
            if watched.preset is not None and spec.judging.preset is None:
                self.notices = spec.record.notices
            async with open_run_session(spec, log=context.log, far_end=far) as session:
                self._session = session
                if self._is_stopped:
                    session.stop(Reason.INTERRUPTED, _STOPPED)
                async for _event in session:
                    pass
            outcome = session.outcome
        if outcome is None:  # the recorder closes every run
            return CheckResult(CheckVerdict.FAILED, detail="the run has no end", run_id=self.run_id)
        return result_of_run(outcome.result, self.run_id, watched.limits)


def _with_turn(watched: WatchedPeer) -> Plan:
    """Return the plan of a test that has its endpoint for itself, if it is not to be shared."""
    if watched.is_shared or why_unavailable(watched.peer, Feature.TURNS) is not None:
        return watched.plan
    # A host that has its own endpoint's turn does not wait (own_turn.py).
    wait_ns = 0 if watched.own is not None else min(_TURN_NS, watched.timing.check_every_ns)
    return replace(watched.plan, exclusive=True, wait_ns=wait_ns)


def turn_pause_s(watched: WatchedPeer, free_in_s: int | None, tries: int) -> float:
    """Return how long to wait before a test asks for its turn again, after so many tries before this one.

    It doubles up to a minute, but is no longer than the time that the endpoint has named. It is moved at random, so
    that two hosts that have refused each other do not ask again at the same moment.
    """
    pause_s = (watched.plan.duration_ns or 0) / SECOND_NS / 2 * 2.0 ** min(tries, _MOST_DOUBLINGS)
    named_s = _TURN_PAUSE_S if free_in_s is None else float(free_in_s)
    return max(_LEAST_PAUSE_S, min(pause_s, named_s, _TURN_PAUSE_S)) * random.uniform(0.5, 1.5)  # noqa: S311


def failure_of(error: LinkgaugeError) -> CheckResult:
    """Return the result of a peer that could not be tested or probed.

    A wrong key, version or plan stays wrong until somebody acts: a repetition would only fill the endpoint's log.
    """
    is_lasting = isinstance(error, _LASTING) or error.exit_status == UsageError.exit_status
    return CheckResult(CheckVerdict.FAILED, detail=str(error), is_lasting=is_lasting)


def result_of_run(run: RunResult, run_id: str, limits: AcceptanceLimits = NO_LIMITS) -> CheckResult:
    """Return the result of a peer from the result of its run, which has just ended or is stored."""
    cost = 0 if run.total is None else _payload_bytes(run, run.total)
    if not run.reason.is_regular or run.total is None or not run.total.bytes:
        text = "no payload arrived" if run.total is not None else "nothing was measured"
        detail = text if run.reason.is_regular else run.detail or "the run did not finish"
        return CheckResult(CheckVerdict.FAILED, cost, detail=detail, run_id=run_id)
    check = limits.check(bit_s=run.total.bit_s, loss=run.loss, rise_ns=run.rise_ns)
    if check.unknown and not check.broken:
        text = f"it has no figure for the limit {check.unknown[0]}"
        return CheckResult(CheckVerdict.FAILED, cost, detail=text, run_id=run_id)
    return CheckResult(
        CheckVerdict.BELOW if check.broken else CheckVerdict.of_run(run.verdict),
        cost,
        tuple(_figures(run, run.total)),
        # Beyond what the link can carry there is no verdict: the preset is the wrong one, and a share says nothing.
        None if run.verdict == "none" else run.worst_percent,
        run.why[0] if run.why else None,
        run_id=run_id,
        beyond=check.broken,
        routes=() if run.path is None else tuple(_routes(run.path)),
    )


def _routes(path: PathFigures) -> Iterator[Route]:
    """Yield the directions whose other end has answered: of others the length is not known."""
    for direction, way in ((Direction.OUT, path.out), (Direction.IN, path.in_)):
        if way is not None and way.is_reached and way.hops:
            yield Route(direction, tuple(hop.addresses for hop in way.hops))


def _figures(run: RunResult, total: MeasuredResult) -> Iterator[tuple[Metric, float]]:
    is_stream = total.transactions_s is None
    goodput = total.bit_s if is_stream else total.transactions_s
    if goodput is not None:
        yield Metric.GOODPUT_BIT_S, goodput
    if total.loss is not None:
        yield Metric.LOSS, total.loss
    if run.retransmits is not None and is_stream and not total.is_datagrams and total.bytes:
        yield Metric.RETRANSMITS, run.retransmits / (total.bytes / _GIGABYTE)


def _payload_bytes(run: RunResult, total: MeasuredResult) -> int:
    """Return the payload that a run has sent. The warm-up is not counted: its payload is taken at the same rate."""
    measured = (total.bytes or 0) / (1 - min(total.loss or 0, _MOST_LOST))
    seconds = total.seconds or 0
    return round(measured * (1 + run.warmup_s / seconds)) if seconds > 0 else round(measured)


def path_port_of(group: str, watched: WatchedPeer) -> int:
    """Return the port of all traces of a watch's peer, also after a restart: above those that Linux chooses itself.

    Routers with parallel links choose one by addresses and ports. From another port each time, links would take
    turns, and the path would seem to change.
    """
    digest = sha256(f"{group} {watched.origin} {watched.name} {watched.peer}".encode()).digest()
    return _FIRST_PATH_PORT + int.from_bytes(digest[:4], "big") % _PATH_PORTS
