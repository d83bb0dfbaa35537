"""The pace of a replay: its place in the run follows a clock, at a speed that keys change. Pure."""

from collections.abc import Callable
from typing import Final

SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Playback:
    """A moment of a run that moves on. `clock` counts nanoseconds; `position_ns` is as of the last `tick`."""

    def __init__(self, clock: Callable[[], int], speed: float = 1.0) -> None:
        self.speed = speed
        self.is_paused = False
        self.position_ns = 0
        self._clock = clock
        self._ticked_ns = clock()

    def tick(self) -> int:
        """Move on by the time since the last call; return the moment of the run."""
        now_ns = self._clock()
        if not self.is_paused:
            self.position_ns += round((now_ns - self._ticked_ns) * self.speed)
        self._ticked_ns = now_ns
        return self.position_ns

    def step_speed(self, by: int) -> None:
        """Go to the next higher (1) or lower (-1) speed."""
        faster = [speed for speed in SPEEDS if speed > self.speed]
        slower = [speed for speed in SPEEDS if speed < self.speed]
        if by > 0 and faster:
            self.speed = faster[0]
        elif by < 0 and slower:
            self.speed = slower[-1]

    def go_to(self, moment_ns: int) -> None:
        """Go to a moment of the run; before its beginning is its beginning."""
        self.position_ns = max(moment_ns, 0)
