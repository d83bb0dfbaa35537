"""Codes of findings in words."""

from typing import get_args

from linkgauge.presets.diagnosis.finding import FindingCode
from linkgauge.presets.diagnosis.finding_words import WHY_WORDS, why_words


def test_every_finding_has_words_of_its_own() -> None:
    """Two findings with the same words could not be told apart."""
    assert set(WHY_WORDS) == set(get_args(FindingCode))
    assert len(set(WHY_WORDS.values())) == len(WHY_WORDS)


def test_a_code_of_a_newer_linkgauge_is_shown_as_it_is() -> None:
    """With spaces, and without control characters."""
    assert why_words("cable-too\x1b-long") == "cable too  long"
