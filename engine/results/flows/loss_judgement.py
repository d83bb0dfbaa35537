"""Which flows lose more than the others. Pure.

If a mixture of two loss probabilities fits much better than one, flows are named bad by their own losses: at a
false discovery rate of 1 % against the losses of the good ones, and once more by the datagrams of later rounds
alone. A flow is good if the mixture says so with 99 %. All others are unclear, and want more datagrams.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .flow_counts import FlowCounts
from .loss_mixture import Losses, Mixture, discoveries, fit_mixture, upper_tail
from .member_share import MemberShare, member_share

FALSE_DISCOVERIES: Final = 0.01
_SURE: Final = 0.99
_FEW_LOSSES: Final = 6
_WELL_KNOWN: Final = 2.0  # losses of each flow in the mean: with as many, two probabilities show
_LEAST_RATIO: Final = 3.0  # of both probabilities: hashing spreads load, and busy members lose a little more


class LossKind(StrEnum):
    """The losses of a direction's flows: none, the same for all, two kinds of flows, or too few to tell."""

    NONE = "none"
    ALIKE = "alike"
    APART = "apart"
    FEW = "few"


@dataclass(frozen=True, slots=True)
class LossJudgement:
    """The flows of a direction by their losses, as places in its list of flows.

    `bad` lose more than the good ones, and `unclear` are those whose losses do not tell; `confirmed` are the bad
    ones whose later rounds alone say so. `low` and `high` are the loss probabilities of good and bad flows.
    """

    kind: LossKind
    low: float
    high: float
    ratio: float
    bad: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()
    confirmed: tuple[int, ...] = ()
    total: int = 0

    @property
    def is_confirmed(self) -> bool:
        """Whether nearly all bad flows were bad again."""
        return bool(self.bad) and len(self.confirmed) >= 0.9 * len(self.bad)

    @property
    def share(self) -> MemberShare | None:
        """The share of bad flows; None without any."""
        return member_share(len(self.bad), len(self.unclear), self.total) if self.bad else None

    @property
    def wants_more(self) -> bool:
        """Whether more datagrams would tell more."""
        if self.kind is LossKind.APART:
            return bool(self.unclear) or not self.is_confirmed
        return self.kind is LossKind.FEW


def judge_losses(flows: Sequence[FlowCounts]) -> LossJudgement:
    """Return the judgement of a direction's flows, over all of their rounds."""
    losses = [(each.lost, each.sent) for each in flows]
    total_lost = sum(lost for lost, _ in losses)
    mixture = fit_mixture(losses)
    one = LossJudgement(LossKind.NONE, mixture.low, mixture.high, mixture.ratio, total=len(flows))
    if not mixture.has_two or mixture.high < _LEAST_RATIO * mixture.low:
        mean = total_lost / sum(sent for _, sent in losses) if total_lost else 0.0
        is_known = total_lost < _FEW_LOSSES or total_lost >= _WELL_KNOWN * len(flows)
        kind = LossKind.NONE if not total_lost else LossKind.ALIKE if is_known else LossKind.FEW
        return LossJudgement(kind, mean, mean, one.ratio, total=len(flows))
    chances = [mixture.high_chance(each) for each in losses]
    background = _background(losses, chances)
    bad = discoveries([upper_tail(each, background) for each in losses], FALSE_DISCOVERIES)
    bad = {place for place in bad if chances[place] > 0.5}
    good = {place for place, chance in enumerate(chances) if chance <= 1 - _SURE} - bad
    unclear = tuple(sorted(set(range(len(flows))) - bad - good))
    confirmed = _confirm(flows, sorted(bad), mixture)
    return LossJudgement(
        LossKind.APART if bad else LossKind.FEW,
        mixture.low,
        mixture.high,
        mixture.ratio,
        tuple(sorted(bad)),
        unclear,
        confirmed,
        len(flows),
    )


def _background(losses: Sequence[Losses], chances: Sequence[float]) -> float:
    """Return the loss probability of good flows: half a loss more than was seen, as none would be no evidence."""
    lost = sum((1 - chance) * each[0] for each, chance in zip(losses, chances, strict=True))
    sent = sum((1 - chance) * each[1] for each, chance in zip(losses, chances, strict=True))
    return min(1.0, (lost + 0.5) / (sent + 1))


def _confirm(flows: Sequence[FlowCounts], bad: Sequence[int], mixture: Mixture) -> tuple[int, ...]:
    """Return the bad flows that later rounds alone name at the same false discovery rate."""
    later = {place: _later(flows[place]) for place in bad}
    again = [place for place in bad if later[place][1]]
    bad_set = set(bad)
    good = [_later(each) for place, each in enumerate(flows) if place not in bad_set]
    chances = [mixture.high_chance(each) for each in good]
    background = _background(good, chances)
    found = discoveries([upper_tail(later[place], background) for place in again], FALSE_DISCOVERIES)
    return tuple(again[place] for place in sorted(found))


def _later(flow: FlowCounts) -> Losses:
    """Return the losses of a flow after its first round."""
    return sum(each.lost for each in flow.rounds[1:]), sum(each.sent for each in flow.rounds[1:])
