"""What the senders' TCP counters of one direction say."""

import pytest
from linkgauge.engine.model.plan import SECOND_NS, Direction, End
from linkgauge.engine.model.samples import Sample, SessionSample
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
def test_the_share_sent_again_is_unknown_where_its_size_is(counters: dict[str, int], share: float | None) -> None:
    """98,000 bytes arrived of 100,000."""
    sums = SenderSum()
    part = SessionSample(Direction.OUT, 1, 98_000, **counters)
    sums.add(Sample(End.NEAR, 0, SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
    assert sums.retransmitted_share() == share


@pytest.mark.parametrize(
    ("retransmits", "lossy", "quiet"), [([3, 0, 0, 0], 0.25, 0.75), ([0, 2, 0, 1], 0.5, 0.0), ([0, 0], 0.0, 1.0)]
)
def test_losses_have_an_end(retransmits: list[int], lossy: float, quiet: float) -> None:
    """Those of a slow start are followed by samples without any."""
    sums = SenderSum()
    for index, count in enumerate(retransmits):
        part = SessionSample(Direction.OUT, 1, 0, retransmits=count)
        sums.add(Sample(End.NEAR, index, (index + 1) * SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
    assert (sums.lossy_share, sums.quiet_share) == (lossy, quiet)


def _sender_sum(windows: list[int | None], session: int = 1) -> SenderSum:
    """Return the sum of a session's samples with these windows of the other end."""
    sums = SenderSum()
    for index, window in enumerate(windows):
        part = SessionSample(Direction.OUT, session, 0, peer_window_bytes=window)
        sums.add(Sample(End.NEAR, index, (index + 1) * SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
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


def _lossy_sum(lost: list[int]) -> SenderSum:
    """Return the sum of samples in which so many segments were sent again."""
    sums = SenderSum()
    for index, count in enumerate(lost):
        part = SessionSample(Direction.OUT, 1, 0, retransmits=count)
        sums.add(Sample(End.NEAR, index, (index + 1) * SECOND_NS, SECOND_NS, (part,)), Direction.OUT)
    return sums


@pytest.mark.parametrize(
    ("lost", "dispersion"),
    [
        ([], None),
        ([0, 0, 0, 0], None),
        ([90, 40, 0, 0, 0], None),  # a slow start that ended in a queue
        ([9, 9, 2, 2, 2, 2], 0.0),
        ([9, 9, 8, 0, 0, 0], 6.0),
    ],
)
def test_losses_at_once_vary_more_than_their_mean(lost: list[int], dispersion: float | None) -> None:
    """The two largest samples do not count."""
    assert _lossy_sum(lost).loss_dispersion == dispersion


def test_losses_of_several_times_vary_as_those_of_one() -> None:
    """A sum over settings in turn has the largest samples of all of them."""
    sums = _lossy_sum([9, 0, 0])
    sums.extend(_lossy_sum([8, 9, 0]))
    assert sums.loss_dispersion == _lossy_sum([9, 0, 0, 8, 9, 0]).loss_dispersion == 6.0
