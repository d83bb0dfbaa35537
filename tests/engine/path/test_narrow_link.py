"""Between which hops packets become too long, from made-up answers of made-up chains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.path_trace import MAX_HOPS
from linkgauge.engine.path.narrow_link import NarrowLinkSearch
from linkgauge.engine.protocol.path_probe import NarrowLink


def router(ttl: int) -> str:
    """Return the address of a hop."""
    return f"192.0.2.{ttl}"


def answered(short: set[int], long: set[int], end: int | None) -> NarrowLinkSearch:
    """Return a search after the answers of hops to short and to long probes, and of the other end."""
    search = NarrowLinkSearch()
    for ttl in short:
        search.note_expired(ttl, router(ttl), is_long=False)
    for ttl in long:
        search.note_expired(ttl, router(ttl), is_long=True)
    for ttl in range(end or MAX_HOPS + 1, MAX_HOPS + 1):
        search.note_reached(ttl)
    return search


@pytest.mark.parametrize(
    ("short", "long", "end", "refusing", "expected"),
    [
        ({1, 2, 3}, {1, 2}, 4, None, NarrowLink(2, 3, router(2), router(3))),
        ({1, 2, 3}, {1, 2, 3}, 4, None, NarrowLink(3, 4, router(3), None)),
        ({1, 2, 3}, set[int](), 4, None, NarrowLink(0, 1, None, router(1))),
        ({1, 3}, {1}, 4, None, NarrowLink(1, 3, router(1), router(3))),
        (set[int](), set[int](), 2, None, NarrowLink(0, 2)),
        ({1, 2, 3}, set[int](), 4, router(2), NarrowLink(2, 3, router(2), router(3))),
        ({1, 2, 3}, {1, 2}, None, None, None),
    ],
)
def test_the_link_is_behind_the_last_hop_that_answers_long_probes(
    short: set[int], long: set[int], end: int | None, refusing: str | None, expected: NarrowLink | None
) -> None:
    """And before the first one that answers short ones; a router that reports the MTU is the hop before it."""
    assert answered(short, long, end).result(refusing) == expected


@given(st.integers(1, 20), st.data())
def test_whatever_hops_are_silent_the_link_lies_between_the_named_ones(end: int, data: st.DataObject) -> None:
    """No answer is made up, and the true link is never outside."""
    narrow = data.draw(st.integers(0, end - 1))
    silent = data.draw(st.sets(st.integers(1, 20)))
    hops = {ttl for ttl in range(1, end) if ttl not in silent}
    link = answered(hops, {ttl for ttl in hops if ttl <= narrow}, end).result()
    assert link is not None
    assert link.after_ttl <= narrow < link.before_ttl <= end


def test_probes_are_sent_until_they_are_answered_and_not_beyond_the_other_end() -> None:
    """The end answers short probes only."""
    search = answered({1}, {1}, 3)
    assert search.last_ttl == 3
    assert [search.is_answered(ttl, is_long=False) for ttl in (1, 2, 3)] == [True, False, True]
    assert [search.is_answered(ttl, is_long=True) for ttl in (1, 2, 3)] == [True, False, True]
    assert NarrowLinkSearch().last_ttl == MAX_HOPS
