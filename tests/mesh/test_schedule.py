"""Rounds of disjoint pairs: each pair once, no host twice in a round, the same order for the same seed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.mesh.plan import Pairing
from linkgauge.mesh.schedule import leave_out, make_rounds

EXPECTED = [
    (Pairing("d", "a"), Pairing("b", "c")),
    (Pairing("b", "a"), Pairing("d", "c")),
    (Pairing("b", "d"), Pairing("a", "c")),
]


def names(count: int) -> list[str]:
    """Return names of hosts."""
    return [f"db-{number:02}" for number in range(1, count + 1)]


@given(count=st.integers(2, 70), seed=st.integers(0, 2**64))
def test_each_pair_is_in_one_round_and_a_host_once_in_each(count: int, seed: int) -> None:
    """An even number of hosts has N - 1 full rounds; an odd one has N, and in each another host rests."""
    rounds = make_rounds(names(count), seed)
    assert len(rounds) == count - 1 + count % 2
    pairs = [frozenset((pair.near, pair.far)) for pairs in rounds for pair in pairs]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    for each in rounds:
        hosts = [name for pair in each for name in (pair.near, pair.far)]
        assert len(hosts) == len(set(hosts)) == count - count % 2


def test_the_same_seed_gives_the_same_order_and_another_one_another() -> None:
    """Written out, to notice a later Python that draws other numbers."""
    assert make_rounds(names(4), 1) == make_rounds(names(4), 1)
    assert make_rounds(names(8), 1) != make_rounds(names(8), 2)
    assert make_rounds(["a", "b", "c", "d"], 7) == EXPECTED


def test_no_host_is_always_the_near_one() -> None:
    """Otherwise a fault of the near end would look like a fault of that host."""
    near = Counter(pair.near for pairs in make_rounds(names(32), 3) for pair in pairs)
    assert len(near) == 32
    assert all(5 < count < 26 for count in near.values())


@pytest.mark.parametrize("whole", [True, False])
def test_pairs_that_are_done_are_left_out_and_half_done_ones_kept(whole: bool) -> None:
    """An interrupted mesh goes on where it stopped."""
    rounds = make_rounds(names(4), 1)
    first = rounds[0][0]
    done = {cell for cell, _ in first.cells[: 2 if whole else 1]}
    left = leave_out(rounds, done)
    assert (first in left[0]) is not whole
    assert sum(map(len, left)) == 6 - whole
    assert leave_out(rounds, {cell for pairs in rounds for pair in pairs for cell, _ in pair.cells}) == []
