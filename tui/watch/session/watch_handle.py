"""A watch in progress as its screen sees it: one of this process, or of another process."""

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from ....watch.events import WatchEvent
from ....watch.peer_status import PeerStatus
from ....watch.watch_plan import WatchPlan


class WatchHandle(Protocol):
    """A watch in progress: its plan, what is known of its peers, its events, and the actions of the user."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether another process carries it out, and this one only shows it."""
        ...

    @property
    def plan(self) -> WatchPlan:
        """The newest plan."""
        ...

    @property
    def statuses(self) -> Mapping[str, PeerStatus]:
        """What is known of each peer, in the plan's order."""
        ...

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        """Iterate over the events, each once the journal has it. Raises LinkgaugeError.

        `WatchEnded` comes last, unless the watch is elsewhere: then the events end after `stop`.
        """
        ...

    def check_now(self, name: str) -> None:
        """Make a test of this peer due now."""
        ...

    def reload(self, plan: WatchPlan) -> None:
        """Watch by another plan from now on."""
        ...

    def stop(self) -> None:
        """End the watch in order, the test that runs first; a second call changes nothing. `WatchEnded` comes."""
        ...
