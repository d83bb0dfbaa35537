"""Whether the other end is lost: silence counts, payload that moves excuses it for a while."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.control.keepalive import (
    DEAD_PEER_CHECK_S,
    DEAD_PEER_TIMEOUT_NS,
    MAX_SILENCE_NS,
    SILENCE_TIMEOUT_NS,
    DeadPeerDetector,
    Liveness,
    LivenessProblem,
)
from linkgauge.engine.model.plan import SECOND_NS


def test_an_end_that_speaks_is_never_lost() -> None:
    """No payload has to move for that."""
    liveness = Liveness(0)
    for second in range(100):
        assert liveness.check_timeout(second * SECOND_NS, second * SECOND_NS, 0) is None


@pytest.mark.parametrize(
    ("silent_ns", "lost"), [(SILENCE_TIMEOUT_NS, None), (SILENCE_TIMEOUT_NS + 1, SILENCE_TIMEOUT_NS + 1)]
)
def test_an_end_that_neither_speaks_nor_carries_is_lost_after_four_seconds(
    silent_ns: int, lost: int | None
) -> None:
    """The answer is how long it has been silent."""
    assert Liveness(0).check_timeout(silent_ns, 0, 0) == lost


def test_payload_that_moves_excuses_silence_up_to_a_limit() -> None:
    """A flood may hold the control connection up for long, but not for ever."""
    liveness = Liveness(0)
    for second in range(1, MAX_SILENCE_NS // SECOND_NS + 1):
        assert liveness.check_timeout(second * SECOND_NS, 0, second) is None
    assert liveness.check_timeout(MAX_SILENCE_NS + 1, 0, 10**9) == MAX_SILENCE_NS + 1


def test_payload_that_stops_excuses_nothing_four_seconds_later() -> None:
    """Payload of long ago is not a sign of life."""
    liveness = Liveness(0)
    assert liveness.check_timeout(10 * SECOND_NS, 0, 500) is None
    assert liveness.check_timeout(10 * SECOND_NS + SILENCE_TIMEOUT_NS, 0, 500) is None
    assert liveness.check_timeout(10 * SECOND_NS + SILENCE_TIMEOUT_NS + 1, 0, 500) == 14 * SECOND_NS + 1


def test_a_word_after_a_long_silence_starts_anew() -> None:
    """An end that was slow and spoke again is there."""
    liveness = Liveness(0)
    assert liveness.check_timeout(40 * SECOND_NS, 39 * SECOND_NS, 0) is None


@given(st.lists(st.tuples(st.integers(0, SILENCE_TIMEOUT_NS), st.booleans(), st.booleans()), max_size=60))
def test_an_end_is_lost_exactly_when_it_has_been_still_or_silent_for_too_long(
    steps: list[tuple[int, bool, bool]],
) -> None:
    """Whatever it does, both limits hold."""
    liveness = Liveness(0)
    now = heard_ns = moved = total = 0
    for pause_ns, speaks, carries in steps:
        now += pause_ns
        heard_ns, moved, total = now if speaks else heard_ns, now if carries else moved, total + carries
        lost = liveness.check_timeout(now, heard_ns, total)
        too_long = now - max(heard_ns, moved) > SILENCE_TIMEOUT_NS or now - heard_ns > MAX_SILENCE_NS
        assert lost == (now - heard_ns if too_long else None)


@pytest.mark.parametrize(
    ("silent_s", "still_s", "trouble"),
    [
        (0, 0, None),
        (4, 4, None),
        (5, 0, LivenessProblem.SILENT),
        (5, 3, None),
        (0, 5, LivenessProblem.STALLED),
    ],
)
def test_an_end_that_is_not_lost_may_still_be_in_trouble(
    silent_s: int, still_s: int, trouble: LivenessProblem | None
) -> None:
    """One that carries and does not speak, and one that speaks and does not carry.

    Payload from before the silence had lasted for long is not said to move: a dead link's is as old.
    """
    now_ns = 100 * SECOND_NS
    liveness = Liveness(now_ns - still_s * SECOND_NS)
    assert liveness.find_problem(now_ns, now_ns - silent_s * SECOND_NS) == trouble


LOOK_NS = int(DEAD_PEER_CHECK_S * SECOND_NS)


def silences(*signs: tuple[int, int], begin_ns: int = 100 * SECOND_NS) -> list[int]:
    """Return how long a tether takes an end to be silent at each look, given when it was heard and its bytes."""
    tether = DeadPeerDetector(begin_ns)
    looks = enumerate(signs, 1)
    return [
        tether.measure_silence_ns(begin_ns + n * LOOK_NS, begin_ns + heard_ns, total)
        for n, (heard_ns, total) in looks
    ]


def test_whatever_comes_holds_a_tether() -> None:
    """A word, an acknowledgement, or payload alone; and nothing of it lets go."""
    by_word = [(n * LOOK_NS, 0) for n in range(20)]
    by_payload = [(0, n) for n in range(20)]
    for signs in (by_word, by_payload):
        assert max(silences(*signs)) < DEAD_PEER_TIMEOUT_NS
    assert silences(*[(0, 0)] * 7)[-1] == 7 * LOOK_NS > DEAD_PEER_TIMEOUT_NS


def test_a_tick_of_the_kernel_is_no_sign_of_life() -> None:
    """When the last packet came is told in milliseconds that differ a little at each look."""
    assert silences(*[(n * 1_000_000, 0) for n in range(1, 8)])[-1] > DEAD_PEER_TIMEOUT_NS


def test_a_pause_of_this_end_does_not_count_against_the_other() -> None:
    """A busy host has not read its messages yet, and gets the time to."""
    tether = DeadPeerDetector(0)
    assert tether.measure_silence_ns(LOOK_NS, LOOK_NS, 0) == 0
    late_ns = 9 * SECOND_NS
    assert tether.measure_silence_ns(late_ns, LOOK_NS, 0) == 0
    assert tether.measure_silence_ns(late_ns + LOOK_NS, LOOK_NS, 0) == LOOK_NS
    assert tether.measure_silence_ns(late_ns + 2 * LOOK_NS, late_ns + LOOK_NS, 0) == LOOK_NS
