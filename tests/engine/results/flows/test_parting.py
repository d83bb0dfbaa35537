"""Where a bad and a good flow part."""

from linkgauge.engine.model.counters.path_trace import WINDOW_NS, HopTrace, PathTrace
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.results.flows.parting import Parting, part


def trace(*routers: str) -> PathTrace:
    """Return a trace with these routers; an empty one is silent."""
    hops = tuple(
        HopTrace((each,) if each else (), (1,), (int(bool(each)),), (9 if each else None,)) for each in routers
    )
    return PathTrace(End.NEAR, 0, WINDOW_NS, hops, is_reached=True, received=(0,))


def parting(bad: PathTrace, good: PathTrace) -> Parting:
    """Return the parting of two traces."""
    return part(Direction.OUT, (1, 2), bad, good)


def test_flows_part_at_the_first_hop_that_differs_and_may_join_again() -> None:
    """Here behind two routers."""
    found = parting(trace("10.0.0.1", "10.0.1.1", "10.0.9.1"), trace("10.0.0.1", "10.0.2.1", "10.0.9.1"))
    assert (found.ttl, found.joined, found.silent) == (2, 3, ())
    assert found.last_common == found.hop(1)


def test_silent_hops_before_the_parting_are_told() -> None:
    """They may be where the flows part."""
    found = parting(trace("10.0.0.1", "", "10.0.1.1"), trace("10.0.0.1", "10.0.5.1", "10.0.2.1"))
    assert (found.ttl, found.silent, found.joined) == (3, (2,), None)


def test_flows_with_the_same_hops_do_not_part() -> None:
    """The bad link is within a hop."""
    found = parting(trace("10.0.0.1", "10.0.1.1"), trace("10.0.0.1", "10.0.1.1"))
    assert (found.ttl, found.silent) == (None, ())


def test_a_trace_that_ends_early_is_silent_behind_it() -> None:
    """A link that carries nothing back."""
    assert parting(trace("10.0.0.1"), trace("10.0.0.1", "10.0.1.1")).silent == (2,)
