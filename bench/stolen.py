"""What a hypervisor took of this machine's time: what was measured meanwhile tells of its other guests as well."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

MOST_STOLEN = 0.02
_TRIES = 5
_REST_S = 2.0  # who has taken much gets less for a while

T = TypeVar("T")


def _ticks() -> tuple[int, int]:
    """Return the time that was taken, and all there was, of all cores (proc(5), /proc/stat); 0 where unknown."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split()[1:9]
    except OSError:
        return 0, 0
    return int(words[7]), sum(map(int, words))


class Watch:
    """Tells what share of this machine's time was taken since it was made."""

    def __init__(self) -> None:
        self._before = _ticks()

    def share(self) -> float:
        """Return the share, 0 to 1."""
        (stolen, total), (stolen_before, total_before) = _ticks(), self._before
        return (stolen - stolen_before) / max(1, total - total_before)


class Patience:
    """Measures again what was disturbed, a few times. `repeated` and `disturbed` count what came of it."""

    def __init__(self) -> None:
        self.repeated = 0
        self.disturbed = 0

    def measure(self, once: Callable[[], T]) -> T:
        """Return what a measurement found while nobody took much of this machine; else what the last one found."""
        for _ in range(_TRIES - 1):
            watch = Watch()
            found = once()
            if watch.share() <= MOST_STOLEN:
                return found
            self.repeated += 1
            time.sleep(_REST_S)
        watch = Watch()
        found = once()
        self.disturbed += watch.share() > MOST_STOLEN
        return found

    def __str__(self) -> str:
        """Return how often it was repeated, and what is disturbed all the same."""
        return (
            f"rounds measured again because more than {MOST_STOLEN:.0%} of this machine's time was stolen: "
            f"{self.repeated}; kept though: {self.disturbed}"
        )
