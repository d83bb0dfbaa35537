"""A far end, real runs against it, and a run log that is gone afterwards."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.near.connect import query_host_info
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.preset import Preset
from linkgauge.tui.app import LinkgaugeApp
from linkgauge.tui.cli.terminal_app import StoredSweeps
from linkgauge.tui.interfaces import AppServices, ExportFormat
from linkgauge.tui.rendering.diff_compositor import screen_strips
from linkgauge.tui.services.run_session import RunSession, open_run_session
from linkgauge.tui.services.stored_run import export_runs
from linkgauge.tui.state.instrument_values import Phase
from textual.pilot import Pilot

WIDE: Final = (120, 40)


class World:
    """What the app needs of the world. `embedded` is the far end of `loopback`."""

    def __init__(self, peer: Peer, embedded: Peer | None, preset_id: str, log: RunLog) -> None:
        self.peer = peer
        self.embedded = embedded
        self.preset_id = preset_id
        self.log = log

    def start_run(
        self, plan: Plan, preset: Preset | None, peer: Peer, **of_sweep: Any
    ) -> AbstractAsyncContextManager[RunSession]:
        """Return the context of a real run; one of a sweep comes with its link's options and its group."""
        return open_run_session(plan, preset, peer, log=self.log, far_end=self.embedded, **of_sweep)

    async def probe(self, peer: Peer) -> HostInfo:
        """Ask the far end who it is."""
        return await query_host_info(self.embedded if self.embedded is not None and peer.is_loopback else peer)

    def export(self, run_ids: Sequence[str], form: ExportFormat, path: Path) -> Path:
        """Write runs of the log."""
        return export_runs(self.log, run_ids, form, path)

    @asynccontextmanager
    async def app(self, plan: Plan, size: tuple[int, int] = WIDE) -> AsyncGenerator["Driver"]:
        """Give the app, connected to the far end, and somebody who presses its keys."""
        catalog = load_catalog()
        app = LinkgaugeApp(
            catalog,
            self.peer,
            AppServices(
                self.start_run,
                self.probe,
                self.export,
                history=self.log,
                sweeps=StoredSweeps(self.log, self.start_run, PresetSelection(catalog.find(self.preset_id), "")),
            ),
            plan=plan,
            preset=catalog.find(self.preset_id),
        )
        async with app.run_test(size=size) as pilot:
            await pilot.pause(0.5)
            yield Driver(app, pilot)


class Driver:
    """Presses keys, and waits for what they bring about."""

    def __init__(self, app: LinkgaugeApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, and let the screen come to rest."""
        await self.pilot.press(*keys)
        await self.pilot.pause(0.4)

    async def resize(self, size: tuple[int, int]) -> None:
        """Give the app another size."""
        await self.pilot.resize_terminal(*size)
        await self.pilot.pause(0.4)

    async def reach(self, elapsed_s: float) -> None:
        """Wait until the run has come so far, or is over."""
        cockpit = self.app.cockpit
        async with asyncio.timeout(elapsed_s + 30):
            while (board := cockpit.readings) is None or board.elapsed_ns < elapsed_s * SECOND_NS:
                if cockpit.phase is Phase.DONE or (cockpit.phase is Phase.IDLE and board is not None):
                    return
                await asyncio.sleep(0.05)
        await self.pilot.pause()

    async def end(self) -> None:
        """Wait for the run's end."""
        async with asyncio.timeout(90):
            while self.app.cockpit.phase not in {Phase.DONE, Phase.IDLE}:
                await self.pilot.pause(0.05)
        await self.pilot.pause(0.4)

    async def until(self, words: str, deadline_s: float = 30) -> None:
        """Wait until words are on the screen."""
        async with asyncio.timeout(deadline_s):
            while words not in self._text():
                await self.pilot.pause(0.1)

    def _text(self) -> str:
        return "\n".join(strip.text for strip in screen_strips(self.app.screen))
