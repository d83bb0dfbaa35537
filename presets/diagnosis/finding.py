"""A finding: one thing that keeps a link from being faster, with what shows it and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ...engine.model.plan import End

FindingCode = Literal[
    "at-expected",
    "another-link",
    "no-payload",
    "window-below-bdp",
    "window-clamped",
    "window-scaling-off",
    "receive-window",
    "send-buffer",
    "core-saturated",
    "offloads-off",
    "steal",
    "sender-starved",
    "round-trip",
    "sessions-few",
    "loss",
    "nic-errors",
    "nic-drops",
    "pacing",
    "congestion-window",
    "path-slow",
    "mtu-mismatch",
    "mss-small",
    "timestamps-on",
    "timestamps-off",
    "nic-speed",
    "half-duplex",
    "duplex-mismatch",
    "other-traffic",
    "tester-limited",
    "unexplained",
]
"""What a finding is called, for programs: these names stay."""

FINDING_CODES: Final[tuple[FindingCode, ...]] = get_args(FindingCode)

# Less than this of the gap, doubt taken off, is no answer to why a link is not faster.
_LEAST_WEIGHT: Final = 0.08


@dataclass(frozen=True, slots=True)
class Finding:
    """What limits, in one sentence; what shows it, with numbers; and the command or the place that mends it.

    `share` is how much of what is missing it explains, 0 to 1; None where nothing is expected, or nothing missing.
    `confidence` is 0 to 1. `end` is the end that it is about, where it is about one. `weight` is what findings are
    ordered by where nothing is expected: the share of the time that it held the sender up.
    """

    code: FindingCode
    share: float | None
    confidence: float
    text: str
    evidence: str
    remedy: str
    end: End | None = None
    weight: float = 0.0

    @property
    def rank(self) -> float:
        """How much it explains, doubt taken off."""
        return (self.weight if self.share is None else self.share) * self.confidence


def rank_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return those that explain something, the one that explains most first."""
    telling = [one for one in findings if one.rank >= _LEAST_WEIGHT]
    return tuple(sorted(telling, key=lambda one: -one.rank))
