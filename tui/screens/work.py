"""The cockpit's work: what waits for the network or a disk. It posts what comes of it, and changes nothing."""

from asyncio import to_thread
from collections.abc import Callable
from pathlib import Path

from textual.message import Message

from ...engine.errors import LinkgaugeError
from ...engine.plan import Peer, Plan
from ...presets.model import Preset
from .. import format as words
from ..ports import Ports
from .messages import EventArrived, Exported, FarAnswered, NotReady, RunOpened, RunOver

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


async def export(ports: Ports, run_id: str, path: Path, post: Post) -> None:
    """Write a run as CSV."""
    try:
        written = await to_thread(ports.export, run_id, path)
    except (LinkgaugeError, OSError) as error:
        post(Exported(words.plain(str(error)), done=False))
    else:
        post(Exported(str(written), done=True))
