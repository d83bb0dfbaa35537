"""What the runs with a browser's page and with a client of networkQuality share: ends, judgement, record."""

import asyncio
from collections.abc import Awaitable, Callable

from ....engine.control.handshake import HandshakeResult
from ....engine.host.description import describe_host
from ....engine.model.errors import PeerUnreachable
from ....engine.model.events import Event
from ....engine.model.host_info import HostInfo
from ....engine.model.run_end import EndText, Reason, RunEnd
from ....engine.near.base_run import Run
from ....engine.results.run_log import RunLog
from ....presets.auto_select import select_preset
from ....presets.catalog import Catalog
from ....presets.diagnosis.live import no_ceiling
from ...session.run_session import RunSession
from ...session.run_spec import Judging, RunSpec


async def describe_client(transport: asyncio.BaseTransport | None, address: str, software: str) -> HandshakeResult:
    """Return the descriptions of this host and of a client; raise PeerUnreachable if its connection has gone."""
    # While a connection is being closed it still has its addresses: the run begins, and its end says why.
    local = None if transport is None else transport.get_extra_info("sockname")
    remote = None if transport is None else transport.get_extra_info("peername")
    if local is None or remote is None:
        raise PeerUnreachable(EndText.PAGE_GONE.value)
    near = await describe_host(local[:2], remote[:2])
    return HandshakeResult(near, HostInfo(address, "", 0, software, ""), address=address)


def judge_by_interface(catalog: Catalog, ends: HandshakeResult) -> tuple[Judging, tuple[str, ...]]:
    """Return how a run is judged by this host's interface, the only one that is known, and notices about it."""
    selected = select_preset(catalog, ends.near.nic, None, is_far_unknown=True)
    return Judging(selected.chosen, selected.variant, why=selected.chosen is None), selected.notices


async def follow_run(
    run: Run,
    spec: RunSpec,
    log: RunLog | None,
    show: Callable[[RunSession, Event], Awaitable[None]] | None = None,
) -> RunEnd:
    """Record a run, show each event if somebody looks, and return its end."""
    session = RunSession(run, spec, far_end=spec.peer, log=log, writer=None, ceiling=no_ceiling)
    try:
        async for event in session:
            if show is not None:
                await show(session, event)
    finally:
        session.abandon()
    outcome = session.outcome
    return RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value) if outcome is None else outcome.summary.end
