"""A stored run as it was while it ran: gauges, plots and events at a speed of choice; at its end its result."""

import asyncio
from asyncio import to_thread
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from ...engine.model.errors import LinkgaugeError
from ...engine.model.plan import SECOND_NS
from ...engine.results.run_log import RunLog
from ..gauges.instruments import Instruments, InstrumentScreen
from ..gauges.run_header import TitleBar
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import KEY, MUTED
from ..kit.screens.feature_app import StoredServices, app_of, preferences_of
from ..readings.cockpit_snapshot import CockpitSnapshot
from ..session.run_replay import RunReplay
from ..session.stored_run import link_of, moment_snapshot, stored_run
from ..words import numbers
from ..words.run_line import run_line
from .playback import Playback

_JUMP_NS: Final = 5 * SECOND_NS


class ReplayScreen(InstrumentScreen):
    """Plays a run of the log. Its events are read in a thread, as they are due.

    Args:
        run_id: The run.
        log: The run log.
        services: Name the presets of runs; their clock sets the pace.
        speed: How many times as fast as it was.
    """

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.REPLAY
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.REPLAY)
    DEFAULT_CSS = """
    ReplayScreen > #plan { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, run_id: str, log: RunLog, services: StoredServices, speed: float = 1.0) -> None:
        super().__init__()
        self._run_id = run_id
        self._log = log
        self._services = services
        self.playback = Playback(services.clock, speed)
        self._moved = asyncio.Event()  # a key has changed the place or the pace
        self._wants_end = False

    def compose(self) -> ComposeResult:
        """Compose the title, the line of the replay, the instruments and the keys."""
        yield TitleBar()
        yield Static(id="plan", markup=False)
        yield Instruments()
        yield self.footer()

    def on_mount(self) -> None:
        """Begin to play."""
        self.query_one("#plan", Static).update(Content.styled(f"loading {self._run_id} …", MUTED))
        self.run_worker(self._play(), exit_on_error=False)

    async def _play(self) -> None:
        """Show the run moment by moment. At its end, and while it is paused, wait for a key."""
        try:
            row = await to_thread(self._log.find, self._run_id)
            replay = await to_thread(RunReplay, self._log, row, link_of(self._services.catalog, row))
            while True:
                self._moved.clear()
                await to_thread(self._go_on, replay)
                self._show(replay, await to_thread(self._snapshot, replay))
                waits_for_key = self.playback.is_paused or replay.is_over
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if waits_for_key else preferences_of(self).frame_s):
                        await self._moved.wait()
        except LinkgaugeError as error:
            self.query_one("#plan", Static).update(Content.styled("✗ cannot replay this run", "bold $text-error"))
            self.report(error, "run log")

    def _go_on(self, replay: RunReplay) -> None:
        """Bring the run to the moment that is due."""
        if self._wants_end:
            replay.go_to_end()
        else:
            replay.go_to(self.playback.tick())
        self._wants_end = False
        if replay.is_over:
            self.playback.go_to(replay.elapsed_ns)

    def _snapshot(self, replay: RunReplay) -> CockpitSnapshot:
        """Return the values of the moment; at the end, of the result."""
        catalog = self._services.catalog
        if not replay.is_over:
            return moment_snapshot(replay, catalog)
        replay.go_to_end()
        return stored_run(replay).snapshot(catalog)

    def _show(self, replay: RunReplay, moment: CockpitSnapshot) -> None:
        snapshot = replace(moment, units=preferences_of(self).units, is_paused=False)
        self.query_one(TitleBar).show(snapshot)
        self.query_one(Instruments).show_snapshot(snapshot)
        state = "■ end of the replay" if replay.is_over else "‖ paused" if self.playback.is_paused else "▶ replay"
        head = Content.assemble((state, KEY), (f"  {self.playback.speed:g}×", "bold"))
        run = run_line(replay.row)
        settings = run.test if run.program else numbers.settings(snapshot.settings, snapshot.plan.workload)
        line = self.query_one("#plan", Static)
        whole = f"   {self._run_id}   {run.subject}   {settings}"
        texts = (whole, f"   {self._run_id}   {settings}", f"   {settings}")
        line.update(
            first_fit(line.content_size.width, *(head + Content.styled(text, MUTED) for text in texts), head)
        )

    def _go_to(self, moment_ns: int) -> None:
        self.playback.tick()
        self.playback.go_to(moment_ns)
        self._moved.set()

    # Actions of the registry.

    def action_pause_replay(self) -> None:
        """Stop or go on."""
        self.playback.tick()
        self.playback.is_paused = not self.playback.is_paused
        self._moved.set()

    def action_play_faster(self) -> None:
        """Go to the next higher speed."""
        self._step_speed(1)

    def action_play_slower(self) -> None:
        """Go to the next lower speed."""
        self._step_speed(-1)

    def action_jump_on(self) -> None:
        """Go 5 seconds of the run on."""
        self._go_to(self.playback.position_ns + _JUMP_NS)

    def action_jump_back(self) -> None:
        """Go 5 seconds of the run back."""
        self._go_to(self.playback.position_ns - _JUMP_NS)

    def action_play_from_start(self) -> None:
        """Go to the beginning of the run."""
        self._go_to(0)

    def action_show_result(self) -> None:
        """Go to the end of the run: its result."""
        self._wants_end = True
        self._moved.set()

    def action_leave_replay(self) -> None:
        """Show all panels again; else go back to the run, or leave the app that shows nothing else."""
        app = app_of(self)
        if self.instruments.restore():
            return
        if len(app.screen_stack) > 1:
            app.pop_screen()
        else:
            app.exit()

    def _step_speed(self, by: int) -> None:
        self.playback.tick()
        self.playback.step_speed(by)
        self._moved.set()
