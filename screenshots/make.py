"""Pictures of the app, from real runs on an emulated link, as PNG beside this file.

    python screenshots/make.py [--peer HOST] [--preset ID] [--only SCENE]

The link is one of 100 Mb/s and 20 ms between two network namespaces, which it builds itself. If none can be
built, loopback takes its place, and a message says so. Scenes with routers have a chain of hosts (hop_chain), which
needs root. With `--peer` the runs go to the endpoint there. No terminal is needed, and the runs are not saved.

A picture shows a healthy machine and a right answer: a scene is played again, and refused after three attempts, if
a run lost more than 2 % of its cores' time to the hypervisor, if the cores were more than 90 % busy, if an interval
received nothing, or if a run on the emulated link has a finding that the scene does not make.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from health import find_problems
from hop_chain import run_on_chain
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.model.errors import LabError
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Faults, plan_lab_link
from linkgauge.tui.app.far_end_keeper import FarEndKeeper
from picture import discard, write
from scenes import SCENES, Scene
from world import World

_LINK: Final = "100mb-fd"
_ATTEMPTS: Final = 3
_DELAY_MS: Final = 10.0  # each way: enough for a window to matter


async def _make(peer: Peer, preset_id: str, only: str | None, in_lab: bool) -> int:
    """Play the scenes; return how many were given up."""
    with tempfile.TemporaryDirectory() as folder, RunLog.open(Path(folder)) as log:
        async with aclosing(FarEndKeeper(_answer_nothing)) as keeper:
            world = World(peer, keeper, preset_id, log)
            scenes = [each for each in SCENES if each.name == only or (only is None and not each.has_routers)]
            return sum([not await _play(scene, world, in_lab) for scene in scenes])


async def _answer_nothing(_question: str) -> str | None:
    return None


async def _play(scene: Scene, world: World, in_lab: bool) -> bool:
    """Play a scene until its runs are fit for pictures, and write these; return whether they are."""
    for attempt in range(1, _ATTEMPTS + 1):
        known_runs = {row.run_id for row in world.log.list_runs()}
        await scene.play(world)
        world.log.flush()
        problems = find_problems(world.log, known_runs, scene.findings if in_lab else None)
        if not problems:
            write()
            return True
        discard()
        print(f"{scene.name}: attempt {attempt} of {_ATTEMPTS} refused", *problems, sep="\n  ", file=sys.stderr)
        for row in world.log.list_runs():
            if row.run_id not in known_runs:
                world.log.delete(row.run_id)
    return False


def _make_in_lab(only: str | None) -> int | None:
    """Make the pictures at the near end of a lab's link; return None where there can be no lab."""
    link = plan_lab_link(load_catalog().find(_LINK), Faults(delay_ms=_DELAY_MS))
    try:
        with open_lab(link) as built:
            more = ["--only", only] if only else []
            command = [sys.executable, __file__, "--peer", str(built.peer), "--preset", _LINK, "--in-lab", *more]
            return built.run(command)
    except LabError as error:
        print(f"no lab can be built here ({error}): these are pictures of runs on LOOPBACK", file=sys.stderr)
        return None


def _make_on_chain(scene: Scene) -> int:
    """Make a scene's pictures at the near end of a chain of hosts."""
    if os.geteuid() != 0:
        print(f"{scene.name}: a chain of hosts needs root", file=sys.stderr)
        return 1
    options = ["--preset", _LINK, "--in-lab", "--only", scene.name]
    return run_on_chain(lambda address: [sys.executable, __file__, "--peer", address, *options])


def main() -> int:
    """Make all pictures; return 1 if a scene was refused, whose pictures then stay as they were."""
    parser = argparse.ArgumentParser(description="Pictures of real runs, as PNG.")
    parser.add_argument("--peer", type=Peer.parse, default=None)
    parser.add_argument("--preset", default="loopback")
    parser.add_argument("--only", choices=[scene.name for scene in SCENES])
    parser.add_argument("--in-lab", action="store_true", help="the peer is the far end of this command's own link")
    options = parser.parse_args()
    if options.peer is None:
        on_chains = [each for each in SCENES if each.has_routers and options.only in {None, each.name}]
        status = max((_make_on_chain(scene) for scene in on_chains), default=0)
        if options.only in {scene.name for scene in on_chains}:
            return status
        in_lab = _make_in_lab(options.only)
        if in_lab is not None:
            return max(status, in_lab)
    refused = asyncio.run(_make(options.peer or LOOPBACK, options.preset, options.only, options.in_lab))
    if refused:
        print(f"scenes refused: {refused}; try again on a quiet machine", file=sys.stderr)
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
