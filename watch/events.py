"""What happens in a watch. Each event is one entry of its journal and one line of `--json-stream`. Pure.

Times are seconds since 1970, UTC. A check is a full test, whose run is
in the run log; a probe is a few small requests. A cycle is one due check of a peer with its repetitions: it
counts once, by the check that decided it.
"""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """A figure whose level is watched. Its unit is in the name."""

    GOODPUT_BIT_S = "goodput_bit_s"
    """As the receivers counted it, both directions together; for transactions the transactions a second."""
    LATENCY_S = "latency_s"
    """The median round trip of a probe on the idle link."""
    LOSS = "loss"
    """Lost datagrams as a share of those sent, 0 to 1."""
    RETRANSMITS = "retransmits"
    """Retransmitted segments a gigabyte of goodput."""


class CheckVerdict(StrEnum):
    """What a test says of its peer."""

    GOOD = "good"
    """At its mark, or without an expected rate."""
    BELOW = "below"
    """Below its mark."""
    FAILED = "failed"
    """Without a result."""


class SkipReason(StrEnum):
    """Why a due test was not carried out."""

    BUDGET = "budget"
    """It would take more data than is left of this month."""
    BUSY = "busy"
    """Another test had this interface for the whole period."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a test or a probe.

    Args:
        verdict: what it says.
        bytes: the payload that it cost, both directions.
        figures: the figures that it measured; a metric that it did not measure is not in it.
        percent: its goodput in percent of the expected rate; None without one.
        why: the code of its first finding; None without any.
        detail: why it failed, as a sentence; None where it did not.
        run_id: its run in the run log; None for a probe.
    """

    verdict: CheckVerdict
    bytes: int = 0
    figures: tuple[tuple[Metric, float], ...] = ()
    percent: float | None = None
    why: str | None = None
    detail: str | None = None
    run_id: str | None = None

    def figure(self, metric: Metric) -> float | None:
        """Return a figure; None where it was not measured."""
        return dict(self.figures).get(metric)


@dataclass(frozen=True, slots=True)
class WatchStarted:
    """A watch began, or began again after a restart or a reload, with these peers."""

    at_s: float
    peers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckBegan:
    """A full test began.

    Args:
        at_s: when.
        peer: the peer's name.
        cycle_s: when its cycle was due: a cycle's name, the same for its repetitions.
        attempt: 0 for the first test of a cycle, then 1, 2, … for repetitions.
        run_id: the id that its run will have: after a crash the run tells how the test ended.
    """

    at_s: float
    peer: str
    cycle_s: float
    attempt: int
    run_id: str


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """A full test ended.

    `decides` says whether its cycle is over with it: a test below its mark that will be repeated does not decide.
    """

    at_s: float
    peer: str
    cycle_s: float
    attempt: int
    result: CheckResult
    decides: bool


@dataclass(frozen=True, slots=True)
class CheckSkipped:
    """A due test was left out."""

    at_s: float
    peer: str
    cycle_s: float
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class ChecksMissed:
    """Due tests that were not carried out because a later one of the peer came first.

    The watch did not run, or an earlier test took longer than the period, or others had the interface.

    Args:
        at_s: when the later test was begun.
        peer: the peer's name.
        since_s: when the first of them was due.
        until_s: when the last of them was due.
        count: how many.
    """

    at_s: float
    peer: str
    since_s: float
    until_s: float
    count: int


@dataclass(frozen=True, slots=True)
class ProbeEnded:
    """A probe of latency ended. A probe is no run of the run log."""

    at_s: float
    peer: str
    result: CheckResult


@dataclass(frozen=True, slots=True)
class Level:
    """A metric's level over some cycles or probes.

    `low` and `high` bound its median with 95 % confidence, None where there are too few values. `why` is the most
    frequent first finding of its runs.
    """

    median: float
    low: float | None
    high: float | None
    count: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFound:
    """A metric of a peer has another level than before. Each change is reported once.

    Args:
        at_s: when it was found.
        peer: the peer's name.
        metric: the figure that changed.
        since_s: the first cycle or probe of the new level.
        before: the level until then.
        after: the level since then.
        is_worse: whether the change is for the worse.
    """

    at_s: float
    peer: str
    metric: Metric
    since_s: float
    before: Level
    after: Level
    is_worse: bool


@dataclass(frozen=True, slots=True)
class ChangeTold:
    """A program or an address was told of the change of a peer's metric since a time, or will not be.

    Without a metric it is the verdict of the peer's tests that changed, with the cycle of that time.
    """

    at_s: float
    peer: str
    metric: Metric | None
    since_s: float


News = ChangeFound | CheckEnded
"""What somebody is told of: a change of level, or a test that counts and whose verdict is another than before."""


def told(news: News, at_s: float) -> ChangeTold:
    """Return the event that somebody was told of news."""
    if isinstance(news, ChangeFound):
        return ChangeTold(at_s, news.peer, news.metric, news.since_s)
    return ChangeTold(at_s, news.peer, None, news.cycle_s)


@dataclass(frozen=True, slots=True)
class PeerData:
    """The payload of a peer's tests and probes in a month."""

    peer: str
    bytes: int


@dataclass(frozen=True, slots=True)
class DataUsed:
    """What the tests and probes of a calendar month (UTC, `2026-11`) have cost so far, in order of events.

    It is written before older probes are forgotten.
    """

    at_s: float
    month: str
    peers: tuple[PeerData, ...]


class NoticeTopic(StrEnum):
    """What a notice is about, where a restart has to know it."""

    BUDGET = "budget"
    """A data budget is spent: told once a month."""


@dataclass(frozen=True, slots=True)
class WatchNotice:
    """Something that a person should know: a reload, a notification that could not be sent. `peer` may be None."""

    at_s: float
    text: str
    peer: str | None = None
    topic: NoticeTopic | None = None


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The watch was ended in order."""

    at_s: float


WatchEvent = (
    WatchStarted
    | CheckBegan
    | CheckEnded
    | CheckSkipped
    | ChecksMissed
    | ProbeEnded
    | ChangeFound
    | ChangeTold
    | DataUsed
    | WatchNotice
    | WatchEnded
)
