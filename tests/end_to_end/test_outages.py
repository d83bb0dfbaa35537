"""Results of tests during which the link or the far end was away: what is unknown is never a pass."""

import os
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .outage_cases import OutageCase, all_cases, find_lies
from .outage_link import OutageLink

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "ethtool", "nsenter", "unshare"))),
        reason="needs root, iproute2 and ethtool",
    ),
]
_JOBS = 6
_DRAWN = 4  # of each link: some forty seconds in all


@pytest.fixture
def link() -> Iterator[OutageLink]:
    """Give a link whose ways can go away."""
    one = OutageLink()
    try:
        yield one
    finally:
        one.close()


@pytest.mark.every
@pytest.mark.parametrize(
    ("workload", "direction", "kind"),
    [
        ("stream", "out", "link down"),
        ("stream", "in", "link down"),
        ("stream", "duplex", "link down"),
        ("stream", "out", "no way back"),
        ("stream", "out", "no way there"),
        ("stream", "out", "stopped"),
        ("rr", "out", "link down"),
        ("udp", "in", "link down"),
    ],
)
def test_an_outage_in_the_last_seconds_has_no_verdict(
    link: OutageLink, workload: str, direction: str, kind: str
) -> None:
    """The far end confirms nothing: what it got in these seconds is unknown."""
    result = link.carry_out(OutageCase(workload, direction, is_iperf3=False, kind=kind, start_s=3.5, length_s=8))
    assert result["verdict"] == "none", result
    assert result["reason"] == "peer_lost"
    assert not any("payload still moves" in text for text in result["warnings"])
    rates = list(result["mbit_s"].values())
    assert max(rates) < 1.2 * min(rates)


@pytest.mark.every
def test_an_outage_that_is_over_before_the_end_counts_as_time_without_payload(link: OutageLink) -> None:
    """Some 0.5 of 4 measured seconds: the rate is that of the whole time.

    TCP waits longer after each try: after 1.5 s without a link it may carry less than half of the whole.
    """
    result = link.carry_out(
        OutageCase("stream", "out", is_iperf3=False, kind="link down", start_s=1.5, length_s=0.5)
    )
    assert (result["reason"], result["verdict"]) == ("completed", "short")
    assert result["seconds"]["out"] > 3.5


@pytest.mark.every
@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")
def test_no_result_claims_what_an_outage_makes_impossible() -> None:
    """Some of the grid of outages, drawn by a seed; stress/outages.py has all of it."""
    cases = list(all_cases())
    random.Random(20).shuffle(cases)  # noqa: S311 - nothing is secret

    def carry_out(share: list[OutageCase]) -> list[tuple[OutageCase, Any]]:
        one = OutageLink()
        try:
            return [(case, lies) for case, result in one.carry_out_all(share) if (lies := find_lies(case, result))]
        finally:
            one.close()

    with ThreadPoolExecutor(_JOBS) as pool:
        shares = [cases[number : _JOBS * _DRAWN : _JOBS] for number in range(_JOBS)]
        assert [found for part in pool.map(carry_out, shares) for found in part] == []
