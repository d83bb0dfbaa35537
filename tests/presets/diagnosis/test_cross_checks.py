"""Cross-checks of findings: other numbers agree, disagree, or are unknown."""

from typing import Any

import pytest
from linkgauge.presets.diagnosis.cross_checks import CHECKED_FROM, DISAGREED, ONE_READING, weigh
from linkgauge.presets.diagnosis.evidence import HoldShares
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.flow_view import FlowView, flow_views

from .evidence_cases import run

HELD = HoldShares(20, congestion=1.0)


def view_of(**values: Any) -> FlowView:
    """Return the only direction of a run."""
    (view,) = flow_views(run(500, **values))
    return view


def finding(code: str, confidence: float = 0.95) -> Finding:
    """Return a finding with this code."""
    return Finding(code, 1.0, confidence, "Text.", "evidence", "remedy")


@pytest.mark.parametrize(
    ("code", "values", "confidence"),
    [
        ("window-clamped", {"rwnd_limited": 0.9}, 0.95),
        ("window-clamped", {"rtt_us": 10_000, "unacked_bytes": 600_000}, 0.95),
        ("window-clamped", {"rtt_us": 10_000, "unacked_bytes": 90_000}, DISAGREED),
        ("window-clamped", {"rtt_us": 10_000}, ONE_READING),
        ("loss", {"out_of_order": 9, "retransmitted": 0.01}, 0.95),
        ("loss", {"out_of_order": 0, "retransmitted": 0.01, "rtt_us": 100_000, "mss_bytes": 1_448}, DISAGREED),
        ("policer", {"out_of_order": 0}, DISAGREED),
        ("path-slow", {"delivery_bit_s": 510_000_000}, 0.95),
        ("path-slow", {"delivery_bit_s": 940_000_000, "holds": HELD}, 0.95),
        ("path-slow", {"delivery_bit_s": 940_000_000, "holds": HoldShares(20, empty=1.0)}, DISAGREED),
        ("pacing", {"holds": HELD}, DISAGREED),
        ("pacing", {"holds": HELD, "max_pacing_bit_s": 10**8}, 0.95),
        ("receive-window", {"unread": 0.7}, 0.95),
        ("receive-window", {"unread": 0.01}, DISAGREED),
        ("sender-starved", {"holds": HoldShares(20, empty=0.5)}, 0.95),
        ("sender-starved", {"holds": HELD, "rate_spread": 0.001}, DISAGREED),
        ("core-saturated", {"near": {"waiting": 0.6}}, 0.95),
        ("mtu-mismatch", {}, 0.95),
    ],
)
def test_a_finding_keeps_the_confidence_that_other_numbers_leave_it(
    code: str, values: dict[str, Any], confidence: float
) -> None:
    """One that is contradicted becomes a guess."""
    assert weigh(view_of(**values), finding(code)).confidence == confidence


def test_a_guess_is_not_checked() -> None:
    """It claims little."""
    guess = finding("pacing", CHECKED_FROM - 0.01)
    assert weigh(view_of(holds=HELD), guess) == guess
