"""Detection of CPU time stolen by the hypervisor, and repetition of the measurements that it disturbs."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import time
from collections.abc import Callable
from typing import TypeVar

from linkgauge.engine.host.cpu import read_core_times, subtract_core_times

MAX_STOLEN_SHARE = 0.02
_TRIES = 5
_PAUSE_S = 2.0  # a guest that has used much CPU gets less for a while

T = TypeVar("T")


class StealMeter:
    """The share of this machine's time stolen since the meter was created."""

    def __init__(self) -> None:
        self._before = read_core_times()

    def share(self) -> float:
        """Return the share, 0 to 1; 0 if the system does not report it."""
        cores = subtract_core_times(self._before, read_core_times()) or ()
        whole_ns = sum(core.busy_ns + core.idle_ns for core in cores)
        return sum(core.steal_ns for core in cores) / max(1, whole_ns)


class StealGuard:
    """Repeats disturbed measurements a few times; counts the `repeated` and the finally `disturbed` ones."""

    def __init__(self) -> None:
        self.repeated = 0
        self.disturbed = 0

    def measure(self, measurement: Callable[[], T]) -> T:
        """Return the result of the first undisturbed measurement, else of the last one."""
        tries = 1
        while True:
            meter = StealMeter()
            result = measurement()
            is_disturbed = meter.share() > MAX_STOLEN_SHARE
            if not is_disturbed or tries == _TRIES:
                self.disturbed += is_disturbed
                return result
            tries += 1
            self.repeated += 1
            time.sleep(_PAUSE_S)

    def __str__(self) -> str:
        """Return the two counts as a sentence."""
        return (
            f"rounds measured again because more than {MAX_STOLEN_SHARE:.0%} of this machine's time was stolen: "
            f"{self.repeated}; kept though: {self.disturbed}"
        )
