"""Pictures of the app: real runs on loopback, as SVG and PNG, beside this file.

    python screenshots/make.py [--peer HOST] [--preset ID]

With a peer the runs are made against the endpoint there. Nothing is kept of the runs, and no terminal is
needed. A PNG needs a monospaced font: where the machine has none of those named below, the SVG alone is
made, and that is said.
"""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final, cast

from linkgauge.engine.connect import probe
from linkgauge.engine.embedded import embedded_endpoint
from linkgauge.engine.errors import StoreError
from linkgauge.engine.plan import LOOPBACK, SECOND_NS, Direction, Peer, Plan, Settings
from linkgauge.engine.samples import HostFacts
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.model import Preset
from linkgauge.tui.app import LinkgaugeApp
from linkgauge.tui.conduct import Conducted, conduct
from linkgauge.tui.widgets.values import Phase
from resvg_py import svg_to_bytes
from textual.pilot import Pilot

HERE: Final = Path(__file__).parent
SIZES: Final = ((80, 24), (120, 40), (200, 60))
FONTS: Final = ("DejaVu Sans Mono", "Fira Code", "Liberation Mono", "Menlo", "Consolas")
PLAN: Final = Plan(duration_ns=12 * SECOND_NS)

Drive = Callable[[Pilot[None]], Awaitable[None]]


class World:
    """A far end, and runs against it that are not kept."""

    def __init__(self, peer: Peer, embedded: Peer | None, preset_id: str) -> None:
        self.peer = peer
        self.embedded = embedded
        self.preset_id = preset_id

    def start_run(self, plan: Plan, preset: Preset, peer: Peer) -> AbstractAsyncContextManager[Conducted]:
        """Return the context of a real run."""
        return conduct(plan, preset, peer, log=None, embedded=self.embedded)

    async def probe(self, peer: Peer) -> HostFacts:
        """Ask the far end who it is."""
        return await probe(self.embedded if self.embedded is not None and peer.is_loopback else peer)

    def export(self, run_id: str, path: Path) -> Path:
        """Refuse: these runs are not kept."""
        raise StoreError(f"run {run_id} is not kept, so {path} cannot be written")

    def app(self, plan: Plan = PLAN) -> LinkgaugeApp:
        """Return the app, connected to the far end."""
        catalog = load_catalog()
        return LinkgaugeApp(
            catalog,
            self.peer,
            start_run=self.start_run,
            probe=self.probe,
            export=self.export,
            initial_plan=plan,
            initial_preset=catalog.find(self.preset_id),
        )


async def reach(pilot: Pilot[None], elapsed_s: float) -> None:
    """Wait until a run has come so far, or is over."""
    app = cast("LinkgaugeApp", pilot.app)
    async with asyncio.timeout(elapsed_s + 30):
        while (board := app.cockpit.board) is None or board.elapsed_ns < elapsed_s * SECOND_NS:
            if app.cockpit.phase is Phase.DONE or (app.cockpit.phase is Phase.IDLE and board is not None):
                return
            await asyncio.sleep(0.05)
    await pilot.pause()


async def idle(pilot: Pilot[None]) -> None:
    """Wait for the first screen."""
    await pilot.pause(0.5)


async def running(pilot: Pilot[None]) -> None:
    """Start a run with a small window, then give it more, and more sessions."""
    await pilot.press("right_square_bracket", "space")
    await reach(pilot, 3.5)
    await pilot.press("right_square_bracket")
    await reach(pilot, 6.5)
    await pilot.press("plus")
    await reach(pilot, 10.3)


async def done(pilot: Pilot[None]) -> None:
    """Do the same, to its end."""
    await running(pilot)
    async with asyncio.timeout(30):
        await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def presets(pilot: Pilot[None]) -> None:
    """Open the list of presets."""
    await pilot.press("n")
    await pilot.pause(0.3)


async def explained(pilot: Pilot[None]) -> None:
    """Open the help."""
    await pilot.press("question_mark")
    await pilot.pause(0.3)


async def picture(world: World, name: str, size: tuple[int, int], drive: Drive, plan: Plan = PLAN) -> None:
    """Make one picture, as SVG and as PNG."""
    app = world.app(plan)
    async with app.run_test(size=size) as pilot:
        await drive(pilot)
        svg = app.export_screenshot(title="linkgauge")
    path = HERE / f"{name}-{size[0]}x{size[1]}.svg"
    path.write_text(svg, encoding="utf-8")
    png = to_png(svg)
    if png is not None:
        path.with_suffix(".png").write_bytes(png)
    print(path.name, "and PNG" if png is not None else "alone: no monospaced font was found for a PNG")


def to_png(svg: str) -> bytes | None:
    """Return the picture as PNG; None where no font draws its text.

    Without a font the drawing has no text at all, and is told by being the same for other text.
    """
    blank = svg_to_bytes(svg_string=_probe_svg(""))
    for font in FONTS:
        if svg_to_bytes(svg_string=_probe_svg("linkgauge"), monospace_family=font) != blank:
            return bytes(svg_to_bytes(svg_string=svg, monospace_family=font))
    return None


def _probe_svg(text: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40">'
        f'<text x="5" y="30" font-family="monospace" font-size="20">{text}</text></svg>'
    )


async def main() -> int:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description="Pictures of real runs, as SVG and PNG.")
    parser.add_argument("--peer", type=Peer.parse, default=LOOPBACK)
    parser.add_argument("--preset", default="loopback")
    asked = parser.parse_args()
    duplex = Plan(Settings(Direction.DUPLEX, 2), duration_ns=PLAN.duration_ns)
    async with AsyncExitStack() as stack:
        embedded = await stack.enter_async_context(embedded_endpoint()) if asked.peer.is_loopback else None
        world = World(asked.peer, embedded, asked.preset)
        for size in SIZES:
            await picture(world, "running", size, running)
            await picture(world, "done", size, done)
        for name, drive in (("idle", idle), ("presets", presets), ("help", explained)):
            await picture(world, name, SIZES[1], drive)
        await picture(world, "duplex", SIZES[1], running, duplex)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
