"""The budget of a flow, whose shares are explained once, and the figures made of several numbers."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.diagnosis.flow_view import FlowView, GapBudget, flow_views

from .evidence_cases import run


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
    """The sender waited a fifth of the time for data and a tenth for the window; half of the rate is missing."""
    budget = view(mbit_s=474.0, busy=0.8, rwnd_limited=0.1).budget
    shares = (budget.starved, budget.receiver, budget.buffer, budget.network)
    assert shares == pytest.approx((0.4, 0.2, 0.0, 0.4))


def test_without_the_kernels_account_all_of_the_gap_is_the_networks() -> None:
    """No rule may blame a window or a core without a measurement."""
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


# A path of 10 ms whose queue makes it 15 ms, at a constant rate.
FILLED = {"rtt_us": 15_000, "low_rtt_us": 14_000, "min_rtt_us": 10_000, "intervals": 16, "rate_spread": 0.02}


@pytest.mark.parametrize(
    ("change", "fills"),
    [
        ({}, True),
        ({"low_rtt_us": 11_000}, False),  # as a busy host makes it
        ({"rate_spread": 0.2}, False),
        ({"rate_spread": 0.15, "joint_spread": 0.1}, True),  # if one session gets more, the others get less
        ({"rate_spread": 0.15, "joint_spread": 0.9}, False),
        ({"rtt_us": 40_000, "low_rtt_us": 30_000, "rate_spread": 0.5}, True),  # no host is so busy
        ({"rtt_us": 40_000, "low_rtt_us": 10_000, "rate_spread": 0.09}, True),  # some sessions get nothing through
        ({"rate_spread": None}, False),
        ({"low_rtt_us": None}, False),
    ],
)
def test_a_queue_that_is_never_empty_at_a_constant_rate_is_filled_by_the_flow(
    change: dict[str, Any], *, fills: bool
) -> None:
    """Then the place behind it is the limit."""
    assert view(**FILLED | change).fills_queue is fills


def test_few_packets_in_an_interval_make_rates_vary() -> None:
    """At 1 Mb/s a packet more or less is 5 % of an interval of 250 ms."""
    slow = view(mbit_s=1.0, **FILLED | {"rtt_us": 40_000, "rate_spread": 0.15})
    assert slow.spread_of_few_packets == pytest.approx(0.1, rel=0.5)
    assert slow.fills_queue
