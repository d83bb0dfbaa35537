"""The app's sweeps, for real: kept beside the run log, with the app's own far end."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from ...engine.errors import PlanError
from ...engine.plan import Peer, Plan
from ...engine.runlog import RunLog
from ...engine.sweep import Cell, Point, Sweep
from ...presets.model import Preset
from ...presets.pick import Picked
from ...presets.wire import PLAIN, Variant
from ..conduct import Conducted
from ..exports import make_page
from ..sweep_report import check_report_path
from ..sweeping import find_sweep, keep_sweep, kept_cells


class StartInGroup(Protocol):
    """Opens a run that is one of a group."""

    def __call__(
        self,
        plan: Plan,
        preset: Preset | None,
        peer: Peer,
        *,
        group: str | None = None,
        variant: Variant | None = None,
    ) -> AbstractAsyncContextManager[Conducted]:
        """Return the context of one run."""
        ...


class KeptSweeps:
    """Keeps, finds and carries out; see ports.Sweeps."""

    def __init__(self, log: RunLog, start: StartInGroup, picked: Picked) -> None:
        self._log = log
        self._start = start
        self._picked = picked
        self._variants: dict[str, Variant] = {}

    def begin(self, sweep: Sweep) -> Sequence[Cell]:
        """Keep a definition, and return what was measured of it already; one that is kept stays as it is."""
        try:
            _, variant = find_sweep(sweep.group)
        except PlanError:
            # A preset that was picked is had with the options of this link; another one is taken as it stands.
            variant = self._picked.variant if sweep.preset == self._picked.preset.id else PLAIN
            keep_sweep(sweep, variant)
        self._variants[sweep.group] = variant
        return kept_cells(self._log, sweep)

    def find(self, group: str) -> tuple[Sweep, Sequence[Cell]]:
        """Return a sweep with what was measured of it."""
        sweep, _ = find_sweep(group)
        return sweep, kept_cells(self._log, sweep)

    def run(
        self, sweep: Sweep, point: Point, preset: Preset | None, peer: Peer
    ) -> AbstractAsyncContextManager[Conducted]:
        """Return the context of a point's run."""
        variant = self._variants.get(sweep.group, PLAIN)
        return self._start(point.plan(sweep.base), preset, peer, group=sweep.group, variant=variant)

    def report(self, sweep: Sweep, path: Path) -> Path:
        """Have the page of a sweep made by a process of its own."""
        check_report_path(path)
        make_page(self._log, ["linkgauge.tui.sweep_report", sweep.group, str(path)])
        return path
