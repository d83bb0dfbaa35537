"""Protocols of what the state and the screens follow: a run, and a watch of this or of another process."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from ...engine.model.events import Event, Reason
from ...engine.model.plan import Settings
from ...engine.results.meter import Meter
from ...presets.diagnosis.live import LiveDiagnosis
from ...watch.events import WatchEvent
from ...watch.peer_status import PeerStatus
from ...watch.watch_plan import WatchPlan


class RunHandle(Protocol):
    """A run in progress: its events, and the actions of the user. The screens know only this."""

    @property
    def run_id(self) -> str:
        """The run's id in the run log."""
        ...

    @property
    def meter(self) -> Meter:
        """The meter of the run. The service feeds it every event."""
        ...

    @property
    def diagnosis(self) -> LiveDiagnosis:
        """The diagnosis of the run, whose pass mark judges the run at its end.

        The service gives it this machine's ceiling.
        """
        ...

    @property
    def notices(self) -> Sequence[str]:
        """Messages about the run and its storage: `this run is not saved: …`."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the events: always `Started` first and `Ended` last."""
        ...

    def change_settings(self, settings: Settings) -> None:
        """Continue with other settings."""
        ...

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run. `Ended` still comes."""
        ...


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
