"""What the instruments of a run show at one moment: of a run that is live, ended or stored.

Pure. Each instrument takes its reading from it: `flow_reading`, `latency_reading`, `cpu_reading`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ...engine.model.expected_rate import Expectation
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan, Settings
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..words.numbers import RateUnit
from ..words.summary import response_bits_of
from .plot_values import RateAxis, highest_mark, marks, time_span_s

if TYPE_CHECKING:
    from ...engine.results.path.path_result import PathResult
    from ...engine.results.summary import Summary
    from ...presets.diagnosis.finding import Finding
    from ...presets.diagnosis.window_bounds import FlowWindows
    from ...presets.verdict import Verdict
    from .live_readings import LiveReadings

_FIXED: Final = "a responsiveness test sets direction and sessions itself: stop it first"


class Phase(Enum):
    """The phase of the cockpit's run."""

    IDLE = auto()
    STARTING = auto()
    RUNNING = auto()
    STOPPING = auto()
    DONE = auto()

    @property
    def is_busy(self) -> bool:
        """Whether a run is being opened, active or stopping."""
        return self in {Phase.STARTING, Phase.RUNNING, Phase.STOPPING}


@dataclass(frozen=True, slots=True)
class RunProblem:
    """Why there is no run: a short status, a title, and a text with the remedy."""

    status: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class CockpitSnapshot:  # its many fields are all that the instruments need: each frame is of one moment
    """The instruments' values at one moment.

    `preset` and `plan` are of the run that is shown, live or ended. Before the first run, they are of the next one.
    `next_plan` and `next_preset` are for the run after the one that is shown; None if there is nothing to tell.
    """

    phase: Phase
    preset: Preset
    plan: Plan
    peer: Peer
    near: HostInfo | None = None
    far: HostInfo | None = None
    readings: "LiveReadings | None" = None
    summary: "Summary | None" = None
    verdict: "Verdict | None" = None
    expectation: Expectation = field(default_factory=Expectation)
    interim_summary: "Summary | None" = None
    peak: Expectation = field(default_factory=Expectation)
    problem: RunProblem | None = None
    notices: tuple[str, ...] = ()
    findings: "tuple[Finding, ...]" = ()
    windows: "tuple[FlowWindows, ...]" = ()
    is_paused: bool = False
    language: str = "en"
    units: RateUnit = RateUnit.MBIT
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    pass_percent: float = DEFAULT_PASS_PERCENT
    is_preset_auto: bool = False
    expected_sending_bit_s: int | None = None
    requested: Settings | None = None
    next_plan: Plan | None = None
    next_preset: Preset | None = None

    @property
    def settings(self) -> Settings:
        """The settings in force, including a change that the run has not reported yet."""
        return self.requested or (self.readings.settings if self.readings else self.plan.settings)

    @property
    def latest_summary(self) -> "Summary | None":
        """The summary of the ended run, or the interim one of the current run."""
        return self.summary or self.interim_summary

    @property
    def path(self) -> "PathResult | None":
        """The hops of the path; None if they were not traced, or are not known yet."""
        return None if self.latest_summary is None else self.latest_summary.path

    @property
    def is_in_phases(self) -> bool:
        """Whether a test is in progress that changes its settings by itself."""
        return self.phase.is_busy and self.readings is not None and self.readings.plan.has_phases

    @property
    def span_s(self) -> float:
        """The length of the plot's time axis."""
        elapsed_ns = self.readings.elapsed_ns if self.readings else 0
        return time_span_s(self.plan, elapsed_ns, has_ended=self.summary is not None)

    @property
    def response_bits(self) -> int | None:
        """The payload of a transaction if rates are shown as transactions a second, else None."""
        return response_bits_of(self.plan)

    @property
    def rate_top(self) -> float:
        """The rate at the top of the plot and at the end of each gauge's bar; 0 while nothing is known."""
        readings = self.readings
        if readings is None:
            return RateAxis().top((), self._highest_mark, self.span_s, 0)
        return readings.rate_axis.top(readings.periods, self._highest_mark, self.span_s, readings.elapsed_ns)

    @property
    def unit_bit_s(self) -> float:
        """The rate that sets the unit of gauges and plot: the highest expected one, or else the highest measured.

        A measured rate could set a unit that cuts the digits of the expected rate.
        """
        measured = self.readings.traces.highest_bit_s.values() if self.readings else ()
        return self._highest_mark or max(measured, default=0.0)

    @property
    def _highest_mark(self) -> float:
        """The highest expected rate of the run's periods, or of the next run before the first period."""
        if self.readings is not None and self.readings.periods:
            return highest_mark(self.readings.periods, self.peak)
        direction = self.plan.settings.direction
        return max((mark.bit_s for mark in marks(self.expectation[direction], self.peak[direction])), default=0.0)


def why_settings_fixed(peer: Peer, plan: Plan) -> str | None:
    """Return why the settings of a run cannot be changed, in words for the user; None if they can."""
    return _FIXED if plan.has_phases else why_unavailable(peer, Feature.LIVE_CHANGES)
