"""A sweep as a person asks for it, in words: what is typed for each axis, or a document's figure. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime
from random import SystemRandom
from typing import Final

from ..engine.errors import PlanError
from ..engine.plan import Direction, Mode, Plan, SocketOptions
from ..engine.runlog import new_run_id
from ..engine.sweep import Sweep
from ..presets.catalog import Catalog
from ..presets.model import Sweep as Figure
from .cli import parse, ranges

SECONDS: Final = "3"
PREFIX: Final = "sweep-"
"""What the group of every sweep's runs begins with."""

_INTERVAL_NS: Final = 100_000_000  # 24 intervals of a run of 3 s: enough to tell how sure its mean is


@dataclass(frozen=True, slots=True)
class SweepAsked:
    """The axes as typed; those of a figure, or a single usual value, where they are None."""

    window: str | None = None
    sessions: str | None = None
    message_size: str | None = None
    direction: str | None = None
    figure: str | None = None
    seconds: str = SECONDS
    congestion: str | None = None
    mode: Mode | None = None

    def sweep(self, catalog: Catalog, peer: str, preset: str | None) -> Sweep:
        """Return the definition; raise PlanError for the first thing in it that cannot be.

        A figure brings its preset along where none is named.
        """
        figure = None if self.figure is None else find_figure(catalog, self.figure)
        base = Plan(
            duration_ns=parse.duration_ns(self.seconds),
            interval_ns=_INTERVAL_NS,
            mode=self.mode,
            socket=SocketOptions(congestion=self.congestion),
        )
        own = (None,) if figure is None else figure.window_bytes
        messages = (base.block_bytes,) if figure is None else figure.message_bytes
        directions = (Direction.OUT,) if figure is None else (Direction(figure.direction),)
        return Sweep(
            group=f"{PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}",
            peer=peer,
            base=base,
            directions=directions if self.direction is None else ranges.direction_values(self.direction),
            sessions=(1,) if self.sessions is None else ranges.session_values(self.sessions),
            windows=own if self.window is None else ranges.window_values(self.window),
            messages=messages if self.message_size is None else ranges.message_values(self.message_size),
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
