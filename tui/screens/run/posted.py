"""What the cockpit's workers post: they change nothing themselves."""

from dataclasses import dataclass
from typing import Self

from textual.message import Message

from ....engine.model.errors import LinkgaugeError, PeerError, PeerWantsKey
from ....engine.model.events import Event
from ....engine.model.host_info import HostFacts
from ....engine.results.summary import Summary
from ...interfaces import ConductedRun
from ...state.instrument_values import Problem


@dataclass
class RunOpened(Message):
    """A run has been opened, and its events will come."""

    run: ConductedRun


@dataclass
class EventArrived(Message):
    """An event of the run."""

    event: Event


@dataclass
class RunOver(Message):
    """The run has ended and everything is given back."""

    summary: Summary


@dataclass
class FarAnswered(Message):
    """The far end said who it is."""

    facts: HostFacts


@dataclass
class NotReady(Message):
    """The far end cannot be used, or the run could not be opened; `wants_key` where only a key is missing."""

    problem: Problem
    wants_key: bool = False

    @classmethod
    def because(cls, error: BaseException | None) -> Self:
        """Tell an error; the text of a LinkgaugeError is meant for people already."""
        if isinstance(error, PeerError):
            problem = Problem("NO FAR END", "the far end cannot be used", str(error))
            return cls(problem, isinstance(error, PeerWantsKey))
        text = str(error) if isinstance(error, LinkgaugeError) else f"{type(error).__name__}: {error}"
        return cls(Problem("NO RUN", "the run could not be made", text))


class Paint(Message):
    """The gauges are out of date. A newer one replaces those that still wait: only drawing is skipped."""

    def can_replace(self, message: Message) -> bool:
        """Take the place of any older one."""
        return isinstance(message, Paint)
