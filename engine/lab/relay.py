"""`python -m linkgauge.engine.lab.relay NEAR_TAP FAR_TAP LINK`: the process that adds delay, loss and half duplex.

Not every kernel has queues for these. The shared medium models neither Ethernet collisions nor a token ring: it is
never idle while a frame waits, and serves both directions in turn. Frames are lost independently, ACKs like data.
"""

import json
import os
import random
import select
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ..model.serialization import decode
from .link_spec import LabLink

_FRAMES_AT_ONCE: Final = 32  # read from one end before the other end's turn
_SECOND_NS: Final = 1_000_000_000


@dataclass(slots=True)
class _Flow:
    """One direction: frames that wait for the medium, and frames in transit."""

    waiting: deque[tuple[int, bytes]] = field(default_factory=deque[tuple[int, bytes]])
    waiting_bytes: int = 0
    under_way: deque[tuple[int, bytes]] = field(default_factory=deque[tuple[int, bytes]])


class Medium:
    """The medium between the two ends. It has no clock: each call gives the time.

    Call `send` for each frame, and `pop_arrivals` at the time that `next_event_ns` returns.
    """

    def __init__(self, link: LabLink, draw: Callable[[], float]) -> None:
        """Make a medium for a link. `draw` returns a number from 0 to 1 that decides each frame's loss."""
        self._link = link
        self._draw = draw
        self._loss = link.loss_percent / 100
        self._flows = (_Flow(), _Flow())
        self._free_ns = 0  # the time at which the shared medium is free
        self._turn = 0

    def send(self, side: int, frame: bytes, now_ns: int) -> None:
        """Accept a frame from one side: 0 near, 1 far."""
        if self._loss and self._draw() < self._loss:
            return
        flow = self._flows[side]
        if not self._link.half_duplex:  # the kernel's queues have limited the rate already
            flow.under_way.append((now_ns + self._link.delay_ns, frame))
        elif flow.waiting_bytes + len(frame) <= self._link.buffer_bytes:
            flow.waiting.append((now_ns, frame))
            flow.waiting_bytes += len(frame)

    def pop_arrivals(self, now_ns: int) -> Iterator[tuple[int, bytes]]:
        """Yield the frames that have arrived by now, each with the side of its sender."""
        self._use_medium(now_ns)
        for side, flow in enumerate(self._flows):
            while flow.under_way and flow.under_way[0][0] <= now_ns:
                yield side, flow.under_way.popleft()[1]

    def next_event_ns(self) -> int | None:
        """Return the time of the next arrival or transmission; None if no frame waits or is in transit."""
        times = [flow.under_way[0][0] for flow in self._flows if flow.under_way]
        if any(flow.waiting for flow in self._flows):
            times.append(self._free_ns)
        return min(times, default=None)

    def _use_medium(self, now_ns: int) -> None:
        """Put waiting frames on the medium up to now, each at the earliest time that was possible."""
        while self._free_ns <= now_ns:
            ready = [side for side in (self._turn, 1 - self._turn) if self._flows[side].waiting]
            if not ready:
                return
            # A free medium goes to the first frame; two waiting sides take turns.
            side = min(ready, key=lambda each: max(self._free_ns, self._flows[each].waiting[0][0]))
            flow = self._flows[side]
            sent_ns, frame = flow.waiting.popleft()
            flow.waiting_bytes -= len(frame)
            self._free_ns = max(self._free_ns, sent_ns) + self._link.wire_ns(len(frame))
            flow.under_way.append((self._free_ns + self._link.delay_ns, frame))
            self._turn = 1 - side


def relay_frames(taps: tuple[int, int], link: LabLink, until_ended: int) -> None:
    """Carry frames between two TAP devices until a descriptor becomes readable: its other end is closed."""
    medium = Medium(link, random.Random(link.seed).random)  # noqa: S311 - chance, not secrets
    most = max(link.mtu_bytes, link.far_mtu_bytes) + 18
    while True:
        due_ns = medium.next_event_ns()
        wait = None if due_ns is None else max(0, due_ns - time.monotonic_ns()) / _SECOND_NS
        readable, _, _ = select.select([*taps, until_ended], [], [], wait)
        if until_ended in readable:
            return
        for side, tap in enumerate(taps):
            if tap in readable:
                for frame in _frames(tap, most):
                    medium.send(side, frame, time.monotonic_ns())
        for side, frame in medium.pop_arrivals(time.monotonic_ns()):
            with suppress(OSError):  # the device goes down, or its queue is full: the frame is lost
                os.write(taps[1 - side], frame)


def _frames(tap: int, most: int) -> Iterator[bytes]:
    with suppress(BlockingIOError):
        for _ in range(_FRAMES_AT_ONCE):
            yield os.read(tap, most)


def main() -> None:
    """Carry one link's frames."""
    near, far, link = sys.argv[1:]
    relay_frames((int(near), int(far)), decode(LabLink, json.loads(link)), sys.stdin.fileno())


if __name__ == "__main__":
    main()
