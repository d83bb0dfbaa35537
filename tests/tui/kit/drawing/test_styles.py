"""Styles that go with data of other modules."""

from linkgauge.tui.kit.drawing.styles import SERIES_STYLES
from linkgauge.tui.words.comparison import LETTERS


def test_every_letter_of_a_run_has_a_style() -> None:
    """Up to eight runs are compared."""
    assert set(SERIES_STYLES) == set(LETTERS)
