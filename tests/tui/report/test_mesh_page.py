"""The report of a mesh: its map, its findings, and names of hosts that stay text."""

from dataclasses import replace
from pathlib import Path

import pytest
from linkgauge.mesh.figures import CellFigure
from linkgauge.mesh.plan import Cell, Host
from linkgauge.tui.mesh.mesh_spec import MeshSpec
from linkgauge.tui.report.mesh_page import write_mesh_report

from ..html_page import Page
from ..scripted_mesh import FINDING, GOOD_BIT_S, PLAN, SLOW, SLOW_BIT_S, full_figures, matrix


def write(path: Path, figures: list[CellFigure], hosts: tuple[Host, ...]) -> str:
    """Write the page of a mesh, and return it."""
    plan = replace(PLAN, hosts=hosts)
    write_mesh_report(path, MeshSpec(plan), matrix(figures, hosts), [FINDING])
    return path.read_text(encoding="utf-8")


def test_the_page_has_the_map_the_findings_and_every_cell(tmp_path: Path) -> None:
    """It fetches nothing; a cell says on itself what its colour says."""
    figures = full_figures(lambda cell: SLOW_BIT_S if cell == SLOW else GOOD_BIT_S)
    text = write(tmp_path / "mesh.html", figures, PLAN.hosts)
    page = Page(text)
    assert page.fetched == []
    words = " ".join(page.words).replace("\u00a0", " ")
    assert "db-01 to db-03 35 % less, in this direction: path; its tests say: packets lost on the path" in words
    assert "15.2 ▼" in words
    assert text.count('class="good"') == 5
    assert text.count('class="slow"') == 1
    assert text.count('class="self"') == 3
    assert all(f"run-{number}" in words for number in range(6))


@pytest.mark.parametrize("hosts", [2, 64])
def test_a_large_map_has_colours_and_marks_and_no_numbers(tmp_path: Path, hosts: int) -> None:
    """Sixty-four columns of numbers fit on no page; names of hosts are text, whatever they are."""
    named = tuple(Host(f"<b>{number}</b>") for number in range(hosts))
    cells = [Cell(one.name, other.name) for one in named for other in named if one != other]
    text = write(tmp_path / "mesh.html", [CellFigure(cell, "r", 23.5e9) for cell in cells], named)
    assert "<b>1</b>" not in text
    assert ("23.5</td>" in text) is (hosts == 2)
    assert text.count('class="good"') == hosts * (hosts - 1)
