"""A far end, real runs against it, and a run log that is gone afterwards."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.auto_select import PresetSelection
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.app.app import LinkgaugeApp
from linkgauge.tui.app.far_end_keeper import FarEndKeeper
from linkgauge.tui.cli.terminal_app import AppBackend
from linkgauge.tui.kit.drawing.screen_diff import screen_strips
from linkgauge.tui.readings.cockpit_snapshot import Phase
from linkgauge.tui.run.run_services import RunServices
from linkgauge.tui.session.run_spec import Judging, RunSpec
from textual.pilot import Pilot

WIDE: Final = (120, 40)


class World:
    """The services that the app of the pictures has: the real ones, with a run log of their own."""

    def __init__(self, peer: Peer, keeper: FarEndKeeper, preset_id: str, log: RunLog) -> None:
        self.peer = peer
        self.preset_id = preset_id
        self.log = log
        self._catalog = load_catalog()
        selection = PresetSelection(self._catalog.find(preset_id), "")
        self._backend = AppBackend(lambda: log, keeper, [], selection, self._catalog)

    @asynccontextmanager
    async def app(self, plan: Plan, size: tuple[int, int] = WIDE) -> AsyncGenerator["Driver"]:
        """Give the app, connected to the far end, and somebody who presses its keys."""
        backend = self._backend
        app = LinkgaugeApp(
            RunServices(
                catalog=self._catalog,
                start_run=backend.start_run,
                query_host_info=backend.query_host_info,
                export=backend.export,
                open_log=lambda: self.log,
                variant_of=backend.variant_of,
            ),
            RunSpec(plan, self.peer, Judging(self._catalog.find(self.preset_id))),
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
