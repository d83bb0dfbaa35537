"""Events of a watch, at least one of each kind."""

from linkgauge.engine.model.directions import Direction
from linkgauge.watch.events import (
    ChangeFound,
    ChangeTold,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Level,
    Metric,
    NoticeTopic,
    PathChanged,
    PeerData,
    ProbeEnded,
    Receiver,
    Route,
    SkipReason,
    WatchEnded,
    WatchEvent,
    WatchNotice,
    WatchStarted,
)

NOON_S = 1_763_812_800.0  # 2025-11-22 12:00 UTC


def ended(
    verdict: CheckVerdict = CheckVerdict.GOOD,
    *,
    at_s: float = NOON_S,
    peer: str = "db-1",
    attempt: int = 0,
    bytes_: int = 1_000,
    decides: bool = True,
    rate: float = 9.4e8,
) -> CheckEnded:
    """Return the end of a test."""
    figures = () if verdict is CheckVerdict.FAILED else ((Metric.GOODPUT_BIT_S, rate), (Metric.RETRANSMITS, 2.5))
    detail = "nothing accepts the connection" if verdict is CheckVerdict.FAILED else None
    result = CheckResult(verdict, bytes_, figures, rate / 1e7, "window-too-small", detail, "20251122-120000-abcd")
    return CheckEnded(at_s, peer, at_s, attempt, result, decides)


def probed(at_s: float = NOON_S, peer: str = "db-1", bytes_: int = 100) -> ProbeEnded:
    """Return the end of a probe."""
    return ProbeEnded(at_s, peer, CheckResult(CheckVerdict.GOOD, bytes_, ((Metric.LATENCY_S, 0.000_2),)))


def changed(at_s: float = NOON_S, peer: str = "db-1") -> ChangeFound:
    """Return a level shift."""
    before, after = Level(9.4e8, 9.3e8, 9.5e8, 30), Level(5.6e8, None, None, 5, "link-speed")
    return ChangeFound(at_s, peer, Metric.GOODPUT_BIT_S, at_s - 60, before, after, is_worse=True)


def rerouted(at_s: float = NOON_S, peer: str = "db-1") -> PathChanged:
    """Return a changed path: its second hop, behind a silent one, is another router."""
    before, after = (((), (router,), ("192.0.2.9",)) for router in ("192.0.2.1", "192.0.2.2"))
    return PathChanged(at_s, peer, Route(Direction.OUT, before), Route(Direction.OUT, after))


EVERY_KIND: tuple[WatchEvent, ...] = (
    WatchStarted(NOON_S, ("db-1", "db-2")),
    CheckBegan(NOON_S, "db-1", NOON_S - 0.25, 0, "20251122-120000-abcd"),
    ended(),
    ended(CheckVerdict.FAILED, attempt=1),
    CheckSkipped(NOON_S, "db-1", NOON_S, SkipReason.BUDGET),
    ChecksMissed(NOON_S, "db-1", NOON_S - 7_200, NOON_S - 3_600, 2),
    probed(),
    changed(),
    rerouted(),
    ChangeTold(NOON_S, "db-1", Metric.GOODPUT_BIT_S, NOON_S - 60),
    ChangeTold(NOON_S, "db-1", None, NOON_S - 60, Direction.IN),
    ChangeTold(NOON_S, "db-1", None, NOON_S - 60),
    ChangeTold(NOON_S, "db-1", None, NOON_S - 60, receiver=Receiver.EXEC),
    ChangeTold(NOON_S, "db-1", None, NOON_S - 60, missed=(Receiver.WEBHOOK, Receiver.EMAIL)),
    DataUsed(NOON_S, "2025-11", (PeerData("db-1", 12_000), PeerData("db-2", 0))),
    WatchNotice(NOON_S, "the file was read again"),
    WatchNotice(NOON_S, "data budget of db-1", "db-1", NoticeTopic.BUDGET),
    WatchNotice(NOON_S, "its webhook does not answer", "db-1"),
    WatchEnded(NOON_S),
)
