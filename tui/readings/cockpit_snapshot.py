"""What the instruments of a run show at one moment: of a run that is live, ended or stored.

Pure. Each instrument takes its reading from it: `flow_reading`, `latency_reading`, `cpu_reading`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from ...engine.iperf3.protocol.missing_features import Feature, why_unavailable
from ...engine.model.events import Expectation
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan, Settings
from ...engine.results.summary import Summary
from ...engine.results.sums.traces import PlotPeriod
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.window_bounds import FlowWindows
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ..words.numbers import RateUnit
from ..words.summary import response_bits_of
from .live_readings import LiveReadings
from .plot_values import RateAxis, highest_mark, time_span_s

_FIXED: Final = "a responsiveness test sets direction and sessions itself: press space to stop it first"


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
    readings: LiveReadings | None = None
    summary: Summary | None = None
    verdict: Verdict | None = None
    expectation: Expectation = field(default_factory=Expectation)
    interim_summary: Summary | None = None
    peak: Expectation = field(default_factory=Expectation)
    problem: RunProblem | None = None
    notices: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    windows: tuple[FlowWindows, ...] = ()
    is_paused: bool = False
    language: str = "en"
    units: RateUnit = RateUnit.MBIT
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
    def latest_summary(self) -> Summary | None:
        """The summary of the ended run, or the interim one of the current run."""
        return self.summary or self.interim_summary

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
        elapsed_ns = self.readings.elapsed_ns if self.readings else 0
        return self._rate_axis.top(self._periods, self.peak, self.span_s, elapsed_ns)

    @property
    def unit_bit_s(self) -> float:
        """The rate that sets the unit of gauges and plot: the highest expected one, or else the highest measured.

        A measured rate could set a unit that cuts the digits of the expected rate.
        """
        measured = self.readings.traces.highest_bit_s.values() if self.readings else ()
        return highest_mark(self._periods, self.peak) or max(measured, default=0.0)

    @property
    def _periods(self) -> Sequence[PlotPeriod]:
        """The periods of the run; before the first run, the period of the next one."""
        periods = self.readings.periods if self.readings else ()
        return periods or (PlotPeriod(0.0, self.plan.settings, self.expectation),)

    @property
    def _rate_axis(self) -> RateAxis:
        return self.readings.rate_axis if self.readings else RateAxis()


def why_settings_fixed(peer: Peer, plan: Plan) -> str | None:
    """Return why the settings of a run cannot be changed, in words for the user; None if they can."""
    return _FIXED if plan.has_phases else why_unavailable(peer, Feature.LIVE_CHANGES)
