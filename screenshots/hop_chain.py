"""A chain of five hosts for pictures of a path: a silent router, and a queue behind the second one."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "stress"))

from case_runs import endpoint_at
from end_to_end.chained_path import ChainedPath, LinkQueue
from linkgauge.engine.model.directions import Direction

_MBIT_S: Final = 100
_HOLD_MS: Final = 60
_SHORT_MS: Final = 1
_LINUX_LIMIT_MS: Final = 1_000


def run_on_chain(command_for: Callable[[str], list[str]]) -> int:
    """Run a command at the near host, for the address of an endpoint at the far host; return its exit status.

    Needs root, iproute2, ethtool and nftables.
    """
    holds = ((Direction.OUT, _HOLD_MS), (Direction.IN, _SHORT_MS))
    queues = tuple(LinkQueue(2, direction, hold_ms, _MBIT_S) for direction, hold_ms in holds)
    path = ChainedPath(5, queues, icmp_limit_ms=_LINUX_LIMIT_MS, maker="offloads")
    try:
        path.silence(1)
        with endpoint_at(path.far):
            return subprocess.run([*path.near, *command_for(path.far_address())], check=False).returncode
    finally:
        path.close()
