"""Protocols of the services that the app needs: runs, host information, run log, exports, sweeps, meshes, watches.

The command line passes the real services, tests pass scripted ones. Widgets see neither.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from ..discovery.announcement import FoundEndpoint
from ..engine.model.events import Event, Reason
from ..engine.model.host_info import HostInfo
from ..engine.model.peer import Peer
from ..engine.model.plan import Plan, Settings
from ..engine.results.meter import Meter
from ..engine.results.run_log import RunEntry, RunNumbers, RunQuery, RunRecord
from ..engine.results.sweep import Sweep, SweepPoint, SweepResult
from ..mesh.events import MeshEvent
from ..mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ..presets.auto_select import PresetSelection
from ..presets.diagnosis.live import LiveDiagnosis
from ..presets.preset import Preset
from ..watch.events import WatchEvent
from ..watch.peer_status import PeerStatus
from ..watch.watch_plan import WatchPlan

if TYPE_CHECKING:
    from ..mesh.reading import MeshComparison


class RunHandle(Protocol):
    """A run in progress: its events, and the actions of a person."""

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
    """Function that starts a run. Entering the context raises LinkgaugeError; leaving it ends the run."""

    def __call__(self, plan: Plan, preset: Preset, peer: Peer) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of one run."""
        ...


class QueryHostInfo(Protocol):
    """Function that queries a far end's host information. Raises PeerError."""

    async def __call__(self, peer: Peer) -> HostInfo:
        """Return the host information of a peer."""
        ...


SelectPreset = Callable[[Peer], Awaitable[PresetSelection]]
"""Function that selects the preset by the interfaces of both ends. Raises PeerError or PlanError."""

RememberAccess = Callable[[Peer], Path]
"""Function that saves the key of a peer and returns the file; called in a thread. Raises InvalidKeyError."""

ExportFormat = Literal["csv", "json", "html"]


class ExportRuns(Protocol):
    """Function that writes runs to a file; called in a thread. Raises OSError or LinkgaugeError."""

    def __call__(self, run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
        """Write the file and return its path."""
        ...


class History(Protocol):
    """The run log. Every method is called in a thread and may raise RunLogError; labels and notes, PlanError."""

    def count_runs(self) -> int:
        """Return the number of stored runs."""
        ...

    def find_runs(self, query: RunQuery) -> RunNumbers:
        """Return the runs that match a query, in its order."""
        ...

    def read_entries(self, numbers: RunNumbers) -> Sequence[RunEntry]:
        """Return the entries of runs, in the order of their numbers. Runs that are gone are left out."""
        ...

    def newest_of_peers(self, limit: int) -> Sequence[RunEntry]:
        """Return the newest run with each peer, the newest first."""
        ...

    def add_digests(self) -> bool:
        """Prepare the runs of an older linkgauge for lists; return whether there were any."""
        ...

    def find(self, text: str) -> RunRecord:
        """Return the run with an id, or with an unambiguous beginning of it."""
        ...

    def size_bytes(self) -> int:
        """Return the size of the log on the disk."""
        ...

    def events(self, run_id: str) -> Iterable[Event]:
        """Return the events of a run, in order."""
        ...

    def set_label(self, run_id: str, label: str | None) -> None:
        """Set or clear the label of a run."""
        ...

    def set_note(self, run_id: str, note: str | None) -> None:
        """Set or clear the note of a run."""
        ...

    def delete(self, run_id: str) -> None:
        """Delete a run."""
        ...


class Sweeps(Protocol):
    """The stored sweeps, and the runs of one. Every method may raise LinkgaugeError."""

    def begin(self, sweep: Sweep) -> Sequence[SweepResult]:
        """Store the definition and return the results so far. Called in a thread."""
        ...

    def find(self, group: str) -> tuple[Sweep, Sequence[SweepResult]]:
        """Return a stored sweep and its results so far. Called in a thread."""
        ...

    def run_point(
        self, sweep: Sweep, point: SweepPoint, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of a point's run."""
        ...

    def write_report(self, sweep: Sweep, path: Path) -> Path:
        """Write a report of the results and return its path. Called in a thread."""
        ...


class MeshNews(Protocol):
    """An event of a mesh, and the figure of the cell that it ended; None for any other event."""

    @property
    def event(self) -> MeshEvent:
        """What happened."""
        ...

    @property
    def figure(self) -> CellFigure | None:
        """What came out of the cell."""
        ...


class MeshHandle(Protocol):
    """A mesh in progress: its events, what came out so far, and its end."""

    @property
    def matrix(self) -> MeshMatrix:
        """The figures so far, those of a resumed mesh included."""
        ...

    @property
    def findings(self) -> Sequence[MeshFinding]:
        """The hosts and paths that are slow, as far as the figures so far show it."""
        ...

    def __aiter__(self) -> AsyncIterator[MeshNews]:
        """Iterate over what happens: always `MeshBegan` first and `MeshEnded` last. Raises LinkgaugeError."""
        ...

    def stop(self) -> None:
        """End the mesh in order; a second call changes nothing. `MeshEnded` still comes."""
        ...


@dataclass(frozen=True, slots=True)
class StoredMesh:
    """A mesh of the run log: its figures, what they show, and the pass mark of its cells in percent."""

    matrix: MeshMatrix
    findings: tuple[MeshFinding, ...]
    pass_percent: float


class Meshes(Protocol):
    """The stored meshes. Every method is called in a thread and may raise LinkgaugeError."""

    def find(self, group: str) -> StoredMesh:
        """Return a stored mesh with its figures so far."""
        ...

    def compare(self, matrix: MeshMatrix) -> "MeshComparison | None":
        """Return what has changed since the last mesh of the same hosts; None where there is none."""
        ...

    def write_report(self, group: str, path: Path) -> Path:
        """Write the HTML page of a mesh and return its path."""
        ...


class WatchHandle(Protocol):
    """A watch in progress: its plan, what is known of its peers, its events, and the actions of a person."""

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


class FindAnnounced(Protocol):
    """Finds the endpoints that announce themselves on this LAN. Nothing of them is proved."""

    def __call__(self, seconds: float) -> AsyncGenerator[FoundEndpoint]:
        """Yield them as they are found, for so many seconds. Raises OSError without multicast."""
        ...


@dataclass(frozen=True, slots=True)
class AppServices:
    """All services of the app.

    `history`, `sweeps` and `meshes` are None if runs are not stored, `select_preset` if presets are chosen only by
    hand, `remember_access` if keys are not saved, `find_announced` without the extra for multicast DNS.
    """

    start_run: StartRun
    query_host_info: QueryHostInfo
    export: ExportRuns
    history: History | None = None
    sweeps: Sweeps | None = None
    meshes: Meshes | None = None
    select_preset: SelectPreset | None = None
    remember_access: RememberAccess | None = None
    find_announced: FindAnnounced | None = None
