"""The cockpit's work: what waits for the network. It posts what comes of it, and changes nothing."""

from collections.abc import Callable

from textual.message import Message

from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.model.plan import Plan
from ....presets.preset import Preset
from ...interfaces import Ports
from .posted import EventArrived, FarAnswered, NotReady, RunOpened, RunOver

Post = Callable[[Message], object]


async def probe(ports: Ports, peer: Peer, post: Post) -> None:
    """Ask a far end who it is."""
    try:
        post(FarAnswered(await ports.probe(peer)))
    except LinkgaugeError as error:
        post(NotReady.because(error))


async def conduct(ports: Ports, plan: Plan, preset: Preset, peer: Peer, post: Post) -> None:
    """Open a run, follow it to its end, and give everything back."""
    try:
        async with ports.start_run(plan, preset, peer) as run:
            post(RunOpened(run))
            async for event in run:
                post(EventArrived(event))
            summary = run.meter.summary()
        post(RunOver(summary))
    except LinkgaugeError as error:
        post(NotReady.because(error))
