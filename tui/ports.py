"""What the app needs of the world, as protocols: runs, a look at the far end, an export.

The command line passes the real ones; tests pass scripted ones. Widgets see neither.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..engine.plan import Peer, Plan, Settings
from ..engine.samples import Event, HostFacts, Reason, Summary
from ..presets.model import Preset


class SummarySource(Protocol):
    """A meter, as far as the app knows it: whoever conducts the run has fed it every event."""

    def summary(self) -> Summary:
        """Return what was measured until now."""
        ...


class ConductedRun(Protocol):
    """A run that goes on: its events, and the two things that a person can do to it."""

    @property
    def run_id(self) -> str:
        """The run's name in the run log."""
        ...

    @property
    def meter(self) -> SummarySource:
        """What sums the run up."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know about the run's keeping: `this run is not kept: …`."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the events: Started first, Ended last, always."""
        ...

    def change(self, settings: Settings) -> None:
        """Go on under other settings."""
        ...

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run; Ended still comes."""
        ...


class StartRun(Protocol):
    """Opens a run; raises LinkgaugeError where that cannot be done. On exit everything is given back."""

    def __call__(self, plan: Plan, preset: Preset, peer: Peer) -> AbstractAsyncContextManager[ConductedRun]:
        """Return the context of one run."""
        ...


class Probe(Protocol):
    """Asks a far end who it is; raises PeerError where it does not answer as one."""

    async def __call__(self, peer: Peer) -> HostFacts:
        """Return who it is."""
        ...


class Export(Protocol):
    """Writes a run as CSV; called in a thread. Raises OSError or StoreError where that cannot be done."""

    def __call__(self, run_id: str, path: Path) -> Path:
        """Return the file that was written."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """The three of them."""

    start_run: StartRun
    probe: Probe
    export: Export
