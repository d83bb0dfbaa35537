"""The columns of the rate plot: the rate of each direction at a time, stacked.

Pure. A point stands for the interval that ends with it. A column with several points has their mean, and a point
that lasts for several columns is in all of them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.model.plan import Direction
from .instrument_values import PlotPeriod, PlotPoint


@dataclass(frozen=True, slots=True)
class PlotColumn:
    """The rates of each direction that carries payload at a time, and whether it is warm-up."""

    rates: tuple[tuple[Direction, float], ...]
    warmup: bool


def plot_columns(periods: Sequence[PlotPeriod], span_s: float, width: int) -> list[PlotColumn | None]:
    """Return the columns of a plot that is `span_s` long; None for a column without data."""
    columns: list[PlotColumn | None] = [None] * width
    step_s = span_s / max(width, 1)
    for period in periods:
        for flow in period.settings.direction.flows:
            points = period.points.get(flow, [])
            if not points:
                continue
            ends = [point.at_s for point in points]
            first = max(int(period.from_s / step_s), 0)
            last = min(int((ends[-1] - 1e-9) / step_s), width - 1)
            for x in range(first, last + 1):
                if (mean := _within(points, ends, x * step_s, (x + 1) * step_s)) is not None:
                    columns[x] = _add_direction(columns[x], flow, mean, period)
    return columns


def _within(points: list[PlotPoint], ends: list[float], from_s: float, until_s: float) -> tuple[float, bool] | None:
    """Return the mean rate of the points that end in a column, else that of the point that covers it."""
    start, stop = bisect_left(ends, from_s + 1e-9), bisect_left(ends, until_s + 1e-9)
    inside = points[start : max(stop, start + 1)]
    if not inside:
        return None
    return sum(p.bit_s for p in inside) / len(inside), inside[-1].warmup


def _add_direction(
    before: PlotColumn | None, flow: Direction, mean: tuple[float, bool], period: PlotPeriod
) -> PlotColumn:
    """Add a direction to a column; a column in which a period begins belongs to that period."""
    bit_s, warmup = mean
    others = () if before is None else tuple(r for r in before.rates if r[0] is not flow)
    flows = period.settings.direction.flows
    return PlotColumn((*(r for r in others if r[0] in flows), (flow, bit_s)), warmup)
