"""Large digits and grades: their shapes and their widths."""

import pytest
from linkgauge.engine.results.responsiveness.grade import GRADES
from linkgauge.tui.kit.drawing.big_digits import (
    DIGIT_FONTS,
    GRADE_ROWS,
    DigitFont,
    align_right,
    big_digits,
    grade_letter,
)


@pytest.mark.parametrize("face", DIGIT_FONTS, ids=str)
def test_every_digit_takes_the_same_room_and_looks_like_no_other(face: DigitFont) -> None:
    """A changing number moves nothing and is not misread."""
    glyphs = {digit: tuple(big_digits(digit, face)) for digit in "0123456789"}
    assert {(len(glyph), *map(len, glyph)) for glyph in glyphs.values()} == {(face.rows, *[face.digit] * face.rows)}
    assert len(set(glyphs.values())) == 10


@pytest.mark.parametrize("text", ["-", "0.00", "8.1", "941", "9\u00a0389", "99.7"])
def test_figures_are_right_aligned_to_the_cell(text: str) -> None:
    """Digits, groups and points have different widths. The padding makes up for each."""
    like = "19\u00a0415.0" if "." in text else "19\u00a0415"
    for face in DIGIT_FONTS:
        assert {len(row) for row in big_digits(align_right(text, like), face)} == {face.width(like)}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_grade_is_a_block_of_its_own_shape(size: int) -> None:
    """All rows of a grade have one length, and no grade looks like another."""
    shapes = {grade: tuple(row.plain for row in grade_letter(grade, "$foreground", size)) for grade in GRADES}
    assert {len(shape) for shape in shapes.values()} == {GRADE_ROWS * size}
    assert all(len({len(row) for row in shape}) == 1 for shape in shapes.values())
    assert len(set(shapes.values())) == len(GRADES)


def test_a_larger_letter_has_the_same_shape() -> None:
    """Twice as wide and as high."""
    small = [row.plain for row in grade_letter("A", "$foreground")]
    large = [row.plain for row in grade_letter("A", "$foreground", 2)]
    assert (len(large), len(large[0])) == (2 * len(small), 2 * len(small[0]))
