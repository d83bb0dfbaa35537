"""The words of a sweep: where it saturates, and the tables of its results."""

import pytest
from linkgauge.engine.results.sweep import SaturationPoint
from linkgauge.tui.text.sweep import grids, saturation_words

from ..sweep_example import AT, SWEEP, K


@pytest.mark.parametrize(
    ("knee", "said"),
    [
        (
            SaturationPoint("window_bytes", AT, 32 * K, 0.8, is_first=False),
            "beyond 32K nothing is gained (at most 0.8 %)",
        ),
        (SaturationPoint("window_bytes", AT, 16 * K, 0.8, is_first=True), "from 16K on it makes no difference"),
        (SaturationPoint("window_bytes", AT, 64 * K, None, is_first=False), "still gains; try more"),
        (SaturationPoint("window_bytes", AT, 32 * K, 20.0, is_first=False), "give --seconds more"),
    ],
)
def test_a_knee_is_a_sentence_that_says_no_more_than_is_known(knee: SaturationPoint, said: str) -> None:
    """With the other settings it was found under."""
    words = saturation_words(SWEEP, knee).replace("\N{NO-BREAK SPACE}", " ")
    assert said in words
    assert words.startswith("window (out, 2 sessions): ")


def test_a_table_has_the_two_longest_axes_and_there_is_one_for_each_of_the_others() -> None:
    """Windows down, sessions across, a table for each direction."""
    made = list(grids(SWEEP))
    assert [(rows, columns) for _, rows, columns, _ in made] == [("window_bytes", "sessions")] * 2
    assert sum(len(points) for *_, points in made) == 12
