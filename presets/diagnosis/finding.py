"""A finding: one reason why a link is not faster, with its evidence and its remedy."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ...engine.model.directions import Direction, End
from ...engine.model.errors import DecodeError
from ...engine.model.serialization import OMITTED_AT_DEFAULT, decode
from ...engine.results.figure_codec import encode, figures_of
from .trial import Trial

if TYPE_CHECKING:
    from ...engine.results.run_result import FindingFigures

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
    "ssh-data-path",
    "offloads-off",
    "steal",
    "cpu-quota",
    "sender-starved",
    "round-trip",
    "sessions-few",
    "loss",
    "retransmission-storm",
    "reordering",
    "sack-off",
    "loss-bursts",
    "loss-periodic",
    "send-queue-full",
    "backlog-full",
    "socket-buffer-full",
    "policer",
    "outage",
    "nic-errors",
    "nic-drops",
    "pacing",
    "congestion-window",
    "acks-queued",
    "path-slow",
    "mtu-mismatch",
    "path-mtu",
    "mss-small",
    "timestamps-on",
    "timestamps-off",
    "nic-speed",
    "half-duplex",
    "duplex-mismatch",
    "other-traffic",
    "other-tests",
    "rate-limited",
    "tester-limited",
    "no-queue",
    "queue-local",
    "queue-remote",
    "queue-path",
    "unexplained",
]
"""The stable name of a finding, for programs."""

MIN_CONFIDENCE: Final = 0.5
"""A finding of less confidence names no cause: it is `unexplained`, with the known numbers."""

NOT_IDENTIFIED: Final = "The cause of the gap was not found."

# A finding of a lower rank explains too little.
_MIN_RANK: Final = 0.08


@dataclass(frozen=True, slots=True)
class Finding:
    """A limit in one sentence, the numbers that show it, and a remedy: the command or the place to change.

    `share` is the part of the gap that it explains, 0 to 1; None if nothing is expected or nothing is missing.
    `confidence` is 0 to 1. `end` is set if the limit is at one end. `weight` replaces the share in the order of
    findings if there is no expected rate: it is the share of time for which the limit stopped the sender.
    `direction` is set if the finding is about one of several. `trial` has options of a test that remove the limit,
    or tell whether it is one; the remedy names them. It is None if the remedy names no such option.
    """

    code: FindingCode
    share: float | None
    confidence: float
    text: str
    evidence: str
    remedy: str
    end: End | None = None
    weight: float = 0.0
    direction: Direction | None = None
    trial: Trial | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    @property
    def rank(self) -> float:
        """The explained share, times the confidence."""
        return (self.weight if self.share is None else self.share) * self.confidence


def rank_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that explain something, the highest rank first."""
    relevant = [finding for finding in findings if finding.rank >= _MIN_RANK]
    return tuple(sorted(relevant, key=lambda finding: -finding.rank))


def finding_figures(findings: tuple[Finding, ...]) -> "tuple[FindingFigures, ...]":
    """Return findings for programs; `share` is unknown if nothing is expected or nothing is missing.

    They leave the trial out: the remedy names its options, and an earlier version would refuse the key.
    """
    from ...engine.results.run_result import FindingFigures  # a list of runs shows no findings, and starts sooner

    return tuple(figures_of(FindingFigures, finding) for finding in findings)


def read_findings(figures: "Iterable[FindingFigures]") -> tuple[Finding, ...]:
    """Return the findings of a stored run; none if one is damaged: the events can give them again."""
    try:
        return tuple(decode(Finding, encode(each)) for each in figures)
    except DecodeError:
        return ()
