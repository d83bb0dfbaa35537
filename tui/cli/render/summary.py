"""A run's summary in a terminal: tables, notes, findings, and the verdict at the end."""

from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....engine.model.events import Started
from ....engine.model.plan import Direction
from ....engine.results.responsiveness.result import Responsiveness
from ....engine.results.summary import ProbeSummary, Summary
from ....presets.diagnosis.finding import Finding
from ....presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ...words import numbers
from ...words.datagram_results import DELAY_COLUMNS, capacity_texts, delay_rows, loss_rows, run_losses, udp_text
from ...words.iperf3 import remote_name, source_texts, unseen_text
from ...words.plan import core_affinity_text
from ...words.responsiveness import LOAD_COLUMNS, load_rows, result_facts, share_text, split_findings
from ...words.summary import (
    LATENCY_COLUMNS,
    ROW_NAMES,
    cpu_rows,
    end_words,
    findings_period,
    headline,
    other_tests_text,
    period_rows,
    plan_text,
    probe_rows,
    rate_rows,
    rate_unit,
    tcp_text,
    transaction_rows,
    transfer_text,
    warmup_text,
)

_MIN_NAME: Final = 7  # cells of the column of rows' names, so that tables stand below each other
_MIN_WORDS: Final = 14  # cells of a column of text that wraps
VERDICT_STYLES: Final = {"pass": "bold green", "short": "bold yellow", "fail": "bold red", "none": "bold"}


def summary_parts(
    summary: Summary,
    verdict: Verdict,
    *,
    preset_id: str | None,
    started: Started | None,
    pass_percent: float = DEFAULT_PASS_PERCENT,
    findings: tuple[Finding, ...] = (),
) -> Iterator[RenderableType]:
    """Yield the parts of a summary: the evidence first, then the verdict, which stays above the next prompt.

    Args:
        summary: the summary of the run.
        verdict: its verdict.
        preset_id: the preset that the run was compared with, if any.
        started: the event with the names of both ends; None where the run did not start.
        pass_percent: the pass mark; a share just below it is written so that it looks short.
        findings: why the run is not faster, the most important one first.
    """
    yield _test(summary, preset_id, started)
    yield Text()
    queue_findings, findings = split_findings(findings)
    if summary.responsiveness is not None:
        yield from _responsiveness(summary.responsiveness, queue_findings)
        yield Text()
    yield from _measured_parts(summary, pass_percent)
    yield Text()
    yield _notes(summary)
    yield Text()
    if findings:
        yield findings_part(findings, findings_period(summary))
        yield Text()
    first = headline(summary, verdict)
    yield Text.assemble(
        (first.mark, VERDICT_STYLES[first.word] if first.is_regular else "bold red"), "  ", first.text
    )


def _measured_parts(summary: Summary, pass_percent: float) -> Iterator[RenderableType]:
    """Yield the tables of what was measured."""
    if summary.measured.total is None:
        yield Text("  nothing was measured after the warm-up")
        return
    if not summary.plan.has_phases:
        yield _rates(summary, pass_percent)
        if summary.measured.total.transactions is not None:
            yield Text()
            yield _transactions(summary)
        if summary.plan.workload.is_datagram:
            yield Text()
            yield _losses(summary)
            yield Text()
            yield _delays(summary)
        if summary.probe is not None and summary.responsiveness is None:
            yield Text()
            yield _probe(summary.probe)
        if len(summary.periods) > 1:
            yield Text()
            yield _periods(summary, pass_percent)
        yield Text()
    yield _cpu(summary)


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column(overflow="fold")
    return grid


class _NumberTable:
    """A table of numbers, the first column of words. A narrow terminal has fewer columns, and every digit."""

    def __init__(self, *columns: str, optional: tuple[int, ...], words: tuple[int, ...] = ()) -> None:
        """Set the columns up.

        Args:
            columns: the headings; the column of the rows' names is number 0, the first of these number 1.
            optional: the numbers of the columns that a narrow terminal does without, the first to go first.
            words: the numbers of the columns of text, which may wrap.
        """
        self._rows: list[tuple[str, ...]] = [("", *columns)]
        self._optional, self._words = optional, words

    def add_row(self, *cells: str) -> None:
        """Add a row: its name, then a cell for each column."""
        self._rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table with as many columns as there is room for."""
        columns, hidden = list(range(len(self._rows[0]))), list(self._optional)
        while hidden and self._least_width(columns) > options.max_width:
            columns.remove(hidden.pop(0))
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for number in columns:
            table.add_column(
                self._rows[0][number],
                justify="left" if number == 0 or number in self._words else "right",
                min_width=_MIN_NAME if number == 0 else None,
                no_wrap=number not in self._words,
                overflow="fold" if number in self._words else "ellipsis",
            )
        for row in self._rows[1:]:
            table.add_row(*(row[number] for number in columns))
        yield table

    def _least_width(self, columns: list[int]) -> int:
        widths = {number: max(cell_len(row[number]) for row in self._rows) for number in columns}
        widths[0] = max(widths[0], _MIN_NAME)
        wrapped = (min(width, _MIN_WORDS) if number in self._words else width for number, width in widths.items())
        return sum(wrapped) + 2 * (len(columns) - 1)


def _indent(table: Table | _NumberTable) -> Padding:
    return Padding(table, (0, 0, 0, 2), expand=False)


def _row_name(direction: Direction) -> str:
    return f"{ROW_NAMES[direction]:<3} {numbers.arrow(direction)}"


def _bare(margin: str) -> str:
    """Return a margin for a column that has the sign in its heading."""
    return margin.removeprefix("±")


def findings_part(findings: tuple[Finding, ...], period: str = "", name: str = "why") -> Padding:
    """Return the findings as a grid, in their order: cause, evidence and remedy.

    `period` is the part of the run that they are about; empty for the whole. `name` stands before the first one.
    """
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    if period:
        grid.add_row(name, "", Text(f"{period}:", "dim"))
    for number, finding in enumerate(findings):
        grid.add_row(
            name if number == 0 and not period else "",
            share_text(finding),
            Text(numbers.sanitize(finding.text), "bold"),
        )
        grid.add_row("", "", Text(numbers.sanitize(finding.evidence)))
        if finding.code not in {"at-expected", "no-queue"}:
            grid.add_row("", "", Text.assemble(("try ", "bold"), numbers.sanitize(finding.remedy)))
    return Padding(grid, (0, 0, 0, 2), expand=False)


def _responsiveness(result: Responsiveness, findings: tuple[Finding, ...]) -> Iterator[RenderableType]:
    """Yield latency under load: its table, the grade, round trips a minute, and where the queue is."""
    table = _NumberTable(*LOAD_COLUMNS, optional=(6, 5, 4, 2, 1))
    for row in load_rows(result):
        table.add_row(row.name, *row.cells)
    yield _indent(table)
    yield Text()
    grid = _grid()
    for name, text in result_facts(result):
        grid.add_row(name, Text(text, "bold" if name == "grade" else ""))
    yield _indent(grid)
    if findings:
        yield Text()
        yield findings_part(findings, name="queue")


def _test(summary: Summary, preset_id: str | None, started: Started | None) -> Padding:
    grid = _grid()
    if preset_id is not None or not summary.plan.has_phases:
        grid.add_row("preset", preset_id or "none")
    if started is not None:
        grid.add_row("local", numbers.sanitize(started.near.hostname))
        grid.add_row("remote", remote_name(started.far, started.peer))
    cores = core_affinity_text(summary.plan)
    warmup = "" if summary.plan.has_phases else f" (warm-up {warmup_text(summary)})"
    grid.add_row("plan", f"{plan_text(summary)}{warmup}{cores and f', {cores}'}")
    return _indent(grid)


def _rates(summary: Summary, pass_percent: float) -> Padding:
    columns = (rate_unit(summary), "± 95 %", "MiB/s", "payload", "expected", "share", "source")
    table = _NumberTable(*columns, optional=(7, 3, 4, 2, 5), words=(7,))
    for row in rate_rows(summary, pass_percent):
        direction, *cells = astuple(replace(row, margin=_bare(row.margin)))
        table.add_row(_row_name(direction), *cells)
    return _indent(table)


def _transactions(summary: Summary) -> Padding:
    table = _NumberTable("trans/s", *LATENCY_COLUMNS, optional=(2, 4, 6, 5))
    for row in transaction_rows(summary):
        table.add_row(_row_name(row.direction), row.per_second, *row.latency)
    return _indent(table)


def _losses(summary: Summary) -> Padding:
    columns = ("packets/s", "sent", "lost", "loss", "duplicates", "late", "reordered")
    table = _NumberTable(*columns, optional=(2, 6))
    for row in loss_rows(summary):
        table.add_row(_row_name(row.direction), *astuple(row)[1:])
    return _indent(table)


def _delays(summary: Summary) -> Padding:
    columns = ("jitter", "max", *(f"delay {name}" if not at else name for at, name in enumerate(DELAY_COLUMNS)))
    table = _NumberTable(*columns, optional=(4, 6))
    for row in delay_rows(summary):
        table.add_row(_row_name(row.direction), row.jitter, row.jitter_max, *row.delays)
    return _indent(table)


def _probe(probe: ProbeSummary) -> Padding:
    table = _NumberTable(*LATENCY_COLUMNS, "tcp rtt", "probes", optional=(8, 7, 1, 3, 5, 4))
    for row in probe_rows(probe):
        table.add_row("loaded" if row.is_loaded else "idle", *row.latency, row.rtt, row.count)
    return _indent(table)


def _periods(summary: Summary, pass_percent: float) -> Padding:
    columns = ("out Mb/s", "± 95 %", "in Mb/s", "± 95 %", "verdict")
    table = _NumberTable(*columns, optional=(2, 4), words=(0,))
    for number, row in enumerate(period_rows(summary, pass_percent), start=1):
        table.add_row(
            f"{number}. {row.settings}", row.out, _bare(row.out_margin), row.in_, _bare(row.in_margin), row.verdict
        )
    return _indent(table)


def _cpu(summary: Summary) -> Padding:
    unit = "MiB" if summary.plan.workload.is_bulk else "trans"
    table = _NumberTable("CPU", "busiest core", "linkgauge", f"per {unit}", optional=(3, 2))
    for row in cpu_rows(summary):
        table.add_row(*astuple(row))
    return _indent(table)


def _notes(summary: Summary) -> Padding:
    grid = _grid()
    if summary.plan.workload.is_datagram:
        for text in capacity_texts(summary):
            grid.add_row("capacity", text)
        for text in run_losses(summary):
            grid.add_row("lost", text)
        grid.add_row("udp", udp_text(summary))
    else:
        grid.add_row("tcp", tcp_text(summary))
    for text in source_texts(summary):
        grid.add_row("counted", text)
    if unseen := unseen_text(summary.unseen_end):
        grid.add_row("not seen", unseen)
    transfer = transfer_text(summary)
    if transfer and not summary.plan.has_phases:  # these are of one load
        grid.add_row("RFC 6349", transfer)
    if others := other_tests_text(summary):
        grid.add_row("others", others)
    for warning in summary.warnings:
        grid.add_row(Text("! note", "bold yellow"), numbers.sanitize(warning))
    grid.add_row("ended", end_words(summary.end))
    return _indent(grid)
