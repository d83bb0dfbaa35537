"""The app under test: scripted services, and a driver that presses its keys and reads its screen."""

# Textual leaves the type of an app open.
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.discovery.announcement import FoundEndpoint
from linkgauge.engine.model.errors import PeerError, PlanError
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.auto_select import NO_PRESET, PresetSelection
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.preset import Preset
from linkgauge.tui.app.app import LinkgaugeApp
from linkgauge.tui.kit.drawing.screen_diff import screen_strips
from linkgauge.tui.kit.widgets.typed_input import Debounce
from linkgauge.tui.readings.waited_device import WaitedDevice
from linkgauge.tui.run.run_services import RunServices, default_variant
from linkgauge.tui.session.preferences import Preferences, save_preferences
from linkgauge.tui.session.run_spec import Judging, RunSpec
from textual.app import App
from textual.pilot import Pilot

from .scripted_run import FAR, ScriptedRun, iperf3_host

BOTH_SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


class AppDriver:
    """Presses keys of the running app and reads its screen."""

    def __init__(self, services: "ScriptedServices", app: LinkgaugeApp, pilot: Pilot[None]) -> None:
        self.services = services
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, and wait for their effects."""
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Wait until every emitted event and every key has reached the screen."""
        await self.pilot.pause()
        await wait_for_debounce(self.pilot)
        waiting = [script for script in self.services.scripts if not script.closed]
        for script in waiting:
            await script.queue.join()
        if waiting:
            await self.pilot.pause()

    async def end(self) -> None:
        """Wait until the background tasks have ended and their messages have reached the screen."""
        await self.app.workers.wait_for_complete()
        await self.settle()

    def text(self) -> str:
        """Return the text of the screen, with plain spaces."""
        return screen_text(self.app)

    def line(self, number: int) -> str:
        """Return one line of the screen."""
        return self.text().splitlines()[number]


def screen_text(app: App[None]) -> str:
    """Return the text of the screen, with plain spaces."""
    return "\n".join(strip.text for strip in screen_strips(app.screen)).replace("\u00a0", " ")


async def until(pilot: Pilot[None], condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until a condition is met."""
    async with asyncio.timeout(seconds):
        while not condition():
            await pilot.pause(0.01)


async def wait_for_debounce(pilot: Pilot[None]) -> None:
    """Wait until no debounced call of the screen is pending, and it has read what it shows."""
    while getattr(pilot.app.screen, "is_reading", False) or any(
        isinstance(value, Debounce) and value.is_pending for value in vars(pilot.app.screen).values()
    ):
        await pilot.pause(0.01)


class ScriptedServices:
    """The services of the app, scripted, and a clock that leaps."""

    def __init__(self) -> None:
        self.catalog = load_catalog()
        self.scripts: list[ScriptedRun] = []
        self.exports: list[tuple[list[str], str, Path]] = []
        self.history: RunLog | None = None
        self.probed: list[Peer] = []
        self.remembered: list[Peer] = []
        self.preferences = Preferences()
        self.settings_dir: Path | None = None
        self.announced: list[FoundEndpoint] | None = None
        self.devices: asyncio.Queue[WaitedDevice] | None = None
        self.refusal: PeerError | None = None
        self.selection: PresetSelection | None = None
        self.now_ns = 0
        self.on_start: Callable[[ScriptedRun], None] = lambda _script: None
        self.variant_of = default_variant

    @property
    def script(self) -> ScriptedRun:
        """The newest run."""
        return self.scripts[-1]

    @asynccontextmanager
    async def start_run(self, spec: RunSpec) -> AsyncGenerator[ScriptedRun]:
        """Open a run, or refuse it."""
        if self.refusal is not None:
            raise self.refusal
        script = ScriptedRun(spec.judging.chosen or NO_PRESET, spec.plan)
        self.scripts.append(script)
        script.start(spec.peer)
        self.on_start(script)
        try:
            yield script
        finally:
            script.closed = True

    async def query_host_info(self, peer: Peer) -> HostInfo:
        """Answer as the far end, or refuse."""
        self.probed.append(peer)
        if self.refusal is not None:
            raise self.refusal
        return FAR if peer.iperf3 is None else iperf3_host(peer)

    async def find_announced(self, seconds: float) -> AsyncGenerator[FoundEndpoint]:
        """Find these endpoints at once."""
        assert seconds > 0
        for endpoint in self.announced or ():
            yield endpoint

    async def follow_device(self) -> AsyncGenerator[WaitedDevice]:
        """Yield the devices that a test puts in the queue."""
        while self.devices is not None:
            yield await self.devices.get()

    async def select_preset(self, peer: Peer) -> PresetSelection:
        """Select the preset of the test, or refuse."""
        self.probed.append(peer)
        if self.selection is None:
            raise PlanError("preset", "auto", "no interface reports a speed")
        return self.selection

    def remember_access(self, peer: Peer) -> Path:
        """Remember the peer only."""
        self.remembered.append(peer)
        return Path("keys")

    def export(self, run_ids: Sequence[str], form: str, path: Path) -> Path:
        """Write only the ids of the runs."""
        self.exports.append((list(run_ids), form, path))
        path.write_text("\n".join(["run_id", *run_ids, ""]))
        return path

    def save(self, preferences: Preferences) -> None:
        """Save preferences if the test has set a directory."""
        if self.settings_dir is not None:
            save_preferences(self.settings_dir, preferences)

    def script_of(self, preset: Preset, plan: Plan) -> ScriptedRun:
        """Return a started run, for a test without an app."""
        script = ScriptedRun(preset, plan)
        script.start(LOOPBACK)
        return script

    def app(
        self, preset: str | None = "10gbe-fd-1500", peer: Peer = LOOPBACK, plan: Plan | None = None
    ) -> LinkgaugeApp:
        """Return the real app with these services; without `preset`, it selects one.

        Its clock leaps, so that every frame is drawn at once.
        """
        judging = Judging(NO_PRESET if preset is None else self.catalog.find(preset))
        return LinkgaugeApp(
            RunServices(
                catalog=self.catalog,
                start_run=self.start_run,
                query_host_info=self.query_host_info,
                export=self.export,
                open_log=lambda: self.history,
                clock=self._advance,
                select_preset=self.select_preset,
                remember_access=self.remember_access,
                find_announced=None if self.announced is None else self.find_announced,
                follow_device=None if self.devices is None else self.follow_device,
            ),
            RunSpec(plan or Plan(duration_ns=30 * SECOND_NS), peer, judging),
            preferences=self.preferences,
            save=self.save,
            is_preset_auto=preset is None,
        )

    @asynccontextmanager
    async def cockpit(
        self, size: tuple[int, int] = (80, 24), app: LinkgaugeApp | None = None, **options: Any
    ) -> AsyncGenerator[AppDriver]:
        """Run the app without a terminal, for at most half a minute."""
        app = app or self.app(**options)
        async with asyncio.timeout(30), app.run_test(size=size) as pilot:
            driver = AppDriver(self, app, pilot)
            await driver.settle()
            yield driver

    @staticmethod
    async def still(pilot: Pilot[None], *, ends: bool = False) -> None:
        """Wait until the screen has not changed for a few frames: a message may cause another, or a new layout.

        With `ends`, wait for the background tasks, too.
        """
        frames: list[list[Any]] = []
        async with asyncio.timeout(30):
            while len(frames) < 4 or any(frames[-1] != earlier for earlier in frames[-4:-1]):
                if ends:
                    await pilot.app.workers.wait_for_complete()
                await wait_for_debounce(pilot)
                await pilot.pause()
                frames.append(screen_strips(pilot.app.screen))

    def _advance(self) -> int:
        self.now_ns += SECOND_NS
        return self.now_ns


def before_snapshot(
    world: ScriptedServices,
    script: Callable[[ScriptedRun], object] | None,
    *keys: str,
    start: str = "space",
    ends: bool = True,
) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return the `run_before` of a snapshot: start a run with a script, press keys, and wait until all is drawn.

    Args:
        world: The services of the app.
        script: Emits the events of the run; None starts no run.
        keys: Pressed at the end.
        start: The key that starts the run.
        ends: Whether the script ends the run.
    """

    async def run(pilot: Pilot[None]) -> None:
        await pilot.pause()
        if script is not None:
            await pilot.press(start)
            await pilot.pause()
            script(world.script)
            if ends:
                await pilot.app.workers.wait_for_complete()
            else:
                await asyncio.wait_for(world.script.queue.join(), 30)
        await pilot.press(*keys)
        await world.still(pilot)

    return run
