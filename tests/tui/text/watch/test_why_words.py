"""Codes of findings in words."""

from typing import get_args

from linkgauge.presets.diagnosis.finding import FindingCode
from linkgauge.tui.text.watch.why_words import why_words


def test_every_finding_has_words_of_its_own() -> None:
    """Two findings with the same words could not be told apart."""
    codes = get_args(FindingCode)
    words = [why_words(code) for code in codes]
    assert len(set(words)) == len(codes)
    assert [word for word, code in zip(words, codes, strict=True) if word == code.replace("-", " ")] == [
        "half duplex",
        "duplex mismatch",
        "other traffic",
        "no queue",
    ]


def test_a_code_of_a_newer_linkgauge_is_shown_as_it_is() -> None:
    """With spaces, and without control characters."""
    assert why_words("cable-too\x1b-long") == "cable too  long"
