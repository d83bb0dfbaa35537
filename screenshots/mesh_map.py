"""Pictures of the map of a mesh: eight emulated hosts, of which one has half of its rate, at three sizes, as PNG.

    python screenshots/mesh_map.py

The hosts are network namespaces at 100 Mb/s, which it builds itself: it needs root, iproute2 and the extra mesh.
The mesh is real, and not saved. The pictures are refused if the slow host is not the only finding, if a cell has no
result, or if the hypervisor took more than 2 % of the time meanwhile.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

from health import MOST_STOLEN, share_of
from linkgauge.engine.host.cpu import read_core_times, subtract_core_times
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.results.run_log import RunLog
from linkgauge.mesh.lab.mesh_lab import open_mesh_lab
from linkgauge.mesh.plan import MeshPlan
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Slow, plan_lab_hosts
from linkgauge.tui.app.app import MeshApp
from linkgauge.tui.kit.screens.feature_app import StoredServices
from linkgauge.tui.mesh.mesh_session import open_mesh_session
from linkgauge.tui.mesh.mesh_spec import MeshSpec, new_mesh_name
from linkgauge.tui.session.user_presets import load_presets
from picture import take, write

_LINK: Final = "100mb-fd"
_HOSTS: Final = 8
_SLOW: Final = "host-3"
_SIZES: Final = ((80, 24), (200, 60), (120, 40))
_DEADLINE_S: Final = 240.0


def make_in_lab() -> int:
    """Build the hosts, and make the pictures there; return the exit status."""
    spec = plan_lab_hosts(load_catalog().find(_LINK), _HOSTS, 1, {_SLOW: Slow(0.5, 0.5)})
    with open_mesh_lab(spec) as lab:
        for note in lab.notes:
            print(note, file=sys.stderr)
        return lab.run([sys.executable, __file__, "--scheduler", lab.scheduler])


async def make_pictures(scheduler: str) -> int:
    """Measure the mesh of a scheduler's workers in the app; write its pictures and return the exit status."""
    before = read_core_times()
    plan = Plan(Settings(), duration_ns=SECOND_NS, interval_ns=SECOND_NS // 10)
    spec = MeshSpec(MeshPlan(new_mesh_name(), (), plan, preset=_LINK), scheduler)
    with tempfile.TemporaryDirectory() as folder, RunLog.open(Path(folder)) as log:
        os.environ["LINKGAUGE_DATA_DIR"] = folder  # of the mesh's definition
        async with open_mesh_session(spec, load_catalog(), log) as session:
            services = StoredServices(catalog=load_presets(), export=_export_nothing, open_log=lambda: log)
            app = MeshApp(session, services)
            async with app.run_test(size=(120, 40)) as pilot:
                async with asyncio.timeout(_DEADLINE_S):
                    while len(session.matrix.figures) < _HOSTS * (_HOSTS - 1) / 2:
                        await pilot.pause(0.1)
                    await pilot.pause(0.4)
                    take(app, "mesh-running")
                    await app.mesh.over.wait()
                for size in _SIZES:
                    await pilot.resize_terminal(*size)
                    await pilot.pause(0.6)
                    take(app, "mesh")
            named = [(finding.code.value, finding.sender) for finding in session.findings]
            failed = [figure for figure in session.matrix.figures.values() if figure.failure is not None]
    stolen = share_of((before and subtract_core_times(before, read_core_times())) or (), "steal_ns")
    if named != [("host", _SLOW)] or failed or stolen > MOST_STOLEN:
        print(f"refused: {named}, {len(failed)} cells failed, {stolen:.1%} stolen; try again", file=sys.stderr)
        return 1
    write()
    return 0


def _export_nothing(_run_ids: Sequence[str], _form: str, _path: Path) -> Path:
    raise RunLogError("these pictures export nothing")


def main() -> int:
    """Make the pictures; return 1 if they were refused, and then stay as they were."""
    parser = argparse.ArgumentParser(description="Pictures of the map of a mesh, as PNG.")
    parser.add_argument("--scheduler", help="make them there: the hosts are this scheduler's workers")
    options = parser.parse_args()
    return make_in_lab() if options.scheduler is None else asyncio.run(make_pictures(options.scheduler))


if __name__ == "__main__":
    sys.exit(main())
