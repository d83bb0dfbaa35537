"""When to tell of news: what is untold, what is on its way, what quiet hours hold back, what is repeated. Pure.

News is a change of level or of the path, or a test that counts and has another verdict than the one before it. Each
is told once. It is untold until the journal has `ChangeTold` of it, so that a restart tells what the watch could
not tell before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..engine.model.directions import Direction
from ..engine.model.plan import SECOND_NS
from .events import ChangeFound, ChangeTold, CheckEnded, CheckVerdict, Metric, News, PathChanged, WatchEvent, told
from .watch_plan import Notify

_STILL_NEWS_S: Final = 86_400.0  # for news that was not told before a restart
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

    def take_in(self, event: WatchEvent, before: CheckEnded | None, after: CheckEnded | None) -> None:
        """Take in the next event; `before` and `after` are the tests that count for its peer.

        The first test is news if it is not good.
        """
        verdict = CheckVerdict.GOOD if before is None else before.result.verdict
        if after is not None and after.result.verdict is not verdict:
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
            if is_known and key not in self._sent:
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

    def told_verdict(self, peer: str) -> CheckVerdict:
        """Return the verdict that the receivers of notifications know of a peer."""
        return self.told.get(peer, (CheckVerdict.GOOD, 0.0))[0]

    def _note_told(self, event: ChangeTold) -> None:
        key, verdict = (event.peer, event.metric or event.path), self.told_verdict(event.peer)
        news, sent = self.untold.get(key), self._sent.get(key)
        if news is not None and told(news, event.at_s) == event:
            del self.untold[key]
            verdict = news.result.verdict if isinstance(news, CheckEnded) else verdict
        if sent is not None and told(sent, event.at_s) == event:
            del self._sent[key]
        if event.metric is None and event.path is None:
            self.told[event.peer] = verdict, event.at_s

    def _lasting_trouble(self, last: Mapping[str, CheckEnded | None], until_s: float) -> list[CheckEnded]:
        """Return the tests that count of peers that are not good, if that was told at `until_s` or earlier."""
        return [
            counts
            for peer, (verdict, at_s) in self.told.items()
            if verdict is not CheckVerdict.GOOD and at_s <= until_s
            if (peer, None) not in self.untold and (peer, None) not in self._sent
            if (counts := last.get(peer)) is not None
        ]
