"""The results of a sweep as lines: a map, the best settings, and lines for the plot."""

from collections.abc import Sequence
from dataclasses import replace

from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.tui.sweep.sweep_map import axis_of_plot, best_lines, knee_lines, map_lines, sweep_overlay
from textual.content import Content

from ..sweep_example import SWEEP, cells

OUT_SWEEP = replace(SWEEP, directions=(Direction.OUT,))
RESULTS = [result for result in cells() if result.point.direction is Direction.OUT]


def texts(lines: Sequence[Content]) -> list[str]:
    """Return the lines with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in lines]


def test_a_map_has_a_table_for_each_direction() -> None:
    """Windows down and sessions across; the columns of a table are aligned."""
    lines = texts(map_lines(SWEEP, cells()))
    tables = "\n".join(lines).split("\n\n")
    assert len(tables) == 2
    for _, head, *rows in (table.splitlines() for table in tables):
        assert "window" in head
        assert [row.split()[0] for row in rows] == ["16K", "32K", "64K"]
        assert len({len(row) for row in rows}) == 1


def test_the_map_marks_the_fastest_and_the_missing() -> None:
    """A point without a result is a dash; the fastest and its equals have an asterisk."""
    results = [result for result in RESULTS if result.point.window_bytes != 16 * 1024]
    *_, first, second, third = texts(map_lines(OUT_SWEEP, results))
    assert first.split() == ["16K", "–", "–"]
    assert "*" not in second
    assert third.count("*") == 2


def test_a_single_result_has_no_best_settings() -> None:
    """There is nothing to compare it with."""
    assert best_lines(OUT_SWEEP, RESULTS[:1]) == []
    assert texts(best_lines(OUT_SWEEP, RESULTS))[0].startswith("★ ")


def test_rates_that_are_too_uncertain_are_counted() -> None:
    """The line names the remedy."""
    assert not any(line.startswith("▲") for line in texts(knee_lines(OUT_SWEEP, RESULTS)))
    first, *others = RESULTS
    uncertain = replace(first.summary, measured=PerDirection(None, None, None))
    lines = texts(knee_lines(OUT_SWEEP, [replace(first, summary=uncertain), *others]))
    assert lines[-1].startswith("▲ 1 result is too noisy to rank")
    assert "test longer" in lines[-1]


def test_a_plot_has_a_line_for_each_column_with_a_letter() -> None:
    """A column without a letter is left to the map."""
    overlay, names = sweep_overlay(OUT_SWEEP, RESULTS, "AB")
    assert overlay.names == ["16K", "32K", "64K"]
    assert axis_of_plot(OUT_SWEEP) == "window"
    assert [line.letter for line in overlay.lines] == ["A", "B"]
    assert len(names) == 2
    assert all(name.startswith(line.letter) for line, name in zip(overlay.lines, names, strict=True))
    assert len(sweep_overlay(OUT_SWEEP, RESULTS, "A")[0].lines) == 1
