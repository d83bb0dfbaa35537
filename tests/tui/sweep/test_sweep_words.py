"""The words of a sweep: where it saturates, and the tables of its results."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.sweep import SaturationPoint
from linkgauge.tui.sweep.sweep_words import (
    grids,
    missing_lines,
    noise_words,
    ranking_lines,
    saturation_lines,
    saturation_words,
)

from ..sweep_example import AT, SWEEP, K, cells


@pytest.mark.parametrize(
    ("knee", "sentence"),
    [
        (
            SaturationPoint("window_bytes", AT, 32 * K, 0.8, is_first=False),
            "no gain beyond 32K (at most 0.8 %)",
        ),
        (SaturationPoint("window_bytes", AT, 16 * K, 0.8, is_first=True), "no gain from 16K on"),
        (SaturationPoint("window_bytes", AT, 64 * K, None, is_first=False), "test larger values"),
        (SaturationPoint("window_bytes", AT, 32 * K, 20.0, is_first=False), "test longer (--seconds 10)"),
    ],
)
def test_a_knee_is_a_sentence_that_says_no_more_than_is_known(knee: SaturationPoint, sentence: str) -> None:
    """With the other settings it was found under."""
    words = saturation_words(SWEEP, knee).replace("\N{NO-BREAK SPACE}", " ")
    assert sentence in words
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
    assert lines[0][1].endswith("window 64K, is too noisy to rank; test longer (--seconds 10)")
    assert noise_words(found) == "1\N{NO-BREAK SPACE}result is too noisy to rank; test longer (--seconds 10)"


@pytest.mark.parametrize("done", [2, 3, 5])
def test_a_sweep_with_missing_points_names_what_is_fastest_so_far(done: int) -> None:
    """Not all were run, so that it has no winner yet: out of how many is part of the sentence."""
    found = [cell for cell in cells() if cell.point.direction is Direction.OUT][:done]
    lines = [words.replace("\N{NO-BREAK SPACE}", " ") for _, words in ranking_lines(SWEEP, found)]
    assert lines[0].startswith(f"out: fastest so far of {done} of 6 points: ")
    assert all(line.startswith("so far, ") for line in saturation_lines(SWEEP, found))
    whole = [words for _, words in ranking_lines(SWEEP, cells())]
    assert not any("so far" in line for line in (*whole, *saturation_lines(SWEEP, cells())))


def test_a_single_result_is_not_the_fastest() -> None:
    """There is nothing to compare it with, in a sweep of one point as in one of many."""
    assert ranking_lines(SWEEP, cells()[:1]) == []
    single_point = replace(SWEEP, directions=(Direction.OUT,), sessions=(1,), windows=(16 * K,))
    assert ranking_lines(single_point, [cell for cell in cells() if cell.point in single_point.points]) == []


def test_the_points_that_failed_are_named_with_the_reason() -> None:
    """The remote end has a say in it, so that its text is made harmless; the rest is counted."""
    results, points = cells(), SWEEP.points
    failures = dict.fromkeys(points[4:], "remote lost\x1b[2J")
    done = [cell for cell in results if cell.point in points[:3]]
    lines = [line.replace("\N{NO-BREAK SPACE}", " ") for line in missing_lines(SWEEP, done, failures)]
    assert len(lines) == 7
    assert lines[0].startswith("failed: ")
    assert lines[0].endswith("K: remote lost [2J")
    assert lines[-2:] == ["3 more points failed", "1 point not run yet"]
    assert missing_lines(SWEEP, results, failures) == []
