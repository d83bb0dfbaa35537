"""When to tell of news: what is untold, what is on its way, what quiet hours hold back, what is repeated. Pure.

News is a change of level or of the path, or a test that counts and has another verdict than the one before it. Each
is told once. It is untold until the journal has `ChangeTold` of it, so that a restart tells what the watch could
not tell before, and those receivers alone that do not have it.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ..engine.model.directions import Direction
from ..engine.model.plan import SECOND_NS
from .events import (
    ChangeFound,
    ChangeTold,
    CheckEnded,
    CheckVerdict,
    Metric,
    News,
    PathChanged,
    Receiver,
    WatchEvent,
    told,
)
from .watch_plan import Notify

_STILL_NEWS_S: Final = 86_400.0  # for news that was not told before a restart
_MOST_OLDER: Final = 50
_Key = tuple[str, Metric | Direction | None]


@dataclass(frozen=True, slots=True)
class DueNews:
    """What to do now: `send` these to the receivers, and note of those in `known` that they are told already."""

    send: tuple[News, ...] = ()
    known: tuple[News, ...] = ()


@dataclass(slots=True)
class NewsToTell:
    """The news of a watch that the receivers of notifications do not know yet, and what they know.

    Args:
        untold: the newest change of each metric of a peer, of its paths and its verdict, that is not told so far.
        told: the verdict that was last told of a peer, and when; GOOD if nobody was told of another.
    """

    untold: dict[_Key, News] = field(default_factory=dict[_Key, News])
    told: dict[str, tuple[CheckVerdict, float]] = field(default_factory=dict[str, tuple[CheckVerdict, float]])
    _sent: dict[_Key, News] = field(default_factory=dict[_Key, News])  # or being sent
    # Verdicts of a peer that may be on their way although a newer one waits: a receiver may learn them yet.
    _older: dict[str, deque[CheckEnded]] = field(default_factory=dict[str, deque[CheckEnded]])
    # News that some receivers have and others do not. Newer news of the same key is told to all.
    _partly: dict[_Key, tuple[ChangeTold, frozenset[Receiver]]] = field(
        default_factory=dict[_Key, tuple[ChangeTold, frozenset[Receiver]]]
    )

    def take_in(self, event: WatchEvent, before: CheckEnded | None, after: CheckEnded | None) -> None:
        """Take in the next event; `before` and `after` are the tests that count for its peer.

        The first test is news if it is not good.
        """
        verdict = CheckVerdict.GOOD if before is None else before.result.verdict
        if after is not None and after.result.verdict is not verdict:
            older = self.untold.get((after.peer, None))
            if isinstance(older, CheckEnded):
                self._older.setdefault(after.peer, deque(maxlen=_MOST_OLDER)).append(older)
            self.untold[after.peer, None] = after
        if isinstance(event, ChangeFound):
            self.untold[event.peer, event.metric] = event
        elif isinstance(event, PathChanged):
            self.untold[event.peer, event.after.direction] = event
        elif isinstance(event, ChangeTold):
            self._note_told(event)

    def take_due(self, notify: Notify, last: Mapping[str, CheckEnded | None], now_s: float, room: int) -> DueNews:
        """Return the news that is due now, and note that it is on its way.

        After a restart only news of the last day is sent. Quiet hours hold it back. A verdict that the receivers
        know already by then is not sent. Trouble that lasts is repeated if the plan has a time for that.

        Args:
            notify: the receivers, quiet hours and repetitions.
            last: the test that counts of each watched peer: the trouble of others is not repeated.
            now_s: the present time.
            room: how many can be sent now. The others stay due.
        """
        if not notify.has_receiver or notify.is_quiet(now_s):
            return DueNews()
        send: list[News] = []
        known: list[News] = []
        for key, news in self.untold.items():
            if self._sent.get(key) is news or len(send) >= room:
                continue
            is_known = isinstance(news, CheckEnded) and news.result.verdict is self.told_verdict(news.peer)
            if is_known and key not in self._sent and key not in self._partly:
                known.append(news)
            elif news.at_s > now_s - _STILL_NEWS_S:
                send.append(news)
            self._sent[key] = news
        if notify.repeat_ns is not None:
            lasting = self._lasting_trouble(last, now_s - notify.repeat_ns / SECOND_NS)
            for each in lasting[: room - len(send)]:
                self._sent[each.peer, None] = each
                send.append(each)
        return DueNews(tuple(send), tuple(known))

    def who_has(self, news: News) -> frozenset[Receiver]:
        """Return the receivers that have news already, since the watch ended before all of them had it."""
        return self._receivers_of(told(news, 0.0))

    def told_verdict(self, peer: str) -> CheckVerdict:
        """Return the verdict that the receivers of notifications know of a peer."""
        return self.told.get(peer, (CheckVerdict.GOOD, 0.0))[0]

    def _receivers_of(self, change: ChangeTold) -> frozenset[Receiver]:
        known, receivers = self._partly.get(_key(change), (None, frozenset[Receiver]()))
        return receivers if known == change else frozenset()

    def _note_told(self, event: ChangeTold) -> None:
        key, verdict = _key(event), self.told_verdict(event.peer)
        change = replace(event, at_s=0.0, receiver=None, missed=())
        if event.receiver is not None:
            self._partly[key] = change, self._receivers_of(change) | {event.receiver}
            return
        if self._receivers_of(change):
            del self._partly[key]
        news, sent = self.untold.get(key), self._sent.get(key)
        if event.metric is None and event.path is None:
            for each in (*self._older.get(event.peer, ()), news):
                if isinstance(each, CheckEnded) and told(each, 0.0) == change:
                    verdict = each.result.verdict
            self.told[event.peer] = verdict, event.at_s
        if news is not None and told(news, 0.0) == change:
            del self.untold[key]
            if isinstance(news, CheckEnded):
                self._older.pop(event.peer, None)
        if sent is not None and told(sent, 0.0) == change:
            del self._sent[key]

    def _lasting_trouble(self, last: Mapping[str, CheckEnded | None], until_s: float) -> list[CheckEnded]:
        """Return the tests that count of peers that are not good, if that was told at `until_s` or earlier."""
        return [
            counts
            for peer, (verdict, at_s) in self.told.items()
            if verdict is not CheckVerdict.GOOD and at_s <= until_s
            if (peer, None) not in self.untold and (peer, None) not in self._sent
            if (counts := last.get(peer)) is not None
        ]


def _key(event: ChangeTold) -> _Key:
    return event.peer, event.metric or event.path
