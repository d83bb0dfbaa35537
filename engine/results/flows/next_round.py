"""Which flows send again, and how much, after the rounds so far. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

from .loss_judgement import LossJudgement, LossKind

MAX_ROUNDS: Final = 5
_MISSED: Final = 2.3  # standard errors: a bad flow seems good in 1 of 100
_MISNAMED: Final = 2.6
_LEAST_FLOWS: Final = 8
_MORE: Final = 2  # times the first round, if the losses are too few to tell


@dataclass(frozen=True, slots=True)
class NextRound:
    """A round: the flows as places in the list, and its sweeps."""

    places: tuple[int, ...]
    sweeps: int


def plan_next_round(
    judgements: Sequence[LossJudgement], rounds: int, first_sweeps: int, most_datagrams: int
) -> NextRound | None:
    """Return the next round; None if more datagrams would tell no more, or there were `MAX_ROUNDS`.

    Suspects send again, and as many good flows beside them at the same time.
    """
    open_ones = [each for each in judgements if each.wants_more]
    if not open_ones or rounds >= MAX_ROUNDS:
        return None
    total = max(each.total for each in open_ones)
    places, sweeps = set[int](), 0
    for each in open_ones:
        if each.kind is LossKind.FEW:
            places, sweeps = set(range(total)), max(sweeps, _MORE * first_sweeps)
            continue
        suspects = {*each.unclear, *(each.bad if not each.is_confirmed else ())}
        others = sorted(set(range(each.total)) - suspects - set(each.bad))
        places |= suspects | set(random.sample(others, min(len(others), max(_LEAST_FLOWS, len(suspects)))))
        sweeps = max(sweeps, _telling(each.low, each.high))
    most_sweeps = max(1, most_datagrams // len(places))
    return NextRound(tuple(sorted(places)), min(most_sweeps, max(first_sweeps, sweeps)))


def _telling(low: float, high: float) -> int:
    """Return how many datagrams tell a flow with one loss probability from one with the other."""
    gap = max(1e-6, high - low)
    return ceil(((_MISNAMED * sqrt(low * (1 - low)) + _MISSED * sqrt(high * max(0.0, 1 - high))) / gap) ** 2) + 1
