"""What the cockpit's workers post: they change nothing themselves."""

from dataclasses import dataclass
from typing import Self

from textual.message import Message

from ....engine.model.errors import LinkgaugeError, PeerError, PeerKeyRequired
from ....engine.model.events import Event
from ....engine.model.host_info import HostInfo
from ....engine.results.summary import Summary
from ...interfaces import RunHandle
from ...state.instrument_values import RunProblem


@dataclass
class RunOpened(Message):
    """A run has been opened, and its events will come."""

    run: RunHandle


@dataclass
class EventArrived(Message):
    """An event of the run."""

    event: Event


@dataclass
class RunEnded(Message):
    """The run has ended and everything is given back."""

    summary: Summary


@dataclass
class FarAnswered(Message):
    """The far end said who it is."""

    info: HostInfo


@dataclass
class StartFailed(Message):
    """The far end cannot be used, or the run could not be opened; `wants_key` where only a key is missing."""

    problem: RunProblem
    wants_key: bool = False

    @classmethod
    def from_error(cls, error: BaseException | None) -> Self:
        """Tell an error; the text of a LinkgaugeError is meant for people already."""
        if isinstance(error, PeerError):
            problem = RunProblem("NO FAR END", "the far end cannot be used", str(error))
            return cls(problem, isinstance(error, PeerKeyRequired))
        text = str(error) if isinstance(error, LinkgaugeError) else f"{type(error).__name__}: {error}"
        return cls(RunProblem("NO RUN", "the run could not be made", text))


class RepaintNeeded(Message):
    """The gauges are out of date. A newer one replaces those that still wait: only drawing is skipped."""

    def can_replace(self, message: Message) -> bool:
        """Take the place of any older one."""
        return isinstance(message, RepaintNeeded)
