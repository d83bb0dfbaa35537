"""The order of a mesh's pairs: rounds of disjoint pairs, each pair once (the circle method). Pure.

One host keeps its place and the others rotate. An even number N of hosts has N - 1 rounds of N / 2 pairs. An odd
number has N rounds, and in each another host rests. Fewer rounds would give a host two tests at the same time.
"""

import random
from collections.abc import Collection, Sequence
from typing import TypeVar

from .plan import Cell, Pairing

T = TypeVar("T")


def make_rounds(names: Sequence[str], seed: int) -> list[tuple[Pairing, ...]]:
    """Return rounds that have each pair of hosts once, and each host at most once a round.

    The seed decides the order of rounds, the order of pairs in a round, and the near host of a pair. So changes
    over time do not affect one host or direction in particular. The same names and seed give the same rounds, in
    any release of Python.
    """
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    places: list[str | None] = list(names)
    _shuffle(places, chance)
    if len(places) % 2:
        places.append(None)  # the host that is paired with None rests
    rounds: list[tuple[Pairing, ...]] = []
    for _ in range(len(places) - 1):
        pairs = [_pair(places[i], places[-1 - i], chance) for i in range(len(places) // 2)]
        _shuffle(pairs, chance)
        rounds.append(tuple(pair for pair in pairs if pair is not None))
        places.insert(1, places.pop())
    _shuffle(rounds, chance)
    return rounds


def leave_out(rounds: Sequence[tuple[Pairing, ...]], done: Collection[Cell]) -> list[tuple[Pairing, ...]]:
    """Return the rounds without the pairs whose two cells are done, and without empty rounds."""
    kept = (tuple(p for p in pairs if any(cell not in done for cell, _ in p.cells)) for pairs in rounds)
    return [pairs for pairs in kept if pairs]


def _pair(first: str | None, second: str | None, chance: random.Random) -> Pairing | None:
    swaps = chance.random() < 0.5
    if first is None or second is None:
        return None
    return Pairing(second, first) if swaps else Pairing(first, second)


def _shuffle(items: list[T], chance: random.Random) -> None:
    """Shuffle as Fisher and Yates do, with `random` alone: Python keeps only its numbers the same for ever."""
    for last in range(len(items) - 1, 0, -1):
        other = int(chance.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
