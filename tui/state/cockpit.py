"""The state behind the cockpit: peer, preset, plan, current run, steps of settings, pace of frames.

Pure. The screen's handlers report events and changes; `snapshot()` returns the values for the instruments.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...engine.model.events import Event
from ...engine.model.host_info import HostInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import MAX_SESSIONS, SECOND_NS, Direction, End, Plan, Settings
from ...engine.model.workload import Workload, all_workloads
from ...engine.results.summary import Summary
from ...presets.diagnosis.bounds import FlowWindows
from ...presets.diagnosis.finding import Finding
from ...presets.diagnosis.live import LiveDiagnosis
from ...presets.expectation import find_expectation
from ...presets.preset import Preset
from ...presets.verdict import Verdict, judge
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..interfaces import RunHandle
from ..text.numbers import KIB
from ..text.parsing import DEFAULT_REFRESH_HZ
from .instrument_values import Phase, RunProblem
from .live_readings import CockpitSnapshot, LiveReadings

SESSION_STEPS: Final = (1, 2, 3, 5, 8, 10, 16, 32, 64, 128)
WINDOW_STEPS: Final = (None, *(k * KIB for k in (16, 32, 56, 64, 128, 256, 512, 1_024, 2_048, 4_096)))
DURATION_STEPS: Final = (*(s * SECOND_NS for s in (5, 10, 30, 60, 300)), None)
_FIRST_GRANTED_BYTES: Final = 128 * KIB  # net.ipv4.tcp_rmem, the middle value
_BUSY_PERCENT: Final = 90.0
_BUSY_FACTOR: Final = 4


def next_step(steps: Sequence[int | None], value: int | None, by: int) -> int | None:
    """Return the next step above (`by` 1) or below (`by` -1) a value; the value itself at the end.

    None sorts below every number.
    """
    at = -1 if value is None else value
    order = sorted(-1 if step is None else step for step in steps)
    beyond = [step for step in order if step > at] if by > 0 else [step for step in order[::-1] if step < at]
    step_value = beyond[0] if beyond else at
    return None if step_value == -1 else step_value


def next_window(window_bytes: int | None, by: int, used_bytes: int | None) -> int | None:
    """Return the next larger (`by` 1) or smaller (`by` -1) window.

    From `auto` it goes up from the window in use, which is what the kernel grants at first on Linux or more: a
    step to the smallest window would throttle the test.
    """
    if window_bytes is None and by > 0:
        start_bytes = max(used_bytes or 0, _FIRST_GRANTED_BYTES)
        return next((step for step in WINDOW_STEPS if step is not None and step > start_bytes), WINDOW_STEPS[-1])
    return next_step(WINDOW_STEPS, window_bytes, by)


def next_duration(value: int | None) -> int | None:
    """Return the next longer duration; after `until stopped` the shortest."""
    if value is None:
        return DURATION_STEPS[0]
    longer = next_step(DURATION_STEPS[:-1], value, 1)
    return None if longer == value else longer


def next_direction(value: Direction) -> Direction:
    """Return the next direction; after the last, the first."""
    order = list(Direction)
    return order[(order.index(value) + 1) % len(order)]


def next_workload(value: Workload) -> Workload:
    """Return the next workload; after the last, the first."""
    order = all_workloads()
    return order[(order.index(value) + 1) % len(order)]


class CockpitState:
    """The peer, the preset and the plan of the next run, and the current or the last run."""

    def __init__(self, peer: Peer, plan: Plan, preset: Preset, pass_percent: float) -> None:
        self.peer, self.plan, self.preset = peer, plan, preset
        self.variant = DEFAULT_VARIANT
        self.is_preset_auto = False
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
        self._run_link = preset, DEFAULT_VARIANT
        self._notices: tuple[str, ...] = ()

    @property
    def is_busy(self) -> bool:
        """Whether a run is being opened, active or stopping."""
        return self.phase not in {Phase.IDLE, Phase.DONE}

    @property
    def host_percent(self) -> float | None:
        """The mean load of this host's cores during a run; None if unknown."""
        if self.readings is None or not self.is_busy:
            return None
        return self.readings.cpu(End.NEAR).host_percent

    def snapshot(self) -> CockpitSnapshot:
        """Return the values for the instruments at this moment."""
        preset, variant = self._run_link if self.readings is not None else (self.preset, self.variant)
        settings = (self.readings or self.plan).settings
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
            expectation=find_expectation(self.preset, self.plan.settings, self.plan.workload, variant=self.variant),
            interim_summary=self.run.meter.summary() if self.run and self.summary is None else None,
            peak=find_expectation(preset, settings.with_changes(sessions=MAX_SESSIONS), workload, variant=variant),
            problem=self.problem,
            notices=tuple(self.run.notices) if self.run else self._notices,
            findings=self._findings(),
            windows=self._windows(),
            is_paused=self.is_paused,
            pass_percent=self.pass_percent,
            is_preset_auto=self.is_preset_auto,
        )

    def _findings(self) -> tuple[Finding, ...]:
        """Return the limits: those of the last seconds during a run, afterwards those of its last period."""
        if self.diagnosis is None:
            return ()
        if self.summary is not None:
            return self.diagnosis.final_findings if self.summary.end.reason.is_regular else ()
        return self.diagnosis.current_findings if self.phase in {Phase.RUNNING, Phase.STOPPING} else ()

    def _windows(self) -> tuple[FlowWindows, ...]:
        """Return the windows behind the findings."""
        if self.diagnosis is None:
            return ()
        return self.diagnosis.current_windows if self.summary is None else self.diagnosis.final_windows

    def begin_run(self) -> None:
        """Clear the instruments for the next run. `run_opened` or `set_problem` must follow."""
        self.phase, self.problem, self.is_paused = Phase.STARTING, None, False
        self.readings, self.summary, self.verdict = LiveReadings(self.plan), None, None
        self.diagnosis = None
        self._notices, self.run_id, self._run_link = (), None, (self.preset, self.variant)

    def run_opened(self, run: RunHandle) -> None:
        """Take over the opened run. Stop it at once if a stop was requested in the meantime."""
        self.run, self.run_id, self.diagnosis = run, run.run_id, run.diagnosis
        run.set_pass_mark(self.pass_percent)
        if self.phase is Phase.STOPPING:
            run.stop()
        else:
            self.phase = Phase.RUNNING

    def handle_event(self, event: Event) -> None:
        """Process the run's next event."""
        if self.readings is not None:
            self.readings.feed(event)
            self._near, self._far = self.readings.near or self._near, self.readings.far or self._far

    def run_ended(self, summary: Summary) -> None:
        """Judge a run that has ended."""
        self.summary = summary
        self.verdict = judge(summary, pass_percent=self.pass_percent)
        self.finish(Phase.DONE)

    def set_pass_mark(self, percent: float) -> None:
        """Change the pass mark of the current run, and judge the last run again."""
        self.pass_percent = percent
        if self.diagnosis is not None:
            self.diagnosis.pass_percent = percent
        if self.run is not None:
            self.run.set_pass_mark(percent)
        if self.summary is not None:
            self.verdict = judge(self.summary, pass_percent=percent)

    def set_problem(self, problem: RunProblem) -> None:
        """Record the reason for a missing far end or run, and return to idle."""
        self.problem = problem
        self.finish(Phase.IDLE)

    def finish(self, phase: Phase) -> None:
        """Release the run, keep its notices and enter the phase."""
        if self.run is not None:
            self._notices = tuple(self.run.notices)
        self.run, self.phase, self.is_paused = None, phase, False

    def set_far_info(self, info: HostInfo) -> None:
        """Record the far end's host information."""
        self._far, self.problem = info, None

    def set_preset(self, preset: Preset, variant: Variant = DEFAULT_VARIANT, *, is_auto: bool = False) -> None:
        """Select the preset of the next run, with the options of its link; `is_auto`: by both ends' interfaces."""
        self.preset, self.variant, self.is_preset_auto = preset, variant, is_auto

    def set_peer(self, peer: Peer) -> None:
        """Select another far end, whose host information is not yet known."""
        self.peer, self._far, self.problem = peer, None, None

    def stop_run(self) -> None:
        """Stop the current run; if it is still being opened, as soon as it is open."""
        if self.phase is Phase.RUNNING and self.run is not None:
            self.run.stop()
        self.phase = Phase.STOPPING

    def step_window(self, by: int) -> bool:
        """Go to the next larger (1) or smaller (-1) window; return whether it changed."""
        granted = None if self.readings is None else self.readings.window_in_use
        return self.change_settings(window=(next_window(self.plan.settings.window_bytes, by, granted),))

    def change_settings(
        self,
        *,
        direction: Direction | None = None,
        sessions: int | None = None,
        window: tuple[int | None] | None = None,
    ) -> bool:
        """Change settings of the current run and of the next one; return whether anything changed.

        Args:
            direction: The direction; None leaves it.
            sessions: The number of sessions; None leaves it.
            window: The window in bytes as a tuple, `(None,)` for the kernel's choice; None leaves it.
        """
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


class RefreshPacer:
    """Limits the frame rate. You must call `seconds_until_due` before a frame and `frame_drawn` after it.

    `clock` counts nanoseconds. If all cores of this host are busy, drawing would slow the measurement: then frames
    are four times as far apart.
    """

    def __init__(self, clock: Callable[[], int], refresh_hz: float = DEFAULT_REFRESH_HZ) -> None:
        self.clock = clock
        self._drawn_ns: int | None = None
        self.refresh_hz = refresh_hz
        self._is_busy = False

    @property
    def frame_ns(self) -> int:
        """The minimum time between two frames."""
        return round(SECOND_NS / self.refresh_hz) * (_BUSY_FACTOR if self._is_busy else 1)

    def seconds_until_due(self) -> float:
        """Return the time until the next frame may be drawn; 0 for now."""
        if self._drawn_ns is None:
            return 0.0
        return max(self._drawn_ns + self.frame_ns - self.clock(), 0) / SECOND_NS

    def frame_drawn(self, host_percent: float | None = None) -> None:
        """Start the wait for the next frame; `host_percent` is the load of all cores together."""
        self._drawn_ns = self.clock()
        self._is_busy = host_percent is not None and host_percent >= _BUSY_PERCENT
