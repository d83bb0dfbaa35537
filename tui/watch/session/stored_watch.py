"""The stored state of a watch, read from its journal: it goes on after a restart as if it had not stopped.

An event is in the journal before anyone is told of it. A test has two entries, its beginning and its end. Where the
end is missing, the program was killed in between: if the run log has the run with a regular end, the test counts,
else it never was, and its cycle is due again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ....engine.model.errors import RunLogError, UnknownRun
from ....engine.model.plan import SECOND_NS
from ....engine.results.run_log import RunLog
from ....engine.results.run_log.journal import Journal
from ....engine.results.run_result import RunResult
from ....watch.changes.level_watch import LevelWatch
from ....watch.data_budget import LIKE_LAST_TESTS, MonthUse
from ....watch.event_codec import UnreadEntry, event_text, keep_until_s, read_events
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
from ...session.stored_run import load_stored_run
from .peer_check import result_of_run


@dataclass(slots=True)
class WatchState:
    """What is known of a watch. `apply` takes an event in, whether it has just happened or is read.

    Args:
        statuses: each peer that the journal knows or the plan has.
        cycles: the newest cycle of each peer that was decided, left out or missed.
        attempts: the undecided cycle of each peer, and how many of its tests have ended: none while the first runs.
        begun: each test that has begun and not ended, by its peer.
        use: what this month's tests and probes have cost.
        recent: the last tests of each peer, whether they decided or not.
        untold: what nobody was told of yet: the newest change of each metric of a peer, and of its verdict.
        unread: why entries were left out.
        peers: those of the newest start, or reload; None where the journal has forgotten it.
        unpruned_since_s: when the journal was last pruned, or began; None before the first event.
    """

    statuses: dict[str, PeerStatus] = field(default_factory=dict[str, PeerStatus])
    cycles: dict[str, float] = field(default_factory=dict[str, float])
    attempts: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])
    begun: dict[str, CheckBegan] = field(default_factory=dict[str, CheckBegan])
    use: MonthUse = field(default_factory=MonthUse)
    recent: dict[str, tuple[CheckEnded, ...]] = field(default_factory=dict[str, tuple[CheckEnded, ...]])
    untold: dict[tuple[str, Metric | None], News] = field(default_factory=dict[tuple[str, Metric | None], News])
    unread: list[str] = field(default_factory=list[str])
    peers: tuple[str, ...] | None = None
    unpruned_since_s: float | None = None
    _levels: dict[tuple[str, Metric], LevelWatch] = field(default_factory=dict[tuple[str, Metric], LevelWatch])

    def add_peers(self, plan: WatchPlan) -> None:
        """Know the peers of a plan."""
        for peer in plan.peers:
            self.statuses.setdefault(peer.name, PeerStatus(peer.name))

    def find_changes(self, event: WatchEvent) -> list[ChangeFound]:
        """Return the changes of level that an event completes. Call it before `apply`, in the order of events."""
        changes = [level.add(at_s, value, why) for level, at_s, value, why in self._values_of(event)]
        return [change for change in changes if change is not None]

    def recall(self, event: WatchEvent) -> None:
        """Take an event of before a restart in: its changes follow it in the journal."""
        for level, at_s, value, why in self._values_of(event):
            level.recall(at_s, value, why)
        if isinstance(event, ChangeFound):
            self._level(event.peer, event.metric).follow(event)
        self.apply(event)

    def _values_of(self, event: WatchEvent) -> list[tuple[LevelWatch, float, float, str | None]]:
        """Return the levels that an event has values of, with these: their time, the value, the run's finding."""
        match event:
            case CheckEnded(decides=True):
                check = event
            case CheckSkipped():  # of a repetition: the test before it counts
                last = self.recent.get(event.peer, ())[-1:]
                if not last or last[0].decides or last[0].cycle_s != event.cycle_s:
                    return []
                (check,) = last
            case ProbeEnded(at_s, peer, result):
                # Probes tell the loss of peers whose tests have none. A test of datagrams is the better measure.
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
        """Return whether a peer was in the watch when that last began, as far as the journal tells."""
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
        """Note what is news after an event, or is not any more; `before` and `after` are the tests that count.

        A test is news if its verdict is another than that of the one before. The first one is if it is not good.
        """
        verdict = CheckVerdict.GOOD if before is None else before.result.verdict
        if after is not None and after.result.verdict is not verdict:
            self.untold[after.peer, None] = after
        if isinstance(event, ChangeFound):
            self.untold[event.peer, event.metric] = event
        elif isinstance(event, ChangeTold):
            news = self.untold.get((event.peer, event.metric))
            if news is not None and told(news, event.at_s) == event:
                del self.untold[event.peer, event.metric]

    def set_due(self, peer: str, *, check_s: float | None = None, probe_s: float | None = None) -> None:
        """Note when the next test or probe of a peer is due."""
        status = self.statuses[peer]
        self.statuses[peer] = replace(
            status,
            next_check_s=status.next_check_s if check_s is None else check_s,
            next_probe_s=status.next_probe_s if probe_s is None else probe_s,
        )

    def next_attempt(self, peer: str, cycle_s: float) -> int:
        """Return how many tests of a cycle have ended: after a restart it goes on with the next."""
        pending = self.attempts.get(peer)
        return pending[1] if pending is not None and pending[0] == cycle_s else 0

    def unfinished_cycle(self, peer: str, since_s: float) -> float | None:
        """Return a cycle that has begun and was not decided: a restart goes on with it, however many are due since.

        None without one, and where it is older than `since_s`.
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


class StoredWatch:
    """The journal of a watch. Every method waits for the disk, and raises RunLogError."""

    def __init__(self, log: RunLog, name: str) -> None:
        self._log = log
        self._journal = Journal(log.path, name)

    def read(self, plan: WatchPlan) -> WatchState:
        """Return the state after all entries; those that cannot be read are left out, with their reasons."""
        state = WatchState()
        for item in read_events(self._journal.entries()):
            if isinstance(item, UnreadEntry):
                state.unread.append(item.reason)
                continue
            state.recall(item)
        state.add_peers(plan)
        return state

    def read_after(self, number: int) -> tuple[list[WatchEvent], int]:
        """Return the events after that of a number, and the number of the last one; damaged ones are left out."""
        entries = list(self._journal.entries(number))
        events = [event for event in read_events(entries) if not isinstance(event, UnreadEntry)]
        return events, entries[-1].number if entries else number

    def append(self, events: Sequence[WatchEvent], plan: WatchPlan) -> None:
        """Append events of a watch by this plan, all of them or none; they are on the disk then."""
        self._journal.append_all(
            [(event_text(event), keep_until_s(event, _probe_every_s(event, plan))) for event in events]
        )

    def prune(self, now_s: float) -> None:
        """Forget what is not worth keeping any more."""
        self._journal.prune(now_s)

    def find_result(self, run_id: str) -> CheckResult | None:
        """Return the result of a run that has ended regularly; None for any other."""
        try:
            record = self._log.find(run_id)
        except UnknownRun:
            return None
        if record.run_id != run_id or record.reason is None or not record.reason.is_regular:
            return None
        if record.document is not None:
            return result_of_run(RunResult.of(record.document), run_id)
        try:  # the end of a run is written before its document: a kill can come in between
            return result_of_run(load_stored_run(self._log, record).outcome.result, run_id)
        except RunLogError:  # its entries are damaged: the test is made again
            return None

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()


def _probe_every_s(event: WatchEvent, plan: WatchPlan) -> float | None:
    watched = plan.find(event.peer) if isinstance(event, ProbeEnded) else None
    every_ns = None if watched is None else watched.timing.probe_every_ns
    return None if every_ns is None else every_ns / SECOND_NS


def adopted_ends(
    begun: Iterable[CheckBegan], stored: StoredWatch, plan: WatchPlan, now_s: float
) -> list[CheckEnded]:
    """Return the ends of tests that were cut off after their run had ended. Raises RunLogError."""
    ends: list[CheckEnded] = []
    for each in begun:
        result = stored.find_result(each.run_id)
        if result is None:
            continue
        watched = plan.find(each.peer)
        retests = 0 if watched is None else watched.timing.retests
        decides = decides_cycle(result, each.attempt, retests)
        ends.append(CheckEnded(now_s, each.peer, each.cycle_s, each.attempt, result, decides))
    return ends


def decides_cycle(result: CheckResult, attempt: int, retests: int) -> bool:
    """Return whether a test ends its cycle: it is good, or the last repetition."""
    return result.verdict is CheckVerdict.GOOD or attempt >= retests
