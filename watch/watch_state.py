"""The state of a watch and of each of its peers, computed from the events of the journal. Pure.

The session, the metrics and the screen share it. `WatchState.apply` takes in an event that has just happened, or
one that is read after a restart: the state is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from ..engine.model.directions import Direction
from .changes.level_watch import LevelWatch
from .changes.path_watch import PathWatch
from .data_budget import LIKE_LAST_TESTS, MonthUse
from .events import (
    ChangeFound,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Metric,
    PathChanged,
    ProbeEnded,
    WatchEnded,
    WatchEvent,
    WatchStarted,
)
from .news_to_tell import NewsToTell
from .watch_plan import WatchPlan

MAX_CHANGES: Final = 100
MAX_OF_A_DAY: Final = 2_880
"""If a day has more than twice this many tests or probes, one each half minute is kept."""
_DAY_S: Final = 86_400.0
_STEP_S: Final = _DAY_S / MAX_OF_A_DAY
_OfDay = TypeVar("_OfDay", CheckEnded, ProbeEnded)


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """The state of a peer: one value, since a test, a probe or a change moves several figures at once.

    Args:
        name: the peer's name.
        last_check: the newest test that decided its cycle; None before the first.
        last_attempt: the newest test, whether it decided its cycle or not.
        last_probe: the newest probe.
        last_skip: the newest skipped test; None if a test has ended since.
        recent: the last tests, whether they decided or not.
        begun: the test that has begun and has not ended, as far as the journal tells.
        undecided: the cycle without a decision, and how many of its tests have ended: 0 while the first runs.
        cycle_s: the newest cycle that was decided, skipped or missed.
        running_since_s: when the running test began; None between tests.
        next_check_s: when the next test is due; None until it is known.
        next_probe_s: when the next probe is due; None without probes.
        checks: the tests that have ended since the watch's first start, by verdict: good, below, failed.
        missed: due tests that were not carried out before the next one was due.
        retests: how many of the ended tests were repetitions.
        flaps: cycles whose first test was below its mark and whose repetition was not.
        changes: the newest MAX_CHANGES changes, the oldest first.
        change_counts: the number of changes by metric, and by whether they were for the worse.
        path_changes: the newest change of the path in each direction, with the number of such changes.
        day: the tests of the last 24 hours that decided, the oldest first; of very many, one each half minute.
        probes: the probes of the last 24 hours, likewise.
    """

    name: str
    last_check: CheckEnded | None = None
    last_attempt: CheckEnded | None = None
    last_probe: ProbeEnded | None = None
    last_skip: CheckSkipped | None = None
    recent: tuple[CheckEnded, ...] = ()
    begun: CheckBegan | None = None
    undecided: tuple[float, int] | None = None
    cycle_s: float | None = None
    running_since_s: float | None = None
    next_check_s: float | None = None
    next_probe_s: float | None = None
    checks: tuple[int, int, int] = (0, 0, 0)
    missed: int = 0
    retests: int = 0
    flaps: int = 0
    changes: tuple[ChangeFound, ...] = field(default=())
    change_counts: Mapping[tuple[Metric, bool], int] = field(default_factory=dict[tuple[Metric, bool], int])
    path_changes: Mapping[Direction, tuple[PathChanged, int]] = field(
        default_factory=dict[Direction, tuple[PathChanged, int]]
    )
    day: tuple[CheckEnded, ...] = field(default=())
    probes: tuple[ProbeEnded, ...] = field(default=())

    @property
    def newest_result(self) -> CheckResult | None:
        """The result of the newest test or probe; None before the first."""
        known = [event for event in (self.last_attempt, self.last_probe) if event is not None]
        newest = max(known, key=lambda event: event.at_s, default=None)
        return None if newest is None else newest.result

    def next_attempt(self, cycle_s: float) -> int:
        """Return how many tests of a cycle have ended: a restart goes on with the next one."""
        return self.undecided[1] if self.undecided is not None and self.undecided[0] == cycle_s else 0

    def unfinished_cycle(self, since_s: float) -> float | None:
        """Return the undecided cycle; None if it is older than `since_s`.

        A restart goes on with it, even if later ones are due.
        """
        return None if self.undecided is None or self.undecided[0] < since_s else self.undecided[0]


def advance(status: PeerStatus, event: WatchEvent) -> PeerStatus:
    """Return the status of a peer after an event; the same status after an event of another peer.

    The events do not say when the next test and probe are due: the caller sets these times.
    """
    match event:
        case WatchStarted() | WatchEnded():
            # After a reload, tests go on. A restart has forgotten what had begun.
            begun = status.begun if isinstance(event, WatchStarted) else None
            since_s = None if begun is None else begun.at_s
            status = replace(status, running_since_s=since_s, next_check_s=None, next_probe_s=None)
        case CheckBegan(peer=status.name):
            undecided = event.cycle_s, event.attempt
            status = replace(status, running_since_s=event.at_s, begun=event, undecided=undecided)
        case CheckEnded(peer=status.name):
            status = _after_check(status, event)
        case CheckSkipped(peer=status.name):
            status = _after_skip(status, event)
        case ChecksMissed(peer=status.name):
            status = replace(_closed(status, event.until_s), missed=status.missed + event.count)
        case ProbeEnded(peer=status.name):
            probes = _of_last_day(status.probes, event)
            status = replace(status, last_probe=event, probes=probes)
        case ChangeFound(peer=status.name):
            kind = event.metric, event.is_worse
            counts = {**status.change_counts, kind: status.change_counts.get(kind, 0) + 1}
            status = replace(status, changes=(*status.changes, event)[-MAX_CHANGES:], change_counts=counts)
        case PathChanged(peer=status.name):
            direction = event.after.direction
            count = status.path_changes[direction][1] if direction in status.path_changes else 0
            status = replace(status, path_changes={**status.path_changes, direction: (event, count + 1)})
        case _:
            pass
    return status


def _after_check(status: PeerStatus, event: CheckEnded) -> PeerStatus:
    verdict = event.result.verdict
    counts = zip(CheckVerdict, status.checks, strict=True)
    good, below, failed = (count + (verdict is each) for each, count in counts)
    status = replace(
        status,
        running_since_s=None,
        last_attempt=event,
        last_skip=None,
        recent=(*status.recent, event)[-LIKE_LAST_TESTS:],
        begun=None,
        undecided=(event.cycle_s, event.attempt + 1),
        checks=(good, below, failed),
        retests=status.retests + (event.attempt > 0),
    )
    return _decided(_closed(status, event.cycle_s), event) if event.decides else status


def _closed(status: PeerStatus, cycle_s: float) -> PeerStatus:
    """Return the status after a cycle that was decided, skipped or missed."""
    return replace(status, begun=None, running_since_s=None, undecided=None, cycle_s=cycle_s)


def _after_skip(status: PeerStatus, event: CheckSkipped) -> PeerStatus:
    """Return the status after a skipped test: if it was a repetition, the test before it counts."""
    last = _undecided_check(status, event.cycle_s)
    status = replace(_closed(status, event.cycle_s), last_skip=event)
    return status if last is None else _decided(status, replace(last, decides=True))


def _undecided_check(status: PeerStatus | None, cycle_s: float) -> CheckEnded | None:
    """Return the newest test if it is of this cycle and has not decided it."""
    last = None if status is None else status.last_attempt
    return None if last is None or last.decides or last.cycle_s != cycle_s else last


def _decided(status: PeerStatus, event: CheckEnded) -> PeerStatus:
    # Only a test that was not good is repeated.
    has_flapped = event.attempt > 0 and event.result.verdict is CheckVerdict.GOOD
    day = _of_last_day(status.day, event)
    return replace(status, last_check=event, flaps=status.flaps + has_flapped, day=day)


def _of_last_day(items: tuple[_OfDay, ...], newest: _OfDay) -> tuple[_OfDay, ...]:
    """Return the items of the 24 hours up to the newest one, including it.

    Items in the future, from a clock that was ahead, go as well.
    """
    first = 0
    while first < len(items) and not newest.at_s - _DAY_S <= items[first].at_s <= newest.at_s + _DAY_S:
        first += 1
    kept = (*items[first:], newest)
    if len(kept) <= 2 * MAX_OF_A_DAY:
        return kept
    steps = {int(item.at_s // _STEP_S): item for item in kept}  # the newest of each
    return tuple(steps.values())


@dataclass(slots=True)
class WatchState:
    """What is known of a watch.

    Args:
        statuses: the status of each peer of the journal or the plan.
        use: the data of this month's tests and probes.
        news: the news that the receivers of notifications do not know yet.
        unread: the reasons for entries that could not be read.
        peers: the peers of the newest start or reload; None if the journal has forgotten it.
        unpruned_since_s: when the journal was last pruned, or began; None before the first event.
    """

    statuses: dict[str, PeerStatus] = field(default_factory=dict[str, PeerStatus])
    use: MonthUse = field(default_factory=MonthUse)
    news: NewsToTell = field(default_factory=NewsToTell)
    unread: list[str] = field(default_factory=list[str])
    peers: tuple[str, ...] | None = None
    unpruned_since_s: float | None = None
    _levels: dict[tuple[str, Metric], LevelWatch] = field(default_factory=dict[tuple[str, Metric], LevelWatch])
    _paths: dict[tuple[str, Direction], PathWatch] = field(default_factory=dict[tuple[str, Direction], PathWatch])

    def add_peers(self, plan: WatchPlan) -> None:
        """Add the peers of a plan that are not known yet."""
        for peer in plan.peers:
            self.statuses.setdefault(peer.name, PeerStatus(peer.name))

    def find_changes(self, event: WatchEvent) -> list[ChangeFound | PathChanged]:
        """Return the changes that an event completes. Call it before `apply`, in the order of events."""
        levels = [level.take_value(at_s, value, why) for level, at_s, value, why in self._values_of(event)]
        return [change for change in (*levels, *self._take_routes(event)) if change is not None]

    def _take_routes(self, event: WatchEvent) -> list[PathChanged | None]:
        """Take in the traced paths of a test, also of one that is repeated; return the change of each."""
        if not isinstance(event, CheckEnded):
            return []
        peer = event.peer
        return [
            self._paths.setdefault((peer, route.direction), PathWatch(peer)).take_route(event.at_s, route)
            for route in event.result.routes
        ]

    def recall(self, event: WatchEvent) -> None:
        """Take in an event from before a restart: its changes follow it in the journal."""
        for level, at_s, value, why in self._values_of(event):
            level.recall(at_s, value, why)
        self._take_routes(event)
        if isinstance(event, ChangeFound):
            self._level(event.peer, event.metric).follow(event)
        self.apply(event)

    def _values_of(self, event: WatchEvent) -> list[tuple[LevelWatch, float, float, str | None]]:
        """Return each level that an event has a value for, with its time, the value and the run's finding."""
        match event:
            case CheckEnded(decides=True):
                check = event
            case CheckSkipped():  # a skipped repetition: the test before it counts
                check = _undecided_check(self.statuses.get(event.peer), event.cycle_s)
                if check is None:
                    return []
            case ProbeEnded(at_s, peer, result):
                # Probes tell the loss of a peer unless its tests do: a test with datagrams is the better measure.
                has_own = (peer, Metric.LOSS) in self._levels and self._is_test_of_loss(peer)
                return [
                    (self._level(peer, metric), at_s, value, result.why)
                    for metric, value in result.figures
                    if not (has_own and metric is Metric.LOSS)
                ]
            case _:
                return []
        if check.result.verdict is CheckVerdict.FAILED:
            return []
        return [
            (self._level(check.peer, metric), check.cycle_s, value, check.result.why)
            for metric, value in check.result.figures
        ]

    def _level(self, peer: str, metric: Metric) -> LevelWatch:
        return self._levels.setdefault((peer, metric), LevelWatch(peer, metric))

    def has_peer(self, name: str) -> bool:
        """Return whether a peer was in the watch at its last start, as far as the journal tells."""
        return self.peers is None or name in self.peers

    def apply(self, event: WatchEvent) -> None:
        """Take an event in."""
        peer = getattr(event, "peer", None)
        if peer is None:
            self.statuses = {name: advance(status, event) for name, status in self.statuses.items()}
        else:
            before = self.statuses.get(peer) or PeerStatus(peer)
            self.statuses[peer] = advance(before, event)
            self.news.take_in(event, before.last_check, self.statuses[peer].last_check)
        self.use = self.use.after(event)
        if self.unpruned_since_s is None or isinstance(event, DataUsed):
            self.unpruned_since_s = event.at_s
        if isinstance(event, WatchStarted):
            self.peers = event.peers

    def take_begun(self) -> list[CheckBegan]:
        """Return the tests that have begun and have not ended, and forget them: a restart has cut them off."""
        begun = [status.begun for status in self.statuses.values() if status.begun is not None]
        self.statuses = {name: replace(status, begun=None) for name, status in self.statuses.items()}
        return begun

    def set_due(self, peer: str, *, check_s: float | None = None, probe_s: float | None = None) -> None:
        """Note when the next test or probe of a peer is due."""
        status = self.statuses[peer]
        self.statuses[peer] = replace(
            status,
            next_check_s=status.next_check_s if check_s is None else check_s,
            next_probe_s=status.next_probe_s if probe_s is None else probe_s,
        )

    def _is_test_of_loss(self, peer: str) -> bool:
        status = self.statuses.get(peer)
        last = None if status is None else status.last_check
        return last is not None and last.result.figure(Metric.LOSS) is not None


def decides_cycle(result: CheckResult, attempt: int, retests: int) -> bool:
    """Return whether a test ends its cycle: it is good, the last repetition, or a repetition would not help."""
    return result.verdict is CheckVerdict.GOOD or result.is_lasting or attempt >= retests
