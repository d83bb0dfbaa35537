"""Which hop has the queue or the loss, from the traces of both ends and the one-way delays under load. Pure.

Every answer of a hop has a way out and a way back. A queue at a link raises the round trips of all hops behind it,
whichever direction it is in, and so does a loss. What a router does to its own answers, it does not do to what it
forwards: a rise counts only if every later hop that answers, and the other end, have it, too. The rest is a limit
of ICMP or a slow control plane. The direction of a queue comes from the one-way delays of the datagram probes, the
direction of a loss from the probes that the other end has counted. Each direction is judged by its sender's trace.

A queue grows and drains within a second, and a router may answer only once a second. So hops are compared with the
other end in the same windows of 0.4 s, each by its shortest round trip, and the median of these differences counts.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from ...model.counters.path_trace import HopTrace, PathTrace
from ...model.directions import Direction, End
from ...model.plan import SECOND_NS
from ..rate_and_loss import percent_of
from ..responsiveness.result import Latency, LoadedLatency, Responsiveness
from .path_result import Answers, HopResult, LossPlace, PathResult, QueuePlace, Way

LEAST_RISE_NS: Final = 5_000_000
"""A shorter queue is not named: nobody would mend it."""
_HALF: Final = 0.5
_FURTHER: Final = 0.35
_LEAST_SHARE: Final = 0.1
_FULL: Final = 0.5  # of a high rise: then the queue counts as full
_HIGH: Final = 75  # percent of the windows have less: a few late answers are not a queue
_SETTLING_NS: Final = SECOND_NS  # sessions start, and the queue of an earlier load drains
_PURE: Final = 3.0  # times the rise of the other direction
_SLOW_SHARE: Final = 0.25
_LIMITED_PERCENT: Final = 20.0  # without an answer, beyond what later hops lose
_LEAST_LOST_PERCENT: Final = 2.0
_LEAST_LOST: Final = 5
_LOSS_MARGIN_PERCENT: Final = 5.0
_SENDERS: Final = {Direction.OUT: End.NEAR, Direction.IN: End.FAR}


def find_path(
    traces: Mapping[End, PathTrace], measured: Responsiveness | None, names: Mapping[str, str]
) -> PathResult | None:
    """Return the hops of both directions with the queues and losses; None without any trace.

    Args:
        traces: The traces by the end that made them.
        measured: The latency under each load.
        names: Names of routers by their address.
    """
    loads = () if measured is None else measured.loads
    least_ns = _least_rise_ns(None if measured is None else measured.idle)
    ways = [
        _Judge(trace, traces.get(end.other), direction, _load_for(direction, loads), least_ns).way(names)
        for direction, end in _SENDERS.items()
        if (trace := traces.get(end)) is not None and trace.hops
    ]
    return PathResult(tuple(ways)) if ways else None


def _least_rise_ns(idle: Latency | None) -> int:
    """Return the rise from which on a queue is named: more than latency varies without load."""
    return LEAST_RISE_NS if idle is None else max(LEAST_RISE_NS, idle.p99_ns - idle.p50_ns)


def _load_for(direction: Direction, loads: Sequence[LoadedLatency]) -> LoadedLatency | None:
    """Return the load that shows most of a direction's queue, if possible without one of the other direction."""

    def order(load: LoadedLatency) -> tuple[bool, bool, float]:
        own, other = _one_way(load, direction), _one_way(load, direction.opposite)
        if own is None or other is None:
            return False, load.direction is direction, 0.0
        is_clear = own >= LEAST_RISE_NS and own >= _PURE * other
        return is_clear, load.direction is direction, own

    return max(loads, key=order, default=None)


def _one_way(load: LoadedLatency, direction: Direction) -> float | None:
    return load.one_way_rise_ns[direction]


class _Judge:
    """Judges one direction by its sender's trace, under one load."""

    def __init__(
        self,
        trace: PathTrace,
        other: PathTrace | None,
        direction: Direction,
        load: LoadedLatency | None,
        least_ns: int,
    ) -> None:
        self._least_ns = least_ns
        self._trace, self._other, self._direction, self._load = trace, other, direction, load
        self._idle = [_idle_ns(trace, hop) for hop in trace.hops]
        self._full = self._full_windows()
        self._rises = [self._rise_of(number) for number in range(len(trace.hops))]
        self._kept = _kept(self._rises)
        self._lost = [_lost_percent(hop) for hop in trace.hops]

    def way(self, names: Mapping[str, str]) -> Way:
        """Return the direction with its hops, queues and loss."""
        trace, queues = self._trace, self._queues()
        return Way(
            direction=self._direction,
            load=None if self._load is None else self._load.direction,
            hops=tuple(self._hop(number, names) for number in range(len(trace.hops))),
            is_reached=trace.is_reached,
            queues=queues,
            loss=self._loss(),
            mtus=trace.mtus,
            answers_wait=not queues and self._answers_wait,
        )

    def _rise_at_end(self, window: int) -> int | None:
        """Return how much longer the other end's round trip was in a window; None without an answer."""
        if not self._trace.is_reached:
            return None
        least_ns, idle_ns = self._trace.hops[-1].least_ns[window], self._idle[-1]
        return None if least_ns is None or idle_ns is None else least_ns - idle_ns

    def _full_windows(self) -> dict[int, int]:
        """Return the other end's rise in each window under load in which the queue was full."""
        load = self._load
        if load is None:
            return {}
        windows = self._trace.loaded_window(load.start_ns + _SETTLING_NS, load.end_ns)
        rises = {window: rise for window in windows if (rise := self._rise_at_end(window)) is not None}
        high_ns = sorted(rises.values())[_HIGH * (len(rises) - 1) // 100] if rises else 0
        return {window: rise for window, rise in rises.items() if rise >= _FULL * high_ns}

    @property
    def _whole_ns(self) -> int:
        return round(median(self._full.values())) if self._full else 0

    def _rise_of(self, number: int) -> int | None:
        """Return a hop's rise: the other end's, less what it has beyond the hop in the same windows."""
        hop, idle_ns = self._trace.hops[number], self._idle[number]
        if idle_ns is None:
            return None
        beyond = [
            end_rise - (least_ns - idle_ns)
            for window, end_rise in self._full.items()
            if (least_ns := hop.least_ns[window]) is not None
        ]
        return self._whole_ns - round(median(beyond)) if beyond else None

    def _hop(self, number: int, names: Mapping[str, str]) -> HopResult:
        hop, idle_ns, rise_ns, kept_ns = (
            self._trace.hops[number],
            self._idle[number],
            self._rises[number],
            self._kept[number],
        )
        mtus = {report.router: report.mtu_bytes for report in self._trace.mtus}
        shown_ns = None if rise_ns is None else max(0, rise_ns)  # a queue shortens no round trip
        return HopResult(
            ttl=number + 1,
            routers=hop.routers,
            idle_ns=idle_ns,
            loaded_ns=None if idle_ns is None or shown_ns is None else idle_ns + shown_ns,
            rise_ns=shown_ns,
            kept_rise_ns=None if kept_ns is None else max(0, kept_ns),
            lost_percent=self._lost[number] if hop.routers else None,
            answers=self._answers(number),
            is_end=self._trace.is_reached and number == len(self._trace.hops) - 1,
            mtu_bytes=next((mtus[router] for router in hop.routers if router in mtus), None),
            name=next((names[router] for router in hop.routers if router in names), None),
        )

    def _answers(self, number: int) -> Answers:
        """Return how a hop answers, compared with the hops behind it and the other end."""
        if not self._trace.hops[number].routers:
            return "silent"
        idle_ns = self._idle[number]
        later = [each for each in self._idle[number + 1 :] if each is not None]
        if self._is_late(number) or (idle_ns is not None and later and idle_ns - min(later) >= LEAST_RISE_NS):
            return "slow"
        lost = self._lost[number]
        behind = [each for each in self._lost[number + 1 :] if each is not None]
        is_limited = lost is not None and behind and lost - min(behind) >= _LIMITED_PERCENT
        return "limited" if is_limited else "all"

    def _is_late(self, number: int) -> bool:
        """Return whether a hop's answers are late under load by more than what it forwards."""
        rise_ns, kept_ns = self._rises[number], self._kept[number]
        margin_ns = max(LEAST_RISE_NS, _SLOW_SHARE * self._whole_ns)
        return rise_ns is not None and kept_ns is not None and rise_ns - kept_ns >= margin_ns

    def _queues(self) -> tuple[QueuePlace, ...]:
        """Return the queues of this direction, the longest first.

        The first is before the first hop that keeps at least half of the whole rise; if the load has filled a queue
        of the other direction as well, it is the step that is closest to this direction's own rise.
        """
        whole_ns, own_ns = self._whole_ns, self._own_rise_ns
        if whole_ns < self._least_ns or own_ns < max(LEAST_RISE_NS, _LEAST_SHARE * whole_ns):
            return ()
        steps = self._steps()
        if own_ns >= whole_ns / (1 + 1 / _PURE):
            least_ns = max(LEAST_RISE_NS, _FURTHER * whole_ns)
            first = next(step for step in steps if self._kept_at(step) >= _HALF * whole_ns)
            further = [step for step in steps if step is not first and step.rise_ns >= least_ns]
            found = [first, *further]
        else:
            nearest = min(steps, key=lambda step: abs(step.rise_ns - own_ns))
            found = [nearest] if nearest.rise_ns >= _HALF * own_ns else []
        return tuple(sorted(found, key=lambda step: -step.rise_ns))

    @property
    def _own_rise_ns(self) -> float:
        """This direction's part of the rise; all of it if only the load tells the direction.

        Without a rise of the one-way delay there is none: a busy host that echoes late has no queue.
        """
        if self._load is None:
            return 0.0
        own, other = _one_way(self._load, self._direction), _one_way(self._load, self._direction.opposite)
        if own is None or other is None:
            return self._whole_ns if self._load.direction is self._direction else 0.0
        return self._whole_ns * own / (own + other) if own >= self._least_ns else 0.0

    @property
    def _answers_wait(self) -> bool:
        """Whether the other direction's part of the rise is a queue: it delays the answers, not the probes."""
        if self._load is None or self._whole_ns - self._own_rise_ns < self._least_ns:
            return False
        other = _one_way(self._load, self._direction.opposite)
        return self._load.direction is not self._direction if other is None else other >= self._least_ns

    def _kept_at(self, step: QueuePlace) -> int:
        return self._kept[step.before_ttl - 1] or 0

    def _steps(self) -> list[QueuePlace]:
        """Return how much each hop that has answered in time adds to the kept rise."""
        steps: list[QueuePlace] = []
        after_ttl, before_ns = 0, 0
        for ttl, kept_ns in enumerate(self._kept, 1):
            if kept_ns is None or self._is_late(ttl - 1):
                continue  # a late answer hides whether the queue is before the hop or behind it
            rise_ns = max(0, kept_ns - before_ns)
            steps.append(QueuePlace(after_ttl, ttl, rise_ns, rise_ns / self._whole_ns))
            after_ttl, before_ns = ttl, max(before_ns, kept_ns)
        return steps

    def _lost_one_way(self, other: PathTrace) -> tuple[int, int]:
        """Return how many probes were sent under load, and how many of them did not arrive at the other end.

        The traces end at different times, and the last probes are in the queue then: only those count that had the
        time to arrive before both ends. A probe that was answered has arrived.
        """
        trace, last = self._trace, self._trace.hops[-1]
        own = None if self._load is None else _one_way(self._load, self._direction)
        delay_ns = max(0, round(self._whole_ns if own is None else own))
        until_ns = min(trace.loaded_ns, other.loaded_ns) - delay_ns - max(trace.window_ns, other.window_ns)
        windows = trace.loaded_window(0, max(0, until_ns))
        arrival_ns = len(windows) * trace.window_ns + delay_ns + other.window_ns // 2
        sent, answered = (sum(counts[number] for number in windows) for counts in (last.sent, last.answered))
        received = sum(other.received[number] for number in other.loaded_window(0, arrival_ns))
        return sent, max(0, sent - max(received, answered))

    def _loss(self) -> LossPlace | None:
        """Return the place of this direction's loss under load; None without one to speak of."""
        trace, other = self._trace, self._other
        if other is None or not trace.is_reached:
            return None
        sent, lost_count = self._lost_one_way(other)
        lost_percent = percent_of(lost_count, sent) or 0.0
        both_percent = self._lost[-1] or 0.0
        if lost_count < _LEAST_LOST or lost_percent < _LEAST_LOST_PERCENT:
            return None
        back_percent = max(0.0, both_percent - lost_percent)
        # A hop's answers are lost on the way back as well, all or none of them, if that direction loses.
        back_percent = back_percent if back_percent >= _LEAST_LOST_PERCENT else 0.0
        after_ttl, before_ttl = 0, len(trace.hops)
        for ttl, lost in reversed(list(enumerate(self._lost, 1))[:-1]):
            if lost is None or lost > both_percent + _LOSS_MARGIN_PERCENT:
                continue  # it limits its answers, and so does not tell
            if lost < _HALF * lost_percent:
                after_ttl = ttl
                break
            if lost - back_percent >= _HALF * lost_percent:
                before_ttl = ttl
        is_located = after_ttl > 0 or before_ttl < len(trace.hops) or len(trace.hops) == 1
        return LossPlace(after_ttl, before_ttl, lost_percent, is_located)


def _idle_ns(trace: PathTrace, hop: HopTrace) -> int | None:
    """Return the shortest round trip of a hop without load; under any, if it has answered only then."""
    idle = [each for each in hop.least_ns[: trace.idle_windows] if each is not None]
    return min(idle or [each for each in hop.least_ns if each is not None], default=None)


def _kept(rises: Sequence[int | None]) -> list[int | None]:
    """Return the part of each rise that all later ones have, too."""
    kept: list[int | None] = []
    least_ns: int | None = None
    for rise_ns in reversed(rises):
        if rise_ns is not None:
            least_ns = rise_ns if least_ns is None else min(least_ns, rise_ns)
        kept.append(None if rise_ns is None else least_ns)
    return kept[::-1]


def _lost_percent(hop: HopTrace) -> float | None:
    """Return the probes without an answer over the whole run; None for a silent hop."""
    sent = sum(hop.sent)
    return None if not hop.routers or not sent else percent_of(sent - sum(hop.answered), sent)
