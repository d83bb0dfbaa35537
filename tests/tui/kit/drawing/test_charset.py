"""Substitutes for terminals that lack the screen's characters: one cell for one cell."""

import pytest
from linkgauge.tui.kit.drawing.charset import CharacterFilter, translation_table
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color

SAMPLE_TEXT = "╭─ out → ─╮ █▀▄▏ ━ ┃ ░ ✓ ▼ ✗ ● ○ ⇄ ▁▂▃▄▅▆▇ 9\u00a0388 µs … ⣿ あ é"


@pytest.mark.parametrize(
    ("environment", "changes"),
    [
        ({"TERM": "linux", "LANG": "C.UTF-8"}, True),
        ({"TERM": "xterm", "LANG": "de_DE.ISO-8859-1"}, True),
        ({"TERM": "xterm", "LC_ALL": "en_US.UTF-8", "LANG": "de_DE.ISO-8859-1"}, False),
        ({"TERM": "xterm-256color", "LANG": "C.utf8"}, False),
        ({"TERM": "xterm"}, False),
        ({"TERM": "screen", "LANG": "C"}, False),
    ],
)
def test_characters_change_only_if_a_terminal_cannot_show_them(environment: dict[str, str], changes: bool) -> None:
    """The Linux console's font has few, and a locale tells if there is no UTF-8."""
    assert (translation_table(environment) is not None) == changes


def test_without_utf_8_everything_is_ascii_and_stays_in_its_place() -> None:
    """Unforeseen characters too. A wide character takes its two cells."""
    table = translation_table({"LANG": "de_DE.ISO-8859-1"})
    assert table is not None
    (plain,) = CharacterFilter(table).apply([Segment(SAMPLE_TEXT)], Color(0, 0, 0))
    assert plain.text.isascii()
    assert len(plain.text) == cell_len(SAMPLE_TEXT)
    assert plain.text.startswith('+- out > -+ #"=|')


def test_marks_stay_apart_without_utf_8() -> None:
    """A pass, a short and a fail are three characters."""
    table = translation_table({"LANG": "C.ISO-8859-1"})
    assert table is not None
    (plain,) = CharacterFilter(table).apply([Segment("✓▼✗●○")], Color(0, 0, 0))
    assert len(set(plain.text)) == 5


def test_the_console_gets_what_its_font_has() -> None:
    """Every character of code page 437."""
    table = translation_table({"TERM": "linux"})
    assert table is not None
    shown = SAMPLE_TEXT.replace("あ", "").replace("\u00a0", " ")
    (plain,) = CharacterFilter(table).apply([Segment(shown)], Color(0, 0, 0))
    marks = "▼○•↔→"  # in the font's first 32 places, which Python's codec leaves to control characters
    assert all(c in marks or c.encode("cp437") for c in plain.text)
