"""A mesh for programs: its document, its rows, its verdict."""

from dataclasses import replace

import pytest
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode
from linkgauge.mesh.plan import Cell
from linkgauge.mesh.reading import compare_meshes, find_faults
from linkgauge.presets.number_text import NBSP
from linkgauge.presets.verdict import AcceptanceLimits
from linkgauge.tui.mesh.mesh_document import CSV_COLUMNS, csv_rows, mesh_json
from linkgauge.tui.mesh.mesh_verdict import judge_mesh
from linkgauge.tui.mesh.mesh_words import comparison_lines, conclusion_lines, headline

from ...json_schemas import check
from ..scripted_mesh import FINDING, GOOD_BIT_S, LOST, PLAN, SLOW_BIT_S, UNREACHABLE, full_figures, matrix

FAILED = CellFigure(Cell("db-03", "db-02"), failure=UNREACHABLE)
ALONE = CellFigure(
    Cell("db-01", "db-03"),
    "r",
    SLOW_BIT_S,
    None,
    23.53e9,
    isolated_bit_s=GOOD_BIT_S,
    isolated_run_id="s",
    why="loss",
)
LOSSY = MeshFinding(MeshFindingCode.PATH, "db-01", "db-02", cells=(Cell("db-01", "db-02"),), lost_percent=1.0)
DOWN = MeshFinding(MeshFindingCode.HOST_DOWN, "db-03", failure=LOST)


def test_the_document_of_a_mesh_is_as_its_schema_says() -> None:
    """Every cell and finding, in the order of the hosts; also for a mesh without results."""
    document = mesh_json(PLAN, matrix([FAILED, ALONE, *full_figures()[:1]]), [FINDING, DOWN])
    check("mesh.schema.json", document)
    assert [(cell["sender"], cell["receiver"]) for cell in document["cells"]] == [
        ("db-01", "db-02"),
        ("db-01", "db-03"),
        ("db-03", "db-02"),
    ]
    assert document["cells"][1]["percent_of_expected"] == pytest.approx(99.873)
    assert [cell["counted"] for cell in document["cells"]] == ["first", "isolated", None]
    assert document["cells"][2]["failure"] == {
        "code": "unreachable",
        "detail": "db-03 refuses the connection",
        "host": "db-03",
    }
    assert document["findings"][0]["words"].startswith("db-01 to db-03")
    assert (document["verdict"], document["is_complete"]) == ("short", False)
    check("mesh.schema.json", mesh_json(PLAN, matrix([]), []))


def test_the_document_says_what_has_changed_since_an_earlier_mesh() -> None:
    """A host sends less now: the document has the change of its cells, also in words."""
    before = matrix(full_figures())
    slow = replace(before, figures={cell: _halved(figure) for cell, figure in before.figures.items()})
    after = replace(
        before, figures={**before.figures, **{c: slow.figures[c] for c in slow.figures if c.sender == "db-02"}}
    )
    comparison = compare_meshes(before, after)
    document = mesh_json(PLAN, after, [], comparison=comparison)
    check("mesh.schema.json", document)
    assert document["comparison"]["cells"] == len(before.figures)
    assert [finding["code"] for finding in document["comparison"]["slower"]] == ["host-sends"]
    assert document["comparison"]["faster"] == []
    words = [line.replace(NBSP, " ") for line in document["comparison"]["words"]]
    assert words[1:] == ["slower now: db-02 sends 50 % less to all others: host"]
    everything = [line.replace(NBSP, " ") for line in comparison_lines(compare_meshes(before, slow))]
    assert everything == [
        f"compared with {before.group}: {len(before.figures)} cells, median -50.0 %",
        "slower now: the usual rate, 50 % less",
    ]
    down = replace(
        before,
        figures={c: CellFigure(c, failure=LOST) if "db-02" in c else each for c, each in before.figures.items()},
    )
    assert list(comparison_lines(compare_meshes(before, down)))[1:] == [
        "db-02 has no results now: lost: its worker has gone"
    ]
    assert list(comparison_lines(compare_meshes(down, before)))[1:] == ["db-02 has results again"]


def _halved(figure: CellFigure) -> CellFigure:
    return replace(figure, bit_s=None if figure.bit_s is None else figure.bit_s / 2)


@pytest.mark.parametrize(
    ("rates", "findings", "verdict"),
    [
        ({}, [], "pass"),
        ({0: SLOW_BIT_S}, [], "short"),
        ({0: 5e9}, [], "fail"),
        ({}, [FINDING], "short"),
        ({}, [DOWN], "pass"),
        ({}, [LOSSY], "pass"),
    ],
)
def test_a_mesh_is_as_good_as_its_worst_cell(
    rates: dict[int, float], findings: list[MeshFinding], verdict: str
) -> None:
    """A finding counts as well: without an expected rate, only a finding shows a slow host.

    Losses at the usual rate do not count.
    """
    slow = {PLAN.cells[number]: bit_s for number, bit_s in rates.items()}
    figures = full_figures(lambda cell: slow.get(cell, GOOD_BIT_S))
    assert judge_mesh(matrix(figures), findings) == verdict
    missing = judge_mesh(matrix(figures[:-1]), findings)
    assert missing == ("none" if verdict == "pass" else verdict)


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [
        (AcceptanceLimits(max_loss=0.01), "pass"),
        (AcceptanceLimits(max_loss=0.001), "fail"),
        (AcceptanceLimits(min_rate_bit_s=25 * 10**9), "fail"),
        (AcceptanceLimits(max_rise_ns=10**6), "none"),
        (AcceptanceLimits(max_loss=0.001, max_rise_ns=10**6), "fail"),
    ],
)
def test_a_limit_decides_beside_the_rates(limits: AcceptanceLimits, verdict: str) -> None:
    """Every cell has its rate and some loss. Without the figure that a limit asks for, there is no verdict."""
    lossy = [replace(figure, loss=0.005) for figure in full_figures()]
    limited = replace(matrix(lossy), limits=limits)
    found = find_faults(limited)
    assert judge_mesh(limited, found) == verdict
    broken = {name for figure in lossy for name in figure.check(limits).broken}
    assert {finding.limit for finding in found} == broken
    has_line = any(line.startswith("no figure for --max-rise: ") for line in conclusion_lines(limited, found))
    assert has_line == (limits.max_rise_ns is not None)
    row = dict(zip(*list(csv_rows(limited))[:2], strict=True))
    assert row["beyond"] == " ".join(sorted(broken))
    check("mesh.schema.json", mesh_json(replace(PLAN, limits=limits), limited, found))


def test_a_detail_that_a_spreadsheet_would_run_is_defused() -> None:
    """A host chooses the words of its failure."""
    assert FAILED.failure is not None
    hostile = replace(FAILED, failure=replace(FAILED.failure, detail="=cmd\x1b[2J"))
    row = dict(zip(*list(csv_rows(matrix([hostile])))[:2], strict=True))
    assert row["detail"] == "'=cmd\N{REPLACEMENT CHARACTER}[2J"


def test_rows_have_the_groups_of_both_hosts_and_the_reason_of_a_failure() -> None:
    """An empty field is unknown."""
    header, slow, failed = csv_rows(matrix([FAILED, ALONE]))
    assert tuple(header) == CSV_COLUMNS
    row = dict(zip(header, slow, strict=True))
    assert (row["sender_group"], row["receiver_group"], row["mbit_s"], row["isolated_run_id"]) == (
        "rack-1",
        "rack-2",
        "15200",
        "s",
    )
    assert (row["failure"], row["transactions_s"]) == ("", "")
    row = dict(zip(header, failed, strict=True))
    assert (row["failure"], row["failed_host"], row["mbit_s"], row["run_id"]) == ("unreachable", "db-03", "", "")


def test_a_cell_that_a_test_alone_clears_does_not_fail_the_mesh() -> None:
    """Verdict, first line, JSON and CSV have the same result."""
    figures = [
        replace(each, bit_s=0.2 * (each.bit_s or 0.0), isolated_bit_s=each.bit_s) if number == 0 else each
        for number, each in enumerate(full_figures())
    ]
    cleared = matrix(figures)
    assert judge_mesh(cleared, []) == "pass"
    assert ", 0 slow, " in headline(cleared).replace("\u00a0", " ")
    header, first, *_ = csv_rows(cleared)
    row = dict(zip(header, first, strict=True))
    assert row["counted"] == "isolated"
    cell = mesh_json(PLAN, cleared, [])["cells"][0]
    assert float(row["percent_of_expected"]) == cell["percent_of_expected"] > 90
