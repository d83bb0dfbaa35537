"""The pace of a slow stream, in fake time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.byte_pace import SLOW_BIT_S, BytePace

SECOND_NS = 1_000_000_000


def hand_over(pace: BytePace, until_ns: int) -> list[tuple[int, int]]:
    """Return when how many bytes were handed over, by a sender that nothing holds up."""
    now_ns, pieces = 0, list[tuple[int, int]]()
    while now_ns < until_ns:
        if count := pace.due(now_ns):
            pace.take(count)
            pieces.append((now_ns, count))
        now_ns += pace.wait_ns
    return pieces


@given(st.integers(1, SLOW_BIT_S), st.sampled_from([50_000_000, 250_000_000, 10 * SECOND_NS]))
def test_the_mean_is_the_rate_from_the_first_second_on(bit_s: int, interval_ns: int) -> None:
    """To one piece, which a tenth of a second may be late."""
    pieces = hand_over(BytePace(bit_s, interval_ns, 0), 2 * SECOND_NS)
    assert abs(sum(count for _, count in pieces) - bit_s / 4) <= bit_s / 80 + 1


@pytest.mark.parametrize("bit_s", [2_000, 64_000, 1_000_000, 50_000_000])
@pytest.mark.parametrize("interval_ns", [50_000_000, 250_000_000, SECOND_NS])
def test_payload_moves_several_times_in_each_interval(bit_s: int, interval_ns: int) -> None:
    """An interval without payload would look as if the link had failed."""
    pieces = hand_over(BytePace(bit_s, interval_ns, 0), 2 * SECOND_NS)
    for since_ns in range(0, 2 * SECOND_NS, interval_ns):
        within = [count for at_ns, count in pieces if since_ns <= at_ns < since_ns + interval_ns]
        assert len(within) >= 3


def test_a_sender_that_was_held_up_catches_up_on_little() -> None:
    """The rest would be a burst that the link has to answer for."""
    pace = BytePace(800_000, SECOND_NS, 0)
    assert pace.due(10 * SECOND_NS) == 20_000
