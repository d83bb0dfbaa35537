"""A mesh in words: its findings, failures and changes."""

from dataclasses import replace

import pytest
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode
from linkgauge.mesh.plan import Cell, MeshMode
from linkgauge.mesh.reading import MeshComparison
from linkgauge.tui.mesh.mesh_words import (
    comparison_lines,
    conclusion_lines,
    failure_lines,
    figure_words,
    finding_words,
    headline,
)

from ..scripted_mesh import FINDING, LOST, UNREACHABLE, full_figures, matrix

CODE = MeshFindingCode
CELL = Cell("db-01", "db-02")


@pytest.mark.parametrize(
    ("finding", "words"),
    [
        (MeshFinding(CODE.HOST_SENDS, "db-07", less_percent=41.2), "db-07 sends 41 % less to all others: host"),
        (
            MeshFinding(CODE.HOST_RECEIVES, "db-07", less_percent=41.2),
            "db-07 receives 41 % less from all others: host",
        ),
        (MeshFinding(CODE.HOST, "db-07", less_percent=41.2), "db-07 sends and receives 41 % less: host"),
        (MeshFinding(CODE.GROUPS, "rack-2", "rack-3", 30.0), "rack-2 to rack-3 30 % less: path"),
        (MeshFinding(CODE.GROUPS, "rack-2", None, 30.0), "rack-2 to all others 30 % less: path"),
        (MeshFinding(CODE.GROUPS, None, "rack-2", 30.0), "all others to rack-2 30 % less: path"),
        (MeshFinding(CODE.GROUPS, less_percent=30.0), "between all groups 30 % less: path"),
        (MeshFinding(CODE.GROUP, "rack-2", "rack-2", 30.0), "within rack-2 30 % less: group"),
        (MeshFinding(CODE.GROUP, "rack-2", None, 30.0), "rack-2, within it and with all others, 30 % less: group"),
        (FINDING, "db-01 to db-03 35 % less, in this direction: path; its tests say: packets lost on the path"),
        (
            MeshFinding(CODE.FABRIC, less_percent=50.0, cells=(CELL,)),
            "1 cell 50 % less while others are measured, but not alone: network",
        ),
        (
            MeshFinding(CODE.FABRIC, "rack-1", "rack-2", 50.0, (CELL, CELL)),
            "rack-1 to rack-2: 2 cells 50 % less while others are measured, but not alone: network",
        ),
        (
            MeshFinding(CODE.ALL, less_percent=60.0),
            "the usual rate is 60 % less than expected: network, or the preset is of another link",
        ),
        (MeshFinding(CODE.HOST_DOWN, "db-03", failure=LOST), "db-03 has no results: lost: its worker has gone"),
        (
            MeshFinding(CODE.PATH, "db-01", "db-03", lost_percent=1.0),
            "db-01 to db-03 1.0 % lost, in this direction: path",
        ),
        (
            MeshFinding(CODE.HOST_RECEIVES, receiver="db-03", lost_percent=0.5),
            "db-03 loses 0.5 % of what all others send to it: host",
        ),
        (
            MeshFinding(CODE.HOST_SENDS, "db-03", lost_percent=0.5),
            "db-03 loses 0.5 % of what it sends to all others: host",
        ),
        (
            MeshFinding(CODE.HOST, "db-03", lost_percent=0.5),
            "db-03 loses 0.5 % of what it sends and receives: host",
        ),
        (MeshFinding(CODE.GROUPS, "rack-1", "rack-2", lost_percent=2.0), "rack-1 to rack-2 2.0 % lost: path"),
        (MeshFinding(CODE.GROUP, "rack-1", "rack-1", lost_percent=2.0), "within rack-1 2.0 % lost: group"),
        (
            MeshFinding(CODE.FABRIC, cells=(CELL,), lost_percent=2.0),
            "1 cell 2.0 % lost while others are measured, but not alone: network",
        ),
    ],
)
def test_a_finding_is_a_sentence_that_ends_with_what_to_look_at(finding: MeshFinding, words: str) -> None:
    """A host, a path, a group, the network."""
    assert finding_words(finding).replace("\u00a0", " ") == words


def test_a_result_says_how_much_of_the_expected_rate_it_is_and_what_it_was_alone() -> None:
    """Or why there is none."""
    figure = CellFigure(CELL, "r", 20e9, expected_bit_s=25e9)
    texts = [
        figure_words(each).replace("\u00a0", " ")
        for each in (
            figure,
            replace(figure, isolated_bit_s=24e9),
            replace(figure, loss=0.0123, isolated_bit_s=24e9),
            replace(figure, loss=0.0004),
            CellFigure(CELL, "r", 1e6, 41_000.0),
            CellFigure(CELL, failure=UNREACHABLE),
        )
    ]
    assert texts == [
        "20 Gb/s, 80.0 % of expected",
        "24 Gb/s, 96.0 % of expected; beside other tests 20 Gb/s",
        "24 Gb/s, 96.0 % of expected; beside other tests 20 Gb/s, 1.2 % lost",
        "20 Gb/s, 80.0 % of expected",
        "41 000 trans/s",
        "not reached: db-03 refuses the connection",
    ]


def test_a_mesh_in_a_line_counts_its_cells() -> None:
    """Cells without a result are counted apart."""
    figures = [*full_figures()[:3], CellFigure(Cell("db-02", "db-03"), "r", 15e9, expected_bit_s=23.5e9)]
    figures.append(CellFigure(Cell("db-03", "db-02"), failure=UNREACHABLE))
    assert headline(matrix(figures)).replace("\u00a0", " ") == (
        "mesh mesh-20261121-011530-k3f9: 3 hosts, 4 of 6 cells measured, 1 slow, 1 without a result, "
        "median 23.5 Gb/s"
    )


def test_cells_without_a_result_are_listed_unless_their_host_is_down() -> None:
    """A host that is down has one line. Of many other cells only some are listed."""
    failed = [CellFigure(Cell("db-01", f"h{n:02}"), failure=UNREACHABLE) for n in range(12)]
    lines = list(failure_lines(matrix(failed), []))
    assert lines[0] == "db-01 to h00: not reached: db-03 refuses the connection"
    assert lines[-1] == "4 further cells have no result"
    assert len(lines) == 9
    down = MeshFinding(CODE.HOST_DOWN, "db-01", failure=LOST)
    assert list(failure_lines(matrix(failed), [down])) == []


def test_slow_cells_that_no_finding_names_are_said_to_be_chance() -> None:
    """A mesh of good cells does not have that line."""
    figures = full_figures()
    assert conclusion_lines(matrix(figures), []) == ["no host and no path is slower than the others"]
    figures[0] = replace(figures[0], bit_s=(figures[0].bit_s or 0) * 0.9)
    (line,) = conclusion_lines(matrix(figures), [])
    assert line.endswith("by more than chance; single cells are slow")


def test_hosts_of_transactions_are_clients_and_servers() -> None:
    """They do not send less, they have fewer transactions. The rate alone has the same unit."""
    finding = MeshFinding(CODE.HOST_SENDS, "db-07", less_percent=41.2, is_of_transactions=True)
    assert finding_words(finding).replace("\u00a0", " ") == (
        "db-07 as the client has 41 % fewer transactions a second with all others: host"
    )
    figure = CellFigure(CELL, "r", 1e6, 40_000.0, isolated_bit_s=2e6)
    assert figure_words(figure).replace("\u00a0", " ") == "80 000 trans/s; beside other tests 40 000 trans/s"


def test_a_mesh_of_all_pairs_at_once_says_what_the_network_carries() -> None:
    """The mean of its cells, times the pairs of a round: three hosts have one pair."""
    mesh = replace(matrix(full_figures()), mode=MeshMode.ALL)
    assert "all pairs together 23.5 Gb/s" in headline(mesh).replace("\u00a0", " ")
    assert "together" not in headline(replace(mesh, figures=dict(list(mesh.figures.items())[:3])))


def test_a_comparison_names_each_cause_that_is_new_or_gone() -> None:
    """A host without results is not slower, and one that has them again is not faster."""
    down = MeshFinding(CODE.HOST_DOWN, "db-03", failure=LOST)
    slow = MeshFinding(CODE.HOST_SENDS, "db-07", less_percent=50.0)
    lines = list(comparison_lines(MeshComparison("m-1", "m-2", (), None, (down, slow), (down, slow))))
    assert [line.replace("\u00a0", " ") for line in lines] == [
        "compared with m-1: 0 cells",
        "db-03 has no results now: lost: its worker has gone",
        "slower now: db-07 sends 50 % less to all others: host",
        "db-03 has results again",
        "faster now; before: db-07 sends 50 % less to all others: host",
    ]
