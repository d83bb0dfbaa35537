"""The words of a sweep: where it saturates, and the tables of its results."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.plan import Direction, PerDirection
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.sweep import SaturationPoint
from linkgauge.tui.text.sweep import grids, noise_words, ranking_lines, saturation_words

from ..sweep_example import AT, SWEEP, K, cells


@pytest.mark.parametrize(
    ("knee", "said"),
    [
        (
            SaturationPoint("window_bytes", AT, 32 * K, 0.8, is_first=False),
            "no gain beyond 32K (at most 0.8 %)",
        ),
        (SaturationPoint("window_bytes", AT, 16 * K, 0.8, is_first=True), "no gain from 16K on"),
        (SaturationPoint("window_bytes", AT, 64 * K, None, is_first=False), "test larger values"),
        (SaturationPoint("window_bytes", AT, 32 * K, 20.0, is_first=False), "use more seconds"),
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


def test_a_noisy_leader_leaves_its_direction_without_a_winner() -> None:
    """The other direction has its fastest settings; a single run has none to compare with."""
    found = cells()
    outward = [cell for cell in found if cell.point.direction is Direction.OUT]
    leader = max(outward, key=lambda cell: cell.bit_s or 0)
    total = leader.summary.measured.total
    assert total is not None
    wide = replace(total, estimate=Estimate(total.bit_s, total.bit_s / 4, 15.0, 24))
    found[found.index(leader)] = replace(
        leader, summary=replace(leader.summary, measured=PerDirection(wide, None, wide))
    )
    lines = [(mark, words.replace("\N{NO-BREAK SPACE}", " ")) for mark, words in ranking_lines(SWEEP, found)]
    assert [mark for mark, _ in lines] == ["noisy", "fastest"]
    assert lines[0][1].startswith("out: no winner: the highest rate, 65.54 Mb/s with out, ")
    assert lines[0][1].endswith("window 64K, is too noisy to rank; use more seconds")
    assert noise_words(found) == "1\N{NO-BREAK SPACE}rate too noisy to rank; use more seconds"
    assert ranking_lines(SWEEP, found[:1]) == []
