"""The cockpit: the screen to set up a run, watch it, change its settings live and read the verdict.

A background task iterates over the run and only posts messages. The handlers here update CockpitState, which owns
all state, and pass one CockpitSnapshot at a time to the widgets. Every event changes the state, but the frame rate
is limited. The keys that open dialogs and other screens import them: the first frame comes 40 ms earlier.
"""

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.worker import Worker

from ...engine.model.errors import LinkgaugeError
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ...presets.auto_select import AUTO, NO_PRESET
from ...presets.preset import Preset
from ..gauges.instruments import Instruments
from ..gauges.run_header import SettingsBar, TitleBar
from ..kit.actions import ScreenKind, bindings
from ..kit.screens.feature_app import app_of
from ..kit.widgets.key_footer import KeyFooter
from ..readings.cockpit_snapshot import Phase
from ..readings.setting_steps import load_plan
from ..session.preferences import Preferences
from ..session.run_spec import find_initial_preset
from ..words import numbers
from .background_tasks import (
    DeviceChanged,
    EventArrived,
    FarAnswered,
    RepaintNeeded,
    RunEnded,
    RunOpened,
    StartFailed,
    follow_devices,
    follow_run,
    query_far_end,
)
from .cockpit_state import CockpitState
from .frame_rate import FramePacer
from .setting_actions import SettingActions

if TYPE_CHECKING:
    from ..readings.live_readings import LiveReadings
    from ..readings.waited_device import WaitedDevice
    from ..session.run_spec import RunSpec
    from .run_services import RunServices

_log = logging.getLogger(__name__)

# A far end that does not answer a stop must not keep the app from closing.
_QUIT_TIMEOUT_S: Final = 3.0


class CockpitScreen(SettingActions):
    """The instruments of a run and every action on it.

    Args:
        services: Opens runs, queries far ends, exports and stores.
        spec: The first run.
        preferences: Units, refresh rate and pass mark.
        language: The language of preset names.
        is_preset_auto: Select the preset by both ends' interfaces as soon as the far end answers.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.COCKPIT
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.COCKPIT)

    def __init__(
        self,
        services: "RunServices",
        spec: "RunSpec",
        preferences: Preferences,
        *,
        language: str = "en",
        is_preset_auto: bool = False,
    ) -> None:
        super().__init__()
        self.catalog = services.catalog
        preset = spec.judging.chosen or NO_PRESET
        self.state = CockpitState(
            spec.peer, spec.plan, preset, preferences.pass_mark, spec.sending_rate, is_preset_auto=is_preset_auto
        )
        self.pacer = FramePacer(services.clock, preferences.refresh_hz)
        self._units = preferences.units
        self._services = services
        self._language = language
        self._is_paint_scheduled = False
        self._is_quitting = False
        self._has_new_key = False
        self._device: WaitedDevice | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the next run."""
        return self.state.plan

    @property
    def preset(self) -> Preset:
        """The preset of the next run."""
        return self.state.preset

    @property
    def phase(self) -> Phase:
        """The phase of the current run."""
        return self.state.phase

    @property
    def readings(self) -> "LiveReadings | None":
        """The readings of the current run, or else of the last one."""
        return self.state.readings

    def compose(self) -> ComposeResult:
        """Compose the title, the settings, the instruments and the keys."""
        yield TitleBar()
        yield SettingsBar()
        yield Instruments()
        yield self.footer()

    def on_mount(self) -> None:
        """Query the far end, or wait for a device that joins."""
        self.paint()
        follow = self._services.follow_device
        if follow is None:
            self._query_far_end()
        else:
            self.run_worker(follow_devices(follow, self.post_message), group="device", exit_on_error=False)

    def _query_far_end(self) -> None:
        """Ask the far end for its description. On loopback, there may be no far end before the first run."""
        peer = self.state.peer
        if not peer.is_loopback:
            query = query_far_end(self._services, peer, self.post_message, with_preset=self.state.is_preset_auto)
            self.run_worker(query, group="probe", exclusive=True, exit_on_error=False)

    # Message handlers.

    @on(FarAnswered)
    def _store_far_info(self, message: FarAnswered) -> None:
        self.state.set_far_info(message.info)
        self._use_selection(message)
        self.paint()
        self._offer_to_remember(self.state.peer)

    def _use_typed_peer(self, peer: Peer) -> None:
        """Select a peer that the user typed or pasted. If its key works there, it may be saved."""
        self.state.set_peer(peer)
        self._has_new_key = peer.access is not None and peer.access.key is not None

    def _offer_to_remember(self, peer: Peer) -> None:
        """Ask once whether a typed key that works may be saved."""
        if not self._has_new_key or self._services.remember_access is None:
            return
        self._has_new_key = False
        from ..kit.screens.prompts import ConfirmScreen

        def save(is_confirmed: bool | None) -> None:
            if is_confirmed:
                self.run_worker(self._save_access(peer), exit_on_error=False)

        question = f"Save the key of {peer} in your keys file? Only you can read it."
        app_of(self).push_screen(ConfirmScreen("Remember this key", question), save)

    async def _save_access(self, peer: Peer) -> None:
        if self._services.remember_access is None:
            return
        try:
            path = await asyncio.to_thread(self._services.remember_access, peer)
        except LinkgaugeError as error:
            self.report(error, "key not saved")
        else:
            self.notify(f"Saved in {path}", title=f"key of {peer}")

    @on(DeviceChanged)
    def _use_device(self, message: DeviceChanged) -> None:
        """Take a device that has joined as the far end, and tell the user of one that has gone."""
        device, before = message.device, self._device
        self._device = device
        has_joined = before is None or before.peer != device.peer
        if device.news:
            severity = "warning" if device.is_problem else "information"
            self.notify(f"{numbers.sanitize(device.news)}.", title="device", severity=severity)
        if device.peer is not None and has_joined and not self.state.is_busy:
            self.state.set_peer(device.peer)
            self.paint()
            self._query_far_end()
        self._show_code(opens=before is None)

    def _show_code(self, *, opens: bool) -> None:
        """Renew the dialog with the code. Open it if wanted; close it if a device has joined."""
        from .join_dialog import JoinDialog

        device, dialog = self._device, app_of(self).screen
        if device is None:
            return
        if not isinstance(dialog, JoinDialog):
            if opens:
                app_of(self).push_screen(JoinDialog(device))
        elif device.peer is not None and not device.is_problem:
            dialog.dismiss(None)
        else:
            dialog.show(device)

    def _use_selection(self, message: FarAnswered) -> None:
        """Use the preset that both ends' interfaces have selected, unless the user has chosen one meanwhile."""
        if not self.state.is_preset_auto:
            return
        selection = message.selection
        if selection is not None:
            self.state.set_preset(selection.preset, selection.variant, is_auto=True)
        problem = selection.reason if selection is not None and selection.chosen is None else message.problem
        if problem:
            text = f"{problem[:1].upper()}{problem[1:]}. Press {self.key_of('presets')} to choose a preset."
            self.notify(text, title="No expected rate", severity="warning")
        elif selection is not None and selection.warnings:
            text = "; ".join(selection.warnings)
            self.notify(text, title=f"preset {selection.preset.id}", severity="warning")

    @on(StartFailed)
    def _show_failure(self, message: StartFailed) -> None:
        _log.debug("start failed: %s", message.problem)
        self.state.set_problem(message.problem)
        self._paint_or_quit()
        if message.wants_key and app_of(self).screen is self:
            self._prompt_for_key(self.state.peer)

    def _prompt_for_key(self, peer: Peer) -> None:
        """Ask the user for the key of a peer, then query the peer with it."""
        from ..kit.screens.prompts import TextPrompt, validate_key
        from ..session.credentials import parse_pasted_key

        def use_key(text: str | None) -> None:
            if text is not None:
                self._use_typed_peer(peer.with_key(parse_pasted_key(text)))
                self.paint()
                self._query_far_end()

        hint = "the key that `linkgauge endpoint` printed there"
        app_of(self).push_screen(TextPrompt(f"key of {peer}", "", hint, validate_key, is_secret=True), use_key)

    @on(RunOpened)
    def _attach_run(self, message: RunOpened) -> None:
        _log.debug("run %s opened", message.run.run_id)
        self.state.run_opened(message.run)
        self.paint()

    @on(EventArrived)
    def _apply_event(self, message: EventArrived) -> None:
        self.state.handle_event(message.event)
        self.post_message(RepaintNeeded())

    @on(RunEnded)
    def _judge_run(self, message: RunEnded) -> None:
        _log.debug("run %s ended: %s", self.state.run_id, message.summary.end)
        self.state.run_ended(message.summary)
        self._paint_or_quit()

    def task_failed(self, task: Worker[Any]) -> None:
        """Show the exception as the reason that a test did not start."""
        self.post_message(StartFailed.from_error(task.error))

    @on(RepaintNeeded)
    def _schedule_paint(self) -> None:
        """Paint now if the refresh interval has passed, or else once when it has."""
        due_s = self.pacer.seconds_until_due()
        if due_s <= 0:
            self.paint()
        elif not self._is_paint_scheduled:
            self._is_paint_scheduled = True
            self.set_timer(due_s, self.paint)

    def _paint_or_quit(self) -> None:
        self.paint()
        if self._is_quitting:
            app_of(self).exit()

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences. The pass mark that is in force at the end of a run judges it."""
        self._units = preferences.units
        self.pacer.refresh_hz = preferences.refresh_hz
        self.state.set_pass_mark(preferences.pass_mark)
        if self.is_mounted:
            self.paint()

    def paint(self) -> None:
        """Pass a snapshot to the widgets. While the display is frozen, the instruments stay as they are."""
        self.pacer.frame_drawn(self.state.host_percent)
        self._is_paint_scheduled = False
        snapshot = replace(
            self.state.snapshot(), language=self._language, units=self._units, keys=app_of(self).key_map.names
        )
        self.query_one(TitleBar).show(snapshot)
        self.query_one(SettingsBar).show(snapshot)
        is_unavailable = why_unavailable(snapshot.peer, Feature.LOAD_PHASES) is not None
        self.query_one(KeyFooter).show(frozenset({"respond"} if is_unavailable else ()))
        if not snapshot.is_paused:
            self.query_one(Instruments).show_snapshot(snapshot)

    # Actions of the registry: the run.

    def action_toggle_run(self) -> None:
        """Start a run, or stop the current one."""
        if not self.state.is_busy:
            joined = None if self._device is None else self._device.peer
            if joined is not None and joined != self.state.peer:  # while the last test was ending
                self.state.set_peer(joined)
            self._start_run(self.state.plan)
        elif self.phase is not Phase.STOPPING:
            self.state.stop_run()
            self.paint()

    def action_respond(self) -> None:
        """Start a responsiveness test: the settings of the next test stay as they are."""
        reason = f"A test is running: press {self.key_of('toggle_run')} to stop it first."
        if self._refuse_if_busy(reason) or self._refuse_unavailable(Feature.LOAD_PHASES):
            return
        self._start_run(load_plan(self.state.plan))

    def action_pause(self) -> None:
        """Freeze or release the instruments. The run and its log continue."""
        if not self.state.is_busy:
            self.notify("Nothing to freeze: no test is running.")
            return
        self.state.is_paused = not self.state.is_paused
        if self.state.is_paused:
            self.notify("The test goes on, and is saved. Press p again to follow it.", title="display frozen")
        self.paint()

    # Actions of the registry: dialogs and other screens.

    def action_all_panels(self) -> None:
        """Show all panels again."""
        self.instruments.restore()

    def action_presets(self) -> None:
        """Choose another preset."""
        from .preset_picker import PresetPicker

        def use_preset(preset_id: str | None) -> None:
            if preset_id is None:
                return
            is_auto = preset_id == AUTO
            if is_auto and self._refuse_if_busy("Stop the test first: the remote end is asked for its interface."):
                return
            selection = find_initial_preset(self.catalog, preset_id, self.state.peer)
            self.state.set_preset(selection.preset, is_auto=is_auto)
            if self.state.is_busy:
                self.notify("It applies to the next test.", title=preset_id)
            self.paint()
            if is_auto:
                self._query_far_end()

        chosen = AUTO if self.state.is_preset_auto else self.preset.id
        plan, nics = self.plan, self._services.nics
        screen = PresetPicker(self.catalog, chosen, plan.settings, self._language, plan.workload, nics=nics)
        app_of(self).push_screen(screen, use_preset)

    def action_peer(self) -> None:
        """Choose another far end, then query it. An app that waits for a device shows its code."""
        if self._services.follow_device is not None:
            self._show_code(opens=True)
            return
        from .peer_picker import PeerPicker

        if self._refuse_if_busy("Stop the test first, then connect to another host."):
            return

        def use_peer(text: str | None) -> None:
            if text is None:
                return
            peer = picker.peer_of(text)
            self._use_typed_peer(peer)
            if self.state.is_preset_auto:
                selection = find_initial_preset(self.catalog, None, peer)
                self.state.set_preset(selection.preset, is_auto=True)
            self.paint()
            self._query_far_end()

        picker = PeerPicker(self.state.peer, self._services)
        app_of(self).push_screen(picker, use_peer)

    def action_reconnect(self) -> None:
        """Query the far end again."""
        if self._refuse_if_busy("A test is running: the remote end is connected."):
            return
        self.state.problem = None
        self.paint()
        self._query_far_end()

    def action_export(self) -> None:
        """Export the last run, if it has ended, or a picture of the screen."""
        from ..kit.screens.export import prompt_export

        run_id = self.state.run_id
        prompt_export(self, [] if run_id is None or self.state.is_busy else [run_id], self._services.export)

    def action_history(self) -> None:
        """Open the history."""
        history = self._services.history
        if history is None:
            self.notify("Runs are not saved: there is no run log.", severity="warning")
        else:
            app_of(self).open_history(history, self._services)

    def action_observe(self) -> None:
        """Open the table of other programs' connections."""
        app_of(self).open_observe(self._services)

    def action_sweep(self) -> None:
        """Open the form of a new sweep."""
        if self._services.history is None:
            self.notify("A sweep needs the run log, and there is none.", severity="warning")
            return
        if self._refuse_if_busy("Stop the test first, then sweep."):
            return
        state = self.state
        direction = state.plan.settings.direction.value
        app_of(self).open_new_sweep(self._services, state.peer, state.preset.id, direction)

    def action_leave(self) -> None:
        """Quit. A run is stopped first, so that its end is stored. A second request quits at once."""
        if self._is_quitting or not self.state.is_busy:
            app_of(self).exit()
            return
        self._is_quitting = True
        if self.phase is not Phase.STOPPING:
            self.action_toggle_run()
        self.set_timer(_QUIT_TIMEOUT_S, app_of(self).exit)

    def _start_run(self, plan: Plan) -> None:
        state = self.state
        state.begin_run(plan)
        self.paint()
        run = follow_run(self._services, plan, state.preset, state.peer, self.post_message)
        self.run_worker(run, group="run", exclusive=True, exit_on_error=False)

    def _refuse_if_busy(self, reason: str) -> bool:
        if self.state.is_busy:
            self.notify(reason, severity="warning")
        return self.state.is_busy
