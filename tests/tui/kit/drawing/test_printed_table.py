"""A table in a terminal: columns are left out by their rank, and no cell is cut."""

import io

import pytest
from linkgauge.tui.kit.drawing.printed_table import PrintedTable
from linkgauge.tui.words.table import NAMES, Column, Strong, Table
from rich.console import Console

TABLE = Table(
    (
        NAMES,
        Column("Mb/s", is_key=True),
        Column("MiB/s", rank=2),
        Column("share"),
        Column("mark", is_extra=True),
        Column("source", is_text=True, wraps=True, rank=1),
    ),
    [
        ("out", "941.0", "112.2", Strong("99.6 %"), "≠", "documented: a table with a long name"),
        ("[b]in", "3", "0.4", "–", "·", "no expected rate"),
    ],
)


def printed(table: Table, width: int, *, names_width: int = 0, colours: bool = False) -> list[str]:
    """Return the lines of a table in a terminal of this width."""
    stream = io.StringIO()
    console = Console(
        file=stream, width=width, color_system="standard" if colours else None, force_terminal=colours
    )
    console.print(PrintedTable(table, names_width=names_width))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, ["Mb/s", "MiB/s", "share", "source"]),
        (45, ["Mb/s", "MiB/s", "share", "source"]),
        (41, ["Mb/s", "MiB/s", "share"]),
        (27, ["Mb/s", "MiB/s", "share"]),
        (26, ["Mb/s", "share"]),
        (20, ["Mb/s", "share"]),
    ],
)
def test_the_columns_that_matter_least_are_the_first_to_go(width: int, titles: list[str]) -> None:
    """What wraps needs 14 cells; a mark says nothing that the words do not say."""
    head, *rows = printed(TABLE, width)
    assert head.split() == titles
    assert max(map(len, (head, *rows))) <= width
    shown = " ".join(" ".join(rows).split())
    assert "…" not in shown
    assert "out 941.0" in shown
    assert "[b]in" in shown  # text, not markup
    assert ("long" in shown) is ("source" in titles)
    assert "≠" not in shown


def test_numbers_are_aligned_on_the_right_and_names_have_a_minimum_width() -> None:
    """So that the tables of a result stand below each other."""
    head, out, in_ = printed(TABLE, 100, names_width=7)
    assert out.startswith("out      941.0  112.2")
    assert in_.startswith("[b]in        3    0.4")
    assert head.index("Mb/s") + 4 == out.index("941.0") + 5


def test_what_matters_most_is_bold() -> None:
    """The column, and a cell that stands out."""
    _, out, in_ = printed(TABLE, 100, colours=True)
    bold = "\x1b[1m"
    assert f"{bold}941.0" in out
    assert f"{bold}99.6 %" in out
    assert f"{bold}    3" in in_
    assert f"{bold}112.2" not in out
