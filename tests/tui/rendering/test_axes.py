"""The axes of plots: round ticks, and labels in their places."""

import pytest
from linkgauge.tui.rendering.axes import GUTTER, base_axis, ticks, value_axis


@pytest.mark.parametrize(
    ("top", "most", "values"),
    [
        (10_827, 2, [0, 10_000]),
        (10_827, 5, [0, 5_000, 10_000]),
        (109, 6, [0, 20, 40, 60, 80, 100]),
        (30, 4, [0, 10, 20, 30]),
        (1, 2, [0, 1]),
    ],
)
def test_ticks_are_round_and_not_too_many(top: float, most: int, values: list[float]) -> None:
    """Zero is always one of them."""
    assert ticks(top, most) == pytest.approx(values)


def test_labelled_rows_have_a_tick() -> None:
    """Rows are counted from the bottom, and come from the top."""
    assert [line.plain for line in value_axis(3, {1: "5 000"})] == ["       │", "  5 000┤", "       │"]


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ([(3, "5"), (9, "10")], "───5────10"),
        ([(-2, "16K")], "16K───────"),
        ([(0, "longer than that")], "──────────"),
    ],
)
def test_a_base_axis_keeps_its_width(labels: list[tuple[int, str]], line: str) -> None:
    """A label at an end is moved inside; one that has no room is left out."""
    assert base_axis(10, labels).plain == f"{'0':>{GUTTER - 1}}└{line}"
