"""Paths with known queues: the cells of the grid, and what a responsiveness test must find on each."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Final

from linkgauge.engine.model.directions import Direction

from .queued_path import Place, Queue
from .routed_path import FAR_HOST, FAR_HOST_6

HOLDS_MS: Final = (10, 50, 200, 400)
RATES_MBIT_S: Final = (10, 100)
_HEALTHY_MS: Final = 1
LEAST_NAMED_MS: Final = 5
"""What a queue must hold to be named: below it nobody would mend it."""


@dataclass(frozen=True)
class Wanted:
    """A finding that must be there: its code, the end that has the queue, and the direction."""

    code: str
    end: str | None
    direction: str | None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.code, self.end, self.direction)))


_NO_QUEUE: Final = Wanted("no-queue", None, None)


@dataclass(frozen=True)
class Cell:
    """One path: its queues, the address that it is tested by, and options of the command."""

    name: str
    queues: tuple[Queue, ...]
    host: str = FAR_HOST
    options: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether both ends are one host."""
        return self.host.startswith("127.")

    @property
    def wanted(self) -> frozenset[Wanted]:
        """The findings about queues that must be there; there must be no other."""
        named = frozenset(_wanted(queue) for queue in self.queues if queue.hold_ms >= LEAST_NAMED_MS)
        return named or frozenset({_NO_QUEUE})


def _wanted(queue: Queue) -> Wanted:
    match queue.place:
        case Place.NEAR:
            return Wanted("queue-local", "near", queue.direction.value)
        case Place.FAR:
            return Wanted("queue-remote", "far", queue.direction.value)
        case Place.ROUTER:
            return Wanted("queue-path", None, queue.direction.value)


def one_queue(place: Place, direction: Direction, hold_ms: float, mbit_s: float, **more: object) -> Cell:
    """Return a cell whose other direction is as fast and has next to no queue.

    Without a limit there, acknowledgements of gigabits would fill the queue that is to be empty.
    """
    other = Direction.IN if direction is Direction.OUT else Direction.OUT
    queue = Queue(place, direction, hold_ms, mbit_s)
    return Cell(str(queue), (queue, Queue(Place.ROUTER, other, _HEALTHY_MS, mbit_s)), **more)


def two_queues(places: tuple[Place, Place], holds_ms: tuple[float, float], mbit_s: float, **more: object) -> Cell:
    """Return a cell with a queue out and one in."""
    out, in_ = (
        Queue(place, direction, hold_ms, mbit_s)
        for place, direction, hold_ms in zip(places, (Direction.OUT, Direction.IN), holds_ms, strict=True)
    )
    sizes = f"{holds_ms[0]:g} ms" if holds_ms[0] == holds_ms[1] else f"{holds_ms[0]:g} and {holds_ms[1]:g} ms"
    where = places[0].value if places[0] is places[1] else f"{places[0].value} and {places[1].value}"
    return Cell(f"{sizes} at {mbit_s:g} Mb/s in {where}, both", (out, in_), **more)


def grid_cells() -> Iterator[Cell]:
    """Yield every place, direction, size and rate. A host's own queue is in the way of what it sends alone."""
    for mbit_s, hold_ms in product(RATES_MBIT_S, HOLDS_MS):
        yield one_queue(Place.NEAR, Direction.OUT, hold_ms, mbit_s)
        yield one_queue(Place.FAR, Direction.IN, hold_ms, mbit_s)
        yield one_queue(Place.ROUTER, Direction.OUT, hold_ms, mbit_s)
        yield one_queue(Place.ROUTER, Direction.IN, hold_ms, mbit_s)
        yield two_queues((Place.NEAR, Place.FAR), (hold_ms, hold_ms), mbit_s)
        yield two_queues((Place.ROUTER, Place.ROUTER), (hold_ms, hold_ms), mbit_s)


def healthy_cells() -> Iterator[Cell]:
    """Yield links on which no queue may be found."""
    yield Cell("no shaping", ())
    yield two_queues((Place.ROUTER, Place.ROUTER), (_HEALTHY_MS, _HEALTHY_MS), 100)
    yield Cell("loopback", (), "127.0.0.1")


def held_back_cells() -> Iterator[Cell]:
    """Yield other sizes, rates and ways of asking than those that the rules were written with."""
    yield one_queue(Place.ROUTER, Direction.OUT, 25, 30)
    yield one_queue(Place.ROUTER, Direction.IN, 120, 60)
    yield two_queues((Place.ROUTER, Place.ROUTER), (80, 20), 40)
    yield two_queues((Place.NEAR, Place.ROUTER), (40, 60), 25)
    ipv6 = one_queue(Place.ROUTER, Direction.IN, 50, 50, host=f"[{FAR_HOST_6}]")
    yield Cell(f"{ipv6.name}, IPv6", ipv6.queues, ipv6.host)
    many = one_queue(Place.FAR, Direction.IN, 100, 20, options=("--sessions", "16"))
    yield Cell(f"{many.name}, 16 sessions", many.queues, options=many.options)
