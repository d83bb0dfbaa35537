"""Whether rate and latency are steady: the rules by which a load ends, and by which its result is judged. Pure."""

from collections.abc import Sequence
from statistics import pstdev
from typing import Final

from ...model.directions import Direction
from ...model.plan import SECOND_NS
from .intervals import LoadInterval, Window, goodput

_MIN_WINDOW_NS: Final = 350_000_000
RATE_WINDOWS: Final = 4
"""The number of rates of 0.4 s that decide whether goodput is steady (MAD of draft-ietf-ippm-responsiveness-09)."""
LATEST_NS: Final = 3 * SECOND_NS // 2
"""The time at the end of a load in which latency must not have risen."""
_DEVIATION: Final = 0.05  # the SDT of the draft
_HIGHER: Final = 1.05  # more than in the rule that ends a load, which sees only the near end
_HIGHER_NS: Final = 1_000_000


def is_steady(intervals: Sequence[LoadInterval], windows: Sequence[Window], flows: Sequence[Direction]) -> bool:
    """Return whether the goodput of these directions and the latency were steady at the end.

    The last four rates of 0.4 s deviate by less than 5 % of the newest, and no mean latency of the last 1.5 s is
    more than 5 % and 1 ms above the highest one before.
    """
    return is_rate_steady(_last_rates(intervals, flows)) and has_stopped_rising(windows)


def is_rate_steady(rates: Sequence[float]) -> bool:
    """Return whether the last rates deviate by less than 5 % of the newest, which comes first."""
    rates = rates[:RATE_WINDOWS]
    return len(rates) == RATE_WINDOWS and pstdev(rates) < _DEVIATION * rates[0]


def is_higher(latest_ns: float, before_ns: float, factor: float = _HIGHER) -> bool:
    """Return whether a latency is higher than an earlier one, by this factor and by 1 ms."""
    return latest_ns > max(factor * before_ns, before_ns + _HIGHER_NS)


def has_stopped_rising(windows: Sequence[Window]) -> bool:
    """Return whether the latency of the last 1.5 s is hardly above the earlier one; False if there is none."""
    if not windows:
        return False
    since_ns = windows[-1].end_ns - LATEST_NS
    before = max((window.mean_ns for window in windows if window.end_ns <= since_ns), default=None)
    latest = max(window.mean_ns for window in windows if window.end_ns > since_ns)
    return before is not None and not is_higher(latest, before)


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
        if len(rates) == RATE_WINDOWS:
            break
    return rates
