"""Which hop has the queue or the loss, on made-up chains of every length, with every place and fault."""

from dataclasses import replace
from itertools import product

import pytest
from linkgauge.engine.model.directions import Direction, End, PerDirection
from linkgauge.engine.results.path.hop_judgement import find_path
from linkgauge.engine.results.path.path_result import Answers, PathResult

from .traced_chain import MS, Chain

OUT, IN = Direction.OUT, Direction.IN
PLACES = [
    (routers, link, flow) for routers in range(5) for link in range(routers + 1) for flow in Direction.DUPLEX.flows
]


def judge(chain: Chain) -> PathResult:
    """Return what is found on a chain."""
    path = find_path(chain.traces(), chain.measured(), {})
    assert path is not None
    return path


def queues(chain: Chain) -> dict[Direction, list[tuple[int, int]]]:
    """Return the places of the queues that are found."""
    return {way.direction: [(each.after_ttl, each.before_ttl) for each in way.queues] for way in judge(chain).ways}


def true_place(chain: Chain, link: int, flow: Direction) -> tuple[int, int]:
    """Return the place of a queue as its sender counts hops."""
    before = link + 1 if flow is OUT else chain.last - link
    return before - 1, before


def chain_with(routers: int, link: int, flow: Direction, **more: object) -> Chain:
    """Return a chain with one queue of 40 ms."""
    place = ((link, 40.0),)
    return Chain(routers, out_ms=place if flow is OUT else (), in_ms=place if flow is IN else (), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("routers", "link", "flow"), PLACES)
def test_a_queue_is_before_the_first_hop_that_keeps_the_rise(routers: int, link: int, flow: Direction) -> None:
    """At every link of every chain, and only in its own direction; routers that answer seldom do not move it."""
    for limited in ((), tuple(range(1, routers + 1))):
        chain = chain_with(routers, link, flow, limited=limited)
        assert queues(chain) == {flow: [true_place(chain, link, flow)], flow.opposite: []}


@pytest.mark.parametrize("fault", ["slow", "slow_under_load"])
@pytest.mark.parametrize(("router", "link", "flow"), list(product((1, 2, 3), (0, 1, 2, 3), (OUT, IN))))
def test_a_slow_control_plane_is_said_to_be_one_and_moves_no_queue(
    router: int, link: int, flow: Direction, fault: str
) -> None:
    """Its own answers are 80 ms late, of a queue of 40 ms. Such an answer alone does not tell what is before it."""
    chain = chain_with(3, link, flow, **{fault: (router,)})
    ((after, before),) = queues(chain)[flow]
    _, true_before = true_place(chain, link, flow)
    own = router if flow is OUT else chain.last - router
    assert after < true_before <= before
    assert set(range(after + 1, before)) <= {own}
    assert answers(chain, router) == "slow"


def answers(chain: Chain, router: int) -> Answers:
    """Return how a router answers the near end."""
    hop = judge(chain).ways[0].hops[router - 1]
    return hop.answers


def test_without_a_queue_there_is_none_whatever_routers_do_to_their_answers() -> None:
    """Late, seldom, or never."""
    for chain in (Chain(), Chain(slow=(2,)), Chain(slow_under_load=(1, 3)), Chain(limited=(1,), silent=(2,))):
        assert queues(chain) == {OUT: [], IN: []}
    assert answers(Chain(limited=(2,)), 2) == "limited"
    assert answers(Chain(silent=(2,)), 2) == "silent"
    assert answers(Chain(), 2) == "all"


def test_a_silent_hop_leaves_its_queue_between_its_neighbours() -> None:
    """It is not taken for a bad one."""
    assert queues(chain_with(3, 1, OUT, silent=(2,)))[OUT] == [(1, 3)]
    assert queues(chain_with(3, 1, OUT, silent=(1, 2, 3)))[OUT] == [(0, 4)]


def test_queues_of_both_directions_and_two_of_one_are_told_apart() -> None:
    """The smaller one of a direction comes second, unless nobody would mend it."""
    both = Chain(3, out_ms=((1, 40.0),), in_ms=((2, 60.0),))
    assert queues(both) == {OUT: [(1, 2)], IN: [(1, 2)]}
    two = Chain(3, out_ms=((0, 30.0), (2, 40.0)))
    assert queues(two)[OUT] == [(2, 3), (0, 1)]
    assert queues(replace(two, out_ms=((0, 4.0), (2, 40.0))))[OUT] == [(2, 3)]


def test_a_load_that_fills_the_queue_of_the_other_direction_is_not_taken_for_its_own() -> None:
    """Acknowledgements of a download fill a slow uplink: only the way out has a queue, in either phase."""
    acks = Chain(3, out_ms=((2, 40.0),), full=((IN, OUT), (OUT, OUT)))
    assert queues(acks) == {OUT: [(2, 3)], IN: []}
    assert queues(replace(acks, full=((IN, OUT),))) == {OUT: [(2, 3)], IN: []}


def test_answers_that_wait_in_the_queue_of_the_other_direction_are_said_to() -> None:
    """A load of both directions, or acknowledgements, fill it. A host that echoes late has no queue."""
    full = ((IN, OUT), (OUT, OUT))
    assert answers_wait(Chain(3, out_ms=((2, 40.0),), full=full)) == {OUT: False, IN: True}
    assert answers_wait(Chain(3, in_ms=((1, 40.0),), full=((OUT, IN), (IN, IN)))) == {OUT: True, IN: False}
    assert answers_wait(chain_with(3, 1, OUT)) == {OUT: False, IN: False}
    assert answers_wait(Chain()) == {OUT: False, IN: False}
    chain = Chain(3, out_ms=((2, 40.0),), full=full)
    measured = chain.measured()
    for rise, load in ((PerDirection(0.0, 0.0, None), OUT), (PerDirection(None, None, None), OUT)):
        loads = (replace(measured.loads[0], direction=load, one_way_rise_ns=rise),)
        path = find_path(chain.traces(), replace(measured, loads=loads), {})
        assert path is not None
        assert [way.answers_wait for way in path.ways] == [False, rise[OUT] is None]


def answers_wait(chain: Chain) -> dict[Direction, bool]:
    """Return of which directions the answers wait in the other one's queue."""
    return {way.direction: way.answers_wait for way in judge(chain).ways}


def test_if_one_load_fills_both_queues_the_own_delay_tells_which_step_it_is() -> None:
    """With load in both directions at once, the sizes of the two rises name them."""
    full = tuple(product((OUT, IN), (OUT, IN)))
    assert queues(Chain(3, out_ms=((1, 70.0),), in_ms=((2, 20.0),), full=full)) == {OUT: [(1, 2)], IN: [(1, 2)]}


def test_without_one_way_delays_the_load_tells_the_direction() -> None:
    """As if no datagram of the other probe had passed."""
    chain = chain_with(3, 1, IN)
    measured = chain.measured()
    unknown = PerDirection(None, None, None)
    blind = replace(measured, loads=tuple(replace(load, one_way_rise_ns=unknown) for load in measured.loads))
    path = find_path(chain.traces(), blind, {})
    assert path is not None
    assert [[each.before_ttl for each in way.queues] for way in path.ways] == [[], [3]]


@pytest.mark.parametrize(("link", "way"), list(product(range(4), (OUT, IN))))
def test_a_loss_is_behind_the_last_hop_without_it_in_the_direction_that_loses(link: int, way: Direction) -> None:
    """The other end's count tells the direction."""
    chain = Chain(3, lossy_link=link, lossy_way=way)
    found = {each.direction: each.loss for each in judge(chain).ways}
    assert found[way.opposite] is None
    loss = found[way]
    assert loss is not None
    assert (loss.after_ttl, loss.before_ttl) == true_place(chain, link, way)
    assert (loss.lost_percent, loss.is_located) == (25.0, True)


@pytest.mark.parametrize("flow", [OUT, IN])
@pytest.mark.parametrize("windows", [1, 3])
def test_probes_of_a_time_that_one_trace_alone_has_are_not_lost(flow: Direction, windows: int) -> None:
    """The near end takes its trace first. What is in a long queue at that moment is not lost either."""
    chain = chain_with(3, 1, flow)
    traces = chain.traces()
    near = traces[End.NEAR]
    cut = replace(
        near,
        hops=tuple(
            replace(
                hop, sent=hop.sent[:-windows], answered=hop.answered[:-windows], least_ns=hop.least_ns[:-windows]
            )
            for hop in near.hops
        ),
        received=near.received[:-windows],
    )
    path = find_path({**traces, End.NEAR: cut}, chain.measured(), {})
    assert path is not None
    assert [way.loss for way in path.ways] == [None, None]


def test_no_more_is_lost_one_way_than_both_ways() -> None:
    """An answered probe has arrived, whatever the other end has counted."""
    chain = Chain(3, lossy_link=2)
    traces = chain.traces()
    far = replace(traces[End.FAR], received=tuple(0 for _ in traces[End.FAR].received))
    path = find_path({**traces, End.FAR: far}, chain.measured(), {})
    assert path is not None
    loss = path.ways[0].loss
    assert loss is not None
    assert loss.lost_percent == 25.0


@pytest.mark.parametrize(("link", "back"), list(product(range(4), range(4))))
def test_if_both_directions_lose_each_loss_is_at_one_of_the_two_links(link: int, back: int) -> None:
    """A router's answer is lost on its way back as well, so hops between both links tell nothing."""
    chain = Chain(3, lossy_link=link, lossy_back_link=back)
    for way in judge(chain).ways:
        loss = way.loss
        assert loss is not None
        assert loss.lost_percent == 25.0
        after, before = true_place(chain, link if way.direction is OUT else back, way.direction)
        assert loss.after_ttl <= after < before <= loss.before_ttl
        assert loss.before_ttl - loss.after_ttl == 1 + abs(link - back)


def test_routers_that_answer_seldom_do_not_say_where_a_loss_is() -> None:
    """Nor do they have one."""
    loss = judge(Chain(3, lossy_link=1, limited=(1, 2, 3))).ways[0].loss
    assert loss is not None
    assert not loss.is_located


def test_rises_are_shown_with_the_part_that_counts_and_names_by_address() -> None:
    """A late router's own rise is not kept."""
    chain = chain_with(3, 2, OUT, slow_under_load=(1,))
    found = find_path(chain.traces(), chain.measured(), {"192.0.2.2": "gw"})
    assert found is not None
    first, _, third, _ = found.ways[0].hops
    assert (first.name, third.name) == ("gw", None)
    assert first.rise_ns is not None
    assert first.kept_rise_ns is not None
    assert first.rise_ns > 70 * MS > 5 * MS > first.kept_rise_ns
    assert third.kept_rise_ns is not None
    assert third.kept_rise_ns == pytest.approx(32 * MS, rel=0.25)


def test_without_traces_there_is_no_path_and_without_a_load_only_idle_round_trips() -> None:
    """An end may have been lost before it could tell."""
    chain = Chain()
    assert find_path({}, chain.measured(), {}) is None
    path = find_path({End.FAR: chain.traces()[End.FAR]}, None, {})
    assert path is not None
    (way,) = path.ways
    assert (way.direction, way.load, way.queues, way.loss) == (IN, None, (), None)
    assert [hop.loaded_ns for hop in way.hops] == [None] * 4
    assert all(hop.idle_ns for hop in way.hops)


def test_the_round_trip_under_load_is_not_shorter_than_without() -> None:
    """A queue that drains answers a router seldom, and in moments that were quicker than the median one."""
    chain = chain_with(2, 1, OUT)
    traces = chain.traces()
    near = traces[End.NEAR]
    router = near.hops[0]
    quicker = tuple(
        None if ns is None else ns if window < 8 else ns // 100 for window, ns in enumerate(router.least_ns)
    )
    hops = (replace(router, least_ns=quicker), *near.hops[1:])
    path = find_path({**traces, End.NEAR: replace(near, hops=hops)}, chain.measured(), {})
    assert path is not None
    hop = path.ways[0].hops[0]
    assert hop.idle_ns is not None
    assert (hop.rise_ns, hop.loaded_ns) == (0, hop.idle_ns)
