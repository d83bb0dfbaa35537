"""A mesh of hosts that this machine emulates: a lab, and the ordinary command in it."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ....mesh.lab.mesh_lab import open_mesh_lab
from ....presets.catalog import Catalog
from ....presets.lab_link import Slow, plan_lab_hosts
from ...mesh.mesh_spec import EmulatedHosts
from ..output import PROGRAM, print_stderr

_SLOW_SHARE = 0.5


def run_local_mesh(catalog: Catalog, emulated: EmulatedHosts, preset: str, options: Sequence[str]) -> int:
    """Emulate hosts, run `linkgauge mesh` on them with these options, and return its exit status.

    Args:
        catalog: the presets.
        emulated: the hosts and their links.
        preset: the preset to compare with, or `none`.
        options: the options of the command in the lab.

    Raises LabError or LabUnavailable if there can be no lab, PlanError for numbers that cannot be built.
    """
    spec = plan_lab_hosts(
        catalog.find(emulated.preset),
        emulated.hosts,
        emulated.racks,
        {name: Slow(_SLOW_SHARE, _SLOW_SHARE) for name in emulated.slow},
    )
    with tempfile.TemporaryDirectory(prefix="linkgauge-") as folder, open_mesh_lab(spec) as lab:
        for note in lab.notes:
            print_stderr(note)
        hosts_file = Path(folder) / "hosts"
        hosts_file.write_text("".join(f"{host.name} {host.rack}\n" for host in spec.hosts), encoding="utf-8")
        where = ["--scheduler", lab.scheduler]
        if "--resume" not in options:
            where += ["--hosts", str(hosts_file), "--preset", preset if lab.is_emulated else "none"]
            where += ["--emulated", emulated.to_json()]
        return lab.run([sys.executable, "-P", "-m", PROGRAM, "mesh", *where, *options])
