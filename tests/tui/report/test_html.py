"""Templates: every value is escaped and a missing one is an error."""

import pytest
from jinja2 import UndefinedError
from linkgauge.tui.report.html import render

SWEEP = {"description": "", "conclusions": [], "grids": [], "columns": ["a"], "rows": []}


def test_a_value_of_a_template_is_escaped() -> None:
    """In a heading, in a list and in the cell of a table."""
    evil = "<img src=x onerror=alert(1)>"
    page = render("sweep.html.j2", **SWEEP | {"title": evil, "conclusions": [evil], "rows": [[evil]]})
    assert "<img" not in page
    assert page.count("&lt;img") == 4  # the title stands in the head as well


def test_a_missing_value_of_a_template_is_an_error() -> None:
    """Not an empty place in the page."""
    with pytest.raises(UndefinedError, match="title"):
        render("sweep.html.j2", **SWEEP)


def test_the_first_column_and_the_last_text_columns_are_text() -> None:
    """Numbers between them are aligned to the right."""
    page = render("sweep.html.j2", **SWEEP | {"title": "t", "columns": ["a", "b"], "rows": [["x", "1"]]})
    assert '<td class="words">x</td>' in page
    assert "<td>1</td>" in page
