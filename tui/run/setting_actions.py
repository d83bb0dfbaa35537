"""The keys that step the settings of a run: sessions, window, rate, direction, workload, probe, duration.

Sessions, window, rate, datagram size and direction change the current run as well. The others are for the next run.
If the far end or the workload does not have a setting, its key says why.
"""

from dataclasses import replace
from typing import Final

from textual import on

from ...engine.model.workload import Workload
from ...engine.protocol.foreign.missing_features import Feature, most_sessions, why_unavailable
from ...engine.results.responsiveness.plan import with_path, without_path
from ..gauges.instruments import InstrumentScreen
from ..gauges.run_header import SettingsBar
from ..kit.screens.feature_app import app_of
from ..readings.cockpit_snapshot import Phase
from ..readings.setting_steps import (
    next_datagram,
    next_direction,
    next_duration,
    next_step,
    next_workload,
    plan_with_workload,
    session_steps,
)
from ..words import numbers
from .cockpit_state import CockpitState

_KEYS_WITHOUT_LIST: Final = frozenset({"n", "l", "y"})  # a dialog of its own, on or off
_FEATURES: Final = {"[]": Feature.WINDOW, "w": Feature.WORKLOADS}
_KEYS_OF_NEXT_RUN: Final = frozenset({"t", "w"})


class SettingActions(InstrumentScreen):
    """The keys of the cockpit that change settings. A subclass sets `state` and draws it."""

    state: CockpitState

    def paint(self) -> None:
        """Draw the state."""
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

    def action_faster(self) -> None:
        """Go one step up in the rate of datagrams; the last step is no limit."""
        self._step_rate(1)

    def action_slower(self) -> None:
        """Go one step down in the rate of datagrams."""
        self._step_rate(-1)

    def action_datagram(self) -> None:
        """Go to the next datagram size."""
        if self._refuse_without_datagrams() or self._refuse_live_change():
            return
        size = next_datagram(self.state.plan.settings.datagram_bytes)
        if self.state.change_settings(datagram=(size,)):
            self.paint()

    def action_direction(self) -> None:
        """Go to the next direction."""
        if not self._refuse_live_change() and self.state.change_settings(
            direction=next_direction(self.state.plan.settings.direction)
        ):
            self.paint()

    @on(SettingsBar.Clicked)
    def _open_setting(self, message: SettingsBar.Clicked) -> None:
        """Open the list of values of the setting that was clicked, or do what its key does if it has no list."""
        if message.key in _KEYS_WITHOUT_LIST:
            self.app.simulate_key(message.key)  # pyright: ignore[reportUnknownMemberType] (Textual: App of what)
            return
        if message.key not in _KEYS_OF_NEXT_RUN and self._refuse_live_change():
            return
        if (feature := _FEATURES.get(message.key)) is not None and self._refuse_unavailable(feature):
            return
        from .setting_chooser import SettingChooser, setting_choices

        choices = setting_choices(self.state, message.key, self._set_duration, self._set_workload)
        if choices is None:
            return

        def use(number: int | None) -> None:
            if number is not None:
                choices.choose[number]()
                self.paint()

        app_of(self).push_screen(SettingChooser(choices), use)

    def action_workload(self) -> None:
        """Go to the next workload that the far end has, with its default sizes, for the next run."""
        if self._refuse_unavailable(Feature.WORKLOADS):
            return
        workload = next_workload(self.state.plan.workload)
        if workload.is_transactional and self._refuse_unavailable(Feature.TRANSACTIONS):
            workload = next_workload(workload, lambda other: not other.is_transactional)
        self._set_workload(workload)

    def _set_workload(self, workload: Workload) -> None:
        if self._refuse_unavailable(Feature.WORKLOADS):
            return
        if workload.is_transactional and self._refuse_unavailable(Feature.TRANSACTIONS):
            return
        self.state.set_plan(plan_with_workload(self.state.plan, workload))
        if self.state.phase is Phase.RUNNING:
            self.notify("It applies to the next test.", title=str(workload))
        self.paint()

    def action_probe(self) -> None:
        """Turn the latency probe of the next run on or off. A probe starts before the payload."""
        plan = self.state.plan
        if plan.workload.is_transactional:
            self.notify("The probe is for streams; this workload measures its own latency.")
            return
        if self._refuse_unavailable(Feature.NO_PROBE if plan.probe else Feature.PROBE):
            return
        self.state.plan = replace(without_path(plan), probe=not plan.probe)  # a path is traced beside the probe
        self._tell_of_next_test("latency probe", is_on=not plan.probe)
        self.paint()

    @property
    def how_to_trace(self) -> str:
        """How the next test shows the hops of the path."""
        return f"This test has not traced its path. Press {self.key_of('trace_path')} before the next one."

    def action_trace_path(self) -> None:
        """Trace the hops of the path in the next run, or not."""
        plan = self.state.plan
        if plan.workload is not Workload.STREAM:
            self.notify(f"Only a stream loads the path: press {self.key_of('workload')} for that workload.")
            return
        if not plan.path and self._refuse_unavailable(Feature.LOAD_PHASES):
            return
        self.state.plan = without_path(plan) if plan.path else with_path(replace(plan, bytes_limit=None))
        self._tell_of_next_test("hops", is_on=not plan.path)
        self.paint()

    def _tell_of_next_test(self, name: str, *, is_on: bool) -> None:
        """Say that an option is for the next test, if one is in progress."""
        if self.state.phase is Phase.RUNNING:
            self.notify("It applies to the next test.", title=f"{name} {'on' if is_on else 'off'}")

    def action_duration(self) -> None:
        """Go to the next duration, for the next run."""
        self._set_duration(next_duration(self.state.plan.duration_ns))

    def _set_duration(self, duration_ns: int | None) -> None:
        self.state.plan = replace(self.state.plan, duration_ns=duration_ns)
        if self.state.is_in_phases:  # the header shows the plan of the test
            duration = numbers.duration(self.state.plan.duration_ns)
            self.notify("It applies to the next test.", title=duration)
        self.paint()

    def _refuse_unavailable(self, feature: Feature) -> bool:
        """Return whether the far end lacks a feature, and tell the user why."""
        return self._refuse_for(why_unavailable(self.state.peer, feature))

    def _refuse_live_change(self) -> bool:
        """Return whether the settings of the current run are fixed, and tell the user why."""
        return self._refuse_for(self.state.why_fixed)

    def _refuse_for(self, reason: str | None) -> bool:
        if reason is not None:
            self.notify(reason, severity="warning")
        return reason is not None

    def _step_sessions(self, by: int) -> None:
        if self._refuse_live_change():
            return
        if self.state.change_settings(sessions=self._next_sessions(by)):
            self.paint()

    def _next_sessions(self, by: int) -> int | None:
        """Return the next step of sessions, of those that the far end has."""
        most, current = most_sessions(self.state.peer), self.state.plan.settings.sessions
        if most is not None and by > 0 and current >= most:
            self.notify(f"This remote end has at most {numbers.quantity(most, 'connection')} in a direction.")
        return next_step(session_steps(self.state.peer), current, by)

    def _step_rate(self, by: int) -> None:
        is_refused = self._refuse_without_datagrams() or self._refuse_live_change()
        if not is_refused and self.state.step_rate(by):
            self.paint()

    def _refuse_without_datagrams(self) -> bool:
        """Return whether the next test has no datagrams, and tell the user so."""
        has_datagrams = self.state.plan.workload.is_datagram
        if not has_datagrams:
            self.notify(f"Rate and datagram size are for the workload udp: press {self.key_of('workload')}.")
        return not has_datagrams

    def _step_window(self, by: int) -> None:
        if self.state.plan.workload.is_datagram:
            self.notify("A window is for TCP; j and k change the rate of datagrams, b their size.")
        elif self._refuse_unavailable(Feature.WINDOW):
            return
        elif not self._refuse_live_change() and self.state.step_window(by):
            self.paint()
