"""The cockpit's work: what waits for the network. It posts what comes of it, and changes nothing."""

from collections.abc import Callable

from textual.message import Message

from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.model.plan import Plan
from ....presets.preset import Preset
from ...interfaces import AppServices
from .posted import EventArrived, FarAnswered, RunEnded, RunOpened, StartFailed

PostMessage = Callable[[Message], object]


async def query_host_info(ports: AppServices, peer: Peer, post: PostMessage) -> None:
    """Ask a far end who it is."""
    try:
        post(FarAnswered(await ports.query_host_info(peer)))
    except LinkgaugeError as error:
        post(StartFailed.from_error(error))


async def follow_run(ports: AppServices, plan: Plan, preset: Preset, peer: Peer, post: PostMessage) -> None:
    """Open a run, follow it to its end, and give everything back."""
    try:
        async with ports.start_run(plan, preset, peer) as run:
            post(RunOpened(run))
            async for event in run:
                post(EventArrived(event))
            summary = run.meter.summary()
        post(RunEnded(summary))
    except LinkgaugeError as error:
        post(StartFailed.from_error(error))
