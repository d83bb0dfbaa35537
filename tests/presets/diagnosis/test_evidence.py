"""Evidence of the expected link, and the budget of a flow: every share of the gap is explained once."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.plan import End
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.evidence import (
    FlowView,
    GapBudget,
    flow_views,
    link_evidence,
)
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant

from .evidence_cases import run


def test_the_expected_link_includes_its_options() -> None:
    """Another line rate, MTU or timestamps change what a packet carries."""
    preset = load_catalog().find("gbe-fd-1500")
    found = link_evidence(preset, Variant(timestamps=True, line_rate_bit_s=2_500_000_000, mtu_bytes=9_000))
    assert (found.line_rate_bit_s, found.mtu_bytes, found.timestamps) == (2_500_000_000, 9_000, True)
    assert (found.payload_bytes, found.wire_bytes) == (8_948, 9_038)
    assert link_evidence(load_catalog().find("loopback"), DEFAULT_VARIANT).payload_bytes is None


def view(**flow: Any) -> FlowView:
    """Return the view of a run in one direction."""
    (only,) = flow_views(run(**flow))
    return only


def test_a_share_can_be_taken_once_and_up_to_a_limit() -> None:
    """Two rules never explain the same part of the gap."""
    budget = GapBudget(starved=0.1, receiver=0.2, buffer=0.3, network=0.4)
    assert budget.take("buffer", "network", limit=0.5) == pytest.approx(0.5)
    assert budget.remaining("buffer", "network") == pytest.approx(0.2)
    assert budget.take("buffer", "network") == pytest.approx(0.2)
    assert budget.take("buffer", "network") == 0
    assert budget.remaining("starved", "receiver") == pytest.approx(0.3)


def test_the_shares_of_a_run_begin_with_a_sum_of_1() -> None:
    """A fifth of the time was for want of data, a tenth for the window, and half of the rate is missing."""
    budget = view(mbit_s=474.0, busy=0.8, rwnd_limited=0.1).budget
    shares = (budget.starved, budget.receiver, budget.buffer, budget.network)
    assert shares == pytest.approx((0.4, 0.2, 0.0, 0.4))


def test_without_the_kernels_account_all_of_the_gap_is_the_networks() -> None:
    """No rule may blame a window or a core that nobody has measured."""
    assert view(busy=None).budget == GapBudget(0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("rtt_us", "min_rtt_us", "has_queue"),
    [(2_000, 1_000, True), (1_900, 1_000, False), (400, 150, False), (450, 150, True), (None, 150, False)],
)
def test_a_queue_at_least_doubles_the_round_trip(rtt_us: int | None, min_rtt_us: int, *, has_queue: bool) -> None:
    """A few hundred microseconds more are only a busy host."""
    assert view(rtt_us=rtt_us, min_rtt_us=min_rtt_us).has_queue is has_queue


def test_the_needed_window_is_shared_by_the_sessions() -> None:
    """948 Mb/s for a millisecond are 118,500 bytes."""
    assert view(min_rtt_us=1_000).needed_window_bytes == pytest.approx(118_500)
    assert view(min_rtt_us=1_000, sessions=4).needed_window_bytes == pytest.approx(29_625)
    assert view(rtt_us=None, min_rtt_us=None).needed_window_bytes is None


def test_the_far_end_sends_the_payload_of_transactions_out() -> None:
    """The near end sends a stream; transactions count their responses."""
    stream = run()
    assert [each.sender.end for each in flow_views(stream)] == [End.NEAR]
    assert [each.sender.end for each in flow_views(replace(stream, workload=Workload.RR))] == [End.FAR]
