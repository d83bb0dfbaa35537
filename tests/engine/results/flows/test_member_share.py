"""The share of flows on a bad link, and how many links there are."""

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
