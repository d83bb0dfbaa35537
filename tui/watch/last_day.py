"""The last day of a peer in one line: a column for each part of it, as high as the lowest rate of its tests.

Marks show where a level begins and where a test had no result, so that colour is never the only sign. A part
without a test is empty, unlike a rate of 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from textual.content import Content

from ...engine.model.plan import SECOND_NS
from ...watch.events import CheckEnded, CheckResult, CheckVerdict, Metric
from ...watch.watch_state import PeerStatus
from ..kit.drawing.canvas import EIGHTHS, to_eighths
from ..kit.drawing.styles import BAD, GOOD, MUTED, SHORT
from .watch_view import PeerRow, PeerState, state_of

DAY_S: Final = 86_400
_HELD_PERIODS: Final = 1.6  # a test holds until the next one, jitter included
WORSE, BETTER, NO_RESULT = "▼", "▲", "!"
STATE_STYLES: Final = {
    PeerState.WAITING: MUTED,
    PeerState.PASS: GOOD,
    PeerState.MEASURED: "$text-primary",
    PeerState.SHORT: SHORT,
    PeerState.FAIL: BAD,
    PeerState.NO_RESULT: BAD,
}


@dataclass(frozen=True, slots=True)
class DaySlot:
    """A part of the last day that has tests.

    `share` is the lowest rate of its tests in the scale of the day, 0 to 1; None if a test had no result.
    `is_change` says whether a level begins here, `is_worse` whether for the worse.
    """

    share: float | None
    state: PeerState
    is_change: bool = False
    is_worse: bool = False


def day_line(slots: Sequence[DaySlot | None]) -> Content:
    """Return a line with a character for each slot."""
    cells = [_cell(slot) for slot in slots]
    return Content.assemble(
        *(("".join(map(itemgetter(0), group)), style) for style, group in groupby(cells, key=itemgetter(1)))
    )


def day_slots(row: PeerRow, count: int) -> tuple[DaySlot | None, ...]:
    """Return the last 24 hours in `count` parts, the newest last; None for a part without a test.

    A test holds until the next one is due, so that a peer with few tests a day has holes only for missed tests. A
    test without a result does not hold.
    """
    now_s = row.now_s
    step_s, begin_s, scale = DAY_S / max(count, 1), now_s - DAY_S, _day_scale(row)
    held_s = row.watched.timing.check_every_ns / SECOND_NS * _HELD_PERIODS
    places: dict[int, list[CheckEnded]] = {}
    for check in row.status.day:
        if begin_s <= check.at_s <= now_s:
            places.setdefault(min(int((check.at_s - begin_s) / step_s), count - 1), []).append(check)
    slots: list[DaySlot | None] = []
    last: CheckEnded | None = None
    for number in range(count):
        checks = places.get(number)
        if checks:
            slots.append(_worst(checks, scale))
            last = checks[-1]
            continue
        start_s = begin_s + number * step_s
        is_held = last is not None and start_s - last.at_s <= held_s
        held = None if last is None or not is_held else _worst([last], scale)
        slots.append(None if held is None or held.share is None else held)
    return _with_changes(row.status, slots, begin_s, step_s)


def _cell(slot: DaySlot | None) -> tuple[str, str]:
    if slot is None:
        return (" ", "")
    if slot.is_change:
        return (WORSE, f"bold {SHORT}") if slot.is_worse else (BETTER, f"bold {GOOD}")
    if slot.share is None:
        return (NO_RESULT, f"bold {BAD}")
    return (EIGHTHS[max(to_eighths(slot.share, 1), 1)], STATE_STYLES[slot.state])


def _day_scale(row: PeerRow) -> float | None:
    """Return the highest rate of the day as the scale; None if each test has a percentage of its expected rate."""
    results = [check.result for check in row.status.day if check.result.verdict is not CheckVerdict.FAILED]
    if all(result.percent is not None for result in results):
        return None
    return max((result.figure(Metric.GOODPUT_BIT_S) or 0.0 for result in results), default=0.0)


def _worst(checks: Sequence[CheckEnded], scale: float | None) -> DaySlot:
    """Return the slot of the worst test: one without a result, else the one with the lowest rate."""
    failed = next((check for check in checks if check.result.verdict is CheckVerdict.FAILED), None)
    if failed is not None:
        return DaySlot(None, PeerState.NO_RESULT)
    return min((_slot(check.result, scale) for check in checks), key=lambda slot: slot.share or 0.0)


def _slot(result: CheckResult, scale: float | None) -> DaySlot:
    rate = result.figure(Metric.GOODPUT_BIT_S) or 0.0
    share = (result.percent or 0.0) / 100 if scale is None else rate / scale if scale else 0.0
    return DaySlot(min(max(share, 0.0), 1.0), state_of(result))


def _with_changes(
    status: PeerStatus, slots: Sequence[DaySlot | None], begin_s: float, step_s: float
) -> tuple[DaySlot | None, ...]:
    """Mark the slots in which a level begins."""
    marked = list(slots)
    for change in status.changes:
        place = min(int((change.since_s - begin_s) // step_s), len(marked) - 1)
        if change.since_s >= begin_s and place >= 0:
            at = marked[place]
            share, state = (None, PeerState.WAITING) if at is None else (at.share, at.state)
            marked[place] = DaySlot(share, state, is_change=True, is_worse=change.is_worse)
    return tuple(marked)
