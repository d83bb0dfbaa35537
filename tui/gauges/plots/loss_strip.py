"""The loss strip below the plot of a UDP run: a cell for each moment says how much was lost then.

A cell is higher and warmer the more was lost, in steps of about four, so that single losses show as well as a
collapse. A moment without loss has a dot, one without datagrams is empty.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from textual.content import Content

from ....engine.model.plan import Direction
from ....engine.results.sums.traces import DatagramPoint
from ...kit.drawing.canvas import GUTTER
from ...kit.drawing.styles import BAD, MUTED, SHORT
from ...readings.live_readings import CockpitSnapshot
from ...words import numbers

# The share from which a cell looks so; the first that is reached counts.
_LEVELS: Final = (
    (0.25, "█", BAD),
    (0.05, "▆", BAD),
    (0.01, "▄", BAD),
    (0.001, "▃", SHORT),
    (0.0, "▂", SHORT),
)
_NO_LOSS: Final = ("·", MUTED)
_NO_DATAGRAMS: Final = (" ", MUTED)


def loss_strip(view: CockpitSnapshot, span_s: float, width: int, *, most: int) -> list[Content]:
    """Return a line for each direction with datagrams; one for both if there is no room, none for TCP.

    Args:
        view: The snapshot with the run.
        span_s: The length of the time axis.
        width: The cells of the plot.
        most: The most lines; at least one is drawn.
    """
    traces = view.readings.traces.datagrams if view.readings else {}
    known = {flow: traces[flow] for flow in Direction.DUPLEX.flows if traces.get(flow)}
    if not known or width < 1:
        return []
    shares = {flow: _column_shares(points, span_s / width, width) for flow, points in known.items()}
    if len(shares) <= max(most, 1):
        names = {flow: f"loss {numbers.arrow(flow)}" if len(shares) > 1 else "loss" for flow in shares}
        return [_line(names[flow], line) for flow, line in shares.items()]
    columns = zip(*shares.values(), strict=True)
    both = [max((share for share in column if share is not None), default=None) for column in columns]
    return [_line(f"loss {numbers.arrow(Direction.DUPLEX)}", both)]


def _column_shares(points: Sequence[DatagramPoint], step_s: float, width: int) -> list[float | None]:
    """Return the lost share of each column; an interval wider than a column fills all that it covers."""
    ends = [point.at_s for point in points]
    shares: list[float | None] = []
    for x in range(width):
        if x * step_s >= ends[-1]:
            break
        start, stop = bisect_left(ends, x * step_s + 1e-9), bisect_left(ends, (x + 1) * step_s + 1e-9)
        inside = points[start : max(stop, start + 1)]
        passed = sum(point.passed for point in inside)
        shares.append(min(sum(point.lost for point in inside) / passed, 1.0) if passed else None)
    return [*shares, *[None] * (width - len(shares))]


def _line(name: str, shares: Sequence[float | None]) -> Content:
    cells = [_cell(share) for share in shares]
    parts = [
        ("".join(character for character, _ in group), style) for style, group in groupby(cells, key=lambda c: c[1])
    ]
    return Content.assemble((f"{name:>{GUTTER - 1}} ", MUTED), *parts)


def _cell(share: float | None) -> tuple[str, str]:
    """Return the character and the style of a lost share."""
    if share is None:
        return _NO_DATAGRAMS
    if share <= 0:
        return _NO_LOSS
    return next((character, style) for least, character, style in _LEVELS if share >= least)
