"""Medians, and ratios of medians with a bootstrap interval."""

import random
from collections.abc import Sequence
from statistics import median

_RESAMPLES = 2_000
_SEED = 5820  # the same rounds give the same interval


def ratio_interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the ratio of medians and the bounds of its 95 % interval, by a bootstrap over pairs.

    The two values of a round form a pair, because both tools met the same state of the machine.
    """
    rng = random.Random(_SEED)
    pairs = list(zip(ours, theirs, strict=True))
    ratios: list[float] = []
    for _ in range(_RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        ratios.append(median(a for a, _ in drawn) / median(b for _, b in drawn))
    ratios.sort()
    low, high = ratios[int(0.025 * _RESAMPLES)], ratios[int(0.975 * _RESAMPLES)]
    return median(ours) / median(theirs), low, high
