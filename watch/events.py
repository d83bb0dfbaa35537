"""The events of a watch. Each is one entry of its journal and one line of `--json-stream`. Pure.

Times are seconds since 1970, UTC. A check is a full test, whose run is in the run log. A probe is a few small
requests. A cycle is one due check of a peer with its repetitions: it counts once, by the check that decided it.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from ..engine.model.counters.path_trace import MAX_HOPS
from ..engine.model.directions import Direction
from ..engine.model.ip_address import parse_ip_address
from ..engine.model.serialization import OMITTED_AT_DEFAULT
from ..presets.verdict import LimitName, VerdictCode, rate_word


class Metric(StrEnum):
    """A figure with a watched level. The unit is in the name."""

    GOODPUT_BIT_S = "goodput_bit_s"
    """Counted by the receivers, both directions together; for transactional workloads the transactions a second."""
    LATENCY_S = "latency_s"
    """The median RTT of a probe on the idle link."""
    LOSS = "loss"
    """Lost datagrams as a share of all sent, 0 to 1."""
    RETRANSMITS = "retransmits"
    """Retransmitted segments a gigabyte of goodput."""


class CheckVerdict(StrEnum):
    """The verdict of a test on its peer."""

    GOOD = "good"
    """At its pass mark, or without an expected rate."""
    BELOW = "below"
    """Below its pass mark, or beyond a limit."""
    FAILED = "failed"
    """Without a result."""

    @classmethod
    def of_run(cls, word: str | None) -> "CheckVerdict":
        """Return the verdict for a run that has a result, by the word of the run's own verdict."""
        return cls.BELOW if word in {"short", "fail"} else cls.GOOD


class SkipReason(StrEnum):
    """Why a due test was not carried out."""

    BUDGET = "budget"
    """It would take more data than this month's budget has left."""
    BUSY = "busy"
    """Another test had this interface for the whole period."""
    ENDPOINT = "endpoint"
    """Other tests had the endpoint for the whole period."""


_MAX_ADDRESSES = 64  # of one hop, over many tests


@dataclass(frozen=True, slots=True)
class Route:
    """The hops of one direction, counted from its sender: the addresses of each, of a silent one none."""

    direction: Direction
    hops: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        """Raise ValueError for what no trace has."""
        if self.direction is Direction.DUPLEX or not 0 < len(self.hops) <= MAX_HOPS:
            raise ValueError("the hops of a route")
        for addresses in self.hops:
            if len(addresses) > _MAX_ADDRESSES or any(str(parse_ip_address(each)) != each for each in addresses):
                raise ValueError("the addresses of a hop")


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a test or a probe.

    Args:
        verdict: the verdict.
        bytes: the payload that it cost, both directions.
        figures: the figures that it measured.
        percent: its goodput in percent of the expected rate; None without an expected rate.
        why: the code of its first finding; None without one.
        detail: why it failed, as a sentence; None if it did not.
        run_id: its run in the run log; None for a probe.
        beyond: the limits that it breaks, by their options.
        is_lasting: whether a repetition would fail as well until somebody acts: a key or the plan is wrong.
        routes: the path of each direction, if it was traced and the other end answered.
    """

    verdict: CheckVerdict
    bytes: int = 0
    figures: tuple[tuple[Metric, float], ...] = ()
    percent: float | None = None
    why: str | None = None
    detail: str | None = None
    run_id: str | None = None
    beyond: tuple[LimitName, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    is_lasting: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    routes: tuple[Route, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)

    @property
    def is_judged(self) -> bool:
        """Whether its rate was compared with an expected one; a good result without one is only measured."""
        return self.percent is not None or self.verdict is CheckVerdict.BELOW

    @property
    def word(self) -> VerdictCode:
        """The verdict in the words of runs: `none` without a result, `pass` if no rate was expected."""
        match self.verdict:
            case CheckVerdict.FAILED:
                return "none"
            case CheckVerdict.BELOW if self.beyond:
                return "fail"
            case CheckVerdict.BELOW:
                return "short" if self.percent is None else rate_word(self.percent)
            case CheckVerdict.GOOD:
                return "pass"

    def figure(self, metric: Metric) -> float | None:
        """Return a figure; None if it was not measured."""
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
        cycle_s: when its cycle was due: the cycle's name, the same for its repetitions.
        attempt: 0 for the first test of a cycle, then 1, 2, … for repetitions.
        run_id: the id of the run to come: after a crash the run tells how the test ended.
    """

    at_s: float
    peer: str
    cycle_s: float
    attempt: int
    run_id: str


@dataclass(frozen=True, slots=True)
class CheckEnded:
    """A full test ended.

    `decides` says whether it ends its cycle: a test below its mark that will be repeated does not decide.
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
    """Due tests of a peer that were not carried out before the next one was due.

    The watch did not run, or an earlier test took longer than the period, or other tests had the interface.

    Args:
        at_s: when the later test began.
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
    """A probe of latency ended. It has no run in the run log."""

    at_s: float
    peer: str
    result: CheckResult


@dataclass(frozen=True, slots=True)
class Level:
    """A metric's level over some cycles or probes.

    `low` and `high` bound its median with 95 % confidence; None if there are too few values. `why` is the most
    frequent first finding of its runs.
    """

    median: float
    low: float | None
    high: float | None
    count: int
    why: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeFound:
    """The level of a peer's metric has changed. Each change is reported once.

    Args:
        at_s: when it was found.
        peer: the peer's name.
        metric: the figure that changed.
        since_s: the first cycle or probe of the new level.
        before: the level before it.
        after: the level since.
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
class PathChanged:
    """The tests of a peer take a path that the newest tests before did not. Each change is reported once."""

    at_s: float
    peer: str
    before: Route
    after: Route


class Receiver(StrEnum):
    """A receiver of notifications, by its key in `[notify]`."""

    EXEC = "exec"
    WEBHOOK = "webhook"
    EMAIL = "email"


@dataclass(frozen=True, slots=True)
class ChangeTold:
    """A notification of a change was sent, or given up.

    `since_s` identifies the change of the peer's metric, or of its path in the direction `path`. Without either the
    verdict has changed, with the cycle of that time.

    Args:
        at_s: when.
        peer: the peer's name.
        metric: the figure that changed; None for a path or the verdict.
        since_s: see above.
        path: the direction of a changed path.
        receiver: the one that has it while others do not have it yet; None if all are done with it.
        missed: those that did not take it and are not tried again.
    """

    at_s: float
    peer: str
    metric: Metric | None
    since_s: float
    path: Direction | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    receiver: Receiver | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    missed: tuple[Receiver, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)


News = ChangeFound | PathChanged | CheckEnded
"""The reasons for a notification: a change of level or path, or a test that counts and has another verdict."""


def told(
    news: News, at_s: float, receiver: Receiver | None = None, missed: tuple[Receiver, ...] = ()
) -> ChangeTold:
    """Return the event that a notification of news was sent; `receiver` and `missed` as in `ChangeTold`."""
    match news:
        case ChangeFound():
            event = ChangeTold(at_s, news.peer, news.metric, news.since_s)
        case PathChanged():
            event = ChangeTold(at_s, news.peer, None, news.at_s, news.after.direction)
        case CheckEnded():
            event = ChangeTold(at_s, news.peer, None, news.cycle_s)
    return replace(event, receiver=receiver, missed=missed)


@dataclass(frozen=True, slots=True)
class PeerData:
    """The payload of a peer's tests and probes in a month."""

    peer: str
    bytes: int


@dataclass(frozen=True, slots=True)
class DataUsed:
    """The cost so far of a calendar month's tests and probes (UTC, `2026-11`), in order of events.

    It is written before the journal forgets older probes.
    """

    at_s: float
    month: str
    peers: tuple[PeerData, ...]


class NoticeTopic(StrEnum):
    """The topic of a notice, if a restart has to know it."""

    BUDGET = "budget"
    """A data budget is spent: said once a month."""


@dataclass(frozen=True, slots=True)
class WatchNotice:
    """Something that the user should know: a reload, a notification that could not be sent. `peer` may be None."""

    at_s: float
    text: str
    peer: str | None = None
    topic: NoticeTopic | None = None


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The watch ended in order."""

    at_s: float


WatchEvent = (
    WatchStarted
    | CheckBegan
    | CheckEnded
    | CheckSkipped
    | ChecksMissed
    | ProbeEnded
    | ChangeFound
    | PathChanged
    | ChangeTold
    | DataUsed
    | WatchNotice
    | WatchEnded
)
