"""When a path counts as changed: routes of made-up tests, with silent hops, parallel links and returns."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.watch.changes.path_watch import REMEMBERED_TESTS, PathWatch, first_difference
from linkgauge.watch.events import PathChanged, Route

A, B, C, D = "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"
END = "192.0.2.9"


def route(*hops: str) -> Route:
    """Return a route; an empty text is a silent hop."""
    return Route(Direction.OUT, tuple((hop,) if hop else () for hop in (*hops, END)))


def changes(routes: Sequence[Route]) -> list[tuple[int, PathChanged]]:
    """Return the number of each test whose path has changed, and the change."""
    watch = PathWatch("db-1")
    taken = [(number, watch.take_route(float(number), each)) for number, each in enumerate(routes)]
    return [(number, change) for number, change in taken if change is not None]


def test_a_changed_path_is_told_once_with_both_paths() -> None:
    """The first path is not a change."""
    ((number, change),) = changes([route(A, B)] * 3 + [route(A, C)] * 3)
    assert number == 3
    assert (change.peer, change.before, change.after) == ("db-1", route(A, B), route(A, C))
    assert first_difference(change.before.hops, change.after.hops) == 2


def test_a_longer_path_is_a_change() -> None:
    """The other end is behind another hop then."""
    ((_, change),) = changes([route(A, B), route(A, B, C)])
    assert first_difference(change.before.hops, change.after.hops) == 3
    assert first_difference(route("", "").hops[:2], route("").hops[:1]) is None


def test_a_silent_hop_is_not_a_change_and_what_it_hid_is_learnt() -> None:
    """It fits every router, before and after."""
    assert changes([route(A, B), route(A, ""), route(A, B), route("", B), route("", "")]) == []
    assert changes([route(A, ""), route(A, B)]) == []
    assert [number for number, _ in changes([route(A, ""), route(A, B), route(A, C)])] == [2]


def test_paths_that_take_turns_are_told_once_each() -> None:
    """Each test has another port, so that it may take another of the parallel links."""
    order = [A, B, A, B, B, A, C, B, A, C] * 3
    assert [number for number, _ in changes([route(D, each) for each in order])] == [1, 6]


def test_a_path_that_comes_back_after_many_tests_is_a_change() -> None:
    """A repaired link is news, as its failure was."""
    routes = [route(A)] * 3 + [route(B)] * (REMEMBERED_TESTS + 1) + [route(A)]
    assert [number for number, _ in changes(routes)] == [3, len(routes) - 1]
    routes = [route(A)] * 3 + [route(B)] * (REMEMBERED_TESTS - 1) + [route(A)]
    assert [number for number, _ in changes(routes)] == [3]


def test_a_router_with_two_addresses_is_one_hop() -> None:
    """A test has seen both."""
    both = Route(Direction.OUT, ((A, B), (END,)))
    assert changes([route(A), both, route(B)]) == []


@given(st.lists(st.lists(st.sampled_from(["", A, B]), min_size=1, max_size=3), max_size=60))
def test_no_path_is_told_twice_in_a_row(paths: list[list[str]]) -> None:
    """Whatever comes, a change leads to a path that does not fit the one before it."""
    watch = PathWatch("db-1")
    for number, hops in enumerate(paths):
        change = watch.take_route(float(number), route(*hops))
        if change is not None:
            assert watch.take_route(float(number), route(*hops)) is None
            assert len(change.before.hops) != len(change.after.hops) or first_difference(
                change.before.hops, change.after.hops
            )


@pytest.mark.parametrize(
    ("direction", "hops"),
    [
        (Direction.DUPLEX, ((A,),)),
        (Direction.OUT, ()),
        (Direction.OUT, ((A,),) * 31),
        (Direction.OUT, (("192.0.2.01",),)),
        (Direction.OUT, (("gw\x1b[31m",),)),
    ],
)
def test_a_route_that_no_trace_has_is_refused(direction: Direction, hops: tuple[tuple[str, ...], ...]) -> None:
    """A journal may be damaged, and addresses are printed."""
    with pytest.raises(ValueError, match=r"hops|addresses|IP|address"):
        Route(direction, hops)
