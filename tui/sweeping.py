"""Sweeps: begun, carried out run by run, kept, and gone on with after a break.

Every run of a sweep is a run like any other in the run log, with the sweep's name as its group; the definition is
a small file beside the log. What was measured is found again by both.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..engine.codec import DecodeError, decode, encode
from ..engine.connect import FarEnd
from ..engine.errors import PlanError, StoreError
from ..engine.far_ends import far_end_of
from ..engine.meter import replay
from ..engine.plan import Peer
from ..engine.runlog import RunLog
from ..engine.sweep import Cell, Point, Sweep
from ..presets.model import Preset
from .conduct import Conducted, conduct
from .keys import with_access
from .paths import data_dir

_FOLDER: Final = "sweeps"
_GROUP: Final = re.compile(r"[a-z0-9-]{1,60}")


def keep_sweep(sweep: Sweep) -> None:
    """Write a sweep's definition; raise StoreError where it cannot be kept."""
    path = _folder() / f"{sweep.group}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(encode(sweep), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"the sweep cannot be kept in {path}: {error.strerror or error}") from error


def find_sweep(text: str) -> Sweep:
    """Return the sweep that is kept under a name, or the one whose name begins so.

    Raises PlanError where there is none, or more than one; StoreError for a definition that cannot be read.
    """
    known = sorted(path.stem for path in _folder().glob("*.json")) if _GROUP.fullmatch(text) else []
    found = [name for name in known if name == text] or [name for name in known if name.startswith(text)]
    if len(found) != 1:
        hint = ", ".join(found[:5]) if found else ", ".join(known[-3:])
        raise PlanError("sweep", repr(text[:60]), f"name one that is kept{f': {hint}' if hint else '; none is'}")
    path = _folder() / f"{found[0]}.json"
    try:
        return decode(Sweep, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, DecodeError, PlanError) as error:
        raise StoreError(f"{path} cannot be read: {error}; begin a new sweep") from error


def kept_cells(log: RunLog, sweep: Sweep) -> list[Cell]:
    """Return what was measured of a sweep so far, the newest run of each point; what broke off does not count."""
    wanted = set(sweep.points)
    found: dict[Point, Cell] = {}
    for row in log.runs():
        if row.group != sweep.group or row.reason is None or not row.reason.is_regular:
            continue
        summary = replay(log.events(row.run_id)).summary()
        point = Point.of(summary.plan)
        if point in wanted and point not in found and summary.total is not None:
            found[point] = Cell(point, row.run_id, summary)
    return list(found.values())


def _folder() -> Path:
    return data_dir() / _FOLDER


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Gives a sweep's runs, one at a time, against one far end."""

    sweep: Sweep
    preset: Preset | None
    peer: Peer
    log: RunLog | None
    far_end: FarEnd

    @asynccontextmanager
    async def run(self, point: Point) -> AsyncGenerator[Conducted]:
        """Give the run of a point, which has started; see `conduct`."""
        plan = point.plan(self.sweep.base)
        async with conduct(
            plan, self.preset, self.peer, log=self.log, group=self.sweep.group, embedded=self.far_end
        ) as conducted:
            yield conducted


@asynccontextmanager
async def open_sweep(
    sweep: Sweep, preset: Preset | None, peer: Peer, log: RunLog | None
) -> AsyncGenerator[Sweeper]:
    """Give what runs a sweep's points; one far end that this one has to bring up serves them all."""
    async with far_end_of(with_access(peer)) as far_end:
        yield Sweeper(sweep, preset, peer, log, far_end)


def cell_of(point: Point, conducted: Conducted) -> Cell | None:
    """Return what a run came to; None where it did not run to its end, or nothing was measured."""
    outcome = conducted.outcome
    if outcome is None or outcome.summary.total is None or not outcome.summary.end.reason.is_regular:
        return None
    return Cell(point, outcome.run_id, outcome.summary)
