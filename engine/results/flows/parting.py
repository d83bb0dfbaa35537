"""Where the paths of a bad and a good flow part, by the routers that answer for each. Pure."""

from dataclasses import dataclass
from itertools import zip_longest

from ...model.counters.path_trace import PathTrace
from ...model.directions import Direction


@dataclass(frozen=True, slots=True)
class FlowHop:
    """The routers with one TTL on the way of a bad flow and of a good one; empty for a hop that is silent."""

    ttl: int
    bad: tuple[str, ...]
    good: tuple[str, ...]

    @property
    def is_silent(self) -> bool:
        """Whether one of the flows, or both, have no answer."""
        return not (self.bad and self.good)

    @property
    def is_same(self) -> bool:
        """Whether a router answers for both."""
        return bool(set(self.bad) & set(self.good))


@dataclass(frozen=True, slots=True)
class Parting:
    """The hops of a bad flow and a good one in a direction, counted from its sender, by their source ports.

    `ttl` is the first hop that differs, None if none does; those of `silent` before it do not tell. Behind `joined`
    both have the same hops again, None if they stay apart. With `is_bad_reached` probes of the bad flow came back
    from the other end.
    """

    direction: Direction
    bad_port: int
    good_port: int
    hops: tuple[FlowHop, ...]
    is_bad_reached: bool

    @property
    def ttl(self) -> int | None:
        """The first hop that differs."""
        return next((hop.ttl for hop in self.hops if not hop.is_silent and not hop.is_same), None)

    @property
    def last_common(self) -> FlowHop | None:
        """The last hop before the first one that differs which both flows share; None if there is none."""
        ttl = self.ttl
        common = [hop for hop in self.hops if hop.is_same and (ttl is None or hop.ttl < ttl)]
        return common[-1] if common else None

    @property
    def silent(self) -> tuple[int, ...]:
        """The silent hops before the first one that differs, or all silent ones."""
        ttl = self.ttl
        return tuple(hop.ttl for hop in self.hops if hop.is_silent and (ttl is None or hop.ttl < ttl))

    @property
    def joined(self) -> int | None:
        """The first hop behind the parting from which on both flows share all hops that answer."""
        ttl, joined = self.ttl, None
        for hop in self.hops:
            if ttl is None or hop.ttl <= ttl or hop.is_silent:
                continue
            joined = (joined or hop.ttl) if hop.is_same else None
        return joined

    def hop(self, ttl: int) -> FlowHop:
        """Return the hop with a TTL."""
        return self.hops[ttl - 1]


def part(direction: Direction, ports: tuple[int, int], bad: PathTrace, good: PathTrace) -> Parting:
    """Return where two flows part, by the source ports and the traces of the bad one and of the good one."""
    hops = [
        FlowHop(ttl, one.routers if one else (), other.routers if other else ())
        for ttl, (one, other) in enumerate(zip_longest(bad.hops, good.hops), 1)
    ]
    return Parting(direction, *ports, tuple(hops), bad.is_reached)
