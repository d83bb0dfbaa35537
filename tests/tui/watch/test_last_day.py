"""The last day of a peer: the slots of its tests, and the line that shows them."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.tui.watch.last_day import DaySlot, day_line, day_slots
from linkgauge.tui.watch.watch_view import PeerRow, PeerState, watch_view
from linkgauge.watch.data_budget import MonthUse
from linkgauge.watch.events import CheckResult
from linkgauge.watch.watch_state import PeerStatus

from ..example_watch import HOUR_S, NOW_S, below, ended, failed, fell, good, plan


def row_of(*checks: tuple[float, CheckResult], **changes: Any) -> PeerRow:
    """Return the row of a peer whose last day had these tests, each some hours ago."""
    day = tuple(ended("db-01", NOW_S - hours * HOUR_S, result) for hours, result in checks)
    known = PeerStatus("db-01", day=day, last_check=day[-1], **changes)
    return watch_view(plan(1), {"db-01": known}, MonthUse(), NOW_S).rows[0]


def test_a_slot_has_the_lowest_rate_of_its_tests() -> None:
    """A drop is not hidden behind better tests of the same hour."""
    slots = day_slots(row_of((0.6, good()), (0.5, below(60)), (0.4, good())), 24)
    assert slots[-1] is not None
    assert slots[-1].share == pytest.approx(0.6)
    assert slots[-1].state is PeerState.SHORT
    assert slots[:-1] == (None,) * 23


def test_a_test_holds_until_the_next_is_due_and_one_without_a_result_leaves_a_gap() -> None:
    """Hours in which a test was missed are empty, not 0."""
    slots = day_slots(row_of((23.5, good()), (10.5, failed()), (0.5, good())), 48)
    shown = "".join(" " if slot is None else "!" if slot.share is None else "#" for slot in slots)
    assert shown == " ####                      !                   #"


def test_without_an_expected_rate_the_day_is_in_shares_of_its_best() -> None:
    """Then the height is the rate."""
    results = [replace(good(percent), percent=None) for percent in (100, 60)]
    slots = day_slots(row_of((1.5, results[0]), (0.5, results[1])), 24)
    assert [None if slot is None else slot.share for slot in slots[-2:]] == [1.0, pytest.approx(0.6)]


def test_a_change_is_marked_where_its_level_begins() -> None:
    """Also at a time without a test. An earlier change is not marked."""
    row = row_of((0.5, below()), changes=(fell("db-01", NOW_S - 30 * HOUR_S), fell("db-01", NOW_S - 5 * HOUR_S)))
    slots = day_slots(row, 24)
    marked = [(number, slot.is_worse) for number, slot in enumerate(slots) if slot is not None and slot.is_change]
    assert marked == [(19, True)]


def test_a_day_without_a_test_is_empty() -> None:
    """No slot is a rate of 0."""
    row = watch_view(plan(1), {}, MonthUse(), NOW_S).rows[0]
    assert day_slots(row, 24) == (None,) * 24


def test_the_line_can_be_read_without_colours() -> None:
    """A rate is a height of at least an eighth; a change and a missing result have their own marks."""
    slots = (
        None,
        DaySlot(1.0, PeerState.PASS),
        DaySlot(0.5, PeerState.SHORT),
        DaySlot(0.0, PeerState.FAIL),
        DaySlot(None, PeerState.NO_RESULT),
        DaySlot(0.5, PeerState.SHORT, is_change=True, is_worse=True),
        DaySlot(1.0, PeerState.PASS, is_change=True),
    )
    assert day_line(slots).plain == " █▄▁!▼▲"
