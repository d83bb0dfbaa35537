"""Pictures of the app, from real runs on an emulated link, as PNG beside this file.

    python screenshots/make.py [--peer HOST] [--preset ID] [--only SCENE]

The link is one of 100 Mb/s and 10 ms between two network namespaces, which it builds itself; where none can be
made, loopback takes its place, and that is said. With `--peer` the runs are made against the endpoint there. No
terminal is needed, and nothing is kept of the runs.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from linkgauge.engine.far.loopback import embedded_endpoint
from linkgauge.engine.lab.builder import open_lab
from linkgauge.engine.model.errors import LabError
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Faults, plan_lab_link
from picture import write
from scenes import SCENES
from world import World

_LINK: Final = "100mb-fd"
_DELAY_MS: Final = 5.0  # each way: enough for a window to matter


async def _all(peer: Peer, preset_id: str, only: str | None) -> None:
    with tempfile.TemporaryDirectory() as folder, RunLog.open(Path(folder)) as log:
        async with AsyncExitStack() as stack:
            embedded = await stack.enter_async_context(embedded_endpoint()) if peer.is_loopback else None
            world = World(peer, embedded, preset_id, log)
            for scene in SCENES:
                if only in {None, scene.__name__}:
                    await scene(world)
                    write()


def _in_lab(only: str | None) -> int | None:
    """Make the pictures at the near end of a lab's link; return None where there can be no lab."""
    link = plan_lab_link(load_catalog().find(_LINK), Faults(delay_ms=_DELAY_MS))
    try:
        with open_lab(link) as built:
            more = ["--only", only] if only else []
            command = [sys.executable, __file__, "--peer", str(built.peer), "--preset", _LINK, *more]
            return built.run(command)
    except LabError as error:
        print(f"no lab can be built here ({error}): these are pictures of runs on LOOPBACK", file=sys.stderr)
        return None


def main() -> int:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description="Pictures of real runs, as PNG.")
    parser.add_argument("--peer", type=Peer.parse, default=None)
    parser.add_argument("--preset", default="loopback")
    parser.add_argument("--only", choices=[scene.__name__ for scene in SCENES])
    asked = parser.parse_args()
    if asked.peer is None:
        status = _in_lab(asked.only)
        if status is not None:
            return status
    asyncio.run(_all(asked.peer or LOOPBACK, asked.preset, asked.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
