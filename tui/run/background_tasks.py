"""The cockpit's background tasks, and the messages that they post. The tasks themselves change no state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from textual.message import Message

from ...engine.model.errors import LinkgaugeError, PeerError, PeerKeyRequired
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...presets.auto_select import NO_PRESET
from ...presets.preset import Preset
from ..kit.screens.base_screen import internal_error_text
from ..readings.cockpit_snapshot import RunProblem
from ..readings.waited_device import FollowDevice, WaitedDevice
from ..session.run_spec import Judging, RunSpec

if TYPE_CHECKING:
    from ...engine.model.events import Event
    from ...engine.results.summary import Summary
    from ...presets.auto_select import PresetSelection
    from ..session.run_session import RunSession
    from .run_services import RunServices


@dataclass
class RunOpened(Message):
    """A run is open; its events follow."""

    run: "RunSession"


@dataclass
class EventArrived(Message):
    """An event of the run."""

    event: "Event"


@dataclass
class RunEnded(Message):
    """The run has ended and its resources are released."""

    summary: "Summary"


@dataclass
class FarAnswered(Message):
    """The far end has sent its description.

    `selection` is the preset that both ends' interfaces have selected, if one was requested. If they have selected
    none, `problem` says why.
    """

    info: HostInfo
    selection: "PresetSelection | None" = None
    problem: str = ""


@dataclass
class StartFailed(Message):
    """The far end cannot be used, or the run could not be opened. `wants_key`: only its key is missing."""

    problem: RunProblem
    wants_key: bool = False

    @classmethod
    def from_error(cls, error: BaseException | None) -> Self:
        """Return the message for an error. The text of a LinkgaugeError is written for the user already."""
        if isinstance(error, PeerError):
            problem = RunProblem("NOT CONNECTED", "cannot use the remote end", str(error))
            return cls(problem, isinstance(error, PeerKeyRequired))
        text = str(error) if isinstance(error, LinkgaugeError) else internal_error_text(error)
        return cls(RunProblem("NOT STARTED", "cannot start the test", text))


@dataclass
class DeviceChanged(Message):
    """A device has joined or gone, or there is a new code."""

    device: WaitedDevice


@dataclass
class RepaintNeeded(Message):
    """The gauges are out of date. It replaces an older one in the queue: drawing is skipped, events are not."""

    def can_replace(self, message: Message) -> bool:
        """Replace any older one."""
        return isinstance(message, RepaintNeeded)


PostMessage = Callable[[Message], object]


async def query_far_end(
    services: "RunServices", peer: Peer, post: PostMessage, *, with_preset: bool = False
) -> None:
    """Ask a far end for its description, and if wanted select the preset. Post FarAnswered or StartFailed."""
    try:
        info = await services.query_host_info(peer)
    except LinkgaugeError as error:
        post(StartFailed.from_error(error))
        return
    selection, problem = None, ""
    if with_preset and services.select_preset is not None:
        try:
            selection = await services.select_preset(peer)
        except LinkgaugeError as error:
            problem = str(error)
    post(FarAnswered(info, selection, problem))


async def follow_devices(follow: FollowDevice, post: PostMessage) -> None:
    """Post DeviceChanged for the device at this moment, and again at each change."""
    async for device in follow():
        post(DeviceChanged(device))


async def follow_run(services: "RunServices", plan: Plan, preset: Preset, peer: Peer, post: PostMessage) -> None:
    """Open a run, post its events until it ends, and release it.

    Posts RunOpened, an EventArrived for each event, and RunEnded. An error at any point posts StartFailed instead.

    Args:
        services: Opens the run.
        plan: The run's plan.
        preset: The preset that the run is judged by.
        peer: The far end.
        post: Called with each message, on the event loop.
    """
    try:
        judging = Judging(None if preset is NO_PRESET else preset, services.variant_of(preset.id))
        async with services.start_run(RunSpec(plan, peer, judging)) as run:
            run.meter.has_traces = True
            post(RunOpened(run))
            async for event in run:
                post(EventArrived(event))
            summary = run.meter.summary()
        post(RunEnded(summary))
    except LinkgaugeError as error:
        post(StartFailed.from_error(error))
