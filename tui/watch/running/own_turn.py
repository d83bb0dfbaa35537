"""The turn of this host's own endpoint, held while its watch tests another host.

So a host of a mesh is in one test at a time: what others would test here waits meanwhile. The endpoint prepares a
test of datagrams without sessions, as for a probe, and neither sends nor expects payload.

A watch that has this turn does not wait for the turn of the other host, because two hosts would wait for each
other. It is refused, lets its own turn go, and tries again a little later.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from ....engine.control.connection import ControlConnection
from ....engine.model.errors import LinkgaugeError, PeerBusy
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS, Plan
from ....engine.model.run_end import Reason, RunEnd
from ....engine.near.connect import connect
from ....engine.near.path_mtu import PATH_PLAN, prepare_path_session
from ....engine.protocol.messages import Start, Stop
from ....watch.watch_plan import WatchedPeer
from ...session.credentials import with_access

_WAIT_NS: Final = 30 * SECOND_NS
_MARGIN_NS: Final = 10 * SECOND_NS  # to begin the test and to end it
# An endpoint ends a test that it has prepared for half a minute. Of one that never starts its log has no line.
_UNSTARTED_NS: Final = 28 * SECOND_NS
_END_S: Final = 2.0


@asynccontextmanager
async def hold_own_turn(watched: WatchedPeer) -> AsyncGenerator[str | None]:
    """Hold the turn of this host's endpoint for one test of a peer, if both are hosts of a mesh.

    Without an endpoint here the test is carried out all the same: it yields a sentence about that, else None.
    Raises PeerBusy if others test here.
    """
    problem = None
    async with AsyncExitStack() as stack:
        if watched.own is not None and not watched.is_shared:
            plan = replace(
                PATH_PLAN,
                duration_ns=(watched.plan.duration_ns or 0) + _MARGIN_NS,
                exclusive=True,
                wait_ns=min(_WAIT_NS, watched.timing.check_every_ns),
            )
            try:
                await stack.enter_async_context(_hold(with_access(watched.own), plan))
            except PeerBusy:
                raise
            except LinkgaugeError as error:
                problem = (
                    f"the endpoint of this host does not know of its tests, and may serve others beside: {error}"
                )
        yield problem


@asynccontextmanager
async def _hold(own: Peer, plan: Plan) -> AsyncGenerator[None]:
    """Hold a turn for a plan that carries nothing. Raises PeerError."""
    async with connect(own) as (control, ends):
        if not ends.far.reads_others:  # an earlier version, which has no turns
            yield
            return
        await prepare_path_session(control, own, plan)
        if plan.duration_ns is None or plan.duration_ns > _UNSTARTED_NS:
            control.send(Start())
        reading = asyncio.create_task(_read(control))
        try:
            yield
        finally:
            control.try_send(Stop(RunEnd(Reason.STOPPED, "")))
            await asyncio.wait({reading}, timeout=_END_S)  # until the endpoint has taken the turn back
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(control: ControlConnection) -> None:
    """Read what the endpoint reports, and drop it, until it ends the test."""
    with suppress(LinkgaugeError):
        while True:
            await control.receive()
