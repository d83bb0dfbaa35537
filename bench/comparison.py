"""Comparison of our rounds with another entry's: ratios of medians with a bootstrap interval, and their order."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from measurements import CaseResult, EntryResult, Role, Round

SHARE = "of itself stopped"
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


@dataclass(frozen=True)
class Comparison:
    """Our entry against another one of a case, over the rounds that both have.

    Shares of the floor are None if none was measured, CPU if the rounds were too short to read it.
    """

    case: str
    title: str
    ours: str
    other: str
    role: Role
    unit: str
    rounds: int
    our_rate: float
    other_rate: float
    ratio: float
    low: float
    high: float
    cpu_ratio: float | None
    our_floor_share: float | None
    other_floor_share: float | None
    at_least: float | None
    cpu_at_most: float | None

    @property
    def is_behind(self) -> bool:
        """Whether a peer is faster."""
        return self.role == "peer" and self.ratio < 1

    @property
    def misses_rate(self) -> bool:
        """Whether the ratio of the rates is below its target."""
        return self.at_least is not None and self.ratio < self.at_least

    @property
    def misses_cpu(self) -> bool:
        """Whether the ratio of CPU is above its target."""
        return self.cpu_at_most is not None and self.cpu_ratio is not None and self.cpu_ratio > self.cpu_at_most

    @property
    def misses_target(self) -> bool:
        """Whether one of the targets is missed."""
        return self.misses_rate or self.misses_cpu

    @property
    def may_be_chance(self) -> bool:
        """Whether the interval of the ratio includes the target, or 1 if there is none."""
        return self.low <= (1 if self.at_least is None else self.at_least) <= self.high


@dataclass(frozen=True)
class Ranking:
    """All comparisons, the worst first: behind a peer, short of a target, the others, and with linkgauge itself."""

    behind: tuple[Comparison, ...]
    short: tuple[Comparison, ...]
    ahead: tuple[Comparison, ...]
    itself: tuple[Comparison, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All of them in this order."""
        return self.behind + self.short + self.ahead + self.itself


def rank(comparisons: Iterable[Comparison]) -> Ranking:
    """Put comparisons in order: within what is behind or short by ratio, otherwise as they were measured."""
    rows = list(comparisons)
    behind = sorted((row for row in rows if row.is_behind), key=lambda row: row.ratio)
    short = sorted((row for row in rows if row.misses_target and not row.is_behind), key=_margin)
    others = [row for row in rows if not row.is_behind and not row.misses_target]
    ahead = (row for row in others if row.role == "peer")
    itself = (row for row in others if row.role == "ours")
    return Ranking(tuple(behind), tuple(short), tuple(ahead), tuple(itself))


def _margin(row: Comparison) -> float:
    """Return the ratio as a share of its target: below 1 if it is missed."""
    rate = 1.0 if row.at_least is None else row.ratio / row.at_least
    cpu = 1.0 if row.cpu_at_most is None or not row.cpu_ratio else row.cpu_at_most / row.cpu_ratio
    return min(rate, cpu)


def compare_case(case: CaseResult) -> list[Comparison]:
    """Compare our entry with each other one that has rounds in common; floors only give the share."""
    found: list[Comparison] = []
    for other in case.entries[1:]:
        is_compared = other.role != "floor" and other.requested_bit_s is None
        if not is_compared or other.failure or case.ours.failure:
            continue
        for values in (_rates, _turns):
            comparison = _compare(case, other, *values)
            if comparison is not None:
                found.append(comparison)
    return found


Value = Callable[[Round], float | None]


def _share_of_stopped(each: Round) -> float | None:
    return each.rate / each.stopped_rate if each.stopped_rate else None


def _rate(each: Round) -> float | None:
    return each.rate


_rates: tuple[Value, str | None] = (_rate, None)
_turns: tuple[Value, str | None] = (_share_of_stopped, SHARE)


def _pairs(ours: EntryResult, other: EntryResult, value: Value) -> tuple[list[float], list[float]]:
    """Return the values of the rounds for which both are known."""
    both = [
        (value(ours.rounds[number]), value(each)) for number, each in other.rounds.items() if number in ours.rounds
    ]
    pairs = [(a, b) for a, b in both if a is not None and b is not None]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _compare(case: CaseResult, other: EntryResult, value: Value, unit: str | None) -> Comparison | None:
    ours, theirs = _pairs(case.ours, other, value)
    if not ours:
        return None
    ratio, low, high = ratio_interval(ours, theirs)
    costs = _pairs(case.ours, other, lambda each: each.cpu_ms)
    floor = case.floor_rate if unit is None else None
    return Comparison(
        case.name,
        case.title,
        case.ours.label,
        other.label,
        other.role,
        unit or other.unit,
        len(ours),
        median(ours),
        median(theirs),
        ratio,
        low,
        high,
        median(costs[0]) / median(costs[1]) if costs[0] and unit is None else None,
        median(ours) / floor if floor else None,
        median(theirs) / floor if floor else None,
        other.at_least,
        other.cpu_at_most if unit is None else None,
    )
