"""The datagrams that were sent behind the last one that arrived: their receivers cannot know them. Pure."""

from ...model.directions import Direction, End, sender_of
from ...model.events import Opened, Sampled
from ...model.workload import Workload


class TailLosses:
    """The datagrams of each session behind the last one that arrived, by the whole run's counts of both ends.

    The warm-up counts too: a number that arrives counts for all datagrams before it. The tails are known once both
    ends have drained. A session that is opened again begins anew: datagrams on their way at its end are not lost.
    If it is opened again at once, one sample has datagrams of both, and its tail stays unknown.
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[End, Direction, int], int] = {}
        self._moving: set[tuple[End, Direction, int]] = set()
        self._opened: set[tuple[End, Direction, int]] = set()
        self._unclear: set[tuple[Direction, int]] = set()
        self._drained: set[End] = set()

    def open_session(self, event: Opened) -> None:
        """Begin the counts of a session anew if it was open before."""
        facts = event.facts
        key = facts.end, facts.direction, facts.session
        if key not in self._opened:
            self._opened.add(key)
        elif key in self._moving:
            self._unclear.add(key[1:])
        else:
            self._counts[key] = 0

    def add_event(self, event: Sampled) -> None:
        """Add any sample of the run, in order."""
        sample = event.sample
        if sample.is_drain:
            self._drained.add(sample.end)
        for counts in sample.datagrams:
            value = counts.advanced if counts.sent is None else counts.sent
            if value is None:
                continue
            key = sample.end, counts.direction, counts.session
            self._counts[key] = self._counts.get(key, 0) + value
            (self._moving.add if value else self._moving.discard)(key)

    def of_flow(self, flow: Direction, sessions: int) -> list[int]:
        """Return the tails of a direction's sessions; none before both ends have drained."""
        if len(self._drained) < len(End):
            return []
        sender = sender_of(flow, Workload.UDP)
        tails: list[int] = []
        for session in range(1, sessions + 1):
            sent = self._counts.get((sender, flow, session))
            advanced = self._counts.get((sender.other, flow, session))
            if sent is not None and advanced is not None and (flow, session) not in self._unclear:
                tails.append(max(0, sent - advanced))
        return tails
