"""The share of this machine's time that its hypervisor took: where it is large, a test of rates is void."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

from typing import Any, Final

from linkgauge.engine.host.cpu import read_core_times, subtract_core_times

MOST_STOLEN: Final = 0.05


def stolen_share(before: Any) -> float:
    """Return the share of all cores' time since `read_core_times`."""
    cores = (before and subtract_core_times(before, read_core_times())) or ()
    return sum(core.steal_ns for core in cores) / max(1, sum(core.busy_ns + core.idle_ns for core in cores))
