"""Large digits: their shapes and their widths."""

import pytest
from linkgauge.tui.rendering.big_digits import DIGIT_FONTS, DigitFont, align_right, big_digits


@pytest.mark.parametrize("face", DIGIT_FONTS, ids=str)
def test_every_digit_takes_the_same_room_and_looks_like_no_other(face: DigitFont) -> None:
    """So that a number that changes moves nothing, and is not misread."""
    glyphs = {digit: tuple(big_digits(digit, face)) for digit in "0123456789"}
    assert {(len(glyph), *map(len, glyph)) for glyph in glyphs.values()} == {(face.rows, *[face.digit] * face.rows)}
    assert len(set(glyphs.values())) == 10


@pytest.mark.parametrize("text", ["-", "0.00", "8.1", "941", "9\u00a0389", "99.7"])
def test_figures_are_right_aligned_to_the_cell(text: str) -> None:
    """Digits, groups and points each have their own width; all are made up for."""
    like = "19\u00a0415.0" if "." in text else "19\u00a0415"
    for face in DIGIT_FONTS:
        assert {len(row) for row in big_digits(align_right(text, like), face)} == {face.width(like)}
