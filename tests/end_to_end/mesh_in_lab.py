"""`python mesh_in_lab.py SCHEDULER`: measure a mesh of hosts from standard input, and print what was found.

It runs in a lab, beside the scheduler. Input and output are one JSON value each: see `measure`.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import logging
import sys
from typing import Any

from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.mesh.plan import Host, MeshPlan
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.mesh.mesh_session import open_mesh_session
from linkgauge.tui.mesh.mesh_spec import MeshSpec

_log = logging.getLogger(__name__)


async def measure(scheduler: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Measure `hosts` for so many `seconds` a cell, in an order by `seed`; return `findings` and `figures`."""
    plan = MeshPlan(
        "mesh-lab",
        tuple(decode(Host, host) for host in asked["hosts"]),
        Plan(duration_ns=round(asked["seconds"] * SECOND_NS)),
        seed=asked["seed"],
        preset=asked["preset"],
    )
    async with open_mesh_session(MeshSpec(plan, scheduler), load_catalog(), None) as session:
        async for update in session:
            _log.debug("%s", update)
    return {
        "findings": [encode(finding) for finding in session.findings],
        "figures": [encode(figure) for figure in session.matrix.figures.values()],
    }


if __name__ == "__main__":
    json.dump(asyncio.run(measure(sys.argv[1], json.load(sys.stdin))), sys.stdout)
