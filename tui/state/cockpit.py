"""What is set and what is known: the state behind the cockpit, without a screen, a worker or a clock.

The screen's handlers tell it what has happened; it answers with a View for the instruments.
"""

from dataclasses import replace

from ...engine.model.events import Event
from ...engine.model.host_info import HostFacts
from ...engine.model.peer import Peer
from ...engine.model.plan import MAX_SESSIONS, Direction, End, Plan, Settings
from ...engine.results.summary import Summary
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.live import Watch
from ...presets.expectation import expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, judge
from ..interfaces import ConductedRun
from .instrument_values import Phase, Problem
from .live_readings import Board, View


class Desk:
    """One peer, one preset, one plan for the next run; and the run that goes on, or the last one."""

    def __init__(self, peer: Peer, plan: Plan, preset: Preset, pass_percent: float) -> None:
        self.peer, self.plan, self.preset = peer, plan, preset
        self.pass_percent = pass_percent
        self.phase = Phase.IDLE
        self.board: Board | None = None
        self.summary: Summary | None = None
        self.verdict: Verdict | None = None
        self.why: Watch | None = None
        self.problem: Problem | None = None
        self.run: ConductedRun | None = None
        self.run_id: str | None = None
        self.is_paused = False
        self._near: HostFacts | None = None
        self._far: HostFacts | None = None
        self._run_preset = preset
        self._notices: tuple[str, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether a run goes on, or is about to."""
        return self.phase not in {Phase.IDLE, Phase.DONE}

    @property
    def host_percent(self) -> float | None:
        """How busy all cores of this host are together, while a run goes on; None where that is not known."""
        if self.board is None or not self.is_busy:
            return None
        return self.board.cpu(End.NEAR).host_percent

    def view(self) -> View:
        """Return what the instruments are to show now."""
        preset = self._run_preset if self.board is not None else self.preset
        shown = self.board or self.plan
        workload = self.board.plan.workload if self.board is not None else self.plan.workload
        return View(
            phase=self.phase,
            preset=self.preset,
            plan=self.plan,
            peer=self.peer,
            near=self._near,
            far=self._far,
            board=self.board,
            summary=self.summary,
            verdict=self.verdict,
            expectation=expectation(self.preset, self.plan.settings, self.plan.workload),
            so_far=self.run.meter.summary() if self.run and self.summary is None else None,
            peak=expectation(preset, shown.settings.changed(sessions=MAX_SESSIONS), workload),
            problem=self.problem,
            notices=tuple(self.run.notices) if self.run else self._notices,
            findings=self._findings(),
            is_paused=self.is_paused,
            pass_percent=self.pass_percent,
        )

    def _findings(self) -> tuple[Finding, ...]:
        """Return what limits: in the last seconds while a run goes on, then over its last stretch."""
        if self.why is None:
            return ()
        if self.summary is not None:
            return self.why.whole if self.summary.end.reason.is_regular else ()
        return self.why.now if self.phase in {Phase.RUNNING, Phase.STOPPING} else ()

    def begin(self) -> None:
        """Clear the instruments for a run that is being opened."""
        self.phase, self.problem, self.is_paused = Phase.STARTING, None, False
        self.board, self.summary, self.verdict = Board(self.plan), None, None
        self.why = None
        self._notices, self.run_id, self._run_preset = (), None, self.preset

    def opened(self, run: ConductedRun) -> None:
        """Take a run that is open; one that nobody wants any more is stopped at once."""
        self.run, self.run_id, self.why = run, run.run_id, run.why
        run.judge_by(self.pass_percent)
        if self.phase is Phase.STOPPING:
            run.stop()
        else:
            self.phase = Phase.RUNNING

    def take(self, event: Event) -> None:
        """Take the run's next event."""
        if self.board is not None:
            self.board.feed(event)
            self._near, self._far = self.board.near or self._near, self.board.far or self._far

    def over(self, summary: Summary) -> None:
        """Judge a run that has ended."""
        self.summary = summary
        self.verdict = judge(summary, pass_percent=self.pass_percent)
        self.rest(Phase.DONE)

    def set_pass_mark(self, percent: float) -> None:
        """Judge by another mark from now on: what goes on, and on the screen what has ended."""
        self.pass_percent = percent
        if self.why is not None:
            self.why.pass_percent = percent
        if self.run is not None:
            self.run.judge_by(percent)
        if self.summary is not None:
            self.verdict = judge(self.summary, pass_percent=percent)

    def failed(self, problem: Problem) -> None:
        """Keep why there is no far end, or no run."""
        self.problem = problem
        self.rest(Phase.IDLE)

    def rest(self, phase: Phase) -> None:
        """Come to rest after a run, or after one that could not be."""
        if self.run is not None:
            self._notices = tuple(self.run.notices)
        self.run, self.phase, self.is_paused = None, phase, False

    def answered(self, facts: HostFacts) -> None:
        """Keep who the far end said it is."""
        self._far, self.problem = facts, None

    def connect(self, peer: Peer) -> None:
        """Go to another far end, of which nothing is known yet."""
        self.peer, self._far, self.problem = peer, None, None

    def stop(self) -> None:
        """Stop the run that goes on; one that is still being opened, once it is."""
        if self.phase is Phase.RUNNING and self.run is not None:
            self.run.stop()
        self.phase = Phase.STOPPING

    def change(
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
            self.run.change(settings)
        return True
