"""A slow path: its queue, and its other direction. A sender that paces itself on any path."""

from itertools import product

import pytest
from linkgauge.engine.model.plan import End

from ..evidence_cases import first, run

# Recorded while SO_MAX_PACING_RATE limited every socket: on a link without a delay the round trip varies without a
# queue, by the sender's own timers. Mb/s, round trip and the shortest one in microseconds, cwnd, sessions.
PACED = (
    (60.3, 798, 2, 30_408, 4),
    (12.3, 968, 3, 82_536, 1),
    (34.4, 1_362, 2, 36_924, 4),
    (22.2, 546, 6, 121_632, 1),
    (430.1, 420, 8, 256_296, 4),
    (30.4, 19_902, 17_040, 121_632, 2),
    (5.43, 18_043, 14_533, 37_648, 1),
)


def test_rare_loss_with_a_full_queue_is_a_slow_path() -> None:
    """A path whose queue overflows now and then is slow, and not lossy."""
    finding = first(run(retransmitted=0.0005, retransmits=30, rtt_us=30_000))
    assert finding.code == "path-slow"
    assert "--direction in" in finding.evidence


@pytest.mark.parametrize(
    ("recorded", "ratio", "congestion"), product(PACED, (0.98, 1.0, 1.05), ("cubic", "reno")), ids=str
)
def test_a_paced_sender_is_told_from_a_slow_path(
    recorded: tuple[float, int, int, int, int], ratio: float, congestion: str
) -> None:
    """What it has in flight is far less than its congestion window, so that the path holds no queue of its own."""
    mbit_s, rtt_us, min_rtt_us, cwnd_bytes, sessions = recorded
    finding = first(
        run(
            mbit_s,
            rtt_us=rtt_us,
            min_rtt_us=min_rtt_us,
            cwnd_bytes=cwnd_bytes,
            sessions=sessions,
            congestion=congestion,
            pacing_bit_s=round(mbit_s * ratio * 1e6 / sessions),
        )
    )
    assert (finding.code, finding.end) == ("pacing", End.NEAR)
    assert "SO_MAX_PACING_RATE" in finding.remedy


@pytest.mark.parametrize("filled", [0.8, 1.0, 1.2])
@pytest.mark.parametrize("mbit_s", [20.0, 300.0, 700.0])
def test_a_full_queue_is_no_pace(mbit_s: float, filled: float) -> None:
    """The sender paces a little above what the path carries, and its congestion window is in the queue."""
    in_flight = mbit_s * 1e6 / 8 * 0.03
    slow = run(mbit_s, rtt_us=30_000, cwnd_bytes=round(in_flight / filled), pacing_bit_s=round(mbit_s * 1.05e6))
    assert first(slow).code == "path-slow"
