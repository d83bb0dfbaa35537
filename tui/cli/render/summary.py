"""A run's summary in a terminal: tables, notes, findings, and the verdict at the end."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ....engine.model.plan import Dialect
from ....engine.results.path.path_result import PathResult
from ....engine.results.responsiveness.result import Responsiveness
from ....engine.results.summary import Summary
from ....presets.diagnosis.finding import Finding
from ....presets.verdict import DEFAULT_PASS_PERCENT
from ...kit.drawing.printed_table import indented
from ...session.run_recorder import Outcome
from ...words import numbers
from ...words.datagram_results import capacity_texts, run_losses, udp_text
from ...words.iperf3 import remote_name, source_texts, unseen_text
from ...words.observed import observed_facts
from ...words.paths.hop_strip import strip_text, way_strip
from ...words.paths.path_hops import path_sentences, way_name, way_table
from ...words.plan import core_affinity_text
from ...words.responsiveness import load_table, result_facts, share_text, split_findings
from ...words.summary import (
    end_words,
    findings_period,
    headline,
    measured_tables,
    other_tests_text,
    plan_text,
    tcp_text,
    transfer_text,
    warmup_text,
)

VERDICT_STYLES: Final = {"pass": "bold green", "short": "bold yellow", "fail": "bold red", "none": "bold"}


def summary_parts(outcome: Outcome, pass_percent: float = DEFAULT_PASS_PERCENT) -> Iterator[RenderableType]:
    """Yield the parts of a summary: the evidence first, then the verdict, which stays above the next prompt.

    A share just below the pass mark is written so that it looks short.
    """
    summary = outcome.summary
    yield _test(outcome)
    yield Text()
    queue_findings, findings = split_findings(outcome.findings)
    if summary.responsiveness is not None:
        yield from _responsiveness(summary.responsiveness, summary.dialect, queue_findings)
        yield Text()
    if summary.path is not None:
        yield from _path(summary.path)
        yield Text()
    if summary.measured.total is None:
        yield Text("  nothing was measured after the warm-up")
        yield Text()
    for table in measured_tables(summary, pass_percent):
        yield indented(table)
        yield Text()
    yield _notes(summary)
    yield Text()
    if findings:
        yield findings_part(findings, findings_period(summary))
        yield Text()
    first = headline(summary, outcome.verdict)
    yield Text.assemble(
        (first.mark, VERDICT_STYLES[first.word] if first.is_regular else "bold red"), "  ", first.text
    )


def _grid() -> RichTable:
    grid = RichTable.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column(overflow="fold")
    return grid


def findings_part(findings: tuple[Finding, ...], period: str = "", name: str = "why") -> Padding:
    """Return the findings as a grid, in their order: cause, evidence and remedy.

    `period` is the part of the run that they are about; empty for the whole. `name` stands before the first one.
    """
    grid = RichTable.grid(padding=(0, 2, 0, 0))
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


def _responsiveness(
    result: Responsiveness, dialect: Dialect, findings: tuple[Finding, ...]
) -> Iterator[RenderableType]:
    """Yield latency under load: its table, the grade, round trips a minute, and where the queue is."""
    yield indented(load_table(result))
    yield Text()
    grid = _grid()
    for name, text in result_facts(result, dialect):
        grid.add_row(name, Text(text, "bold" if name == "grade" else ""))
    yield Padding(grid, (0, 0, 0, 2), expand=False)
    if findings:
        yield Text()
        yield findings_part(findings, name="queue")


def _path(path: PathResult) -> Iterator[RenderableType]:
    """Yield the hops of both directions, each as a strip and a table, and what was found."""
    for way in path.ways:
        yield Padding(Text(way_name(way), "dim"), (0, 0, 0, 2))
        yield Padding(Text(strip_text(way_strip(way)), "bold"), (0, 0, 0, 2))
        yield indented(way_table(way))
        yield Text()
    grid = _grid()
    for number, sentence in enumerate(path_sentences(path)):
        grid.add_row("path" if number == 0 else "", Text(numbers.sanitize(sentence), "bold"))
    yield Padding(grid, (0, 0, 0, 2), expand=False)


def _test(outcome: Outcome) -> Padding:
    grid, summary, started = _grid(), outcome.summary, outcome.started
    if started is not None and started.observed is not None:
        for name, text in observed_facts(started):
            grid.add_row(name, text)
        grid.add_row("time", plan_text(summary))
        return Padding(grid, (0, 0, 0, 2), expand=False)
    if outcome.preset_id is not None or not summary.plan.has_phases:
        grid.add_row("preset", outcome.preset_id or "none")
    if started is not None:
        grid.add_row("local", numbers.sanitize(started.near.hostname))
        grid.add_row("remote", remote_name(started.far, started.peer))
    cores = core_affinity_text(summary.plan)
    warmup = "" if summary.plan.has_phases else f" (warm-up {warmup_text(summary)})"
    grid.add_row("plan", f"{plan_text(summary)}{warmup}{cores and f', {cores}'}")
    return Padding(grid, (0, 0, 0, 2), expand=False)


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
    if unseen := unseen_text(summary.unseen_end, summary.dialect):
        grid.add_row("not seen", unseen)
    transfer = transfer_text(summary)
    if transfer and not summary.plan.has_phases:  # these are of one load
        grid.add_row("RFC 6349", transfer)
    if others := other_tests_text(summary):
        grid.add_row("others", others)
    for warning in summary.warnings:
        grid.add_row(Text("! note", "bold yellow"), numbers.sanitize(warning))
    grid.add_row("ended", end_words(summary.end))
    return Padding(grid, (0, 0, 0, 2), expand=False)
