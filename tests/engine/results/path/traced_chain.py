"""Traces of made-up chains, whose queues and faults are known: what routers would answer, without any socket."""

from dataclasses import dataclass, replace
from random import Random

from linkgauge.engine.model.counters.path_trace import WINDOW_NS, HopTrace, PathTrace
from linkgauge.engine.model.directions import Direction, End, PerDirection
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.responsiveness.result import LoadedLatency, Responsiveness

MS = 1_000_000
_IDLE_WINDOWS = 4
_PHASE_WINDOWS = 20
_PROBES = 4


@dataclass(frozen=True)
class Chain:
    """Routers between two hosts, and what is wrong with some of them.

    A queue at link `i` is between the nodes `i` and `i + 1`; node 0 is the near host. `full` has the phases that
    fill the queue of a direction. Faults are of routers, by their node. A lossy link loses a quarter of a
    direction, and `lossy_back_link` of the other one.
    """

    routers: int = 3
    out_ms: tuple[tuple[int, float], ...] = ()
    in_ms: tuple[tuple[int, float], ...] = ()
    full: tuple[tuple[Direction, Direction], ...] = ((Direction.OUT, Direction.OUT), (Direction.IN, Direction.IN))
    silent: tuple[int, ...] = ()
    limited: tuple[int, ...] = ()
    slow: tuple[int, ...] = ()
    slow_under_load: tuple[int, ...] = ()
    lossy_link: int | None = None
    lossy_way: Direction = Direction.OUT
    lossy_back_link: int | None = None
    seed: int = 1

    @property
    def last(self) -> int:
        """The node of the far host."""
        return self.routers + 1

    def traces(self) -> dict[End, PathTrace]:
        """Return the traces of both ends."""
        return {end: self._trace(end) for end in End}

    def measured(self) -> Responsiveness:
        """Return the latency under load that both ends would have measured."""
        loads = tuple(
            self._load(phase, number * _PHASE_WINDOWS * WINDOW_NS)
            for number, phase in enumerate(Direction.DUPLEX.flows)
        )
        return Responsiveness("datagram", None, loads, None, None, None)

    def _load(self, phase: Direction, start_ns: int) -> LoadedLatency:
        rises = {
            flow: sum(size for _, size in queues) * MS if (phase, flow) in self.full else 0.0
            for flow, queues in ((Direction.OUT, self.out_ms), (Direction.IN, self.in_ms))
        }
        return replace(
            _LOAD,
            direction=phase,
            start_ns=start_ns,
            measured_ns=start_ns + 2 * SECOND_NS,
            end_ns=start_ns + _PHASE_WINDOWS * WINDOW_NS,
            one_way_rise_ns=PerDirection(rises[Direction.OUT], rises[Direction.IN], None),
        )

    def _trace(self, end: End) -> PathTrace:
        nodes = range(1, self.last + 1) if end is End.NEAR else range(self.last - 1, -1, -1)
        windows = _IDLE_WINDOWS + 2 * _PHASE_WINDOWS
        levels = [Random(f"{self.seed} {window}").uniform(0.6, 1) for window in range(windows)]  # noqa: S311
        hops = tuple(self._hop(end, node, levels) for node in nodes)
        of_way = self.lossy_back_link if (self.lossy_way is Direction.OUT) is (end is End.NEAR) else self.lossy_link
        lost = 0.0 if of_way is None else 0.25
        received = tuple(round(_PROBES * (1 - lost)) for _ in range(windows))
        return PathTrace(end, _IDLE_WINDOWS, WINDOW_NS, hops, True, received)

    def _hop(self, end: End, node: int, levels: list[float]) -> HopTrace:
        is_end = node in {0, self.last}
        if node in self.silent:
            empty = tuple(0 for _ in levels)
            return HopTrace((), tuple(_PROBES for _ in levels), empty, tuple(None for _ in levels))
        links = set(range(node)) if end is End.NEAR else set(range(node, self.last))
        draw = Random(f"{self.seed} {end} {node}")  # noqa: S311
        answered: list[int] = []
        least_ns: list[int | None] = []
        for window, level in enumerate(levels):
            count = _PROBES if node not in self.limited else int(window % 3 == 0)
            count = min(count, _PROBES - (self.lossy_link in links) - (self.lossy_back_link in links))
            answered.append(count)
            took_ms = 0.1 * len(links) + draw.uniform(0, 0.3) + self._delay_ms(window, links, level)
            if not is_end and (node in self.slow or (node in self.slow_under_load and window >= _IDLE_WINDOWS)):
                took_ms += 80
            least_ns.append(round(took_ms * MS) if count else None)
        router = f"192.0.2.{node + 1}"
        return HopTrace((router,), tuple(_PROBES for _ in levels), tuple(answered), tuple(least_ns))

    def _delay_ms(self, window: int, links: set[int], level: float) -> float:
        if window < _IDLE_WINDOWS:
            return 0.0
        phase = Direction.DUPLEX.flows[(window - _IDLE_WINDOWS) // _PHASE_WINDOWS]
        return sum(
            size * level
            for flow, queues in ((Direction.OUT, self.out_ms), (Direction.IN, self.in_ms))
            for link, size in queues
            if link in links and (phase, flow) in self.full
        )


_LOAD = LoadedLatency(
    direction=Direction.OUT,
    sessions=8,
    start_ns=0,
    measured_ns=0,
    end_ns=0,
    bit_s=PerDirection(None, None, None),
    latency=None,
    rise_ns=None,
    rise_p99_ns=None,
    peak_rise_ns=None,
    one_way_rise_ns=PerDirection(None, None, None),
    lost_percent=None,
    handshake=None,
    answer=None,
    tcp_rtt=None,
    queues=(),
    round_trips=None,
    is_steady=True,
)
