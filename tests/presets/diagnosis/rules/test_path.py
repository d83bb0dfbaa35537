"""A slow path: its queue, and its other direction."""

from ..evidence_cases import first, run


def test_rare_loss_with_a_full_queue_is_a_slow_path() -> None:
    """A path whose queue overflows now and then is slow, and not lossy."""
    finding = first(run(retransmitted=0.0005, retransmits=30, rtt_us=30_000))
    assert finding.code == "path-slow"
    assert "--direction in" in finding.evidence
