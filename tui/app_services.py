"""What the screens of an app are given: the run log with its sweeps and meshes, exports, and what opens runs.

The command line passes the real functions, tests pass scripted ones. Widgets see neither.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..discovery.announcement import FoundEndpoint
from ..engine.model.errors import PlanError
from ..engine.model.host_info import HostInfo
from ..engine.model.peer import Peer
from ..engine.model.plan import Plan
from ..engine.results.run_log import RunLog
from ..engine.results.sweep import Sweep, SweepPoint, SweepResult
from ..mesh.figures import MeshFinding, MeshMatrix
from ..presets.auto_select import PresetSelection
from ..presets.catalog import Catalog
from ..presets.preset import Preset
from ..presets.wire import DEFAULT_VARIANT, Variant
from .mesh.stored_mesh import compare_with_previous, find_mesh, load_matrix
from .report.html import check_report_path
from .session.interfaces import RunHandle
from .session.stored_run import ExportFormat, generate_report
from .sweep.sweep_session import find_sweep, load_results, save_sweep

if TYPE_CHECKING:
    from ..mesh.reading import MeshComparison

ExportRuns = Callable[[Sequence[str], ExportFormat, Path], Path]
"""Writes runs to a file and returns its path; called in a thread. Raises OSError or LinkgaugeError."""

FindAnnounced = Callable[[float], AsyncGenerator[FoundEndpoint]]
"""Yields, for so many seconds, the endpoints that announce themselves on this LAN. Nothing of them is proved.

Raises OSError without multicast.
"""


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


class StoredSweeps:
    """The stored sweeps, and the runs of one. Every method may raise LinkgaugeError.

    Args:
        log: Has their runs.
        start_run: Starts a run.
        variant_of: Returns the link options that were selected with a preset.
    """

    def __init__(self, log: RunLog, start_run: StartRun, variant_of: Callable[[str | None], Variant]) -> None:
        self._log = log
        self._start_run = start_run
        self._variant_of = variant_of
        self._variants: dict[str, Variant] = {}

    def begin(self, sweep: Sweep) -> Sequence[SweepResult]:
        """Store the definition, unless it is stored already; return the results so far. Called in a thread."""
        try:
            _, variant = find_sweep(sweep.group)
        except PlanError:
            variant = self._variant_of(sweep.preset)
            save_sweep(sweep, variant)
        self._variants[sweep.group] = variant
        return load_results(self._log, sweep)

    def find(self, group: str) -> tuple[Sweep, Sequence[SweepResult]]:
        """Return a stored sweep and its results so far. Called in a thread."""
        sweep, _ = find_sweep(group)
        return sweep, load_results(self._log, sweep)

    def run_point(
        self, sweep: Sweep, point: SweepPoint, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[RunHandle]:
        """Return the context of a point's run."""
        variant = self._variants.get(sweep.group, DEFAULT_VARIANT)
        return self._start_run(point.to_plan(sweep.base), preset, peer, group=sweep.group, variant=variant)

    def write_report(self, sweep: Sweep, path: Path) -> Path:
        """Write the HTML page of a sweep in a separate process; return its path. Called in a thread."""
        check_report_path(path)
        generate_report(self._log, ["linkgauge.tui.report.sweep_page", sweep.group, str(path)])
        return path


@dataclass(frozen=True, slots=True)
class StoredMesh:
    """A mesh of the run log: its figures, what they show, and the pass mark of its cells in percent."""

    matrix: MeshMatrix
    findings: tuple[MeshFinding, ...]
    pass_percent: float


class StoredMeshes:
    """The stored meshes. Every method is called in a thread and may raise LinkgaugeError."""

    def __init__(self, log: RunLog) -> None:
        self._log = log

    def find(self, group: str) -> StoredMesh:
        """Return a stored mesh with its figures so far."""
        from ..mesh.reading import find_faults

        definition = find_mesh(group)
        matrix = load_matrix(self._log, definition)
        return StoredMesh(matrix, find_faults(matrix), definition.pass_percent)

    def compare(self, matrix: MeshMatrix) -> "MeshComparison | None":
        """Return what has changed since the last mesh of the same hosts; None where there is none."""
        return compare_with_previous(self._log, find_mesh(matrix.group), matrix)

    def write_report(self, group: str, path: Path) -> Path:
        """Write the HTML page of a mesh in a separate process; return its path."""
        check_report_path(path)
        generate_report(self._log, ["linkgauge.tui.report.mesh_page", group, str(path)])
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServices:
    """What screens of stored runs are given; all three are None if runs are not stored.

    `clock` counts nanoseconds: it bounds how often gauges are drawn, and estimates the time that is left.
    """

    catalog: Catalog
    export: ExportRuns
    history: RunLog | None = None
    sweeps: StoredSweeps | None = None
    meshes: StoredMeshes | None = None
    clock: Callable[[], int] = time.monotonic_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class AppServices(StoredServices):
    """What the cockpit is given.

    `query_host_info` raises PeerError, `select_preset` that or PlanError; it is None if presets are chosen only by
    hand. `remember_access` saves the key of a peer in a thread and returns the file. It raises InvalidKeyError, and
    is None if keys are not saved. `find_announced` is None without the extra for multicast DNS.
    """

    start_run: StartRun
    query_host_info: Callable[[Peer], Awaitable[HostInfo]]
    select_preset: Callable[[Peer], Awaitable[PresetSelection]] | None = None
    remember_access: Callable[[Peer], Path] | None = None
    find_announced: FindAnnounced | None = None
