"""What is known of a watch, computed from its events: the peers, cycles, budgets, and news to tell. Pure.

`apply` takes in an event that has just happened, or one that is read after a restart: the state is the same.
"""

from dataclasses import dataclass, field, replace

from ....watch.changes.level_watch import LevelWatch
from ....watch.data_budget import LIKE_LAST_TESTS, MonthUse
from ....watch.events import (
    ChangeFound,
    ChangeTold,
    CheckBegan,
    CheckEnded,
    CheckResult,
    CheckSkipped,
    ChecksMissed,
    CheckVerdict,
    DataUsed,
    Metric,
    News,
    ProbeEnded,
    WatchEvent,
    WatchStarted,
    told,
)
from ....watch.peer_status import PeerStatus, advance
from ....watch.watch_plan import WatchPlan


@dataclass(slots=True)
class WatchState:
    """What is known of a watch.

    Args:
        statuses: the status of each peer of the journal or the plan.
        cycles: the newest cycle of each peer that was decided, skipped or missed.
        attempts: the undecided cycle of each peer, and how many of its tests have ended: 0 while the first runs.
        begun: each test that has begun and not ended, by its peer.
        use: the data of this month's tests and probes.
        recent: the last tests of each peer, whether they decided or not.
        untold: news without a notification so far: the newest change of each metric of a peer, and of its verdict.
        told: the verdict that was last told of a peer, and when; GOOD if nobody was told of another.
        unread: the reasons for entries that could not be read.
        peers: the peers of the newest start or reload; None if the journal has forgotten it.
        unpruned_since_s: when the journal was last pruned, or began; None before the first event.
    """

    statuses: dict[str, PeerStatus] = field(default_factory=dict[str, PeerStatus])
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    attempts: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    begun: dict[str, CheckBegan] = field(default_factory=dict[str, CheckBegan])
    use: MonthUse = field(default_factory=MonthUse)
    recent: dict[str, tuple[CheckEnded, ...]] = field(default_factory=dict[str, tuple[CheckEnded, ...]])
    untold: dict[tuple[str, Metric | None], News] = field(default_factory=dict[tuple[str, Metric | None], News])
    told: dict[str, tuple[CheckVerdict, float]] = field(default_factory=dict[str, tuple[CheckVerdict, float]])
    unread: list[str] = field(default_factory=list[str])
    peers: tuple[str, ...] | None = None
    unpruned_since_s: float | None = None
    _levels: dict[tuple[str, Metric], LevelWatch] = field(default_factory=dict[tuple[str, Metric], LevelWatch])

    def add_peers(self, plan: WatchPlan) -> None:
        """Add the peers of a plan that are not known yet."""
        for peer in plan.peers:
            self.statuses.setdefault(peer.name, PeerStatus(peer.name))

    def find_changes(self, event: WatchEvent) -> list[ChangeFound]:
        """Return the changes of level that an event completes. Call it before `apply`, in the order of events."""
        changes = [level.take_value(at_s, value, why) for level, at_s, value, why in self._values_of(event)]
        return [change for change in changes if change is not None]

    def recall(self, event: WatchEvent) -> None:
        """Take in an event from before a restart: its changes follow it in the journal."""
        for level, at_s, value, why in self._values_of(event):
            level.recall(at_s, value, why)
        if isinstance(event, ChangeFound):
            self._level(event.peer, event.metric).follow(event)
        self.apply(event)

    def _values_of(self, event: WatchEvent) -> list[tuple[LevelWatch, float, float, str | None]]:
        """Return each level that an event has a value for, with its time, the value and the run's finding."""
        match event:
            case CheckEnded(decides=True):
                check = event
            case CheckSkipped():  # a skipped repetition: the test before it counts
                last = self.recent.get(event.peer, ())[-1:]
                if not last or last[0].decides or last[0].cycle_s != event.cycle_s:
                    return []
                (check,) = last
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
            self._note_news(event, before.last_check, self.statuses[peer].last_check)
        self.use = self.use.after(event)
        if self.unpruned_since_s is None or isinstance(event, DataUsed):
            self.unpruned_since_s = event.at_s
        match event:
            case CheckBegan():
                self.begun[event.peer] = event
                self.attempts[event.peer] = event.cycle_s, event.attempt
            case CheckEnded():
                self.begun.pop(event.peer, None)
                self.recent[event.peer] = (*self.recent.get(event.peer, ()), event)[-LIKE_LAST_TESTS:]
                self.attempts[event.peer] = event.cycle_s, event.attempt + 1
                if event.decides:
                    self._close(event.peer, event.cycle_s)
            case CheckSkipped(peer=name, cycle_s=last_s) | ChecksMissed(peer=name, until_s=last_s):
                self.begun.pop(name, None)
                self._close(name, last_s)
            case WatchStarted():  # after a reload, tests go on
                self.peers = event.peers
                for name, begun in self.begun.items():
                    self.statuses[name] = replace(self.statuses[name], running_since_s=begun.at_s)
            case _:
                pass

    def _note_news(self, event: WatchEvent, before: CheckEnded | None, after: CheckEnded | None) -> None:
        """Note news that an event brings, and news that is told; `before` and `after` are the tests that count.

        A test is news if its verdict differs from the one before. The first test is news if it is not good.
        """
        verdict = CheckVerdict.GOOD if before is None else before.result.verdict
        if after is not None and after.result.verdict is not verdict:
            self.untold[after.peer, None] = after
        if isinstance(event, ChangeFound):
            self.untold[event.peer, event.metric] = event
        elif isinstance(event, ChangeTold):
            news = self.untold.get((event.peer, event.metric))
            is_newest = news is not None and told(news, event.at_s) == event
            if is_newest:
                del self.untold[event.peer, event.metric]
            if event.metric is None:
                verdict = (
                    news.result.verdict
                    if is_newest and isinstance(news, CheckEnded)
                    else self.told_verdict(event.peer)
                )
                self.told[event.peer] = verdict, event.at_s

    def told_verdict(self, peer: str) -> CheckVerdict:
        """Return the verdict that the receivers of notifications know of a peer."""
        return self.told.get(peer, (CheckVerdict.GOOD, 0.0))[0]

    def lasting_trouble(self, until_s: float) -> list[CheckEnded]:
        """Return the tests that count of peers that are not good, if that was told at `until_s` or earlier."""
        return [
            last
            for peer, (verdict, at_s) in self.told.items()
            if verdict is not CheckVerdict.GOOD and at_s <= until_s and (peer, None) not in self.untold
            if (last := self.statuses[peer].last_check) is not None
        ]

    def set_due(self, peer: str, *, check_s: float | None = None, probe_s: float | None = None) -> None:
        """Note when the next test or probe of a peer is due."""
        status = self.statuses[peer]
        self.statuses[peer] = replace(
            status,
            next_check_s=status.next_check_s if check_s is None else check_s,
            next_probe_s=status.next_probe_s if probe_s is None else probe_s,
        )

    def next_attempt(self, peer: str, cycle_s: float) -> int:
        """Return how many tests of a cycle have ended: a restart goes on with the next one."""
        pending = self.attempts.get(peer)
        return pending[1] if pending is not None and pending[0] == cycle_s else 0

    def unfinished_cycle(self, peer: str, since_s: float) -> float | None:
        """Return a cycle that has begun and was not decided: a restart goes on with it, even if later ones are due.

        None if there is none, or if it is older than `since_s`.
        """
        pending = self.attempts.get(peer)
        return None if pending is None or pending[0] < since_s else pending[0]

    def _close(self, peer: str, cycle_s: float) -> None:
        self.cycles[peer] = cycle_s
        self.attempts.pop(peer, None)

    def _is_test_of_loss(self, peer: str) -> bool:
        status = self.statuses.get(peer)
        last = None if status is None else status.last_check
        return last is not None and last.result.figure(Metric.LOSS) is not None


def decides_cycle(result: CheckResult, attempt: int, retests: int) -> bool:
    """Return whether a test ends its cycle: it is good, or the last repetition."""
    return result.verdict is CheckVerdict.GOOD or attempt >= retests
