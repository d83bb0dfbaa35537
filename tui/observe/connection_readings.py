"""One observed connection as a run: its figures over time in the shapes that gauges and plots read. Pure.

A connection that this host sends on is a run to an end without samples: the sender's counters stand in, as they do
for an iperf3 (`Sample.is_from_sender`).
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from ...engine.model.counters.samples import Sample, SessionSample
from ...engine.model.directions import Direction, End
from ...engine.model.events import Sampled, Started
from ...engine.model.expected_rate import Expectation
from ...engine.model.host_info import UNKNOWN_HOST
from ...engine.model.peer import LOOPBACK
from ...engine.model.plan import SECOND_NS, Plan, Settings
from ...engine.results.meter import Meter
from ...observe.observation import ConnectionKey, Observation, ObservedConnection
from ...presets.auto_select import NO_PRESET
from ..readings.cockpit_snapshot import CockpitSnapshot, Phase
from ..readings.live_readings import LiveReadings
from ..words.numbers import RateUnit

_POINTS: Final = 120
_BOTH: Final = 0.05  # of the payload of one direction: so much of the other one is more than answers
_NEAR: Final = 0.15  # of the expected rate: a plot with its line shows so much of the rate
_SESSION: Final = 1


class Point(NamedTuple):
    """The figures of an interval that are drawn over time."""

    elapsed_ns: int
    interval_ns: int
    out_bit_s: float
    in_bit_s: float
    rtt_us: int | None
    cwnd_bytes: int | None


class Histories:
    """The last points of each connection that is shown, so that its plot does not begin empty."""

    def __init__(self) -> None:
        self._points: dict[ConnectionKey, deque[Point]] = {}

    def update(self, observation: Observation, kept: Iterable[ConnectionKey]) -> None:
        """Add the points of an observation, and forget the connections that are not kept."""
        for row in observation.connections:
            points = self._points.setdefault(row.key, deque(maxlen=_POINTS))
            points.append(_point(row, observation))
        kept = {*kept}
        self._points = {key: points for key, points in self._points.items() if key in kept}

    def of(self, key: ConnectionKey) -> tuple[Point, ...]:
        """Return the points of a connection, the oldest first."""
        return tuple(self._points.get(key, ()))


def _point(row: ObservedConnection, observation: Observation) -> Point:
    sample = row.out.sample
    return Point(
        observation.elapsed_ns,
        observation.interval_ns,
        row.out.bit_s,
        row.in_.bit_s,
        None if sample is None else sample.rtt_us,
        None if sample is None else sample.cwnd_bytes,
    )


def shown_direction(row: ObservedConnection) -> Direction:
    """Return the direction of a connection's gauges: both, if each has more payload than answers."""
    less, more = sorted((row.out.bytes, row.in_.bytes))
    return Direction.DUPLEX if less and less >= _BOTH * more else row.direction


class ConnectionReadings:
    """The readings of one connection from its first point on."""

    def __init__(self, row: ObservedConnection, points: Iterable[Point]) -> None:
        self.row = row
        self.direction = shown_direction(row)
        self._settings = Settings(self.direction)
        self._has_mark = _is_near_expected(row)
        self._plan = plan = Plan(self._settings, duration_ns=None)
        meter = Meter(has_traces=True)
        expectation = _expectation(row, self.direction) if self._has_mark else Expectation()
        meter.feed(Started("", "", UNKNOWN_HOST, UNKNOWN_HOST, plan, expectation))
        self._readings = LiveReadings(plan, meter)
        self._start_ns: int | None = None
        self._index = -1
        for point in points:
            self.add_point(point)

    def fits(self, row: ObservedConnection) -> bool:
        """Return whether the plot has the directions of a row, and the expected rate if the row comes near it."""
        has_directions = self.direction is Direction.DUPLEX or self.direction is shown_direction(row)
        return has_directions and (self._has_mark or not _is_near_expected(row))

    def add_point(self, point: Point) -> None:
        """Add the next point."""
        if self._start_ns is None:
            self._start_ns = point.elapsed_ns - point.interval_ns
        self._index += 1
        elapsed_ns = point.elapsed_ns - self._start_ns
        rates = {Direction.OUT: point.out_bit_s, Direction.IN: point.in_bit_s}
        moved = {flow: round(bit_s * point.interval_ns / (8 * SECOND_NS)) for flow, bit_s in rates.items()}
        near = (
            SessionSample(
                Direction.OUT,
                _SESSION,
                moved[Direction.OUT],
                rtt_us=point.rtt_us,
                cwnd_bytes=point.cwnd_bytes,
            ),
            SessionSample(Direction.IN, _SESSION, moved[Direction.IN]),
        )
        far = (SessionSample(Direction.OUT, _SESSION, moved[Direction.OUT]),)
        for sample in (
            Sample(End.NEAR, self._index, elapsed_ns, point.interval_ns, near),
            Sample(End.FAR, self._index, elapsed_ns, point.interval_ns, far, is_from_sender=True),
        ):
            self._readings.meter.feed(Sampled(sample, self._settings, warmup=False))

    def snapshot(self, units: RateUnit, pass_percent: float) -> CockpitSnapshot:
        """Return what the gauges and plots show now."""
        return CockpitSnapshot(
            phase=Phase.RUNNING,
            preset=NO_PRESET,
            plan=self._plan,
            peer=LOOPBACK,
            readings=self._readings,
            windows=self.row.windows,
            units=units,
            pass_percent=pass_percent,
        )


def _is_near_expected(row: ObservedConnection) -> bool:
    """Return whether a rate is seen in a plot that has room for the expected one."""
    return row.expected is not None and max(row.main.rates, default=0.0) >= _NEAR * row.expected.bit_s


def _expectation(row: ObservedConnection, direction: Direction) -> Expectation:
    """Return the expected rate of the main direction; the total of both has none."""
    if direction is Direction.DUPLEX:
        return Expectation()
    rate = row.expected
    return Expectation(out=rate) if direction is Direction.OUT else Expectation(in_=rate)
