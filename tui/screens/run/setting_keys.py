"""Keys that change one setting by one step, in the current run and in the plan of the next."""

from dataclasses import replace

from ...state.cockpit import (
    SESSION_STEPS,
    WINDOW_STEPS,
    CockpitState,
    next_direction,
    next_duration,
    next_step,
    next_workload,
)
from ...state.instrument_values import Phase
from ..base_screen import InstrumentScreen


class SettingKeysScreen(InstrumentScreen):
    """A screen whose keys change the settings in `state`. A subclass must implement `paint`."""

    state: CockpitState

    def paint(self) -> None:
        """Draw the current state."""
        raise NotImplementedError

    def action_more_sessions(self) -> None:
        """Go one step up in sessions."""
        self._step_sessions(1)

    def action_fewer_sessions(self) -> None:
        """Go one step down in sessions."""
        self._step_sessions(-1)

    def action_larger_window(self) -> None:
        """Go one step up in the window; `auto` is the lowest step."""
        self._step_window(1)

    def action_smaller_window(self) -> None:
        """Go one step down in the window."""
        self._step_window(-1)

    def action_direction(self) -> None:
        """Go to the next direction."""
        if self.state.change_settings(direction=next_direction(self.state.plan.settings.direction)):
            self.paint()

    def action_workload(self) -> None:
        """Go to the next workload, with its default sizes, for the next run."""
        workload = next_workload(self.state.plan.workload)
        probe = self.state.plan.probe and not workload.is_transactional
        self.state.plan = replace(
            self.state.plan, workload=workload, request_bytes=None, response_bytes=None, burst=1, probe=probe
        )
        if self.state.phase is Phase.RUNNING:
            self.notify("It is carried from the next run on.", title=str(workload), markup=False)
        self.paint()

    def action_probe(self) -> None:
        """Turn the latency probe of the next run on or off: it starts before the payload does."""
        plan = self.state.plan
        if plan.workload.is_transactional:
            self.notify("A probe goes beside a stream; transactions tell their own latency.", markup=False)
            return
        self.state.plan = replace(plan, probe=not plan.probe)
        if self.state.phase is Phase.RUNNING:
            state = "off" if plan.probe else "on"
            self.notify("That is in force from the next run on.", title=f"latency probe {state}", markup=False)
        self.paint()

    def action_duration(self) -> None:
        """Go to the next duration, for the next run."""
        self.state.plan = replace(self.state.plan, duration_ns=next_duration(self.state.plan.duration_ns))
        self.paint()

    def action_pause(self) -> None:
        """Freeze the instruments or release them; the run and its log continue either way."""
        if not self.state.is_busy:
            self.notify("There is nothing to hold still: no run goes on.", markup=False)
            return
        self.state.is_paused = not self.state.is_paused
        self.paint()

    def _step_sessions(self, by: int) -> None:
        if self.state.change_settings(sessions=next_step(SESSION_STEPS, self.state.plan.settings.sessions, by)):
            self.paint()

    def _step_window(self, by: int) -> None:
        if self.state.change_settings(window=(next_step(WINDOW_STEPS, self.state.plan.settings.window_bytes, by),)):
            self.paint()
