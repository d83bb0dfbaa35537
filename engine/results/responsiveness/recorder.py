"""The recorder of a responsiveness test: from a run's events to its results, and to the values of its plots.

Pure. A load is a part of the run with one direction; its other settings may change. Samples may come late or be
missing. They belong to the newest load of their direction that had begun. Memory is bounded.
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from ...model.directions import Direction
from ...model.events import Sampled, Started
from ...model.plan import SECOND_NS, Settings
from .distribution import mean_ns, probe_latency
from .grade import grade_of
from .intervals import LoadInterval, LoadIntervals
from .loads import Idle, Load, carries_datagrams
from .result import LoadedLatency, ProbeKind, Responsiveness, ResponsivenessPoint, RoundTrips

_UNSETTLED_NS: Final = SECOND_NS
_MIN_ANSWERED_LOADED: Final = 0.1
_MIN_SENT: Final = 100


@dataclass(slots=True)
class _Phase:
    direction: Direction
    start_ns: int
    intervals: LoadIntervals


class ResponsivenessRecorder:
    """Takes the events of one run with a responsiveness test. You must leave out samples that are out of order."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self._unsettled_ns = max(_UNSETTLED_NS, started.plan.warmup_ns or 0)
        self._phases = [self._begin(started.plan.settings.direction, 0)]
        self._result: Responsiveness | None = None

    @classmethod
    def of_run(cls, started: Started) -> Self | None:
        """Return the recorder of a run that has just begun; None if it is not a responsiveness test."""
        return None if started.plan.responsiveness is None else cls(started)

    def change_settings(self, elapsed_ns: int, settings: Settings) -> None:
        """Begin another load if the direction changes with these settings."""
        self._result = None
        if settings.direction is not self._phases[-1].direction:
            self._phases.append(self._begin(settings.direction, elapsed_ns))

    def add_event(self, event: Sampled) -> None:
        """Add an end's sample."""
        self._result = None
        direction = event.settings.direction
        phase = self._phase_of(direction, event.sample.elapsed_ns)
        phase.intervals.add_sample(event.sample, direction.flows, event.settings.sessions)

    def _begin(self, direction: Direction, start_ns: int) -> _Phase:
        return _Phase(direction, start_ns, LoadIntervals(start_ns + self._unsettled_ns))

    def _phase_of(self, direction: Direction, elapsed_ns: int) -> _Phase:
        same = [phase for phase in reversed(self._phases) if phase.direction is direction]
        if not same:
            self._phases.append(self._begin(direction, elapsed_ns))
            return self._phases[-1]
        return next((phase for phase in same if phase.start_ns < elapsed_ns), same[-1])

    @property
    def result(self) -> Responsiveness:
        """The results so far."""
        if self._result is None:
            self._result = self._make_result()
        return self._result

    @property
    def series(self) -> tuple[ResponsivenessPoint, ...]:
        """The values of each interval so far, for plots, in order of time."""
        probe = self._main_probe()
        points = [
            _point(phase.direction, interval, probe) for phase in self._phases for interval in phase.intervals
        ]
        return tuple(sorted(points, key=lambda point: point.elapsed_ns))

    def _make_result(self) -> Responsiveness:
        probe = self._main_probe()
        idle = Idle.of_sample(self._started.idle, probe)
        found = (
            Load(phase.direction, phase.start_ns, phase.intervals.settled).results(self._started, probe, idle)
            for phase in self._phases
        )
        loads = tuple(load for load in found if load is not None)
        result = Responsiveness(probe, idle.latency, loads, None, None, _round_trips_of(loads))
        rises = [load.rise_ns for load in result.graded_loads if load.rise_ns is not None]
        if not rises:
            return result
        rise_ns = sum(rises) / len(rises)
        return replace(result, rise_ns=rise_ns, grade=grade_of(rise_ns))

    def _main_probe(self) -> ProbeKind:
        """Return `datagram` if nearly all were answered before the load, and enough of them under each load."""
        if not carries_datagrams(self._started.idle):
            return "request"
        return "request" if any(_has_lost_datagrams(phase) for phase in self._phases) else "datagram"


def _has_lost_datagrams(phase: _Phase) -> bool:
    settled = phase.intervals.settled
    sent = sum(interval.sent for interval in settled)
    if not sent:  # the probe was lost before this load, or has not measured it yet
        return any(interval.requests for interval in settled)
    answered = sum(interval.answered for interval in settled)
    return sent >= _MIN_SENT and answered < _MIN_ANSWERED_LOADED * sent


def _round_trips_of(loads: tuple[LoadedLatency, ...]) -> RoundTrips | None:
    """Return the round trips with load in both directions; otherwise the lowest rate."""
    known = [(load.direction, load.round_trips) for load in loads if load.round_trips is not None]
    both = next((found for direction, found in known if direction is Direction.DUPLEX), None)
    return both or min((found for _, found in known), key=lambda found: found.per_minute, default=None)


def _point(direction: Direction, interval: LoadInterval, probe: ProbeKind) -> ResponsivenessPoint:
    latency = probe_latency(interval.probes(probe), probe)
    return ResponsivenessPoint(
        elapsed_ns=interval.end_ns,
        interval_ns=interval.end_ns - interval.start_ns,
        direction=direction,
        out_bit_s=interval.bit_s(Direction.OUT),
        in_bit_s=interval.bit_s(Direction.IN),
        p50_ns=latency and latency.p50_ns,
        p99_ns=latency and latency.p99_ns,
        rise_out_ns=mean_ns(interval.rise_out),
        rise_in_ns=mean_ns(interval.rise_in),
    )
