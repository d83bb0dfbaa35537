"""The cockpit: one screen to set up a run, watch it, change it while it goes on, and read the verdict.

A worker iterates the run and only posts messages; the handlers here own all state, and hand the
instruments one View at a time. Every event changes the state; how often the screen is drawn is bounded.
"""

from asyncio import to_thread
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, cast

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer
from textual.worker import Worker, WorkerState

from ...engine.errors import LinkgaugeError
from ...engine.plan import SECOND_NS, Direction, Peer, Plan, Settings
from ...engine.samples import HostFacts, Summary
from ...presets.catalog import Catalog
from ...presets.expect import expectation
from ...presets.model import Preset
from ...presets.verdict import Verdict, judge
from .. import format as words
from ..actions import bindings
from ..ports import ConductedRun, Ports
from ..widgets.board import Board, View
from ..widgets.instruments import Instruments
from ..widgets.settings_bar import SettingsBar
from ..widgets.steps import SESSION_STEPS, WINDOW_STEPS, next_direction, next_duration, next_workload, stepped
from ..widgets.title_bar import TitleBar
from ..widgets.values import Phase, Problem
from .ask import AskScreen, wrong_path, wrong_peer
from .help import HelpScreen
from .messages import EventArrived, FarAnswered, NotReady, Paint, RunOpened, RunOver
from .presets import PresetScreen

# A far end that does not answer a stop must not keep the app from closing.
_LEAVE_AFTER_S: Final = 3.0


def app_of(screen: Screen[None]) -> App[None]:
    """Return the app of a screen; Textual does not say of which kind it is."""
    return cast("App[None]", screen.app)  # pyright: ignore[reportUnknownMemberType]


class CockpitScreen(Screen[None]):
    """The instruments, and everything a person can do to a run."""

    BINDINGS: ClassVar[list[BindingType]] = bindings()

    def __init__(
        self,
        catalog: Catalog,
        peer: Peer,
        ports: Ports,
        *,
        plan: Plan,
        preset: Preset,
        clock: Callable[[], int],
        refresh_hz: float,
        pass_percent: float,
        language: str = "en",
    ) -> None:
        super().__init__()
        self.catalog, self.peer, self.plan, self.preset = catalog, peer, plan, preset
        self.phase = Phase.IDLE
        self.board: Board | None = None
        self.summary: Summary | None = None
        self._ports = ports
        self._clock = clock
        self._frame_ns = round(SECOND_NS / refresh_hz)
        self._pass_percent = pass_percent
        self._language = language
        self._run: ConductedRun | None = None
        self._far: HostFacts | None = None
        self._near: HostFacts | None = None
        self._verdict: Verdict | None = None
        self._problem: Problem | None = None
        self._painted_ns: int | None = None
        self._paint_waits = False
        self._leaving = False
        self._run_id: str | None = None
        self._notices: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        """Lay out the title, the toggles, the instruments and the keys."""
        yield TitleBar()
        yield SettingsBar()
        yield Instruments(self._pass_percent)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Ask the far end who it is."""
        self.paint()
        self._look()

    # What the workers do: they post, and change nothing.

    def _look(self) -> None:
        """Ask the far end who it is; on loopback there may be none before a run brings one along."""
        if self.peer.is_loopback:
            return
        self.run_worker(self._probe(self.peer), group="probe", exclusive=True, exit_on_error=False)

    async def _probe(self, peer: Peer) -> None:
        try:
            self.post_message(FarAnswered(await self._ports.probe(peer)))
        except LinkgaugeError as error:
            self.post_message(NotReady.because(error))

    async def _conduct(self, plan: Plan, preset: Preset, peer: Peer) -> None:
        try:
            async with self._ports.start_run(plan, preset, peer) as run:
                self.post_message(RunOpened(run))
                async for event in run:
                    self.post_message(EventArrived(event))
                summary = run.meter.summary()
            self.post_message(RunOver(summary))
        except LinkgaugeError as error:
            self.post_message(NotReady.because(error))

    async def _write(self, run_id: str, path: Path) -> None:
        try:
            written = await to_thread(self._ports.export, run_id, path)
        except (LinkgaugeError, OSError) as error:
            self.notify(words.plain(str(error)), title="not exported", severity="error", markup=False)
        else:
            self.notify(str(written), title="exported", markup=False)

    # What the messages do.

    @on(FarAnswered)
    def _far_answered(self, message: FarAnswered) -> None:
        self._far, self._problem = message.facts, None
        self.paint()

    @on(NotReady)
    def _not_ready(self, message: NotReady) -> None:
        self._problem = message.problem
        self._rest(Phase.IDLE)

    @on(RunOpened)
    def _run_opened(self, message: RunOpened) -> None:
        self._run, self._run_id = message.run, message.run.run_id
        if self.phase is Phase.STOPPING:
            message.run.stop()
        else:
            self.phase = Phase.RUNNING
        self.paint()

    @on(EventArrived)
    def _event_arrived(self, message: EventArrived) -> None:
        if self.board is not None:
            self.board.feed(message.event)
            self._near, self._far = self.board.near or self._near, self.board.far or self._far
        self.post_message(Paint())

    @on(RunOver)
    def _run_over(self, message: RunOver) -> None:
        self.summary = message.summary
        self._verdict = judge(message.summary, pass_percent=self._pass_percent)
        self._rest(Phase.DONE)

    @on(Worker.StateChanged)
    def _worker_changed(self, message: Worker.StateChanged) -> None:
        """Tell a fault that no handler foresaw, instead of ending with a traceback."""
        if message.state is WorkerState.ERROR:
            error = message.worker.error  # pyright: ignore[reportUnknownMemberType] (Textual: Worker of what)
            self.post_message(NotReady.because(error))

    @on(Paint)
    def _paint_soon(self) -> None:
        """Paint now where the last frame is long enough ago, else once when it will be."""
        now_ns = self._clock()
        due_ns = 0 if self._painted_ns is None else self._painted_ns + self._frame_ns - now_ns
        if due_ns <= 0:
            self.paint()
        elif not self._paint_waits:
            self._paint_waits = True
            self.set_timer(due_ns / SECOND_NS, self.paint)

    def _rest(self, phase: Phase) -> None:
        """Come to rest after a run, or after one that could not be."""
        if self._run is not None:
            self._notices = tuple(self._run.notices)
        self._run, self.phase = None, phase
        self.paint()
        if self._leaving:
            app_of(self).exit()

    def paint(self) -> None:
        """Hand the instruments what is known now."""
        self._painted_ns, self._paint_waits = self._clock(), False
        view = View(
            phase=self.phase,
            preset=self.preset,
            plan=self.plan,
            peer=self.peer,
            near=self._near,
            far=self._far,
            board=self.board,
            summary=self.summary,
            verdict=self._verdict,
            expectation=expectation(self.preset, self.plan.settings, self.plan.workload),
            so_far=self._run.meter.summary() if self._run and self.summary is None else None,
            problem=self._problem,
            notices=tuple(self._run.notices) if self._run else self._notices,
        )
        self.query_one(TitleBar).show(view)
        self.query_one(SettingsBar).show(view)
        self.query_one(Instruments).show(view)

    # What the keys do: one method for each action of the registry.

    def action_toggle_run(self) -> None:
        """Start a run, or stop the one that goes on."""
        if self.phase in {Phase.IDLE, Phase.DONE}:
            self._start()
        elif self.phase is Phase.RUNNING and self._run is not None:
            self.phase = Phase.STOPPING
            self._run.stop()
            self.paint()
        elif self.phase is Phase.STARTING:
            self.phase = Phase.STOPPING
            self.paint()

    def action_more_sessions(self) -> None:
        """One step more sessions."""
        self._toggle(sessions=stepped(SESSION_STEPS, self.plan.settings.sessions, 1))

    def action_fewer_sessions(self) -> None:
        """One step fewer sessions."""
        self._toggle(sessions=stepped(SESSION_STEPS, self.plan.settings.sessions, -1))

    def action_larger_window(self) -> None:
        """One step up from the window, `auto` being below all."""
        self._toggle(window=(stepped(WINDOW_STEPS, self.plan.settings.window_bytes, 1),))

    def action_smaller_window(self) -> None:
        """One step down from the window."""
        self._toggle(window=(stepped(WINDOW_STEPS, self.plan.settings.window_bytes, -1),))

    def action_direction(self) -> None:
        """Go to the next direction."""
        self._toggle(direction=next_direction(self.plan.settings.direction))

    def action_workload(self) -> None:
        """Go to the next workload, for the next run, with its own sizes."""
        workload = next_workload(self.plan.workload)
        self.plan = replace(self.plan, workload=workload, request_bytes=None, response_bytes=None, burst=1)
        if self._run is not None and self.phase is Phase.RUNNING:
            self.notify("It is carried from the next run on.", title=str(workload), markup=False)
        self.paint()

    def action_duration(self) -> None:
        """Go to the next duration, for the next run."""
        self.plan = replace(self.plan, duration_ns=next_duration(self.plan.duration_ns))
        self.paint()

    def action_presets(self) -> None:
        """Choose another preset."""

        def chosen(preset: Preset | None) -> None:
            if preset is None:
                return
            self.preset = preset
            if self._run is not None:
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
            self.peer, self._far, self._problem = Peer.parse(text), None, None
            self.paint()
            self._look()

        hint = "host, host:port or loopback; on that host runs: linkgauge endpoint"
        value = "loopback" if self.peer.is_loopback else str(self.peer)
        app_of(self).push_screen(AskScreen("connect to peer", value, hint, wrong_peer), named)

    def action_reconnect(self) -> None:
        """Ask the far end again."""
        if self._is_busy("The far end is in use: a run goes on."):
            return
        self._problem = None
        self.paint()
        self._look()

    def action_export(self) -> None:
        """Write the last run as CSV."""
        run_id = self._run_id
        if run_id is None or self._is_busy("Stop the run first, then export it."):
            self.notify("There is no run to export yet.", markup=False) if run_id is None else None
            return

        def named(text: str | None) -> None:
            if text is not None:
                self.run_worker(self._write(run_id, Path(text).expanduser()), exit_on_error=False)

        hint = "one row for each interval, direction and session"
        app_of(self).push_screen(AskScreen("export to CSV", f"linkgauge-{run_id}.csv", hint, wrong_path), named)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_leave(self) -> None:
        """Quit; stop a run first, so that its end is kept with it. A second time: at once."""
        if self._leaving or self.phase in {Phase.IDLE, Phase.DONE}:
            app_of(self).exit()
            return
        self._leaving = True
        if self.phase is not Phase.STOPPING:
            self.action_toggle_run()
        self.set_timer(_LEAVE_AFTER_S, app_of(self).exit)

    def _start(self) -> None:
        self.phase, self._problem = Phase.STARTING, None
        self.board, self.summary, self._verdict = Board(self.plan), None, None
        self._notices, self._run_id = (), None
        self.paint()
        self.run_worker(
            self._conduct(self.plan, self.preset, self.peer), group="run", exclusive=True, exit_on_error=False
        )

    def _toggle(
        self,
        *,
        direction: Direction | None = None,
        sessions: int | None = None,
        window: tuple[int | None] | None = None,
    ) -> None:
        """Change a setting: of the run that goes on, and of the plan of the next one."""
        before = self.plan.settings
        settings = Settings(
            before.direction if direction is None else direction,
            before.sessions if sessions is None else sessions,
            before.window_bytes if window is None else window[0],
        )
        if settings == before:
            return
        self.plan = replace(self.plan, settings=settings)
        if self._run is not None and self.phase is Phase.RUNNING:
            self._run.change(settings)
        self.paint()

    def _is_busy(self, why: str) -> bool:
        busy = self.phase not in {Phase.IDLE, Phase.DONE}
        if busy:
            self.notify(why, severity="warning", markup=False)
        return busy
