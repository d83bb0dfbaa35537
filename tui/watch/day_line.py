"""The last day of a peer in one line: a column for each part of it, as high as the lowest rate of its tests.

Marks stand where a level begins and where a test had no result, so that colour never speaks alone. A part without a
test is empty, which is no rate of 0.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from textual.content import Content

from ..kit.drawing.canvas import EIGHTHS, to_eighths
from ..kit.drawing.styles import BAD, GOOD, MUTED, SHORT
from .watch_values import DaySlot, PeerState

WORSE, BETTER, NO_RESULT = "▼", "▲", "!"
STATE_STYLES: Final = {
    PeerState.WAITING: MUTED,
    PeerState.PASS: GOOD,
    PeerState.MEASURED: "$text-primary",
    PeerState.SHORT: SHORT,
    PeerState.FAIL: BAD,
    PeerState.NO_RESULT: BAD,
}


def day_line(slots: Sequence[DaySlot | None]) -> Content:
    """Return a line with a character for each slot."""
    cells = [_cell(slot) for slot in slots]
    return Content.assemble(
        *(("".join(map(itemgetter(0), group)), style) for style, group in groupby(cells, key=itemgetter(1)))
    )


def _cell(slot: DaySlot | None) -> tuple[str, str]:
    if slot is None:
        return (" ", "")
    if slot.is_change:
        return (WORSE, f"bold {SHORT}") if slot.is_worse else (BETTER, f"bold {GOOD}")
    if slot.share is None:
        return (NO_RESULT, f"bold {BAD}")
    return (EIGHTHS[max(to_eighths(slot.share, 1), 1)], STATE_STYLES[slot.state])
