"""A mesh in lines: head, status, the cell or host at the cursor, findings, legend."""

from collections.abc import Sequence
from dataclasses import replace

from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.mesh.events import RoundBegan
from linkgauge.mesh.figures import CellFigure, MeshMatrix
from linkgauge.mesh.plan import Cell
from linkgauge.tui.mesh.map_layout import Density
from linkgauge.tui.mesh.mesh_lines import cell_lines, finding_lines, head_line, host_lines, legend_line, status_line
from linkgauge.tui.mesh.mesh_state import MeshCell, MeshProgress, MeshState
from linkgauge.tui.mesh.mesh_verdict import CellState
from textual.content import Content

from ..example_mesh import EXPECTED_BIT_S, GONE, GROUP, findings, hosts, matrix


def part(count: int) -> MeshMatrix:
    """Return a mesh of four hosts, with `done` of its twelve cells ended."""
    whole = matrix(4)
    return replace(whole, figures=dict(list(whole.figures.items())[:count]))


RUNNING = MeshProgress(
    part(6),
    failed=0,
    slow=0,
    left_ns=12 * SECOND_NS,
    round=RoundBegan(2, 3),
    running=(Cell("db-01", "db-02"), Cell("db-03", "db-04")),
    is_recheck=False,
    is_running=True,
    is_stopping=False,
    problem=None,
    lost=(),
)
OVER = replace(RUNNING, matrix=part(12), left_ns=None, running=(), is_running=False)


def plain(line: Content) -> str:
    """Return a line with plain spaces."""
    return line.plain.replace("\u00a0", " ")


def plains(lines: Sequence[Content]) -> list[str]:
    """Return lines with plain spaces."""
    return [plain(line) for line in lines]


def test_the_head_has_the_cells_the_time_left_and_the_name() -> None:
    """The name for --resume is whole at 80 columns."""
    head = plain(head_line(RUNNING))
    assert "6 of 12 cells, about 12 s left" in head
    assert head.index(GROUP) + len(GROUP) < 78


def test_the_status_says_what_runs_and_then_how_it_ended() -> None:
    """A host that is lost is named."""
    assert plain(status_line(RUNNING)) == "● round 2 of 3   db-01 → db-02, db-03 → db-04"
    assert "connecting" in plain(status_line(replace(RUNNING, round=None, running=())))
    assert "again, alone" in plain(status_line(replace(RUNNING, is_recheck=True)))
    assert "stopping" in plain(status_line(replace(RUNNING, is_stopping=True)))
    assert plain(status_line(OVER)) == "✓ Mesh complete: no cell is slow"
    lossy = plain(status_line(replace(OVER, findings=1)))
    assert lossy.replace("\u00a0", " ") == "▲ Mesh complete: no cell is slow, but 1 finding"
    slow = replace(OVER, slow=1, failed=6, lost=("db-04",))
    assert plain(status_line(slow)) == "▲ Mesh complete: 1 cell slow, 6 without a result, lost: db-04"
    assert f"--resume {GROUP}" in plain(status_line(replace(OVER, matrix=part(3))))
    assert "results are not saved" in plain(status_line(replace(OVER, matrix=part(3)), is_saved=False))
    assert f"again, alone: --resume {GROUP}" in plain(status_line(replace(OVER, slow=1, is_stopping=True)))
    assert plain(status_line(replace(OVER, problem="the scheduler\nhas gone"))) == "✗ the scheduler has gone"


def test_a_cell_has_its_rate_its_verdict_why_and_its_run() -> None:
    """And its first rate, if it was measured again alone."""
    cell = Cell("db-01", "db-03")
    alone = 0.99 * EXPECTED_BIT_S
    figure = CellFigure(cell, "run-1", 0.58 * EXPECTED_BIT_S, None, EXPECTED_BIT_S, alone, why="loss", loss=0.021)
    lines = plains(cell_lines(cell, MeshCell(CellState.SHORT, 58.0, figure), (hosts(4)[0], hosts(4)[2])))
    assert lines == [
        "db-01 → db-03   rack 1 → rack 2",
        "▼ SHORT   58.0 %",
        "932.1 Mb/s alone of 941.5 Mb/s expected",
        "beside other tests 546.1 Mb/s, 2.1 % lost",
        "why    packets lost on the path",
        "enter opens run-1",
    ]


def test_a_cell_without_a_result_says_why() -> None:
    """Also a cell that was not measured yet."""
    cell, ends = Cell("db-04", "db-01"), (hosts(4)[3], hosts(4)[0])
    lines = plains(cell_lines(cell, MeshCell(CellState.NO_RESULT, None, CellFigure(cell, failure=GONE)), ends))
    assert lines[1] == "! no result"
    assert "no answer" in lines[2]
    assert plains(cell_lines(cell, MeshCell(CellState.WAITING), ends))[1:] == ["not measured yet"]


def test_a_host_has_the_medians_of_what_it_sends_and_receives() -> None:
    """And its group and address."""
    state = MeshState(lambda: 0)
    state.load(matrix(12), ())
    lines = plains(host_lines(state.host_figures(hosts(12)[2]), is_of_expected=True))
    assert lines[0] == "db-03   rack 1   10.0.0.3"
    assert lines[1].startswith("sends    98.")
    assert lines[2].startswith("receives 57.")


def test_findings_are_sentences_and_none_is_said_too() -> None:
    """While the mesh runs, more may come."""
    lines = plains(finding_lines(findings(4), is_running=False))
    assert lines[0].startswith("▲ db-03 receives 42 % less")
    assert plains(finding_lines((), is_running=True)) == ["None so far."]
    assert plains(finding_lines((), is_running=False)) == ["No host and no path stands out."]


def test_the_legend_has_the_marks_that_are_on_the_map() -> None:
    """At most as wide as the smallest screen."""
    state = MeshState(lambda: 0)
    state.load(matrix(12), ())
    legend = plain(legend_line(state.map(), Density.MARKS))
    assert legend == "% of expected   • from 95   ▼ under 95   ✗ under 50   ! no result"
    assert "Mb/s below" in plain(legend_line(state.map(), Density.RATES))
    assert all(len(plain(legend_line(state.map(), density))) <= 78 for density in Density)
