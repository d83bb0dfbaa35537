"""How often the screen is drawn: often enough to be followed, seldom enough for a slow line and a busy machine."""

from collections.abc import Callable
from typing import Final

from ...engine.model.plan import SECOND_NS
from ..text.parsing import DEFAULT_REFRESH_HZ

_FULL_PERCENT: Final = 90.0
_SELDOM: Final = 4


class RefreshPacer:
    """Bounds the frames: you must ask `due_in` before one, and tell `drawn` of each.

    `clock` counts nanoseconds. Where all cores of this host are busy, what is drawn is taken from what is measured:
    then frames are four times as far apart.
    """

    def __init__(self, clock: Callable[[], int], refresh_hz: float = DEFAULT_REFRESH_HZ) -> None:
        self.clock = clock
        self._drawn_ns: int | None = None
        self.refresh_hz = refresh_hz
        self._is_full = False

    @property
    def frame_ns(self) -> int:
        """The least time between two frames."""
        return round(SECOND_NS / self.refresh_hz) * (_SELDOM if self._is_full else 1)

    def seconds_until_due(self) -> float:
        """Return in how many seconds the next frame may be drawn; 0 for now."""
        if self._drawn_ns is None:
            return 0.0
        return max(self._drawn_ns + self.frame_ns - self.clock(), 0) / SECOND_NS

    def frame_drawn(self, host_percent: float | None = None) -> None:
        """Count from now, with this host's cores as busy as that all together."""
        self._drawn_ns = self.clock()
        self._is_full = host_percent is not None and host_percent >= _FULL_PERCENT
