"""The phases of a responsiveness test: the link is loaded out, then in, then both ways, each until it is steady.

Pure. Fed with this end's samples, it says when the settings change and when the test is over. A phase is steady
when its goodput varies little and latency rises no more. With cubic a queue fills at some 50 ms a second once slow
start is over, so 400 ms of it take 8 s: a phase may last a little longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..model.counters.samples import ProbeSample, Sample
from ..model.directions import Direction
from ..model.plan import SECOND_NS, Plan, Settings
from ..results.responsiveness.distribution import Counts, mean_ns, merged_counts, weighted_by_time
from ..results.responsiveness.loads import carries_datagrams
from ..results.responsiveness.steadiness import LATEST_NS, RATE_WINDOWS, is_higher, is_rate_steady

MIN_PHASE_NS: Final = 3_500_000_000
MAX_PHASE_NS: Final = {
    Direction.OUT: 8_800_000_000,
    Direction.IN: 8_800_000_000,
    Direction.DUPLEX: 5_000_000_000,
}
MAX_PHASES_NS: Final = 22_600_000_000  # the user should wait for a test for less than half a minute
_WINDOW_NS: Final = 400_000_000
_MIN_WINDOW_NS: Final = _WINDOW_NS * 9 // 10  # samples may come a moment early
_LEFTOVER_NS: Final = SECOND_NS  # at the beginning of a phase: the queue of the phase before it drains
_HIGHER: Final = 1.03  # a queue that fills slowly gets its time
_ADDING_AFTER_NS: Final = 2_500_000_000
_ADDING_PAUSE_NS: Final = SECOND_NS


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sample of a phase: the bytes of its directions, and the weights of latencies by their bucket."""

    end_ns: int
    span_ns: int
    bytes: int
    latency: Counts


class LoadPhases:
    """The script of a responsiveness test that has phases: `follow` it with each sample of this end."""

    def __init__(self, plan: Plan, idle: ProbeSample | None) -> None:
        """Begin the first phase, whose settings are those of the plan.

        Args:
            plan: the run's plan. Each phase begins with its number of sessions.
            idle: the probes' sample of the idle link.
        """
        self._plan = plan
        self._settings = plan.settings
        self._later = list(plan.load_directions[1:])
        self._has_datagrams = carries_datagrams(idle)
        self._is_over = False
        self._began_ns = 0
        self._added_ns = 0
        self._readings: list[_Reading] = []

    @property
    def is_over(self) -> bool:
        """Whether all phases are over."""
        return self._is_over

    def follow(self, sample: Sample) -> Settings | None:
        """Take a sample of this end; return the settings to change to, or None to go on with these."""
        if self._is_over:
            return None
        self._readings.append(self._read(sample))
        now_ns = sample.elapsed_ns
        in_phase_ns = now_ns - self._began_ns
        is_steady_rate = is_rate_steady(_newest_rates(self._readings))
        if in_phase_ns >= MIN_PHASE_NS:
            is_steady = is_steady_rate and not self._is_latency_rising(now_ns)
            if is_steady or self._left_ns(now_ns) <= sample.interval_ns // 2:
                return self._begin_next(now_ns)
        if not is_steady_rate and in_phase_ns >= _ADDING_AFTER_NS:
            return self._add_sessions(now_ns)
        return None

    def _left_ns(self, now_ns: int) -> int:
        """Return how much longer the phase may last, so that each later one has its minimum time."""
        most_ns = self._began_ns + MAX_PHASE_NS[self._settings.direction]
        return min(most_ns, MAX_PHASES_NS - len(self._later) * MIN_PHASE_NS) - now_ns

    def _begin_next(self, now_ns: int) -> Settings | None:
        # A machine that stood still may have used up the time of a phase.
        if not self._later or now_ns + MIN_PHASE_NS > MAX_PHASES_NS:
            self._is_over = True
            return None
        self._settings = replace(self._plan.settings, direction=self._later.pop(0))
        self._began_ns = self._added_ns = now_ns
        self._readings.clear()
        return self._settings

    def _add_sessions(self, now_ns: int) -> Settings | None:
        """Return settings with more sessions, if the phase has time left to measure their goodput."""
        carries = self._readings[-1].bytes > 0
        is_late = self._left_ns(now_ns) < RATE_WINDOWS * _WINDOW_NS
        if not carries or is_late or now_ns - self._added_ns < _ADDING_PAUSE_NS:
            return None
        most = self._plan.widest_settings.sessions
        if self._settings.sessions >= most:
            return None
        step = max(1, self._plan.settings.sessions // 2)
        self._settings = replace(self._settings, sessions=min(most, self._settings.sessions + step))
        self._added_ns = now_ns
        return self._settings

    def _read(self, sample: Sample) -> _Reading:
        flows = self._settings.direction.flows
        carried = sum(session.bytes for session in sample.sessions if session.direction in flows)
        return _Reading(sample.elapsed_ns, sample.interval_ns, carried, self._latency_of(sample.probe))

    def _latency_of(self, probe: ProbeSample | None) -> Counts:
        if probe is None:
            return {}
        if not self._has_datagrams:
            return weighted_by_time(probe.latency.by_bucket)
        return {} if probe.datagrams is None else probe.datagrams.latency.by_bucket

    def _is_latency_rising(self, now_ns: int) -> bool:
        """Return whether latency has lately been higher than ever before; False if none was measured at all."""
        from_ns, late_ns = self._began_ns + _LEFTOVER_NS, now_ns - LATEST_NS
        readings = [each for each in self._readings if each.end_ns - each.span_ns >= from_ns]
        before: list[float] = []
        late: list[float] = []
        for window in _windows(readings):
            mean = mean_ns(merged_counts(each.latency for each in window))
            if mean is not None:
                (late if window[-1].end_ns > late_ns else before).append(mean)
        if not (before and late):  # an answer may take longer than all that time
            return any(each.latency for each in self._readings)
        return is_higher(max(late), max(before), _HIGHER)


def _windows(readings: Sequence[_Reading], *, is_sliding: bool = True) -> list[Sequence[_Reading]]:
    """Return the parts of some readings that last a window, the newest first; without overlap if not sliding."""
    windows: list[Sequence[_Reading]] = []
    stop = len(readings)
    while stop > 0:
        start, span_ns = stop, 0
        while start > 0 and span_ns < _MIN_WINDOW_NS:
            start -= 1
            span_ns += readings[start].span_ns
        if span_ns < _MIN_WINDOW_NS:
            break
        windows.append(readings[start:stop])
        stop = stop - 1 if is_sliding else start
    return windows


def _newest_rates(readings: Sequence[_Reading]) -> list[float]:
    """Return the goodput of the newest windows, the newest first, in bytes a nanosecond."""
    windows = _windows(readings, is_sliding=False)[:RATE_WINDOWS]
    return [sum(each.bytes for each in window) / sum(each.span_ns for each in window) for window in windows]
