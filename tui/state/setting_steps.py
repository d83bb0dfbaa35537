"""The values that keys step through: sessions, windows, durations, directions, workloads.

Pure. A value between two steps, from the command line, goes to the next step above or below it.
"""

from collections.abc import Sequence
from typing import Final

from ...engine.model.plan import SECOND_NS, Direction
from ...engine.model.workload import Workload, all_workloads
from ..text.numbers import KIB

SESSION_STEPS: Final = (1, 2, 3, 5, 8, 10, 16, 32, 64, 128)
WINDOW_STEPS: Final = (None, *(k * KIB for k in (16, 32, 56, 64, 128, 256, 512, 1_024, 2_048, 4_096)))
DURATION_STEPS: Final = (*(s * SECOND_NS for s in (5, 10, 30, 60, 300)), None)


def next_step(steps: Sequence[int | None], value: int | None, by: int) -> int | None:
    """Return the next step above (`by` 1) or below (`by` -1) a value; the value itself at the end.

    None sorts below every number.
    """
    at = -1 if value is None else value
    order = sorted(-1 if step is None else step for step in steps)
    beyond = [step for step in order if step > at] if by > 0 else [step for step in order[::-1] if step < at]
    found = beyond[0] if beyond else at
    return None if found == -1 else found


def next_duration(value: int | None) -> int | None:
    """Return the next longer duration; after `until stopped` the shortest."""
    if value is None:
        return DURATION_STEPS[0]
    longer = next_step(DURATION_STEPS[:-1], value, 1)
    return None if longer == value else longer


def next_direction(value: Direction) -> Direction:
    """Return the next direction; after the last, the first."""
    order = list(Direction)
    return order[(order.index(value) + 1) % len(order)]


def next_workload(value: Workload) -> Workload:
    """Return the next workload; after the last, the first."""
    order = all_workloads()
    return order[(order.index(value) + 1) % len(order)]
