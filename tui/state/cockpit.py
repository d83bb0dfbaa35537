"""What is set and what is known: the state behind the cockpit, without a screen, a worker or a clock.

The screen's handlers tell it what has happened; it answers with a View for the instruments.
"""

from dataclasses import replace

from ...engine.model.events import Event
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import MAX_SESSIONS, Direction, End, Plan, Settings
from ...engine.results.summary import Summary
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, judge
from ..interfaces import RunHandle
from .instrument_values import Phase, RunProblem
from .live_readings import CockpitSnapshot, LiveReadings


class CockpitState:
    """One peer, one preset, one plan for the next run; and the run that goes on, or the last one."""

    def __init__(self, peer: Peer, plan: Plan, preset: Preset, pass_percent: float) -> None:
        self.peer, self.plan, self.preset = peer, plan, preset
        self.pass_percent = pass_percent
        self.phase = Phase.IDLE
        self.readings: LiveReadings | None = None
        self.summary: Summary | None = None
        self.verdict: Verdict | None = None
        self.diagnosis: LiveDiagnosis | None = None
        self.problem: RunProblem | None = None
        self.run: RunHandle | None = None
        self.run_id: str | None = None
        self.is_paused = False
        self._near: HostInfo | None = None
        self._far: HostInfo | None = None
        self._run_preset = preset
        self._notices: tuple[str, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether a run goes on, or is about to."""
        return self.phase not in {Phase.IDLE, Phase.DONE}

    @property
    def host_percent(self) -> float | None:
        """How busy all cores of this host are together, while a run goes on; None where that is not known."""
        if self.readings is None or not self.is_busy:
            return None
        return self.readings.cpu(End.NEAR).host_percent

    def snapshot(self) -> CockpitSnapshot:
        """Return what the instruments are to show now."""
        preset = self._run_preset if self.readings is not None else self.preset
        shown = self.readings or self.plan
        workload = self.readings.plan.workload if self.readings is not None else self.plan.workload
        return CockpitSnapshot(
            phase=self.phase,
            preset=self.preset,
            plan=self.plan,
            peer=self.peer,
            near=self._near,
            far=self._far,
            readings=self.readings,
            summary=self.summary,
            verdict=self.verdict,
            expectation=find_expectation(self.preset, self.plan.settings, self.plan.workload),
            interim_summary=self.run.meter.summary() if self.run and self.summary is None else None,
            peak=find_expectation(preset, shown.settings.with_changes(sessions=MAX_SESSIONS), workload),
            problem=self.problem,
            notices=tuple(self.run.notices) if self.run else self._notices,
            findings=self._findings(),
            is_paused=self.is_paused,
            pass_percent=self.pass_percent,
        )

    def _findings(self) -> tuple[Finding, ...]:
        """Return what limits: in the last seconds while a run goes on, then over its last stretch."""
        if self.diagnosis is None:
            return ()
        if self.summary is not None:
            return self.diagnosis.final_findings if self.summary.end.reason.is_regular else ()
        return self.diagnosis.current_findings if self.phase in {Phase.RUNNING, Phase.STOPPING} else ()

    def begin_run(self) -> None:
        """Clear the instruments for a run that is being opened."""
        self.phase, self.problem, self.is_paused = Phase.STARTING, None, False
        self.readings, self.summary, self.verdict = LiveReadings(self.plan), None, None
        self.diagnosis = None
        self._notices, self.run_id, self._run_preset = (), None, self.preset

    def run_opened(self, run: RunHandle) -> None:
        """Take a run that is open; one that nobody wants any more is stopped at once."""
        self.run, self.run_id, self.diagnosis = run, run.run_id, run.diagnosis
        run.set_pass_mark(self.pass_percent)
        if self.phase is Phase.STOPPING:
            run.stop()
        else:
            self.phase = Phase.RUNNING

    def handle_event(self, event: Event) -> None:
        """Take the run's next event."""
        if self.readings is not None:
            self.readings.feed(event)
            self._near, self._far = self.readings.near or self._near, self.readings.far or self._far

    def run_ended(self, summary: Summary) -> None:
        """Judge a run that has ended."""
        self.summary = summary
        self.verdict = judge(summary, pass_percent=self.pass_percent)
        self.finish(Phase.DONE)

    def set_pass_mark(self, percent: float) -> None:
        """Judge by another mark from now on: what goes on, and on the screen what has ended."""
        self.pass_percent = percent
        if self.diagnosis is not None:
            self.diagnosis.pass_percent = percent
        if self.run is not None:
            self.run.set_pass_mark(percent)
        if self.summary is not None:
            self.verdict = judge(self.summary, pass_percent=percent)

    def set_problem(self, problem: RunProblem) -> None:
        """Keep why there is no far end, or no run."""
        self.problem = problem
        self.finish(Phase.IDLE)

    def finish(self, phase: Phase) -> None:
        """Come to rest after a run, or after one that could not be."""
        if self.run is not None:
            self._notices = tuple(self.run.notices)
        self.run, self.phase, self.is_paused = None, phase, False

    def set_far_info(self, facts: HostInfo) -> None:
        """Keep who the far end said it is."""
        self._far, self.problem = facts, None

    def set_peer(self, peer: Peer) -> None:
        """Go to another far end, of which nothing is known yet."""
        self.peer, self._far, self.problem = peer, None, None

    def stop_run(self) -> None:
        """Stop the run that goes on; one that is still being opened, once it is."""
        if self.phase is Phase.RUNNING and self.run is not None:
            self.run.stop()
        self.phase = Phase.STOPPING

    def change_settings(
        self,
        *,
        direction: Direction | None = None,
        sessions: int | None = None,
        window: tuple[int | None] | None = None,
    ) -> bool:
        """Change a setting of the run that goes on and of the plan of the next one; return whether it changed."""
        before = self.plan.settings
        settings = Settings(
            before.direction if direction is None else direction,
            before.sessions if sessions is None else sessions,
            before.window_bytes if window is None else window[0],
        )
        if settings == before:
            return False
        self.plan = replace(self.plan, settings=settings)
        if self.run is not None and self.phase is Phase.RUNNING:
            self.run.change_settings(settings)
        return True
