"""A run in progress as the screens see it, and how one is started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ...engine.model.events import Event, Reason
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan, Settings
from ...engine.results.meter import Meter
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.preset import Preset
from ...presets.wire import Variant


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


class StartRun(Protocol):
    """Starts a run. Entering the context raises LinkgaugeError; leaving it ends the run.

    A run of a sweep has its group, and the link options that the sweep began with.
    """

    def __call__(
        self,
        plan: Plan,
        preset: Preset | None,
        peer: Peer,
        *,
        group: str | None = None,
        variant: Variant | None = None,
    ) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of one run."""
        ...
