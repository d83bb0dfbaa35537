"""The state behind the cockpit: peer, preset, plan, current run, steps of settings.

Pure. The screen's handlers report events and changes. `snapshot()` returns the values for the instruments.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...engine.model.directions import Direction, End
from ...engine.model.errors import PlanError
from ...engine.model.expected_rate import Expectation
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import MAX_SESSIONS, Plan, Settings
from ...engine.model.workload import Workload
from ...engine.results.rate_and_loss import host_percent
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.sending_rate import SendingRate, choose_rate, expected_rate_bit_s
from ...presets.verdict import judge
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..readings.cockpit_snapshot import CockpitSnapshot, Phase, why_settings_fixed
from ..readings.setting_steps import next_rate, next_window
from ..words.redaction import REDACTION

if TYPE_CHECKING:
    from ...engine.model.events import Event
    from ...engine.results.summary import Summary
    from ...presets.diagnosis.finding import Finding
    from ...presets.diagnosis.window_bounds import FlowWindows
    from ...presets.verdict import Verdict
    from ..readings.cockpit_snapshot import RunProblem
    from ..readings.live_readings import LiveReadings
    from ..session.run_session import RunSession


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is chosen for a run: its plan, and its preset with the options of its link.

    `is_auto`: the interfaces of both ends choose the preset.
    """

    plan: Plan
    preset: Preset
    variant: Variant
    is_auto: bool


class CockpitState:
    """The peer, the preset and the plan of the next run, and the current or the last run."""

    def __init__(
        self,
        peer: Peer,
        plan: Plan,
        preset: Preset,
        pass_percent: float,
        sending_rate: SendingRate | None = None,
        *,
        is_preset_auto: bool = False,
    ) -> None:
        self.peer = peer
        self.pass_percent = pass_percent
        self.phase = Phase.IDLE
        self.problem: RunProblem | None = None
        self.is_paused = False
        self.run: RunSession | None = None  # the one that is shown: the current or the last one
        self.readings: LiveReadings | None = None
        self.summary: Summary | None = None
        self._next = _Choice(plan, preset, DEFAULT_VARIANT, is_preset_auto)
        self._at_start = self._next  # when the run that is shown began
        self._requested: Settings | None = None  # a change that the run has not reported yet
        self._hosts: dict[End, HostInfo] = {}
        self._ip_version: int | None = None
        typed = plan.settings.rate_bit_s if sending_rate is None else sending_rate
        self._sending_rate: SendingRate | None = typed
        self._apply_sending_rate()

    @property
    def plan(self) -> Plan:
        """The plan of the next run."""
        return self._next.plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._next = replace(self._next, plan=plan)

    @property
    def preset(self) -> Preset:
        """The preset of the next run."""
        return self._next.preset

    @property
    def is_preset_auto(self) -> bool:
        """Whether the interfaces of both ends choose the preset of the next run."""
        return self._next.is_auto

    @property
    def run_id(self) -> str | None:
        """The id of the run that is shown, once it is open."""
        return None if self.run is None else self.run.run_id

    @property
    def verdict(self) -> "Verdict | None":
        """The verdict on the run that has ended, by the pass mark in force."""
        return None if self.summary is None else judge(self.summary, pass_percent=self.pass_percent)

    @property
    def is_busy(self) -> bool:
        """Whether a run is being opened, active or stopping."""
        return self.phase.is_busy

    @property
    def is_in_phases(self) -> bool:
        """Whether a test is in progress that changes its settings by itself."""
        return self.is_busy and self.readings is not None and self.readings.plan.has_phases

    @property
    def why_fixed(self) -> str | None:
        """Why the settings of the current run cannot be changed, in words for the user; None if they can."""
        return why_settings_fixed(self.peer, self.readings.plan) if self.is_busy and self.readings else None

    @property
    def host_percent(self) -> float | None:
        """The mean load of this host's cores during a run; None if unknown."""
        if self.readings is None or not self.is_busy:
            return None
        return host_percent(self.readings.meter.shown.ends[End.NEAR].cores or ())

    def snapshot(self) -> CockpitSnapshot:
        """Return the values for the instruments at this moment."""
        plan, settings = self._shown()
        peak = self._expectation_of_shown(settings.with_changes(sessions=MAX_SESSIONS))
        return CockpitSnapshot(
            phase=self.phase,
            preset=self._shown_choice.preset,
            plan=plan,
            requested=self._requested,
            next_plan=self._next_plan(),
            next_preset=self.preset if self.preset.id != self._shown_choice.preset.id else None,
            peer=self.peer,
            near=self._hosts.get(End.NEAR),
            far=self._hosts.get(End.FAR),
            readings=self.readings,
            summary=self.summary,
            verdict=self.verdict,
            expectation=self._expectation_of_shown(settings),
            interim_summary=self.run.meter.summary() if self.run and self.is_busy else None,
            peak=peak,
            problem=self.problem,
            notices=tuple(self.run.notices) if self.run else (),
            findings=self._findings(),
            windows=self._windows(),
            is_paused=self.is_paused,
            pass_percent=self.pass_percent,
            is_preset_auto=self._shown_choice.is_auto,
            expected_sending_bit_s=(
                expected_rate_bit_s(settings, self._expectation_of_shown) if plan.workload.is_datagram else None
            ),
        )

    def _shown(self) -> tuple[Plan, Settings]:
        """Return the plan and the settings of the run that is shown; before the first, those of the next one."""
        if self.readings is None:
            return self.plan, self.plan.settings
        return self.readings.plan, self._requested or self.readings.settings

    @property
    def _shown_choice(self) -> _Choice:
        """What was chosen for the run that is shown; before the first, what is chosen for the next one."""
        return self._next if self.readings is None else self._at_start

    def _expectation_of_shown(self, settings: Settings) -> Expectation:
        """Return the rates to expect of the run that is shown under these settings."""
        choice = self._shown_choice
        return self._find(choice.preset, settings, self._shown()[0].workload, choice.variant)

    def _next_plan(self) -> Plan | None:
        """Return the plan of the next run, if another one is shown.

        A test in phases sets its own settings: beside it, only a plan that was changed since is of interest.
        """
        is_unchanged = self.is_in_phases and self.plan == self._at_start.plan
        return None if self.readings is None or is_unchanged else self.plan

    def _findings(self) -> "tuple[Finding, ...]":
        """Return the findings of the last seconds during a run, and of its last period after it."""
        if self.run is None:
            return ()
        if self.summary is not None:
            return () if self.summary.end.reason.is_fault else self.run.diagnosis.final_findings
        return self.run.diagnosis.current_findings if self.is_busy else ()

    def _windows(self) -> "tuple[FlowWindows, ...]":
        """Return the windows behind the findings."""
        if self.run is None:
            return ()
        diagnosis = self.run.diagnosis
        return diagnosis.current_windows if self.summary is None else diagnosis.final_windows

    def begin_run(self, plan: Plan | None = None) -> None:
        """Clear the instruments for a run of this plan, by default the plan of the next run.

        `run_opened` or `set_problem` must follow.
        """
        from ..readings.live_readings import (
            LiveReadings,  # with the meter, which the app's first frame does not need
        )

        self.phase, self.problem, self.is_paused = Phase.STARTING, None, False
        self.readings, self.summary, self.run = LiveReadings(plan or self.plan), None, None
        self._at_start, self._requested = self._next, None

    def run_opened(self, run: "RunSession") -> None:
        """Take over the opened run. Stop it at once if a stop was requested in the meantime."""
        self.run = run
        if self.readings is not None:
            self.readings.meter = run.meter
        run.diagnosis.pass_percent = self.pass_percent
        if self.phase is Phase.STOPPING:
            run.stop()
        else:
            self.phase = Phase.RUNNING

    def handle_event(self, event: "Event") -> None:
        """Process the run's next event."""
        if self.readings is not None:
            self.readings.log.add_event(event)
            if self._requested == self.readings.settings:
                self._requested = None
            if (started := self.readings.meter.started) is not None:
                self._hosts = {End.NEAR: started.near, End.FAR: started.far}
                self._ip_version = started.ip_version

    def run_ended(self, summary: "Summary") -> None:
        """Show the results of a run that has ended."""
        self.summary = summary
        self._return_to(Phase.DONE)

    def set_pass_mark(self, percent: float) -> None:
        """Change the pass mark of the current run, and judge the last run again."""
        self.pass_percent = percent
        if self.run is not None:
            self.run.diagnosis.pass_percent = percent

    def set_problem(self, problem: "RunProblem") -> None:
        """Record why there is no far end or no run, and return to idle."""
        self.problem = problem
        self._return_to(Phase.IDLE)

    def _return_to(self, phase: Phase) -> None:
        self.phase, self.is_paused, self._requested = phase, False, None

    def set_far_info(self, info: HostInfo) -> None:
        """Record the far end's host information."""
        REDACTION.learn_far_end(str(self.peer), info.hostname)
        self._hosts[End.FAR], self.problem = info, None

    def set_preset(self, preset: Preset, variant: Variant = DEFAULT_VARIANT, *, is_auto: bool = False) -> None:
        """Select the preset of the next run with its link's options. `is_auto`: the interfaces have chosen it."""
        self._next = _Choice(self.plan, preset, variant, is_auto)
        if not self.is_busy:  # a run in progress keeps its rate, and the next plan has the same
            self._apply_sending_rate()

    def set_plan(self, plan: Plan) -> None:
        """Set the plan of the next run. Datagrams get the requested rate, or else the expected one."""
        self.plan = plan
        self._apply_sending_rate()

    def set_peer(self, peer: Peer) -> None:
        """Select another far end, whose host is not known yet. A run against the far end before it is cleared."""
        if str(peer) != str(self.peer):
            self.readings = self.summary = self.run = None
            self.phase = Phase.IDLE
        self.peer, self.problem, self._ip_version = peer, None, None
        self._hosts.pop(End.FAR, None)

    def stop_run(self) -> None:
        """Stop the current run, or stop it as soon as it is open."""
        if self.phase is Phase.RUNNING and self.run is not None:
            self.run.stop()
        self.phase = Phase.STOPPING

    def step_window(self, by: int) -> bool:
        """Go to the next larger (1) or smaller (-1) window; return whether it changed."""
        granted = None if self.readings is None else self.readings.window_in_use
        return self.change_settings(window=(next_window(self.plan.settings.window_bytes, by, granted),))

    @property
    def expected_sending_bit_s(self) -> int | None:
        """The expected UDP payload rate of one direction under the plan's settings; None if no rate is expected."""
        return expected_rate_bit_s(self.plan.settings, self._find_expectation)

    def step_rate(self, by: int) -> bool:
        """Go to the next higher (1) or lower (-1) rate of datagrams; return whether it changed."""
        return self.set_rate(next_rate(self.plan.settings.rate_bit_s, self.expected_sending_bit_s, by))

    def set_rate(self, bit_s: int | None) -> bool:
        """Set the rate of datagrams; None is no limit. Return whether it changed."""
        before, expected = self._sending_rate, self.expected_sending_bit_s
        self._sending_rate = "max" if bit_s is None else "expected" if bit_s == expected else bit_s
        return self.change_settings() or before != self._sending_rate

    def change_settings(
        self,
        *,
        direction: Direction | None = None,
        sessions: int | None = None,
        window: tuple[int | None] | None = None,
        datagram: tuple[int | None] | None = None,
    ) -> bool:
        """Change settings of the current run and of the next one; return whether anything changed.

        If the rate of datagrams is the expected one, it follows the settings.

        Args:
            direction: The direction; None leaves it.
            sessions: The number of sessions; None leaves it.
            window: The window in bytes as a tuple, `(None,)` for the kernel's choice; None leaves it.
            datagram: The datagram's size in bytes as a tuple, `(None,)` for the path's MTU; None leaves it.
        """
        before = self.plan.settings
        if sessions is not None and sessions > 1 and before.searches_rate:  # several sessions end a search
            self._sending_rate = before.rate_bit_s
            before = replace(before, searches_rate=False)
        settings = replace(
            before,
            direction=before.direction if direction is None else direction,
            sessions=before.sessions if sessions is None else sessions,
            window_bytes=before.window_bytes if window is None else window[0],
            datagram_bytes=before.datagram_bytes if datagram is None else datagram[0],
        )
        settings = self._with_rate(settings)
        if settings == self.plan.settings:
            return False
        self.plan = replace(self.plan, settings=settings)
        if self.run is not None and self.phase is Phase.RUNNING and self.why_fixed is None:
            self._requested = self._settings_of_run(settings)
            self.run.change_settings(self._requested)
        return True

    def _settings_of_run(self, settings: Settings) -> Settings:
        """Return the settings for the current run. With another workload, only sessions and direction change."""
        running = self.readings
        if running is None or running.plan.workload is self.plan.workload:
            return settings
        return replace(
            running.settings,
            direction=settings.direction,
            sessions=settings.sessions,
            searches_rate=running.settings.searches_rate and settings.sessions == 1,
        )

    def _apply_sending_rate(self) -> None:
        self.plan = replace(self.plan, settings=self._with_rate(self.plan.settings))

    def _with_rate(self, settings: Settings) -> Settings:
        """Return settings of datagrams with the rate in force. Settings of TCP stay as they are."""
        if not self.plan.workload.is_datagram:
            return settings
        try:
            return choose_rate(settings, self._sending_rate, self._find_expectation)[0]
        except PlanError:  # nothing is expected of this link, or several sessions cannot search
            return choose_rate(replace(settings, searches_rate=False), None, self._find_expectation)[0]

    def _find_expectation(self, settings: Settings) -> Expectation:
        return self._find(self.preset, settings, self.plan.workload, self._next.variant)

    def _find(self, preset: Preset, settings: Settings, workload: Workload, variant: Variant) -> Expectation:
        """Return the rates to expect. The last run with this peer tells the IP version, or else its address."""
        version = self._ip_version or self.peer.ip_version
        return find_expectation(preset, settings, workload, variant=variant, ip_version=version)
