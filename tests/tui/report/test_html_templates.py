"""Templates: every value is escaped and a missing one is an error."""

import os
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from linkgauge.tui.report.html_templates import render, write_page
from linkgauge.tui.words.table import NAMES, Column, Strong, Table

SWEEP = {"title": "t", "description": "", "conclusions": [], "grids": [], "results": Table((NAMES,), [])}


def test_a_value_of_a_template_is_escaped() -> None:
    """In a heading, in a list and in the cells of a table."""
    evil = "<img src=x onerror=alert(1)>"
    results = Table((Column(evil), NAMES), [(Strong(evil), evil)])
    page = render("sweep.html.j2", **SWEEP | {"title": evil, "conclusions": [evil], "results": results})
    assert "<img" not in page
    assert page.count("&lt;img") == 6  # the title stands in the head as well


def test_a_missing_value_of_a_template_is_an_error() -> None:
    """Not an empty place in the page."""
    with pytest.raises(UndefinedError, match="results"):
        render("sweep.html.j2", **{name: value for name, value in SWEEP.items() if name != "results"})


def test_text_is_on_the_left_and_what_matters_is_bold() -> None:
    """Of a key column every cell; a table without rows is left out."""
    columns = (NAMES, Column("a", is_key=True), Column("b", is_extra=True))
    page = render(
        "sweep.html.j2", **SWEEP | {"results": Table(columns, [("x", "1", "2"), ("y", "3", Strong("4"))])}
    )
    cells = '<td class="words">x</td>', "<td><b>1</b></td>", "<td>2</td>", "<td><b>4</b></td>"
    assert all(cell in page for cell in cells)
    assert "<table" not in render("sweep.html.j2", **SWEEP)


def test_a_page_goes_through_a_pipe_or_device_and_does_not_replace_it(tmp_path: Path) -> None:
    """As root, a page for /dev/null had taken its place."""
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_page(pipe, "<p>page")
    assert os.read(reader, 100) == b"<p>page"
    os.close(reader)
    assert pipe.is_fifo()
