"""A mesh in words: its findings, failures and changes as sentences, its figures as text. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Final

from ...mesh.events import CellFailure, FailureCode
from ...mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from ...mesh.plan import Cell, MeshMode
from ...mesh.reading.comparison import MeshComparison
from ...presets.diagnosis.finding_words import why_words
from ...presets.number_text import NBSP, format_time
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..words import numbers
from .mesh_verdict import CellScale, CellState

_MAX_FAILURES: Final = 8
_MAX_PATHS: Final = 3
_LEAST_SHOWN: Final = 0.001  # of the packets: every link loses less at times
_FAILURES: Final = {
    FailureCode.HOST_LOST: "lost",
    FailureCode.NO_ANSWER: "no answer in time",
    FailureCode.UNREACHABLE: "not reached",
    FailureCode.FAILED: "the test broke off",
    FailureCode.BUSY: "busy with another test",
    FailureCode.STOPPED: "stopped while it ran",
}

_FINDINGS: Final = {
    MeshFindingCode.HOST_SENDS: "{host} sends {less} to all others: host",
    MeshFindingCode.HOST_RECEIVES: "{host} receives {less} from all others: host",
    MeshFindingCode.HOST: "{host} sends and receives {less}: host",
    MeshFindingCode.GROUPS: "{groups} {less}: path",
    MeshFindingCode.GROUP: "{groups} {less}: group",
    MeshFindingCode.PATH: "{path} {less}, in this direction: path",
    MeshFindingCode.FABRIC: "{where}{cells} {less} while others are measured, but not alone: network",
    MeshFindingCode.ALL: "the usual rate is {less} than expected: network, or the preset is of another link",
    MeshFindingCode.LIMIT: "{beyond}: {paths}: limit",
    MeshFindingCode.HOST_DOWN: "{host} has no results{failure}",
}


_TRANSACTION_FINDINGS: Final = _FINDINGS | {
    MeshFindingCode.HOST_SENDS: "{host} as the client has {fewer} transactions a second with all others: host",
    MeshFindingCode.HOST_RECEIVES: "{host} as the server has {fewer} transactions a second with all others: host",
    MeshFindingCode.HOST: "{host} as client and as server has {fewer} transactions a second: host",
}


_LOSS_FINDINGS: Final = {
    MeshFindingCode.HOST_SENDS: "{host} loses {lost} of what it sends to all others: host",
    MeshFindingCode.HOST_RECEIVES: "{host} loses {lost} of what all others send to it: host",
    MeshFindingCode.HOST: "{host} loses {lost} of what it sends and receives: host",
    MeshFindingCode.GROUPS: "{groups} {lost} lost: path",
    MeshFindingCode.GROUP: "{groups} {lost} lost: group",
    MeshFindingCode.PATH: "{path} {lost} lost, in this direction: path",
    MeshFindingCode.FABRIC: "{cells} {lost} lost while others are measured, but not alone: network",
}


def cell_words(cell: Cell) -> str:
    """Return a cell as text: `db-03 to db-07`."""
    return f"{cell.sender} to {cell.receiver}"


def figure_words(figure: CellFigure) -> str:
    """Return the result of a cell: `23.4 Gb/s, 99.7 % of expected`, or why it has none."""
    if figure.failure is not None:
        return failure_words(figure.failure)
    percent = "" if figure.percent is None else f", {numbers.percent(figure.percent)} of expected"
    lost, beside = lost_words(figure.counted_loss), beside_words(figure)
    texts = f", {lost}" if lost else "", rise_words(figure, ", "), f"; {beside}" if beside else ""
    return counted_words(figure) + percent + "".join(texts)


def rise_words(figure: CellFigure, before: str) -> str:
    """Return the rise of latency of a cell behind a text: `, latency +12.3 ms`; "" if it was not measured."""
    rise_ns = figure.counted_rise_ns
    return "" if rise_ns is None else f"{before}latency +{format_time(rise_ns / 1_000)}"


def counted_words(figure: CellFigure) -> str:
    """Return the rate of a cell that counts: the one alone, if it was measured so."""
    return value_words(figure, figure.value)


def beside_words(figure: CellFigure) -> str:
    """Return the first rate of a cell that was measured again alone: `beside other tests 16.2 Mb/s`; else ""."""
    if not figure.is_isolated:
        return ""
    lost = lost_words(figure.loss)
    return f"beside other tests {value_words(figure, figure.first_value)}" + (f", {lost}" if lost else "")


def value_words(figure: CellFigure, value: float | None) -> str:
    """Return a value of a cell with its unit."""
    return numbers.rate(value) if figure.transactions_s is None else numbers.transactions(value or 0.0)


def lost_words(loss: float | None) -> str:
    """Return the loss of a cell: `1.0 % lost`; "" if it is next to nothing or unknown."""
    return "" if loss is None or loss < _LEAST_SHOWN else f"{numbers.percent(100 * loss)} lost"


def failure_words(failure: CellFailure) -> str:
    """Return the reason why a cell has no result: `no answer in time: db-05 does not answer`."""
    detail = numbers.sanitize(failure.detail)
    return f"{_FAILURES[failure.code]}: {detail}" if detail else _FAILURES[failure.code]


def finding_words(finding: MeshFinding) -> str:
    """Return a finding as a sentence: `db-07 receives 41 % less from all others: host`."""
    why = "" if finding.why is None else f"; its tests say: {why_words(finding.why)}"
    return _what_is_slow(finding) + why


def comparison_lines(comparison: MeshComparison) -> Iterator[str]:
    """Yield the changes since an earlier mesh: the median, then a line for each cause that is new or gone."""
    cells = numbers.quantity(len(comparison.cells), "cell")
    if comparison.percent is None:
        yield f"compared with {comparison.before}: {cells}"
    else:
        yield f"compared with {comparison.before}: {cells}, median {round(comparison.percent, 1) + 0.0:+.1f}{NBSP}%"
    for finding in comparison.slower:
        is_down = finding.code is MeshFindingCode.HOST_DOWN
        yield (
            f"{finding.sender} has no results now{_why_down(finding)}"
            if is_down
            else f"slower now: {_changed(finding)}"
        )
    for finding in comparison.faster:
        is_down = finding.code is MeshFindingCode.HOST_DOWN
        yield f"{finding.sender} has results again" if is_down else f"faster now; before: {_changed(finding)}"


def _changed(finding: MeshFinding) -> str:
    """Return a finding of a comparison. In it the expected rates are the rates of the other mesh."""
    if finding.code is MeshFindingCode.ALL:
        less = "" if finding.less_percent is None else f", {numbers.percent(finding.less_percent, 0)} less"
        return f"the usual rate{less}"
    return _what_is_slow(finding)


def _what_is_slow(finding: MeshFinding) -> str:
    less = "less" if finding.less_percent is None else f"{numbers.percent(finding.less_percent, 0)} less"
    has_groups = finding.sender is not None or finding.receiver is not None
    sentences = _TRANSACTION_FINDINGS if finding.is_of_transactions else _FINDINGS
    if finding.lost_percent is not None:
        sentences = _LOSS_FINDINGS
    return sentences[finding.code].format(
        host=finding.sender or finding.receiver,
        path=f"{finding.sender} to {finding.receiver}",
        groups=_groups(finding),
        where=f"{_groups(finding)}: " if has_groups else "",
        cells=numbers.quantity(len(finding.cells), "cell"),
        less=less,
        beyond=finding.beyond,
        paths=_paths(finding.cells),
        fewer=less.replace("less", "fewer"),
        lost=numbers.percent(finding.lost_percent),
        failure=_why_down(finding),
    )


def _why_down(finding: MeshFinding) -> str:
    return "" if finding.failure is None else f": {failure_words(finding.failure)}"


def _paths(cells: Sequence[Cell]) -> str:
    """Return cells as text, the first few by name: `db-01 to db-02, db-01 to db-03 and 4 more cells`."""
    rest = len(cells) - _MAX_PATHS
    more = f" and {numbers.count(rest)} more" if rest > 0 else ""
    return ", ".join(map(cell_words, cells[:_MAX_PATHS])) + more


def _groups(finding: MeshFinding) -> str:
    """Return the groups of a finding: `rack-2 to rack-3`, `rack-2 to all others`, `between all groups`."""
    if finding.sender is None and finding.receiver is None:
        return "between all groups"
    if finding.sender is not None and finding.sender == finding.receiver:
        return f"within {finding.sender}"
    if finding.code is MeshFindingCode.GROUP:
        return f"{finding.sender}, within it and with all others,"
    return f"{finding.sender or 'all others'} to {finding.receiver or 'all others'}"


def headline(matrix: MeshMatrix, pass_percent: float = DEFAULT_PASS_PERCENT) -> str:
    """Return a mesh in one line: the number of cells that are measured and slow, and the median."""
    scale = CellScale(matrix, pass_percent)
    states = Counter(scale.rate_state(cell) for cell in matrix.figures)
    beyond = sum(scale.state(cell) is CellState.LIMIT for cell in matrix.figures)
    measured = states[CellState.PASS] + states[CellState.SHORT] + states[CellState.FAIL]
    slow = states[CellState.SHORT] + states[CellState.FAIL]
    parts = [
        f"mesh {matrix.group}: {numbers.quantity(len(matrix.hosts), 'host')}",
        f"{numbers.count(measured)} of {numbers.quantity(matrix.cell_count, 'cell')} measured",
        f"{numbers.count(slow)} slow",
    ]
    if beyond:
        parts.append(f"{numbers.count(beyond)} beyond a limit")
    if states[CellState.NO_RESULT]:
        parts.append(f"{numbers.count(states[CellState.NO_RESULT])} without a result")
    words = numbers.transactions if scale.is_of_transactions else numbers.rate
    if scale.median is not None:
        parts.append(f"median {words(scale.median)}")
    if matrix.mode is MeshMode.ALL and matrix.is_complete:
        # Each pair of a round measures one cell at a time, so that this number of cells run together.
        values = [figure.first_value or 0.0 for figure in matrix.figures.values()]
        parts.append(f"all pairs together {words(mean(values) * (len(matrix.hosts) // 2))}")
    return ", ".join(parts)


def conclusion_lines(
    matrix: MeshMatrix, findings: Sequence[MeshFinding], pass_percent: float = DEFAULT_PASS_PERCENT
) -> list[str]:
    """Return a line for each finding, failure and undecided limit, or that no host or path stands out."""
    lines = [*map(finding_words, findings), *failure_lines(matrix, findings), *_undecided_lines(matrix)]
    if lines or not matrix.figures:
        return lines or ["nothing was measured"]
    scale = CellScale(matrix, pass_percent)
    if any(scale.rate_state(cell) in {CellState.SHORT, CellState.FAIL} for cell in matrix.figures):
        return ["no host and no path is slower than the others by more than chance; single cells are slow"]
    return ["no host and no path is slower than the others"]


def _undecided_lines(matrix: MeshMatrix) -> Iterator[str]:
    """Yield each limit for which cells have no figure, with these cells."""
    undecided: dict[str, list[Cell]] = {}
    for cell in sorted(matrix.figures):
        for name in matrix.check_limits(cell).unknown:
            undecided.setdefault(name, []).append(cell)
    for name, cells in undecided.items():
        yield f"no figure for --{name}: {_paths(cells)}; test longer, such as --seconds 5"


def failure_lines(matrix: MeshMatrix, findings: Sequence[MeshFinding]) -> Iterator[str]:
    """Yield the failed cells that no finding names, with their reasons; of many, the number of the rest."""
    down = {finding.sender for finding in findings if finding.code is MeshFindingCode.HOST_DOWN}
    failed = [
        figure
        for cell, figure in sorted(matrix.figures.items())
        if figure.failure is not None and not down & {cell.sender, cell.receiver}
    ]
    for figure in failed[:_MAX_FAILURES]:
        yield f"{cell_words(figure.cell)}: {figure_words(figure)}"
    if len(failed) > _MAX_FAILURES:
        yield f"{len(failed) - _MAX_FAILURES} further cells have no result"
