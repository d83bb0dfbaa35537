"""Two hosts and a router between them, with queues of known rate and size where a test wants them.

A queue is a token bucket (tc-tbf(8)) that drops what finds no room. It is where packets leave: at the sending
host's own interface, or at the router's towards the receiver.
"""

import subprocess
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from linkgauge.engine.model.directions import Direction

from .namespaces import DEADLINE_S, run_within
from .routed_path import FAR_ROUTER, FAR_ROUTER_6, NEAR_ROUTER, NEAR_ROUTER_6, Mtus, RoutedPath

FRAME_BYTES: Final = 1_514
# A bucket must have room for what its timer is late by: a millisecond, and a few packets where that is less.
_LEAST_BURST_BYTES: Final = 2 * FRAME_BYTES
_LEAST_QUEUE_BYTES: Final = 3 * FRAME_BYTES


class Place(StrEnum):
    """Where a queue is: at the near host, in the router, or at the far host."""

    NEAR = "near"
    ROUTER = "router"
    FAR = "far"


@dataclass(frozen=True)
class Queue:
    """A queue for one direction: its rate, and for how many milliseconds it holds what it sends.

    A host's own queue is in the way of what that host sends: the near one's out, the far one's in.
    """

    place: Place
    direction: Direction
    hold_ms: float
    mbit_s: float

    @property
    def limit_bytes(self) -> int:
        """The packets that it holds, in bytes with their Ethernet headers: some packets at least."""
        return max(_LEAST_QUEUE_BYTES, round(self.hold_ms * self.mbit_s * 1e3 / 8))

    @property
    def device(self) -> str:
        """The interface that it belongs to."""
        if self.place is Place.ROUTER:
            return "router1" if self.direction is Direction.OUT else "router0"
        return "near0" if self.place is Place.NEAR else "far0"

    def time_ms(self, size_bytes: float) -> float:
        """Return how long it takes to send so many bytes."""
        return size_bytes * 8 / (self.mbit_s * 1e3)

    def __str__(self) -> str:
        return f"{self.hold_ms:g} ms at {self.mbit_s:g} Mb/s in {self.place.value}, {self.direction.value}"


class QueuedPath(RoutedPath):
    """A path that is up, with the queues that it was given and cubic at both ends.

    Nobody on it joins packets to larger ones: a queue of a few packets would hold none of these, and a backlog in
    bytes would not be that of a line.
    """

    def __init__(self, *queues: Queue) -> None:
        """Build it; raise CalledProcessError where this kernel has no token bucket."""
        super().__init__(Mtus())
        try:
            for within, device in (
                (self.near, "near0"),
                (self.router, "router0"),
                (self.router, "router1"),
                (self.far, "far0"),
            ):
                _send_single_packets(within, device)
            # A namespace's default may only be what its machine allows to every user; a route may name any.
            for within, *gateways in (
                (self.near, NEAR_ROUTER, NEAR_ROUTER_6),
                (self.far, FAR_ROUTER, FAR_ROUTER_6),
            ):
                for gateway in gateways:
                    run_within(within, "ip", "route", "replace", "default", "via", gateway, "congctl", "cubic")
            for queue in queues:
                self._add(queue)
        except BaseException:
            self.close()
            raise

    def entry_of(self, place: Place) -> list[str]:
        """Return what a command line begins with to run at a place."""
        return {Place.NEAR: self.near, Place.ROUTER: self.router, Place.FAR: self.far}[place]

    def _add(self, queue: Queue) -> None:
        burst_bytes = max(_LEAST_BURST_BYTES, round(queue.mbit_s * 1e6 / 8 / 1_000))
        bucket = ("rate", f"{queue.mbit_s:g}mbit", "burst", str(burst_bytes), "limit", str(queue.limit_bytes))
        command = ("tc", "qdisc", "replace", "dev", queue.device, "root", "tbf", *bucket)
        run_within(self.entry_of(queue.place), *command)


def _send_single_packets(within: list[str], device: str) -> None:
    run_within(within, "ip", "link", "set", device, "gso_max_segs", "1")
    # It prints what else it had to change.
    command = [*within, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]
    subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S)
