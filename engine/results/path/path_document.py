"""The shape of a path's hops, queues and losses in a run's JSON document. Pure.

Times are in milliseconds, unknown values are null. Hops are counted from the direction's sender.
"""

from dataclasses import dataclass

from ..figure_codec import figure, figures_of, ms
from .path_result import PathResult, Way


@dataclass(frozen=True, slots=True)
class HopFigures:
    """One hop."""

    ttl: int | None = figure()
    addresses: tuple[str, ...] = figure("routers")
    name: str | None = figure()
    is_end: bool | None = figure()
    idle_ms: float | None = figure("idle_ns", ms)
    loaded_ms: float | None = figure("loaded_ns", ms)
    rise_ms: float | None = figure("rise_ns", ms)
    kept_rise_ms: float | None = figure("kept_rise_ns", ms)
    lost_percent: float | None = figure()
    answers: str | None = figure()
    mtu_bytes: int | None = figure()


@dataclass(frozen=True, slots=True)
class QueuePlaceFigures:
    """A queue: it is between two hops."""

    after_hop: int | None = figure("after_ttl")
    before_hop: int | None = figure("before_ttl")
    rise_ms: float | None = figure("rise_ns", ms)
    share: float | None = figure()


@dataclass(frozen=True, slots=True)
class LossPlaceFigures:
    """A loss: it is between two hops if it `is_located`."""

    after_hop: int | None = figure("after_ttl")
    before_hop: int | None = figure("before_ttl")
    lost_percent: float | None = figure()
    is_located: bool | None = figure()


@dataclass(frozen=True, slots=True)
class WayFigures:
    """One direction."""

    direction: str | None = figure()
    load: str | None = figure()
    is_reached: bool | None = figure()
    hops: tuple[HopFigures, ...] = ()
    queues: tuple[QueuePlaceFigures, ...] = ()
    loss: LossPlaceFigures | None = figure()
    answers_wait: bool | None = figure()


@dataclass(frozen=True, slots=True)
class PathFigures:
    """Both directions; null if one was not traced."""

    out: WayFigures | None = figure()
    in_: WayFigures | None = figure()


def path_figures(path: PathResult) -> PathFigures:
    """Return the figures of a path."""
    ways = {way.direction.value: way for way in path.ways}
    return PathFigures(_way(ways.get("out")), _way(ways.get("in")))


def _way(way: Way | None) -> WayFigures | None:
    return None if way is None else figures_of(WayFigures, way)


def names_of_routers(path: PathFigures) -> dict[str, str]:
    """Return the names in a document by the first address of their hop."""
    hops = [hop for way in (path.out, path.in_) if way is not None for hop in way.hops]
    return {hop.addresses[0]: hop.name for hop in hops if hop.name and hop.addresses}
