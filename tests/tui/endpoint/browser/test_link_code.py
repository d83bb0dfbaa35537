"""The QR code of a link in a terminal."""

import pytest

pytest.importorskip("segno", reason="the extra linkgauge[http] is not installed")

from linkgauge.tui.endpoint.browser.link_code import code_lines

LINK = "http://192.168.100.200:58080/A-Za-z0-9_A-Za-z0-9_abcd/"


def test_a_long_link_fits_a_small_terminal() -> None:
    """80 columns and 24 lines, with a line for the prompt."""
    lines = code_lines(LINK)
    assert len(lines) <= 20
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= 40


def test_its_characters_are_the_modules_of_the_code() -> None:
    """Two rows a line, as a reader of the terminal's cells finds them."""
    import segno

    matrix = [list(row) for row in segno.make(LINK, error="l", micro=False).matrix]
    cells = {" ": (0, 0), "▀": (1, 0), "▄": (0, 1), "█": (1, 1)}
    seen: list[list[int]] = []
    for line in code_lines(LINK):
        rows = [cells[character] for character in line]
        seen += [[row[half] for row in rows] for half in (0, 1)]
    border = (len(seen[0]) - len(matrix)) // 2
    inner = [row[border : border + len(matrix)] for row in seen[border : border + len(matrix)]]
    assert inner in (matrix, [[1 - module for module in row] for row in matrix])
