"""The senders' TCP counters of one direction."""

import pytest
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.sums.sender_sum import SenderSum


@pytest.mark.parametrize(
    ("counters", "share"),
    [
        ({"bytes_retrans": 2_000}, 0.02),
        ({"bytes_retrans": 0}, 0.0),
        ({"retransmits": 2, "mss_bytes": 1_000}, 0.02),
        ({"retransmits": 0}, 0.0),
        ({"retransmits": 2}, None),  # of unknown size
        ({}, None),
    ],
)
def test_the_share_sent_again_is_unknown_if_its_size_is(counters: dict[str, int], share: float | None) -> None:
    """98,000 bytes arrived of 100,000."""
    sums = SenderSum()
    part = SessionSample(Direction.OUT, 1, 98_000, **counters)
    sums.add_sample(Sample(End.NEAR, 0, SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
    assert sums.retransmitted_share() == share


@pytest.mark.parametrize(("needless", "lost"), [(None, 8), (0, 8), (6, 2), (9, 0)])
def test_segments_that_had_arrived_were_not_lost(needless: int | None, lost: int) -> None:
    """RFC 2883; only a connection of another program has their number."""
    sums = SenderSum()
    part = SessionSample(
        Direction.OUT, 1, 92_000, retransmits=8, bytes_retrans=8_000, needless_retransmits=needless
    )
    for index in range(2):
        sample = Sample(End.NEAR, index, (index + 1) * SECOND_NS, SECOND_NS, (part,) if index else ())
        sums.add_sample(sample, Direction.OUT)
    assert (sums.retransmits, sums.lost_segments) == (8, lost)
    assert sums.lost_share() == pytest.approx(0.08 * lost / 8)
    assert sums.lossy_share == pytest.approx(0.5 * lost / 8)


def _sender_sum(windows: list[int | None], session: int = 1) -> SenderSum:
    """Return the sum of a session's samples with these windows of the other end."""
    sums = SenderSum()
    for index, window in enumerate(windows):
        part = SessionSample(Direction.OUT, session, 0, peer_window_bytes=window)
        sums.add_sample(Sample(End.NEAR, index, (index + 1) * SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
    return sums


@pytest.mark.parametrize(
    ("windows", "share"),
    [
        ([None], None),
        ([65_000, 130_000, 900_000, 3_000_000], 0.0),  # a window that grows was never larger
        ([3_000_000, 2_300_000, 2_400_000], 0.0),
        ([3_000_000, 70_000, 0, 3_000_000], 0.5),
        ([65_000, 3_000_000, 65_000, 65_000], 0.5),
    ],
)
def test_a_window_is_low_only_if_it_was_clearly_larger_before(windows: list[int | None], share: float) -> None:
    """The receiver's kernel takes the room of unread data off the window."""
    assert _sender_sum(windows).low_window_share == share


def test_low_windows_of_several_times_add_up() -> None:
    """Each session is compared with its own largest window."""
    sums = _sender_sum([3_000_000, 100_000])
    sums.extend(_sender_sum([65_000, 65_000], session=2))
    assert sums.low_window_share == 0.25
