"""The cockpit: one screen to set up a run, watch it, change it while it goes on, and read the verdict.

A worker iterates the run and only posts messages; the handlers here tell the desk, which owns all state, and
hand the instruments one View at a time. Every event changes the state; how often the screen is drawn is bounded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Footer
from textual.worker import Worker, WorkerState

from ....engine.model.access import SharedKey
from ....engine.model.peer import Peer
from ....engine.model.plan import Plan
from ....presets.catalog import Catalog
from ....presets.preset import Preset
from ...actions import ScreenKind, bindings
from ...interfaces import AppServices
from ...services.preferences import Preferences
from ...state.cockpit import CockpitState
from ...state.instrument_values import Phase
from ...state.live_readings import LiveReadings
from ...state.refresh_pacer import RefreshPacer
from ...widgets.run.instruments import Instruments
from ...widgets.run.settings_bar import SettingsBar
from ...widgets.run.title_bar import TitleBar
from ..dialogs.ask import AskScreen, validate_key
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..dialogs.peers import PeerScreen
from ..dialogs.presets import PresetScreen
from ..history.history import HistoryScreen
from ..layout import app_of
from ..sweep.open_sweep import ask_sweep
from . import background_tasks as work
from .posted import EventArrived, FarAnswered, RepaintNeeded, RunEnded, RunOpened, StartFailed
from .setting_keys import SettingKeysScreen

# A far end that does not answer a stop must not keep the app from closing.
_LEAVE_AFTER_S: Final = 3.0


class CockpitScreen(SettingKeysScreen):
    """The instruments, and everything a person can do to a run."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.COCKPIT
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.COCKPIT)

    def __init__(
        self,
        catalog: Catalog,
        peer: Peer,
        ports: AppServices,
        *,
        plan: Plan,
        preset: Preset,
        clock: Callable[[], int],
        preferences: Preferences,
        language: str = "en",
    ) -> None:
        super().__init__()
        self.catalog = catalog
        self.state = CockpitState(peer, plan, preset, preferences.pass_mark)
        self.pacer = RefreshPacer(clock, preferences.refresh_hz)
        self._units = preferences.units
        self._ports = ports
        self._language = language
        self._paint_waits = False
        self._leaving = False

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
        """Where the run stands."""
        return self.state.phase

    @property
    def readings(self) -> LiveReadings | None:
        """The readings of the run that goes on, or of the last one."""
        return self.state.readings

    def compose(self) -> ComposeResult:
        """Lay out the title, the toggles, the instruments and the keys."""
        yield TitleBar()
        yield SettingsBar()
        yield Instruments()
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Ask the far end who it is."""
        self.paint()
        self._look()

    def _look(self) -> None:
        """Ask the far end who it is; on loopback there may be none before a run brings one along."""
        peer = self.state.peer
        if not peer.is_loopback:
            asking = work.query_host_info(self._ports, peer, self.post_message)
            self.run_worker(asking, group="probe", exclusive=True, exit_on_error=False)

    # What the messages do.

    @on(FarAnswered)
    def _far_answered(self, message: FarAnswered) -> None:
        self.state.set_far_info(message.info)
        self.paint()

    @on(StartFailed)
    def _not_ready(self, message: StartFailed) -> None:
        self.state.set_problem(message.problem)
        self._rest()
        if message.wants_key and app_of(self).screen is self:
            self._ask_for_key(self.state.peer)

    def _ask_for_key(self, peer: Peer) -> None:
        """Ask for the key that a peer asks for, and try it."""

        def given(text: str | None) -> None:
            if text is not None:
                self.state.set_peer(peer.with_key(SharedKey(text.strip())))
                self.paint()
                self._look()

        hint = "what linkgauge endpoint printed there; it is kept until the app is left"
        app_of(self).push_screen(AskScreen(f"key of {peer}", "", hint, validate_key, is_secret=True), given)

    @on(RunOpened)
    def _run_opened(self, message: RunOpened) -> None:
        self.state.run_opened(message.run)
        self.paint()

    @on(EventArrived)
    def _event_arrived(self, message: EventArrived) -> None:
        self.state.handle_event(message.event)
        self.post_message(RepaintNeeded())

    @on(RunEnded)
    def _run_over(self, message: RunEnded) -> None:
        self.state.run_ended(message.summary)
        self._rest()

    @on(Worker.StateChanged)
    def _worker_changed(self, message: Worker.StateChanged) -> None:
        """Tell a fault that no handler foresaw, instead of ending with a traceback."""
        if message.state is WorkerState.ERROR:
            error = message.worker.error  # pyright: ignore[reportUnknownMemberType] (Textual: Worker of what)
            self.post_message(StartFailed.from_error(error))

    @on(RepaintNeeded)
    def _paint_soon(self) -> None:
        """Paint now where the last frame is long enough ago, else once when it will be."""
        due_s = self.pacer.seconds_until_due()
        if due_s <= 0:
            self.paint()
        elif not self._paint_waits:
            self._paint_waits = True
            self.set_timer(due_s, self.paint)

    def _rest(self) -> None:
        self.paint()
        if self._leaving:
            app_of(self).exit()

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set; a run that goes on is judged by the pass mark of its end."""
        self._units = preferences.units
        self.pacer.refresh_hz = preferences.refresh_hz
        self.state.set_pass_mark(preferences.pass_mark)
        if self.is_mounted:
            self.paint()

    def paint(self) -> None:
        """Hand the instruments what is known now; paused, they keep what they show."""
        self.pacer.frame_drawn(self.state.host_percent)
        self._paint_waits = False
        view = replace(self.state.snapshot(), language=self._language, units=self._units)
        self.query_one(TitleBar).show(view)
        self.query_one(SettingsBar).show(view)
        if not view.is_paused:
            self.query_one(Instruments).show(view)

    # What the keys do: one method for each action of the registry.

    def action_toggle_run(self) -> None:
        """Start a run, or stop the one that goes on."""
        if not self.state.is_busy:
            self._start()
        elif self.phase is not Phase.STOPPING:
            self.state.stop_run()
            self.paint()

    def action_presets(self) -> None:
        """Choose another preset."""

        def chosen(preset: Preset | None) -> None:
            if preset is None:
                return
            self.state.preset = preset
            if self.state.run is not None:
                self.notify("It is in force from the next run on.", title=preset.id, markup=False)
            self.paint()

        screen = PresetScreen(self.catalog, self.preset, self.plan.settings, self._language)
        app_of(self).push_screen(screen, chosen)

    def action_peer(self) -> None:
        """Ask for another far end, and who it is."""
        if self._is_busy("Stop the run first, then connect to another peer."):
            return

        def named(text: str | None) -> None:
            if text is None:
                return
            self.state.set_peer(Peer.parse(text))
            self.paint()
            self._look()

        app_of(self).push_screen(PeerScreen(self.state.peer, self._ports), named)

    def action_reconnect(self) -> None:
        """Ask the far end again."""
        if self._is_busy("The far end is in use: a run goes on."):
            return
        self.state.problem = None
        self.paint()
        self._look()

    def action_export(self) -> None:
        """Write the last run, once it has ended, or the screen as it is."""
        run_id = self.state.run_id
        ask_export(self, [] if run_id is None or self.state.is_busy else [run_id], self._ports.export)

    def action_history(self) -> None:
        """Show the runs that are kept."""
        history = self._ports.history
        if history is None:
            self.notify("There is no run log: runs are not kept.", severity="warning", markup=False)
        else:
            app_of(self).push_screen(HistoryScreen(history, self._ports.export, self.catalog, self._ports.sweeps))

    def action_sweep(self) -> None:
        """Ask what to try, and try it."""
        sweeps = self._ports.sweeps
        if sweeps is None:
            self.notify("There is no run log: a sweep could not be kept.", severity="warning", markup=False)
            return
        if self._is_busy("Stop the run first, then sweep."):
            return
        ask_sweep(self, sweeps, self._ports.export, self.catalog, self.state)

    async def action_settings(self) -> None:
        """Change what is set once and for all."""
        await app_of(self).run_action("app.settings")

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    async def action_redraw(self) -> None:
        """Draw all of the screen again."""
        await app_of(self).run_action("app.redraw")

    async def action_suspend(self) -> None:
        """Go back to the shell, until that brings the app here again."""
        await app_of(self).run_action("app.suspend_process")

    def action_leave(self) -> None:
        """Quit; stop a run first, so that its end is kept with it. A second time: at once."""
        if self._leaving or not self.state.is_busy:
            app_of(self).exit()
            return
        self._leaving = True
        if self.phase is not Phase.STOPPING:
            self.action_toggle_run()
        self.set_timer(_LEAVE_AFTER_S, app_of(self).exit)

    def _start(self) -> None:
        desk = self.state
        desk.begin_run()
        self.paint()
        conducting = work.follow_run(self._ports, desk.plan, desk.preset, desk.peer, self.post_message)
        self.run_worker(conducting, group="run", exclusive=True, exit_on_error=False)

    def _is_busy(self, why: str) -> bool:
        if self.state.is_busy:
            self.notify(why, severity="warning", markup=False)
        return self.state.is_busy
