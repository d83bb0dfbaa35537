"""A mesh in lines: its head, its activity, the cell or host at the cursor, the findings, the legend. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from ...mesh.figures import CellFigure, MeshFinding
from ...mesh.plan import Cell, Host, MeshMode
from ...mesh.reading import MeshComparison
from ...presets.diagnosis.finding_words import why_words
from ..kit.drawing.styles import BAD, GOOD, KEY, MUTED, SHORT
from ..words import numbers
from .heat_map import percent_text
from .map_layout import Density
from .mesh_state import HostFigures, MeshCell, MeshMap, MeshProgress
from .mesh_verdict import CellState
from .mesh_words import (
    beside_words,
    comparison_lines,
    counted_words,
    failure_words,
    finding_words,
    lost_words,
    rise_words,
)

_MODES: Final = {
    MeshMode.ROUNDS: "pairs in rounds",
    MeshMode.ISOLATED: "one pair at a time",
    MeshMode.ALL: "all pairs of a round at once",
}
_WORDS: Final[dict[CellState, tuple[str, str]]] = {
    CellState.WAITING: ("not measured yet", MUTED),
    CellState.RUNNING: ("● running now", "bold $text-primary"),
    CellState.PASS: ("✓ PASS", f"bold {GOOD}"),
    CellState.SHORT: ("▼ SHORT", f"bold {SHORT}"),
    CellState.FAIL: ("✗ FAIL", f"bold {BAD}"),
    CellState.LIMIT: ("◆ beyond a limit", f"bold {BAD}"),
    CellState.NO_RESULT: ("! no result", f"bold {BAD}"),
}
_SHOWN_PAIRS: Final = 3


def head_line(progress: MeshProgress) -> Content:
    """Return the line with the cells that are done, the time left and the name of the mesh."""
    left = "" if progress.left_ns is None else f", about {numbers.rough_time(progress.left_ns)} left"
    matrix = progress.matrix
    return Content.assemble(
        ("linkgauge ", KEY),
        (" mesh  ", "bold"),
        f"{numbers.count(len(matrix.figures))} of {numbers.quantity(matrix.cell_count, 'cell')}{left}   ",
        (f"{matrix.group}   {numbers.quantity(len(matrix.hosts), 'host')}, {_MODES[matrix.mode]}", MUTED),
    )


def status_line(progress: MeshProgress, *, is_saved: bool = True) -> Content:
    """Return the line with the cells that run now; at the end the results, or the reason for a break."""
    if progress.problem is not None:
        return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(progress.problem))
    if progress.is_running:
        return Content.assemble(("● ", "$text-success"), (_activity(progress), "bold"), (_running(progress), MUTED))
    counts = _counts(progress)
    if not progress.is_complete:
        rest = (
            f"results are saved; go on: --resume {progress.matrix.group}" if is_saved else "results are not saved"
        )
        return Content.assemble(("◌ ", MUTED), f"Stopped, {rest}{f'   {counts}' if counts else ''}")
    if progress.is_stopping and progress.slow and is_saved and progress.matrix.mode is not MeshMode.ISOLATED:
        text = f"Mesh complete: {counts}; to measure these again, alone: --resume {progress.matrix.group}"
        return Content.assemble(("▲ ", "bold $text-warning"), text)
    if progress.findings and not counts:
        counts = f"no cell is slow, but {numbers.quantity(progress.findings, 'finding')}"
    if counts:
        return Content.assemble(("▲ ", "bold $text-warning"), f"Mesh complete: {counts}")
    return Content.assemble(("✓ ", "bold $text-success"), "Mesh complete: no cell is slow")


def cell_lines(cell: Cell, shown: MeshCell, hosts: tuple[Host, Host]) -> list[Content]:
    """Return the details of a cell: its hosts, its rate with the verdict, the finding, and the failure."""
    groups = [host.group for host in hosts]
    between = "" if None in groups else f"   {groups[0]} → {groups[1]}"
    lines = [Content.assemble((f"{cell.sender} → {cell.receiver}", "bold"), (between, MUTED))]
    word, style = _WORDS[shown.state]
    figure = shown.figure
    percent = "" if shown.percent is None else f"   {numbers.percent(shown.percent, 1)}"
    lines.append(Content.assemble((word, style), percent))
    return lines if figure is None else [*lines, *_figure_lines(figure)]


def host_lines(figures: HostFigures, *, is_of_expected: bool) -> list[Content]:
    """Return the median rates of a host: to the others, and from them."""
    host = figures.host
    details = "   ".join(text for text in (host.group, host.address) if text)
    of = "of expected" if is_of_expected else "of the median cell"
    lines = [Content.assemble((host.name, "bold"), (f"   {details}" if details else "", MUTED))]
    if figures.lost:
        lines.append(Content.assemble(("✗ lost: ", "bold $text-error"), numbers.sanitize(figures.lost)))
    for verb, percent in (("sends", figures.sends_percent), ("receives", figures.receives_percent)):
        text = "nothing measured yet" if percent is None else f"{numbers.percent(percent, 1)} {of}, median"
        lines.append(Content.assemble((f"{verb:<9}", MUTED), text))
    return lines


def finding_lines(findings: Sequence[MeshFinding], *, is_running: bool) -> list[Content]:
    """Return a sentence for each finding, or one that there is none."""
    if not findings:
        text = "None so far." if is_running else "No host and no path stands out."
        return [Content.styled(text, MUTED)]
    return [Content.assemble(("▲ ", "bold $text-warning"), finding_words(finding)) for finding in findings]


def comparison_contents(comparison: MeshComparison) -> list[Content]:
    """Return the changes since an earlier mesh, after an empty line."""
    first, *changes = comparison_lines(comparison)
    return [Content(""), Content.styled(first, MUTED), *map(Content, changes)]


def legend_line(mesh: MeshMap, density: Density) -> Content:
    """Return the meaning of the cells."""
    of = "% of expected" if mesh.scale.has_expected else "% of median"
    mark = percent_text(mesh.pass_percent, mesh.pass_percent)
    if density is Density.OVERVIEW:
        text = "half a character a cell, the slower the stronger; z: marks"
        return Content.assemble((of, MUTED), (f"   {text}", MUTED))
    passes = "" if density in {Density.VALUES, Density.RATES} else f"{CellState.PASS.value} from {mark}   "
    states = {state for row in mesh.rows for state in (cell.state for cell in row)}
    entries = [
        f"{passes}▼ under {mark}   ✗ under 50",
        "◆ beyond a limit" if CellState.LIMIT in states else "",
        "! no result" if CellState.NO_RESULT in states else "",
        "● running" if CellState.RUNNING in states else "",
    ]
    unit = f", {mesh.scale.unit} below" if density is Density.RATES else ""
    return Content.styled("   ".join([f"{of}{unit}", *(entry for entry in entries if entry)]), MUTED)


def _activity(progress: MeshProgress) -> str:
    if progress.is_stopping:
        return "stopping: the runs in progress are broken off"
    if progress.is_recheck:
        return "measuring slow cells again, alone"
    if progress.round is None:
        return "measuring" if progress.running else "connecting to the hosts"
    return f"round {progress.round.number} of {progress.round.rounds}"


def _running(progress: MeshProgress) -> str:
    if progress.is_stopping:
        return ""
    cells = [f"{cell.sender} → {cell.receiver}" for cell in progress.running[:_SHOWN_PAIRS]]
    more = len(progress.running) - len(cells)
    listed = ", ".join([*cells, *([f"{more} more"] if more else [])])
    counts = _counts(progress)
    return "".join(f"   {text}" for text in (counts, listed) if text)


def _counts(progress: MeshProgress) -> str:
    """Return the number of cells that are slow or failed, and the hosts that are lost."""
    lost = ", ".join(progress.lost[:_SHOWN_PAIRS])
    return ", ".join(
        text
        for text in (
            f"{numbers.quantity(progress.slow, 'cell')} slow" if progress.slow else "",
            f"{numbers.count(progress.beyond_limits)} beyond a limit" if progress.beyond_limits else "",
            f"{numbers.count(progress.failed)} without a result" if progress.failed else "",
            f"lost: {lost}" if lost else "",
        )
        if text
    )


def _figure_lines(figure: CellFigure) -> Iterator[Content]:
    if figure.failure is not None:
        yield Content.assemble(("✗ ", "bold $text-error"), failure_words(figure.failure))
    if figure.value is not None:
        expected = f" of {numbers.rate(figure.expected_bit_s)} expected" if figure.expected_bit_s else ""
        lost = f"   {words}" if (words := lost_words(figure.counted_loss)) else ""
        alone = " alone" if figure.is_isolated else ""
        rise = rise_words(figure, "   ")
        yield Content.assemble((f"{counted_words(figure)}{alone}", "bold"), expected, lost, rise)
    if beside := beside_words(figure):
        yield Content.styled(beside, MUTED)
    if figure.why:
        yield Content.assemble(("why    ", MUTED), why_words(figure.why))
    if figure.run_id is not None:
        yield Content.assemble(("enter", KEY), (f" opens {figure.run_id}", MUTED))
