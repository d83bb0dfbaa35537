"""A bar in eighths of a cell, and its ticks."""

import pytest
from linkgauge.tui.rendering.bar import bar


@pytest.mark.parametrize("fraction", [None, 0.0, 0.001, 0.5, 0.999, 1.0, 7.0])
@pytest.mark.parametrize("tick", [None, 0.0, 0.9, 1.0])
def test_a_bar_always_has_its_width(fraction: float | None, tick: float | None) -> None:
    """Whatever the value, nothing beside it moves; and the tick is there, if it is asked for."""
    drawn = bar(fraction, 40, "green", tick).plain
    assert len(drawn) == 40
    assert ("┃" in drawn) == (tick is not None)


def test_a_bar_is_drawn_in_eighths() -> None:
    """A change of one eighth of a cell can be seen."""
    assert bar(0.5, 4, "green").plain == "██░░"
    assert bar(5 / 32, 4, "green").plain == "▋░░░"
    assert bar(1.0, 0, "green").plain == ""
