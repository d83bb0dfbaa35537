"""What a mesh's figures say: which hosts, groups and paths are slow or lossy, what to measure again, what changed.

Public: `find_faults`, `cells_to_recheck`, `compare_meshes`, `order_hosts`. Within:
`relative_rates` (cells as shares of what is expected), `usual_rate` (the rate of healthy cells, their scatter),
`suspects` (the cells of each possible cause), `explanation` (the fewest causes), `losses` (what loses packets
without being slow), `findings` (what is said of them).
Knows neither Dask nor an event loop.
"""

from .comparison import CellChange, MeshComparison, compare_meshes
from .findings import find_faults
from .host_order import order_hosts
from .recheck import MAX_RECHECKS, cells_to_recheck

__all__ = [
    "MAX_RECHECKS",
    "CellChange",
    "MeshComparison",
    "cells_to_recheck",
    "compare_meshes",
    "find_faults",
    "order_hosts",
]
