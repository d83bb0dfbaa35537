"""What one end has traced of the path to the other: the answers of each hop, in windows of time. Pure data.

An end sends probes with TTL 1 to N from one socket to one port of the other end, so that all of them take the same
way. The far end's trace comes from the network: values are checked as they are constructed.
"""

from dataclasses import dataclass
from typing import Final

from ..directions import End
from ..ip_address import parse_ip_address
from ..plan import SECOND_NS

MAX_HOPS: Final = 30
MAX_WINDOWS: Final = 160
MAX_ROUTERS: Final = 4
"""The addresses of one hop: the path may change, or use several routers in turn."""
MAX_MTUS: Final = 8
WINDOW_NS: Final = SECOND_NS * 2 // 5
MAX_ANSWER_NS: Final = 60 * SECOND_NS
"""The longest round trip that counts."""
MAX_MTU_BYTES: Final = 65_535
_MAX_PROBES: Final = 1 << 24  # of a window
_MAX_WINDOW_NS: Final = 86_400 * SECOND_NS


def _is_address(text: str) -> bool:
    """Return whether the text is an IP address in its one spelling; raise ValueError if it is none at all."""
    return str(parse_ip_address(text)) == text


@dataclass(frozen=True, slots=True)
class HopTrace:
    """The probes with one TTL: who answered, most often first, and a value for each window.

    A probe counts in the window in which it was sent. `least_ns` is the shortest round trip, None without answers.
    """

    routers: tuple[str, ...]
    sent: tuple[int, ...]
    answered: tuple[int, ...]
    least_ns: tuple[int | None, ...]

    def __post_init__(self) -> None:
        """Raise ValueError for what no hop can have: losses and rises are computed from it."""
        if len(self.routers) > MAX_ROUTERS or not all(map(_is_address, self.routers)):
            raise ValueError("the routers of a hop")
        if not len(self.sent) == len(self.answered) == len(self.least_ns) <= MAX_WINDOWS:
            raise ValueError("the windows of a hop")
        for sent, answered, least_ns in zip(self.sent, self.answered, self.least_ns, strict=True):
            if not 0 <= answered <= sent <= _MAX_PROBES or (least_ns is None) is not (answered == 0):
                raise ValueError("the probes of a hop")
            if least_ns is not None and not 0 <= least_ns <= MAX_ANSWER_NS:
                raise ValueError("the round trips of a hop")


@dataclass(frozen=True, slots=True)
class MtuReport:
    """A router's report that the link behind it carries packets of at most `mtu_bytes`."""

    router: str
    mtu_bytes: int

    def __post_init__(self) -> None:
        """Raise ValueError for another address or size than a router reports."""
        if not _is_address(self.router) or not 0 < self.mtu_bytes <= MAX_MTU_BYTES:
            raise ValueError("the MTU of a router")


@dataclass(frozen=True, slots=True)
class PathTrace:
    """One end's trace.

    The first `idle_windows` windows are `WINDOW_NS` long each and end when payload begins to flow; those after them
    have `window_ns`. `hops` are those with TTL 1, 2 and so on. If the other end has answered, it is the last one,
    and `is_reached`. `received` counts the other end's own probes with full TTL that arrived in each window.
    """

    end: End
    idle_windows: int
    window_ns: int
    hops: tuple[HopTrace, ...]
    is_reached: bool
    received: tuple[int, ...]
    mtus: tuple[MtuReport, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for what no trace can be."""
        windows = len(self.received)
        if len(self.hops) > MAX_HOPS or (self.is_reached and not self.hops) or len(self.mtus) > MAX_MTUS:
            raise ValueError("the hops of a path")
        if not self.idle_windows <= windows <= MAX_WINDOWS or any(len(hop.sent) != windows for hop in self.hops):
            raise ValueError("the windows of a path")
        is_possible = WINDOW_NS <= self.window_ns <= _MAX_WINDOW_NS
        if not is_possible or max(self.received, default=0) > _MAX_PROBES:
            raise ValueError("the times of a path")

    @property
    def loaded_ns(self) -> int:
        """The time of its windows under load."""
        return (len(self.received) - self.idle_windows) * self.window_ns

    def loaded_window(self, start_ns: int, end_ns: int) -> range:
        """Return the numbers of the windows that lie between two times since payload began to flow."""
        first = self.idle_windows + -(-start_ns // self.window_ns)
        last = self.idle_windows + end_ns // self.window_ns
        return range(min(first, len(self.received)), min(last, len(self.received)))
