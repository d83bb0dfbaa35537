"""An outage: a time without payload, told from waits of TCP, of the sender and of the receiver."""

from typing import Any

import pytest
from linkgauge.presets.diagnosis.diagnose import diagnose

from ..evidence_cases import check_sentences, first, run

# Recorded on a link of 50 Mb/s and 20 ms that was down for 1 s of 7 s.
DOWN: dict[str, Any] = {
    "expected_bit_s": 47.07e6,
    "rtt_us": 35_100,
    "min_rtt_us": 20_200,
    "retransmits": 7,
    "retransmitted": 0.0005,
    "lossy": 0.1,
    "silences": 1,
    "silent": 0.25,
    "longest_silence_us": 1_750_000,
}


def test_a_link_that_was_down_is_an_outage() -> None:
    """The sentence has its length, and its share is what the path would have carried meanwhile."""
    finding = first(run(34.07, **DOWN))
    assert finding.code == "outage"
    assert finding.share == pytest.approx(0.25 * 47.07 / (47.07 - 34.07))
    assert "1.75 s, 25 % of the time" in finding.evidence


def test_a_window_and_an_outage_are_both_named() -> None:
    """TCP waits for a full window while the link is down: that time is the outage's."""
    evidence = run(15.0, **DOWN | {"silent": 0.46, "rwnd_limited": 0.9, "window_bytes": 65_536})
    assert "outage" in {finding.code for finding in check_sentences(diagnose(evidence))}


@pytest.mark.parametrize(
    "more",
    [
        {"silences": 0, "silent": 0.0, "longest_silence_us": 0},
        {"rtt_us": 600_000, "min_rtt_us": 590_000},
        {"retransmitted": 0.14, "lossy": 0.6},
        {"busy": 0.0},
        {"rwnd_limited": 1.0, "unread": 0.9},
        {"rwnd_limited": 1.0, "retransmits": 0, "retransmitted": 0.0, "lossy": 0.0},
    ],
    ids=[
        "no silence",
        "a long round trip",
        "loss by chance",
        "a sender without data",
        "a receiver that is late",
        "a receiver that is late, and whose buffer is unknown",
    ],
)
def test_a_silence_with_another_cause_is_not_an_outage(more: dict[str, Any]) -> None:
    """Each of them makes times without payload on a path that carries everything."""
    assert first(run(34.07, **DOWN | more)).code != "outage"
