"""Whether the other end is lost: silence counts, payload that moves excuses it for a while."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.control.keepalive import (
    LONGEST_SILENCE_NS,
    SILENCE_NS,
    TETHER_LOOK_S,
    TETHER_NS,
    Liveness,
    Tether,
    Trouble,
)
from linkgauge.engine.model.plan import SECOND_NS


def test_an_end_that_speaks_is_never_lost() -> None:
    """No payload has to move for that."""
    liveness = Liveness(0)
    for second in range(100):
        assert liveness.lost_for_ns(second * SECOND_NS, second * SECOND_NS, 0) is None


@pytest.mark.parametrize(("silent_ns", "lost"), [(SILENCE_NS, None), (SILENCE_NS + 1, SILENCE_NS + 1)])
def test_an_end_that_neither_speaks_nor_carries_is_lost_after_four_seconds(
    silent_ns: int, lost: int | None
) -> None:
    """The answer is how long it has been silent."""
    assert Liveness(0).lost_for_ns(silent_ns, 0, 0) == lost


def test_payload_that_moves_excuses_silence_up_to_a_limit() -> None:
    """A flood may hold the control connection up for long, but not for ever."""
    liveness = Liveness(0)
    for second in range(1, LONGEST_SILENCE_NS // SECOND_NS + 1):
        assert liveness.lost_for_ns(second * SECOND_NS, 0, second) is None
    assert liveness.lost_for_ns(LONGEST_SILENCE_NS + 1, 0, 10**9) == LONGEST_SILENCE_NS + 1


def test_payload_that_stops_excuses_nothing_four_seconds_later() -> None:
    """What was carried long ago is no sign of life."""
    liveness = Liveness(0)
    assert liveness.lost_for_ns(10 * SECOND_NS, 0, 500) is None
    assert liveness.lost_for_ns(10 * SECOND_NS + SILENCE_NS, 0, 500) is None
    assert liveness.lost_for_ns(10 * SECOND_NS + SILENCE_NS + 1, 0, 500) == 14 * SECOND_NS + 1


def test_a_word_after_a_long_silence_starts_anew() -> None:
    """An end that was slow and spoke again is there."""
    liveness = Liveness(0)
    assert liveness.lost_for_ns(40 * SECOND_NS, 39 * SECOND_NS, 0) is None


@given(st.lists(st.tuples(st.integers(0, SILENCE_NS), st.booleans(), st.booleans()), max_size=60))
def test_an_end_is_lost_exactly_when_it_has_been_still_or_silent_for_too_long(
    steps: list[tuple[int, bool, bool]],
) -> None:
    """Whatever it does, both limits hold."""
    liveness = Liveness(0)
    now = heard = moved = total = 0
    for pause_ns, speaks, carries in steps:
        now += pause_ns
        heard, moved, total = now if speaks else heard, now if carries else moved, total + carries
        lost = liveness.lost_for_ns(now, heard, total)
        too_long = now - max(heard, moved) > SILENCE_NS or now - heard > LONGEST_SILENCE_NS
        assert lost == (now - heard if too_long else None)


@pytest.mark.parametrize(
    ("silent_s", "still_s", "trouble"),
    [(0, 0, None), (4, 4, None), (5, 0, Trouble.SILENT), (5, 5, Trouble.SILENT), (0, 5, Trouble.STILL)],
)
def test_an_end_that_is_not_lost_may_still_be_in_trouble(
    silent_s: int, still_s: int, trouble: Trouble | None
) -> None:
    """One that carries and does not speak, and one that speaks and does not carry."""
    now_ns = 100 * SECOND_NS
    liveness = Liveness(now_ns - still_s * SECOND_NS)
    assert liveness.trouble(now_ns, now_ns - silent_s * SECOND_NS) == trouble


LOOK_NS = int(TETHER_LOOK_S * SECOND_NS)


def silences(*signs: tuple[int, int], begin_ns: int = 100 * SECOND_NS) -> list[int]:
    """Return how long a tether takes an end to be silent at each look, given when it was heard and its bytes."""
    tether = Tether(begin_ns)
    looks = enumerate(signs, 1)
    return [tether.silent_ns(begin_ns + n * LOOK_NS, begin_ns + heard, total) for n, (heard, total) in looks]


def test_whatever_comes_holds_a_tether() -> None:
    """A word, an acknowledgement, or payload alone; and nothing of it lets go."""
    by_word = [(n * LOOK_NS, 0) for n in range(20)]
    by_payload = [(0, n) for n in range(20)]
    for signs in (by_word, by_payload):
        assert max(silences(*signs)) < TETHER_NS
    assert silences(*[(0, 0)] * 7)[-1] == 7 * LOOK_NS > TETHER_NS


def test_a_tick_of_the_kernel_is_no_sign_of_life() -> None:
    """When the last packet came is told in milliseconds that differ a little at each look."""
    assert silences(*[(n * 1_000_000, 0) for n in range(1, 8)])[-1] > TETHER_NS


def test_a_while_without_a_look_is_not_held_against_the_other_end() -> None:
    """A busy host has not read what came: it is given the time to."""
    tether = Tether(0)
    assert tether.silent_ns(LOOK_NS, LOOK_NS, 0) == 0
    late_ns = 9 * SECOND_NS
    assert tether.silent_ns(late_ns, LOOK_NS, 0) == 0
    assert tether.silent_ns(late_ns + LOOK_NS, LOOK_NS, 0) == LOOK_NS
    assert tether.silent_ns(late_ns + 2 * LOOK_NS, late_ns + LOOK_NS, 0) == LOOK_NS
