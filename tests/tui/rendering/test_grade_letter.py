"""The large letter of a grade."""

import pytest
from linkgauge.engine.results.responsiveness.result import GRADES
from linkgauge.tui.rendering.grade_letter import ROWS, grade_letter


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_grade_is_a_block_of_its_own_shape(size: int) -> None:
    """All rows of a grade are equally long, and no grade looks like another."""
    shapes = {grade: tuple(row.plain for row in grade_letter(grade, "$foreground", size)) for grade in GRADES}
    assert {len(shape) for shape in shapes.values()} == {ROWS * size}
    assert all(len({len(row) for row in shape}) == 1 for shape in shapes.values())
    assert len(set(shapes.values())) == len(GRADES)


def test_a_larger_letter_has_the_same_shape() -> None:
    """Twice as wide and as high."""
    small = [row.plain for row in grade_letter("A", "$foreground")]
    large = [row.plain for row in grade_letter("A", "$foreground", 2)]
    assert (len(large), len(large[0])) == (2 * len(small), 2 * len(small[0]))
