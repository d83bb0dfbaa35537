"""Templates: every value is escaped and a missing one is an error; an unsuitable path is refused."""

from pathlib import Path

import pytest
from jinja2 import UndefinedError
from linkgauge.engine.model import errors
from linkgauge.engine.model.errors import ExtraMissing, PlanError
from linkgauge.tui.report.html import check_report_path, render

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


def test_a_report_goes_where_a_page_can_be_written(tmp_path: Path) -> None:
    """An unsuitable path is refused before anything runs."""
    assert check_report_path(tmp_path / "a.html") == tmp_path / "a.html"
    (tmp_path / "file").touch()
    for path in (tmp_path / "a.pdf", tmp_path / "nowhere" / "a.html", tmp_path / "file" / "a.html"):
        with pytest.raises(PlanError, match="report"):
            check_report_path(path)


def test_without_the_extra_a_report_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is measured; tests themselves do not need the packages."""
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    with pytest.raises(ExtraMissing, match=r"a report needs Jinja2 and matplotlib .*\[report\]"):
        check_report_path(tmp_path / "a.html")
