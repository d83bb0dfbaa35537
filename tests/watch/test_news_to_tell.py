"""Each news is told once, in time, and after a restart as well; the journal's events alone decide that."""

import time
from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.watch.events import CheckEnded, CheckVerdict, News, Receiver, WatchEvent, told
from linkgauge.watch.news_to_tell import NewsToTell
from linkgauge.watch.watch_plan import Notify
from linkgauge.watch.watch_state import WatchState

from .event_examples import NOON_S, changed, ended, rerouted

DAY_S = 86_400.0
TELL = Notify(("/bin/tell",))
ROOM = 50


def state_after(*events: WatchEvent) -> WatchState:
    """Return the state after events."""
    state = WatchState()
    for event in events:
        state.apply(event)
    return state


def due(
    state: WatchState, notify: Notify = TELL, now_s: float = NOON_S, room: int = ROOM
) -> tuple[tuple[News, ...], tuple[News, ...]]:
    """Return what is to be sent now, and what is known already."""
    last = {name: status.last_check for name, status in state.statuses.items()}
    found = state.news.take_due(notify, last, now_s, room)
    return found.send, found.known


def failing(at_s: float = NOON_S) -> CheckEnded:
    """Return the end of a test without a result."""
    return ended(CheckVerdict.FAILED, at_s=at_s)


def test_news_is_sent_once_and_again_after_a_restart_until_it_is_told() -> None:
    """The restart has the same events and does not know what was on its way."""
    events = [failing(), changed()]
    state = state_after(*events)
    assert due(state) == ((events[0], events[1]), ())
    assert due(state) == ((), ())
    assert due(state_after(*events))[0] == tuple(events)
    state.apply(told(events[0], NOON_S + 1))
    state.apply(told(events[1], NOON_S + 1))
    assert (due(state), state.news.untold) == (((), ()), {})
    assert due(state_after(*events, *(told(each, NOON_S + 1) for each in events))) == ((), ())


def test_after_a_restart_only_those_receivers_get_news_that_do_not_have_it() -> None:
    """The program has it, the webhook was away when the watch was killed. Of a verdict and of a level alike."""
    for news in (failing(), changed()):
        partly = told(news, NOON_S + 1, Receiver.EXEC)
        state = state_after(news, partly)
        assert due(state) == ((news,), ())
        assert state.news.who_has(news) == {Receiver.EXEC}
        assert state.news.told_verdict("db-1") is CheckVerdict.GOOD
        state.apply(told(news, NOON_S + 2, missed=(Receiver.WEBHOOK,)))
        assert (due(state), state.news.who_has(news)) == (((), ()), frozenset())


def test_a_receiver_that_knows_of_a_failure_hears_that_its_peer_is_good_again_after_a_restart() -> None:
    """Also if the others never had the failure: it was on its way to them, or the newer news was."""
    failure, good = failing(), ended(CheckVerdict.GOOD, at_s=NOON_S + 9)
    for first in (told(failure, NOON_S + 1, Receiver.EXEC), told(failure, NOON_S + 1)):
        for events in ((failure, first, good), (failure, good, replace(first, at_s=NOON_S + 10))):
            state = state_after(*events)
            assert due(state, now_s=NOON_S + 20) == ((good,), ())
            assert state.news.who_has(good) == frozenset()
            state.apply(told(good, NOON_S + 21))
            assert (due(state), state.news.untold) == (((), ()), {})
            assert state.news.told_verdict("db-1") is CheckVerdict.GOOD


def test_a_changed_path_is_told_once_and_leaves_the_verdict_as_it_was_told() -> None:
    """Both directions are news of their own."""
    change = rerouted()
    back = replace(change, after=replace(change.after, direction=Direction.IN))
    events = [failing(), told(failing(), NOON_S), change, back]
    state = state_after(*events)
    assert due(state) == ((change, back), ())
    state.apply(told(back, NOON_S + 1))
    state.apply(told(change, NOON_S + 1))
    assert (due(state), state.news.untold) == (((), ()), {})
    assert state.news.told_verdict("db-1") is CheckVerdict.FAILED


def test_a_first_good_test_is_no_news_and_neither_is_the_same_verdict_again() -> None:
    """A test that does not count changes no verdict."""
    events = (ended(), ended(at_s=NOON_S + 60), ended(CheckVerdict.BELOW, at_s=NOON_S + 120, decides=False))
    assert due(state_after(*events)) == ((), ())


def test_more_news_than_there_is_room_for_is_sent_later() -> None:
    """None is dropped: the next call has the others."""
    failures = [replace(failing(), peer=f"db-{number}") for number in range(5)]
    state = state_after(*failures)
    assert [len(due(state, room=2)[0]) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize(("age_s", "is_sent"), [(DAY_S - 1, True), (DAY_S + 1, False)])
def test_news_of_more_than_a_day_ago_is_not_sent(age_s: float, is_sent: bool) -> None:
    """Such as after a restart of a watch that was down for long."""
    assert bool(due(state_after(failing()), now_s=NOON_S + age_s)[0]) is is_sent


def test_trouble_that_has_gone_before_it_could_be_told_is_known_and_not_sent() -> None:
    """It is noted as told, so that it does not wait for ever."""
    minute = time.localtime(NOON_S).tm_hour * 60 + time.localtime(NOON_S).tm_min
    quiet = replace(TELL, quiet=(minute, (minute + 60) % 1_440))
    good = ended(at_s=NOON_S + 60)
    state = state_after(failing(), good)
    assert due(state, quiet) == ((), ())
    assert due(state, quiet, NOON_S + 3_700) == ((), (good,))


def test_trouble_that_lasts_is_repeated_after_its_time_for_peers_that_are_watched() -> None:
    """And not again before the repetition was told."""
    again, failure = replace(TELL, repeat_ns=60 * 10**9), failing()
    state = state_after(failure, told(failure, NOON_S))
    assert due(state, again, NOON_S + 59) == ((), ())
    assert state.news.take_due(again, {}, NOON_S + 61, ROOM).send == ()
    assert due(state, again, NOON_S + 61) == ((failure,), ())
    assert due(state, again, NOON_S + 300) == ((), ())
    state.apply(told(failure, NOON_S + 301))
    assert due(state, again, NOON_S + 400) == ((failure,), ())


def test_nothing_is_due_without_a_receiver() -> None:
    """A plan that gets one later tells what is still news."""
    state = state_after(failing())
    assert due(state, Notify()) == ((), ())
    assert len(due(state)[0]) == 1
    assert NewsToTell().take_due(TELL, {}, NOON_S, ROOM).send == ()
