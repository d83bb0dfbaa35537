"""The frame rate of the cockpit: the user's, and a quarter of it while all cores of this host are busy. Pure."""

from collections.abc import Callable
from typing import Final

from ...engine.model.plan import SECOND_NS
from ..words.parsing import DEFAULT_REFRESH_HZ

_BUSY_PERCENT: Final = 90.0
_BUSY_FACTOR: Final = 4


class FramePacer:
    """Limits the frame rate. You must call `seconds_until_due` before a frame and `frame_drawn` after it.

    `clock` counts nanoseconds. If all cores of this host are busy, drawing would slow the measurement. Frames are
    then four times as far apart.
    """

    def __init__(self, clock: Callable[[], int], refresh_hz: float = DEFAULT_REFRESH_HZ) -> None:
        self.clock = clock
        self._drawn_ns: int | None = None
        self.refresh_hz = refresh_hz
        self._is_busy = False

    @property
    def frame_ns(self) -> int:
        """The minimum time between two frames."""
        return round(SECOND_NS / self.refresh_hz) * (_BUSY_FACTOR if self._is_busy else 1)

    def seconds_until_due(self) -> float:
        """Return the time until the next frame may be drawn; 0 means now."""
        if self._drawn_ns is None:
            return 0.0
        return max(self._drawn_ns + self.frame_ns - self.clock(), 0) / SECOND_NS

    def frame_drawn(self, host_percent: float | None = None) -> None:
        """Start the wait for the next frame; `host_percent` is the load of all cores together."""
        self._drawn_ns = self.clock()
        self._is_busy = host_percent is not None and host_percent >= _BUSY_PERCENT
