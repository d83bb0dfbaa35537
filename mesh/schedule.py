"""The order of a mesh's pairs: rounds of disjoint pairs, each pair once (the circle method). Pure.

One host keeps its place, the others go round: N - 1 rounds of N / 2 pairs for an even number of hosts; for an odd
one N rounds, in each of which another host rests. Any fewer rounds would give a host two tests at once.
"""

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from .plan import Cell, Pairing

T = TypeVar("T")


def make_rounds(names: Sequence[str], seed: int) -> list[tuple[Pairing, ...]]:
    """Return rounds in which each pair of hosts is once, and each host at most once a round.

    The seed decides the order of rounds, the order of pairs in a round, and which host of a pair is the near one:
    what varies with time then falls on no host or direction in particular. The same names and seed give the same
    rounds, in any release of Python.
    """
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    places: list[str | None] = list(names)
    _shuffle(places, chance)
    if len(places) % 2:
        places.append(None)  # who is paired with nobody rests
    rounds: list[tuple[Pairing, ...]] = []
    for _ in range(len(places) - 1):
        pairs = [_pair(places[i], places[-1 - i], chance) for i in range(len(places) // 2)]
        _shuffle(pairs, chance)
        rounds.append(tuple(pair for pair in pairs if pair is not None))
        places.insert(1, places.pop())
    _shuffle(rounds, chance)
    return rounds


def leave_out(rounds: Sequence[tuple[Pairing, ...]], done: Collection[Cell]) -> list[tuple[Pairing, ...]]:
    """Return the rounds without pairs whose two cells are done, and without rounds that are then empty."""
    kept = (tuple(p for p in pairs if any(cell not in done for cell, _ in p.cells)) for pairs in rounds)
    return [pairs for pairs in kept if pairs]


def _pair(first: str | None, second: str | None, chance: random.Random) -> Pairing | None:
    swaps = chance.random() < 0.5
    if first is None or second is None:
        return None
    return Pairing(second, first) if swaps else Pairing(first, second)


def _shuffle(items: list[T], chance: random.Random) -> None:
    """Shuffle as Fisher and Yates do, from `random` alone: the only method whose numbers Python keeps the same."""
    for last in range(len(items) - 1, 0, -1):
        other = int(chance.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
