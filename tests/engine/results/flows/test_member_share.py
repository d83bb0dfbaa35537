"""The share of flows on a bad link, and how many links there are."""

from math import comb

import pytest
from linkgauge.engine.results.flows.member_share import member_share, wilson_interval


def test_the_interval_is_wilsons() -> None:
    """As in his own example of 10 in 100, to three digits."""
    low, high = wilson_interval(10, 100)
    assert (round(low, 3), round(high, 3)) == (0.055, 0.174)
    assert wilson_interval(0, 0) == (0, 1)
    assert wilson_interval(0, 10)[0] == pytest.approx(0)


@pytest.mark.parametrize(("count", "members"), [(256, 2), (128, 4), (64, None)])
def test_a_number_of_members_needs_an_interval_that_allows_no_other(count: int, members: int | None) -> None:
    """Of 512 flows."""
    share = member_share(count, 0, 512)
    assert share.members == members
    assert 512 // count in share.possible_members


def test_unclear_flows_widen_the_interval() -> None:
    """They may be bad as well."""
    assert member_share(60, 20, 256).high > member_share(60, 0, 256).high
    assert member_share(60, 20, 256).low == member_share(60, 0, 256).low


@pytest.mark.parametrize(
    ("flows", "members", "named", "misnamed"),
    [(256, 2, 95, 0), (256, 4, 35, 3), (256, 8, 0, 0), (512, 4, 75, 3), (64, 2, 78, 2)],
)
def test_a_number_of_members_is_named_as_often_as_the_flows_allow(
    flows: int, members: int, named: int, misnamed: int
) -> None:
    """In percent of all ways in which a hash may spread the flows; the other ways give an interval."""
    right = wrong = held = 0.0
    for count in range(flows + 1):
        chance = comb(flows, count) * (members - 1) ** (flows - count) / members**flows
        share = member_share(count, 0, flows)
        right += chance * (share.members == members)
        wrong += chance * (share.members not in {None, members})
        held += chance * (share.low <= 1 / members <= share.high)
    assert (round(100 * right), round(100 * wrong)) == (named, misnamed)
    assert held == pytest.approx(0.95, abs=0.015)
