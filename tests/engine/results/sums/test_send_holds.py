"""What holds a sender back, by the readings of its socket."""

from typing import Any

import pytest
from linkgauge.engine.model.counters.samples import SessionSample
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.sums.send_holds import SendHolds, find_hold

MSS = 1_448
# A sender with much unsent whose congestion window of ten segments is full.
CONGESTED = {
    "mss_bytes": MSS,
    "unacked_bytes": 10 * MSS,
    "unsent_bytes": 90_000,
    "cwnd_bytes": 10 * MSS,
    "peer_window_bytes": 1_000_000,
    "send_memory_bytes": 110_000,
    "send_buffer_bytes": 114_688,
}


def session(**values: Any) -> SessionSample:
    """Return a sample of a sender."""
    return SessionSample(Direction.OUT, 1, 1_000, **CONGESTED | values)


@pytest.mark.parametrize(
    ("change", "hold"),
    [
        ({}, "congestion"),
        ({"cwnd_bytes": 40 * MSS}, "pace"),
        ({"cwnd_bytes": 40 * MSS, "peer_window_bytes": 10 * MSS + 200}, "window"),
        ({"unsent_bytes": 0}, "buffer"),
        ({"unsent_bytes": 0, "send_memory_bytes": 70_000}, "buffer"),  # the program has not been woken yet
        ({"unsent_bytes": 0, "send_memory_bytes": 20_000}, "empty"),
        ({"unsent_bytes": MSS - 1}, "buffer"),  # the beginning of a segment
        ({"unsent_bytes": 0, "send_memory_bytes": None}, None),
        ({"unacked_bytes": None}, None),
        ({"mss_bytes": 0}, None),
    ],
)
def test_a_full_window_or_buffer_holds_a_sender_back(change: dict[str, Any], hold: str | None) -> None:
    """With unsent data the smallest window decides; without it the sender waits for its program."""
    assert find_hold(session(**change)) == hold


def test_shares_are_of_the_samples_with_readings() -> None:
    """Samples of a kernel without these readings do not count."""
    holds, later = SendHolds(), SendHolds()
    holds.add_session(session())
    holds.add_session(session(unacked_bytes=None))
    later.add_session(session(unsent_bytes=0))
    holds.extend(later)
    assert (holds.samples, holds.share("congestion"), holds.share("buffer"), holds.share("window")) == (
        2,
        0.5,
        0.5,
        0,
    )
    assert SendHolds().share("window") == 0
