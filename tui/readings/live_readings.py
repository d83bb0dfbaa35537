"""A view over the meter of a run: its periods, its sessions, its changes and its windows. No connection, no clock.

Pure. The readings of single instruments are made of it (see `cockpit_snapshot`).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ...engine.model.counters.samples import SessionSample
from ...engine.model.directions import Direction, End, sender_of
from ...engine.model.plan import Plan, Settings
from ...engine.results.meter import SHOWN_NS, Meter
from ...engine.results.rate_and_loss import per_second
from ...engine.results.sums.session_sums import SessionSum, SessionSums
from ..words import numbers
from ..words.event_lines import EventLines
from .plot_values import REDRAW_NS, RateAxis

if TYPE_CHECKING:
    from ...engine.results.responsiveness.result import ResponsivenessPoint
    from ...engine.results.sums.traces import PlotPeriod, Traces


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session in one direction: the receiver's rate, and the sender's TCP values or the receiver's datagrams."""

    direction: Direction
    session: int
    bit_s: float | None
    rtt_us: int | None
    retransmits: int | None
    cwnd_bytes: int | None
    lost_percent: float | None = None
    jitter_ns: float | None = None
    packets_s: float | None = None


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """A change of settings in the plot, in words."""

    at_s: float
    label: str


class LiveReadings:
    """The readings of one run: a view over its meter, which must have traces.

    You must feed every event, in order, to its log. Before the run is open, the meter is empty.
    """

    def __init__(self, plan: Plan, meter: Meter | None = None) -> None:
        self.meter = meter or Meter(has_traces=True)
        self.log = EventLines()
        self.rate_axis = RateAxis()
        self._plan = plan
        self._load_points: tuple[object, tuple[ResponsivenessPoint, ...]] | None = None

    @property
    def warnings(self) -> list[str]:
        """The warnings of the run, in words for the screen."""
        return [numbers.sanitize(text) for text in self.meter.warnings.texts]

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.meter.started.plan if self.meter.started else self._plan

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.meter.recent.settings or self._plan.settings

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval."""
        return self.meter.elapsed_ns

    @property
    def in_warmup(self) -> bool:
        """Whether the newest sample does not count yet."""
        newest = self.meter.recent.newest
        return newest is None or newest.warmup

    @property
    def traces(self) -> "Traces":
        """The run over time."""
        return self.meter.traces

    @property
    def load_points(self) -> "tuple[ResponsivenessPoint, ...]":
        """Latency over time of a responsiveness test, made again twice a second, as often as its plot is drawn."""
        moment = self.meter.elapsed_ns // REDRAW_NS, self.meter.has_ended
        if self._load_points is None or self._load_points[0] != moment:
            self._load_points = moment, self.meter.responsiveness_series
        return self._load_points[1]

    @property
    def periods(self) -> "list[PlotPeriod]":
        """The periods of the plot."""
        return self.traces.periods

    @property
    def change_marks(self) -> list[ChangeMark]:
        """The changes that the plot marks: of the settings, and of the endpoint's other tests."""
        changes = (
            ChangeMark(after.from_s, numbers.settings_change(before.settings, after.settings))
            for before, after in pairwise(self.periods)
        )
        others = (
            ChangeMark(span.from_s, "other test" if span.tests == 1 else "other tests")
            for span in self.traces.other_tests
        )
        return sorted((mark for mark in (*changes, *others) if mark.label), key=lambda mark: mark.at_s)

    @property
    def granted_bytes(self) -> dict[End, int]:
        """The smallest window that each end's kernel has granted to a session, if it is known."""
        granted = {end: self.meter.sockets.granted_bytes(end) for end in End}
        return {end: window_bytes for end, window_bytes in granted.items() if window_bytes is not None}

    @property
    def window_in_use(self) -> int | None:
        """The smaller of the windows that both ends' kernels granted; None while it is unknown.

        With `auto`, it is a session's congestion window.
        """
        if granted := self.granted_bytes:
            return min(granted.values())
        newest = [points[-1].cwnd_bytes or 0 for points in self.traces.tcp.values()]
        return max(newest, default=0) // self.settings.sessions or None

    def session_rows(self) -> tuple[SessionRow, ...]:
        """Return the open sessions by direction and number.

        Their rates are of the last second. After a run whose settings did not change, they are its means, as in the
        gauge.
        """
        recent, workload = SessionSums(), self.plan.workload
        newest: dict[tuple[Direction, int], SessionSample] = {}
        for end in End:
            samples = self.meter.recent.of_end(end, SHOWN_NS)
            for sample in samples:
                recent.add_sample(sample, workload)
            for part in samples[-1].sessions if samples else ():
                if sender_of(part.direction, workload) is end:
                    newest[part.direction, part.session] = part
        return tuple(
            self._row(key, sums, newest.get(key))
            for flow in self.settings.direction.flows
            for key, sums in sorted(recent.sessions.items())
            if key[0] is flow
        )

    def _row(self, key: tuple[Direction, int], recent: SessionSum, sent: SessionSample | None) -> SessionRow:
        """Return the row of a session from its sums of the last second and its sender's newest sample."""
        known = self.traces.session_sums.sessions.get(key) or SessionSum()
        if self.meter.has_ended and len(self.periods) == 1 and known.bit_s is not None:
            recent = known
        packets = None if recent.datagrams is None else recent.datagrams.received
        return SessionRow(
            *key,
            recent.bit_s,
            sent.rtt_us if sent else None,
            known.retransmits,
            sent.cwnd_bytes if sent else None,
            None if known.datagrams is None else known.datagrams.lost_percent,
            None if known.datagrams is None else known.datagrams.jitter_ns,
            per_second(packets, recent.span_ns),
        )

    def retransmits(self) -> int | None:
        """Return the retransmitted segments of both ends since the warm-up; None if no kernel reports them."""
        return self.traces.session_sums.retransmits
