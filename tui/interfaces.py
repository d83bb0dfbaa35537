"""What the app needs of the world, as protocols: runs, a look at the far end, the runs that are kept, an export.

The command line passes the real ones; tests pass scripted ones. Widgets see neither.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..engine.model.events import Event, Reason
from ..engine.model.host_info import HostInfo
from ..engine.model.peer import Peer
from ..engine.model.plan import Plan, Settings
from ..engine.results.run_log import RunRecord
from ..engine.results.summary import Summary
from ..engine.results.sweep import Sweep, SweepPoint, SweepResult
from ..presets.diagnosis.live import LiveDiagnosis
from ..presets.preset import Preset


class SummarySource(Protocol):
    """A meter, as far as the app knows it: whoever conducts the run has fed it every event."""

    def summary(self) -> Summary:
        """Return what was measured until now."""
        ...


class RunHandle(Protocol):
    """A run that goes on: its events, and what a person can do to it."""

    @property
    def run_id(self) -> str:
        """The run's name in the run log."""
        ...

    @property
    def meter(self) -> SummarySource:
        """What sums the run up."""
        ...

    @property
    def diagnosis(self) -> LiveDiagnosis:
        """What knows why it is not faster: it has been fed every event, and knows what this machine can do."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What a person should know about the run's keeping: `this run is not kept: …`."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]:
        """Iterate over the events: Started first, Ended last, always."""
        ...

    def change_settings(self, settings: Settings) -> None:
        """Go on under other settings."""
        ...

    def set_pass_mark(self, pass_percent: float) -> None:
        """Judge the run by another mark at its end."""
        ...

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run; Ended still comes."""
        ...


class StartRun(Protocol):
    """Opens a run; raises LinkgaugeError where that cannot be done. On exit everything is given back."""

    def __call__(self, plan: Plan, preset: Preset, peer: Peer) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of one run."""
        ...


class QueryHostInfo(Protocol):
    """Asks a far end who it is; raises PeerError where it does not answer as one."""

    async def __call__(self, peer: Peer) -> HostInfo:
        """Return who it is."""
        ...


ExportFormat = Literal["csv", "json", "html"]


class ExportRuns(Protocol):
    """Writes runs in a form; called in a thread. Raises OSError or LinkgaugeError where that cannot be done."""

    def __call__(self, run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
        """Return the file that was written."""
        ...


class History(Protocol):
    """The runs that are kept; all of it is called in a thread. Raises StoreError, and PlanError for its words."""

    def list_runs(self) -> Sequence[RunRecord]:
        """Return all of them, the newest first."""
        ...

    def events(self, run_id: str) -> Iterable[Event]:
        """Return what a run told, in its order."""
        ...

    def set_label(self, run_id: str, label: str | None) -> None:
        """Name a run."""
        ...

    def set_note(self, run_id: str, note: str | None) -> None:
        """Keep what there is to say about a run."""
        ...

    def delete(self, run_id: str) -> None:
        """Delete a run."""
        ...


class Sweeps(Protocol):
    """Sweeps: kept, found again, carried out point by point. All raise LinkgaugeError where that cannot be done."""

    def begin(self, sweep: Sweep) -> Sequence[SweepResult]:
        """Keep its definition, and return what was measured of it already. Called in a thread."""
        ...

    def find(self, group: str) -> tuple[Sweep, Sequence[SweepResult]]:
        """Return a sweep that is kept, with what was measured of it. Called in a thread."""
        ...

    def run_point(
        self, sweep: Sweep, point: SweepPoint, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of a point's run."""
        ...

    def write_report(self, sweep: Sweep, path: Path) -> Path:
        """Write a page of what is kept of it, and return its file. Called in a thread."""
        ...


@dataclass(frozen=True, slots=True)
class AppServices:
    """All of them; there are no history and no sweeps where runs are not kept."""

    start_run: StartRun
    query_host_info: QueryHostInfo
    export: ExportRuns
    history: History | None = None
    sweeps: Sweeps | None = None
