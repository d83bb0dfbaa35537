"""Sweeps: begun, carried out run by run, kept, and gone on with after a break.

Every run of a sweep is a run like any other in the run log, with the sweep's name as its group; the definition is
a small file beside the log. What was measured is found again by both.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import SystemRandom
from typing import Final

from ...engine.model.errors import DecodeError, PlanError, RunLogError
from ...engine.model.peer import Peer
from ...engine.model.plan import Direction, Mode, Plan, SocketOptions
from ...engine.model.serialization import decode, encode
from ...engine.near.connect import FarEnd
from ...engine.results.meter import replay
from ...engine.results.run_log import RunLog, new_run_id
from ...engine.results.summary import Summary
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ...presets.catalog import Catalog
from ...presets.preset import DocumentSweep as Figure
from ...presets.preset import Preset
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..text import parsing
from .config import data_dir
from .run_session import RunSession, open_run_session

_FOLDER: Final = "sweeps"
_VARIANT: Final = "link_options"
_GROUP: Final = re.compile(r"[a-z0-9-]{1,60}")


def save_sweep(sweep: Sweep, variant: Variant = DEFAULT_VARIANT) -> None:
    """Write a sweep's definition, and what its preset's link is had with; StoreError where it cannot be kept."""
    path = _folder() / f"{sweep.group}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {**encode(sweep), _VARIANT: encode(variant)}
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise RunLogError(f"the sweep cannot be kept in {path}: {error.strerror or error}") from error


def find_sweep(text: str) -> tuple[Sweep, Variant]:
    """Return the sweep that is kept under a name, or the one whose name begins so, and its link's options.

    Raises PlanError where there is none, or more than one; StoreError for a definition that cannot be read.
    """
    known = sorted(path.stem for path in _folder().glob("*.json")) if _GROUP.fullmatch(text) else []
    found = [name for name in known if name == text] or [name for name in known if name.startswith(text)]
    if len(found) != 1:
        hint = ", ".join(found[:5]) if found else ", ".join(known[-3:])
        raise PlanError("sweep", repr(text[:60]), f"name one that is kept{f': {hint}' if hint else '; none is'}")
    path = _folder() / f"{found[0]}.json"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        options = kept.pop(_VARIANT, None)
        return decode(Sweep, kept), DEFAULT_VARIANT if options is None else decode(Variant, options)
    except (OSError, ValueError, AttributeError, DecodeError, PlanError) as error:
        raise RunLogError(f"{path} cannot be read: {error}; begin a new sweep") from error


def load_results(log: RunLog, sweep: Sweep) -> list[SweepResult]:
    """Return what was measured of a sweep so far, the newest run of each point; what broke off does not count."""
    wanted = set(sweep.points)
    found: dict[SweepPoint, SweepResult] = {}
    for row in log.list_runs():
        if row.group != sweep.group or row.reason is None or not row.reason.is_regular:
            continue
        summary = replay(log.events(row.run_id)).summary()
        point = SweepPoint.from_plan(summary.plan)
        if point in wanted and point not in found and summary.measured.total is not None:
            found[point] = SweepResult(point, row.run_id, summary)
    return list(found.values())


def _folder() -> Path:
    return data_dir() / _FOLDER


@dataclass(frozen=True, slots=True)
class SweepRunner:
    """Gives a sweep's runs, one at a time, against one far end; `variant` is what the preset's link is had with."""

    sweep: Sweep
    preset: Preset | None
    peer: Peer
    log: RunLog | None
    far_end: FarEnd
    variant: Variant = DEFAULT_VARIANT

    @asynccontextmanager
    async def run_point(self, point: SweepPoint) -> AsyncGenerator[RunSession]:
        """Give the run of a point, which has started; see `conduct`."""
        plan = point.to_plan(self.sweep.base)
        async with open_run_session(
            plan,
            self.preset,
            self.peer,
            log=self.log,
            group=self.sweep.group,
            far_end=self.far_end,
            variant=self.variant,
        ) as conducted:
            yield conducted


def result_from_run(point: SweepPoint, run_id: str, summary: Summary) -> SweepResult | None:
    """Return what a run came to; None where it did not run to its end, or nothing was measured."""
    is_whole = summary.end.reason.is_regular and summary.measured.total is not None
    return SweepResult(point, run_id, summary) if is_whole else None


# MERGED FROM tui/sweep_asked:
# A sweep as a person asks for it, in words: what is typed for each axis, or a document's figure. Pure.

DEFAULT_SECONDS: Final = "3"
GROUP_PREFIX: Final = "sweep-"
"""What the group of every sweep's runs begins with."""

_INTERVAL_NS: Final = 100_000_000  # 24 intervals of a run of 3 s: enough to tell how sure its mean is


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The axes as typed; those of a figure, or a single usual value, where they are None."""

    window: str | None = None
    sessions: str | None = None
    message_size: str | None = None
    direction: str | None = None
    figure: str | None = None
    seconds: str = DEFAULT_SECONDS
    congestion: str | None = None
    mode: Mode | None = None

    def build_sweep(self, catalog: Catalog, peer: str, preset: str | None) -> Sweep:
        """Return the definition; raise PlanError for the first thing in it that cannot be.

        A figure brings its preset along where none is named.
        """
        figure = None if self.figure is None else find_figure(catalog, self.figure)
        base = Plan(
            duration_ns=parsing.duration_ns(self.seconds),
            interval_ns=_INTERVAL_NS,
            mode=self.mode,
            socket=SocketOptions(congestion=self.congestion),
        )
        own = (None,) if figure is None else figure.window_bytes
        messages = (base.block_bytes,) if figure is None else figure.message_bytes
        directions = (Direction.OUT,) if figure is None else (Direction(figure.direction),)
        return Sweep(
            group=f"{GROUP_PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}",
            peer=peer,
            base=base,
            directions=directions if self.direction is None else parsing.direction_values(self.direction),
            sessions=(1,) if self.sessions is None else parsing.session_values(self.sessions),
            windows=own if self.window is None else parsing.window_values(self.window),
            messages=messages if self.message_size is None else parsing.message_values(self.message_size),
            preset=preset or (None if figure is None else figure.preset),
            figure=None if figure is None else figure.id,
        )


def find_figure(catalog: Catalog, text: str) -> Figure:
    """Return a document's experiment by its id, with or without the word figure in it."""
    for figure in catalog.sweeps:
        if text.strip().lower() in {figure.id, figure.id.replace("-figure-", "-")}:
            return figure
    raise PlanError("figure", repr(text), f"there is {', '.join(figure_names(catalog))}")


def figure_names(catalog: Catalog) -> list[str]:
    """Return what the documents' experiments are called: `hp-1`."""
    return [figure.id.replace("-figure-", "-") for figure in catalog.sweeps]
