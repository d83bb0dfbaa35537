"""Whether rate and latency are steady at the end of a load. Pure."""

from collections.abc import Sequence
from statistics import pstdev
from typing import Final

from ...model.plan import SECOND_NS, Direction
from .intervals import LoadInterval, Window, goodput

_MIN_WINDOW_NS: Final = 350_000_000
_WINDOWS: Final = 4  # the MAD of draft-ietf-ippm-responsiveness
_DEVIATION: Final = 0.05  # its SDT
_LATEST_NS: Final = 3 * SECOND_NS // 2
_HIGHER: Final = 1.05
_HIGHER_NS: Final = 1_000_000


def is_steady(intervals: Sequence[LoadInterval], windows: Sequence[Window], flows: Sequence[Direction]) -> bool:
    """Return whether the goodput of these directions and the latency were steady at the end.

    The last four rates of 0.4 s deviate by less than 5 % of the newest, and no mean latency of the last 1.5 s is
    more than 5 % and 1 ms above the highest one before.
    """
    rates = _last_rates(intervals, flows)
    if len(rates) < _WINDOWS or pstdev(rates) >= _DEVIATION * rates[0]:
        return False
    return has_stopped_rising(windows)


def has_stopped_rising(windows: Sequence[Window]) -> bool:
    """Return whether the latency of the last 1.5 s is hardly above that before; False without any before."""
    if not windows:
        return False
    since_ns = windows[-1].end_ns - _LATEST_NS
    before = max((window.mean_ns for window in windows if window.end_ns <= since_ns), default=None)
    latest = max(window.mean_ns for window in windows if window.end_ns > since_ns)
    return before is not None and latest <= max(_HIGHER * before, before + _HIGHER_NS)


def _last_rates(intervals: Sequence[LoadInterval], flows: Sequence[Direction]) -> list[float]:
    """Return the goodput of the last windows of 0.4 s, the newest first."""
    rates: list[float] = []
    window: list[LoadInterval] = []
    for interval in reversed(intervals):
        window.append(interval)
        if window[0].end_ns - interval.start_ns < _MIN_WINDOW_NS:
            continue
        parts = [goodput(window, flow) for flow in flows]
        rates.append(sum(part or 0.0 for part in parts))
        window = []
        if len(rates) == _WINDOWS:
            break
    return rates
