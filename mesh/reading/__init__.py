"""The diagnosis of a mesh: which hosts, groups and paths are slow or lossy, what to measure again, what changed.

Public: `find_faults`, `cells_to_recheck`, `compare_meshes`, `order_hosts`. The others are steps on the way:
`relative_rates` (cells as shares of their expected rates), `usual_rate` (the rate of healthy cells, their scatter),
`suspected_causes` (the cells of each possible cause), `explanation` (the fewest causes that explain slow cells),
`losses` (hosts and paths that lose packets without being slow), `findings` (names slow hosts, groups and paths).
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
