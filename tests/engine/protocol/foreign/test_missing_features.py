"""The features that an iperf3 server lacks as a far end."""

from typing import Any

import pytest
from linkgauge.engine.model.peer import AWAITED_BROWSER, Peer
from linkgauge.engine.model.plan import MIB, Mode, Plan, ResponsivenessTest, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.protocol.foreign.missing_features import (
    Feature,
    find_unsupported,
    most_sessions,
    why_unavailable,
)

IPERF3 = Peer.parse("iperf3://host")
LINKGAUGE = Peer.parse("host")
# iperf3 has workloads and windows of its own, and no probe that it could not go without.
BROWSER_ALONE = {Feature.WORKLOADS, Feature.WINDOW, Feature.NO_PROBE}


@pytest.mark.parametrize("feature", [feature for feature in Feature if feature not in BROWSER_ALONE])
def test_each_feature_that_iperf3_lacks_has_a_reason_and_other_peers_have_it(feature: Feature) -> None:
    """A key is disabled only for an iperf3 server, and with a sentence."""
    reason = why_unavailable(IPERF3, feature)
    assert reason is not None
    assert "iperf3" in reason
    assert why_unavailable(LINKGAUGE, feature) is None


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("workload", {"workload": Workload.RR}),
        ("workload", {"workload": Workload.CRR}),
        ("workload", {"workload": Workload.FETCH}),
        ("probe", {"probe": True}),
        ("far cores", {"far_cores": (0,)}),
        ("rate", {"workload": Workload.UDP, "settings": Settings(rate_bit_s=10**7, searches_rate=True)}),
        ("window", {"settings": Settings(window_bytes=1024 * MIB)}),
        ("block size", {"block_bytes": 2 * MIB}),
    ],
)
def test_a_plan_that_iperf3_cannot_carry_out_is_refused_by_its_field(field: str, more: dict[str, Any]) -> None:
    """Before anything is opened, and only for an iperf3 server."""
    problem = find_unsupported(Plan(**more), IPERF3)
    assert problem is not None
    assert problem.field == field
    assert "iperf3" in str(problem)
    assert find_unsupported(Plan(**more), LINKGAUGE) is None


@pytest.mark.parametrize("feature", [feature for feature in Feature if feature is not Feature.LIVE_CHANGES])
def test_each_feature_that_a_browser_lacks_has_a_reason(feature: Feature) -> None:
    """All but live changes."""
    assert why_unavailable(AWAITED_BROWSER, feature)
    assert why_unavailable(AWAITED_BROWSER, Feature.LIVE_CHANGES) is None
    assert (most_sessions(AWAITED_BROWSER), most_sessions(IPERF3)) == (8, None)


@pytest.mark.parametrize(
    ("field", "more"),
    [
        ("workload", {"workload": Workload.RR}),
        ("workload", {"workload": Workload.UDP, "settings": Settings(rate_bit_s=10**7)}),
        ("sessions", {"settings": Settings(sessions=9)}),
        ("window", {"settings": Settings(window_bytes=MIB)}),
        ("responsiveness", {"probe": True, "responsiveness": ResponsivenessTest.PHASES}),
        ("far cores", {"far_cores": (0,)}),
        ("wait", {"wait_ns": 1_000_000_000}),
        ("rate", {"rate_bit_s": 10**7}),
        ("bytes", {"bytes_limit": MIB}),
        ("client port", {"client_port": 5_000}),
    ],
)
def test_a_plan_that_a_browser_cannot_carry_out_is_refused_by_its_field(field: str, more: dict[str, Any]) -> None:
    """Before anything is opened."""
    problem = find_unsupported(Plan(**more), AWAITED_BROWSER)
    assert problem is not None
    assert problem.field == field
    assert find_unsupported(Plan(Settings(sessions=8)), AWAITED_BROWSER) is None


def test_a_plan_with_everything_that_iperf3_has_is_accepted() -> None:
    """Mode, cores and workers concern this end only."""
    options = SocketOptions(congestion="reno", mss_bytes=1_000, dscp=10, nodelay=True)
    settings = Settings(window_bytes=MIB, sessions=128)
    plan = Plan(settings, socket=options, mode=Mode.DISCARD, near_cores=(0,), workers=2, warmup_auto=True)
    assert find_unsupported(plan, IPERF3) is None
    assert find_unsupported(Plan(Settings(rate_bit_s=10**7), Workload.UDP, block_bytes=2 * MIB), IPERF3) is None
