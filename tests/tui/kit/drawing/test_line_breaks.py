"""Lines break between words, and never within a number."""

import sys
from subprocess import run

import pytest
from linkgauge.tui.kit.drawing.line_breaks import respect_no_break_spaces
from rich._wrap import divide_line
from rich.console import Console
from rich.text import Text
from textual.content import Content

TEXT = "more than the 9\u00a0415 Mb/s of 34\u00a0132\u00a0576 bytes"


@pytest.mark.parametrize("width", range(10, 40))
def test_no_number_is_divided(width: int) -> None:
    """Neither by Rich nor by Textual, whose lines Rich wraps."""
    respect_no_break_spaces()
    rich_lines = [line.plain for line in Text(TEXT).wrap(Console(width=width), width)]
    textual_lines = [line.plain for line in Content(TEXT).wrap(width)]
    for lines in (rich_lines, textual_lines):
        assert all(len(line) <= width for line in lines)
        assert [word for line in lines for word in line.split(" ") if word] == TEXT.split(" ")


def test_other_spaces_divide_lines_as_before() -> None:
    """A word and the spaces behind it stay together."""
    respect_no_break_spaces()
    assert divide_line("one two  three\tfour", 5) == [4, 9, 15]


def test_the_command_line_needs_no_textual_for_it() -> None:
    """Another process shows it, because this one has imported Textual."""
    code = (
        "import sys; from linkgauge.tui.cli.output import emit_rich; emit_rich('9\\u00a0415 Mb/s');"
        "print('textual' in sys.modules)"
    )
    done = run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout == "9\u00a0415 Mb/s\nFalse\n"
