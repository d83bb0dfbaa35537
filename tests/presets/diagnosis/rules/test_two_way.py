"""Acknowledgements that wait behind the other direction's data, told from a path that is slow."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import Evidence
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.trial import Trial

from ..evidence_cases import WANTED_BIT_S, first, run


def both_ways(out: float, in_: float, *, inwards: dict[str, Any] | None = None, **more: Any) -> Evidence:
    """Return a run in both directions at these shares of the expected rate, behind a queue of 90 ms."""
    values = {"rtt_us": 90_000, "cwnd_bytes": 9_000_000, "rate_spread": 0.2, "intervals": 12, "quiet": 1.0} | more
    one, other = (
        run(share * WANTED_BIT_S / 1e6, **{"upper_bit_s": round(share * WANTED_BIT_S)} | values | changes)
        for share, changes in ((out, {}), (in_, inwards or {}))
    )
    flows = (*one.flows, replace(other.flows[0], direction=Direction.IN))
    expected = None if one.expected_bit_s is None else 2 * one.expected_bit_s
    return replace(
        one, direction=Direction.DUPLEX, flows=flows, bit_s=one.bit_s + other.bit_s, expected_bit_s=expected
    )


def reached(share: float, **more: Any) -> dict[str, Any]:
    """Return the values of a direction that reached this share of the expected rate at times, and lost packets."""
    return {"upper_bit_s": round(share * WANTED_BIT_S), "retransmits": 40, "lossy": 0.2, "quiet": 0.3, **more}


def codes(evidence: Evidence) -> list[str]:
    """Return the codes of all findings."""
    return [finding.code for finding in diagnose(evidence)]


def waiting(evidence: Evidence) -> Finding | None:
    """Return the finding about acknowledgements; None if there is none."""
    return next((finding for finding in diagnose(evidence) if finding.code == "acks-queued"), None)


# Recorded behind queues of 100 ms: what each direction carried.
@pytest.mark.parametrize(("out", "in_"), [(1.06, 0.37), (1.03, 0.61), (1.0, 0.75)])
def test_a_direction_without_loss_beside_a_full_one_waits_for_its_queue(out: float, in_: float) -> None:
    """The full queue can only be the other direction's."""
    finding = first(both_ways(out, in_))
    assert (finding.code, finding.confidence) == ("acks-queued", 0.7)
    assert (finding.share or 0) >= 0.95
    assert "in:" in finding.evidence
    assert "at best" in finding.evidence
    assert finding.trial == Trial(direction=Direction.IN)
    assert finding.remedy.startswith("linkgauge … --direction in ")


@pytest.mark.parametrize("share", [0.94, 0.98, 1.02])
def test_a_direction_that_reached_its_line_at_times_has_no_slow_path(share: float) -> None:
    """Even if its own queue has dropped many packets."""
    finding = first(both_ways(0.85, 0.85, inwards=reached(share), **reached(share)))
    assert (finding.code, finding.confidence) == ("acks-queued", 0.6)


@pytest.mark.parametrize("share", [0.4, 0.6, 0.74])
def test_a_slow_path_is_one_in_both_directions(share: float) -> None:
    """Neither reaches more, and one that waits a little is no reason for doubt."""
    evidence = both_ways(share, share, inwards=reached(1.03 * share), **reached(1.03 * share))
    assert (first(evidence).code, first(evidence).confidence) == ("path-slow", 0.85)


def test_a_slow_path_and_waiting_acknowledgements_share_the_gap() -> None:
    """Recorded on a path that was 25 % slow: its faster direction shows what it carries."""
    slower = reached(0.58, retransmits=0, lossy=0.0, quiet=1.0)
    evidence = both_ways(0.74, 0.46, **reached(0.75), inwards=slower)
    shares = {finding.code: finding.share or 0.0 for finding in diagnose(evidence)}
    assert shares["path-slow"] == pytest.approx(0.65, abs=0.03)
    assert shares["acks-queued"] == pytest.approx(0.35, abs=0.03)
    assert first(evidence).code == "path-slow"


@pytest.mark.parametrize(("quiet", "code", "confidence"), [(0.9, "acks-queued", 0.6), (0.5, "path-slow", 0.85)])
def test_losses_of_a_slow_start_fill_no_queue_later(quiet: float, code: str, confidence: float) -> None:
    """A direction that loses packets later, beside a full one, has filled the queue of a slow path."""
    finding = first(both_ways(1.02, 0.54, inwards={"lossy": 0.08, "retransmits": 4, "quiet": quiet}))
    assert (finding.code, finding.confidence) == (code, confidence)


def test_a_small_gap_of_both_directions_has_no_cause() -> None:
    """Its finding has the known numbers, and the test that would tell."""
    finding = first(both_ways(1.0, 0.84))
    assert (finding.code, finding.trial) == ("unexplained", Trial(direction=Direction.IN))
    assert "wait for both queues" in finding.evidence


@pytest.mark.parametrize(
    "evidence",
    [
        both_ways(1.0, 0.5, rtt_us=1_400),
        both_ways(1.0, 0.5, congestion="bbr"),
        both_ways(0.5, 0.5, expected_bit_s=None),
        run(500, rtt_us=90_000, upper_bit_s=round(WANTED_BIT_S)),
    ],
    ids=["without a queue", "bbr", "without a target", "one direction"],
)
def test_acknowledgements_wait_only_in_a_queue_of_the_other_direction(evidence: Evidence) -> None:
    """And BBR does not send by acknowledgements alone."""
    assert waiting(evidence) is None


def test_a_window_is_named_before_the_queue_of_the_other_direction() -> None:
    """A queue does not excuse a window that the user has set."""
    narrow = {"rwnd_limited": 0.9, "peer_window_bytes": 60_000, "cwnd_bytes": 9_000_000}
    assert "acks-queued" not in codes(both_ways(1.0, 0.3, inwards=narrow))[:1]
