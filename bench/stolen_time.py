"""What a hypervisor took of this machine's time: what was measured meanwhile tells of its other guests as well."""

# The package is the folder above this one, which pyright cannot know under the package's name.
# pyright: basic, reportMissingImports=false

import time
from collections.abc import Callable
from typing import TypeVar

from linkgauge.engine.host.cpu import read_core_times, subtract_core_times

MOST_STOLEN = 0.02
_TRIES = 5
_REST_S = 2.0  # who has taken much gets less for a while

T = TypeVar("T")


class Watch:
    """Tells what share of this machine's time was taken since it was made."""

    def __init__(self) -> None:
        self._before = read_core_times()

    def share(self) -> float:
        """Return the share, 0 to 1; 0 where the system does not tell."""
        cores = subtract_core_times(self._before, read_core_times()) or ()
        whole_ns = sum(core.busy_ns + core.idle_ns for core in cores)
        return sum(core.steal_ns for core in cores) / max(1, whole_ns)


class Patience:
    """Measures again what was disturbed, a few times. `repeated` and `disturbed` count what came of it."""

    def __init__(self) -> None:
        self.repeated = 0
        self.disturbed = 0

    def measure(self, once: Callable[[], T]) -> T:
        """Return what a measurement found while nobody took much of this machine; else what the last one found."""
        tries = 1
        while True:
            watch = Watch()
            found = once()
            is_disturbed = watch.share() > MOST_STOLEN
            if not is_disturbed or tries == _TRIES:
                self.disturbed += is_disturbed
                return found
            tries += 1
            self.repeated += 1
            time.sleep(_REST_S)

    def __str__(self) -> str:
        """Return how often it was repeated, and what is disturbed all the same."""
        return (
            f"rounds measured again because more than {MOST_STOLEN:.0%} of this machine's time was stolen: "
            f"{self.repeated}; kept though: {self.disturbed}"
        )
