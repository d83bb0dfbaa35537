"""A month's budget follows from the events alone, and its end is announced once."""

from dataclasses import replace
from functools import reduce

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.watch.data_budget import MonthUse, expected_cost, find_shortage, most_bytes
from linkgauge.watch.events import CheckSkipped, CheckVerdict, SkipReason, WatchEvent, WatchNotice, WatchStarted
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import WatchState

from .event_examples import NOON_S, ended, probed

MIDNIGHT_OF_DECEMBER_S = 1_764_547_200.0
TEST = Plan(duration_ns=10 * SECOND_NS)
DB_1 = WatchedPeer("db-1", LOOPBACK, TEST, budget_bytes=10_240)
WATCH = WatchPlan("office", (DB_1, replace(DB_1, name="db-2", budget_bytes=None)), budget_bytes=20_000)


def use_after(*events: WatchEvent) -> MonthUse:
    """Return the use after events."""
    return reduce(MonthUse.after, events, MonthUse())


def test_the_bytes_of_a_month_are_counted_by_peer_and_begin_anew_with_the_next() -> None:
    """Repeated tests and failed tests cost something, too."""
    november = (ended(bytes_=1_000, decides=False), ended(CheckVerdict.FAILED, bytes_=10), probed(bytes_=5))
    use = use_after(*november, ended(peer="db-2", bytes_=7))
    assert (use.month, use.bytes, use.total) == ("2025-11", {"db-1": 1_015, "db-2": 7}, 1_022)
    assert use.at(MIDNIGHT_OF_DECEMBER_S - 1) is use
    assert use.at(MIDNIGHT_OF_DECEMBER_S) == MonthUse("2025-12")
    assert use.after(probed(MIDNIGHT_OF_DECEMBER_S, bytes_=3)).bytes == {"db-1": 3}


@pytest.mark.parametrize(
    ("spent", "cost", "short_of"),
    [
        (9_000, 1_240, "fits"),
        (9_000, 1_241, "db-1"),
        (10_239, None, "fits"),
        (10_240, None, "db-1"),
        (10_240, 0, "db-1"),
        (12_000, 1, "db-1"),
    ],
)
def test_a_test_fits_while_the_budget_has_room_for_its_cost(spent: int, cost: int | None, short_of: str) -> None:
    """A test of unknown cost fits while anything is left."""
    shortage = find_shortage(WATCH, DB_1, cost, use_after(ended(bytes_=spent)), NOON_S)
    assert ("fits" if shortage is None else shortage.peer) == short_of


def test_the_budget_of_the_watch_is_for_all_peers_together() -> None:
    """Peers that have left the plan included."""
    use = use_after(ended(peer="gone", bytes_=19_000))
    shortage = find_shortage(WATCH, WATCH.peers[1], 1_001, use, NOON_S)
    assert shortage is not None
    assert shortage.peer is None
    assert find_shortage(replace(WATCH, budget_bytes=None), WATCH.peers[1], 10**12, use, NOON_S) is None
    assert find_shortage(WATCH, WATCH.peers[1], 1_001, use, MIDNIGHT_OF_DECEMBER_S) is None


def test_the_end_of_a_budget_is_told_once_a_month() -> None:
    """The journal has the notice, so a restart does not repeat it."""
    shortage = find_shortage(WATCH, DB_1, 5_000_000, use_after(ended(bytes_=9_000)), NOON_S)
    assert shortage is not None
    notice = shortage.notice(NOON_S)
    assert notice.text == (
        "data budget of db-1 for 2025-11: 1.211 KiB of 10 KiB are left, a test takes about 4.768 MiB; "
        "tests that do not fit are skipped until next month (UTC)"
    )
    assert shortage.peer not in use_after().told
    assert use_after(notice).told == {"db-1"}
    skipped = CheckSkipped(MIDNIGHT_OF_DECEMBER_S, "db-1", MIDNIGHT_OF_DECEMBER_S, SkipReason.BUDGET)
    assert use_after(notice, skipped).told == frozenset()
    assert use_after(WatchNotice(NOON_S, "the file was read again", "db-1")).told == frozenset()
    whole = replace(shortage, peer=None, budget_bytes=2 << 40)
    assert "of the watch for 2025-11: 2 TiB of 2 TiB are left" in whole.notice(NOON_S).text


@pytest.mark.parametrize(
    ("plan", "most"),
    [
        (TEST, None),
        (replace(TEST, rate_bit_s=100_000_000), 125_000_000),
        (replace(TEST, rate_bit_s=100_000_000, settings=Settings(Direction.DUPLEX)), 250_000_000),
        (replace(TEST, bytes_limit=5_000_000), 5_000_000),
        (replace(TEST, bytes_limit=5_000_000, rate_bit_s=1_000_000), 1_250_000),
        (Plan(Settings(rate_bit_s=8_000_000), Workload.UDP, SECOND_NS), 1_000_000),
        (Plan(Settings(rate_bit_s=1_000, searches_rate=True), Workload.UDP, SECOND_NS), None),
    ],
)
def test_limits_of_rate_and_bytes_bound_the_cost_of_a_test(plan: Plan, most: int | None) -> None:
    """In both directions together."""
    assert most_bytes(plan) == most


def test_a_test_will_cost_as_much_as_the_most_expensive_of_the_last_ones_within_its_limit() -> None:
    """Tests without payload do not count."""
    last = [ended(bytes_=cost) for cost in (9_000, 1_000, 0, 3_000)]
    assert expected_cost(DB_1, []) is None
    assert expected_cost(DB_1, last) == 3_000
    assert expected_cost(DB_1, last[:3]) == 9_000
    limited = replace(DB_1, plan=replace(TEST, bytes_limit=2_000))
    assert expected_cost(limited, []) == 2_000
    assert expected_cost(limited, last) == 2_000
    assert expected_cost(limited, last[1:2]) == 1_000


def test_a_restart_goes_on_from_the_recorded_use() -> None:
    """Older probes may be forgotten by then. A use whose month does not fit its time is ignored."""
    events = [ended(bytes_=1_000), probed(), probed(peer="db-2")]
    use = reduce(MonthUse.after, events, MonthUse())
    later = [probed(NOON_S + 60), ended(at_s=NOON_S + 90, bytes_=500)]
    written = use.as_event(NOON_S + 30)
    assert reduce(MonthUse.after, [written, *later], MonthUse()) == reduce(MonthUse.after, later, use)
    assert MonthUse().after(replace(written, month="2024-01")).total == 0
    assert reduce(MonthUse.after, [written, *later], MonthUse()).of("db-1") == 1_700


def test_a_restart_and_a_file_that_is_read_again_keep_the_sum_of_the_month() -> None:
    """Also the part of a peer that has left the file, and of which the journal has no other entry."""
    written = use_after(ended(bytes_=1_000), ended(peer="gone", bytes_=500)).as_event(NOON_S + 30)
    state = WatchState()
    for event in (written, WatchStarted(NOON_S + 40, ("db-1", "db-2"))):
        state.recall(event)
    state.add_peers(WATCH)
    state.apply(ended(at_s=NOON_S + 60, bytes_=7))
    state.add_peers(replace(WATCH, peers=WATCH.peers[:1]))
    assert (state.use.of("db-1"), state.use.of("gone"), state.use.total) == (1_007, 500, 1_507)
