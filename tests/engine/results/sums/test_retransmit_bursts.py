"""How many segments are sent again at once."""

import pytest
from linkgauge.engine.results.sums.retransmit_bursts import LostAtOnce


def _sum_of(lost: list[int]) -> LostAtOnce:
    """Return the sum of samples with these numbers of segments sent again."""
    losses = LostAtOnce()
    for count in lost:
        losses.note_lost(count)
    return losses


@pytest.mark.parametrize(
    ("lost", "lossy", "quiet"), [([3, 0, 0, 0], 0.25, 0.75), ([0, 2, 0, 1], 0.5, 0.0), ([0, 0], 0.0, 1.0)]
)
def test_losses_have_an_end(lost: list[int], lossy: float, quiet: float) -> None:
    """The losses of a slow start are followed by samples without any."""
    assert (_sum_of(lost).lossy_share, _sum_of(lost).quiet_share) == (lossy, quiet)


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
    assert _sum_of(lost).dispersion == dispersion


def test_losses_of_several_times_are_those_of_one() -> None:
    """A sum over settings in turn has the largest samples of all of them, and the end of the last ones."""
    losses = _sum_of([9, 0, 0])
    losses.extend(_sum_of([8, 9, 0]))
    losses.extend(_sum_of([0, 0]))
    assert losses == _sum_of([9, 0, 0, 8, 9, 0, 0, 0])
