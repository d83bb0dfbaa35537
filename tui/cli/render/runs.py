"""Runs of the run log: the list and the comparison, in a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ....engine.results.comparison import Comparison, compare
from ....engine.results.json_document import DOCUMENT_VERSION
from ....engine.results.meter import replay
from ....engine.results.run_log import RunLog, RunRecord
from ...text import numbers
from ...text.comparison import ComparisonRow, comparison_json, figure_rows, plan_rows
from ...text.run_list import run_end_text, run_line


def row_json(row: RunRecord) -> dict[str, Any]:
    """Return a run of the list as JSON values."""
    return {
        "run_id": row.run_id,
        "started_utc": row.started_utc,
        "preset": row.preset or None,
        "peer": row.peer,
        "label": row.label,
        "note": row.note,
        "group": row.group,
        "verdict": row.verdict,
        "ended": None if row.reason is None else {"reason": row.reason.value, "detail": row.detail},
        "is_running": row.is_running,
        "document": row.document,
    }


def run_list(rows: Sequence[RunRecord]) -> Table:
    """Return the table of `runs list`; labels and groups have a column where a run has one."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("run", "preset", "peer"):
        table.add_column(name, overflow="fold")
    table.add_column("Mb/s", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    columns = [name for name in ("label", "group") if any(getattr(row, name) for row in rows)]
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            row.run_id,
            row.preset or numbers.UNKNOWN,
            numbers.sanitize(row.peer),
            numbers.mbit(run_line(row).bit_s),
            numbers.UNKNOWN if row.verdict is None else numbers.verdict(row.verdict),
            run_end_text(row),
            *(numbers.sanitize(getattr(row, name) or "") for name in columns),
        )
    return table


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A comparison of a run with the first one on the command line."""

    first: RunRecord
    second: RunRecord
    comparison: Comparison


def compare_with_first(log: RunLog, rows: Sequence[RunRecord]) -> list[RunComparison]:
    """Return a comparison of each other run with the first; their events are the only source."""
    first, *others = ((row, replay(log.events(row.run_id)).summary()) for row in rows)
    return [RunComparison(first[0], row, compare(first[1], summary)) for row, summary in others]


def comparison_parts(comparisons: Sequence[RunComparison]) -> Iterator[RenderableType]:
    """Yield a table for each comparison."""
    for number, comparison in enumerate(comparisons):
        if number:
            yield Text()
        yield _table(comparison)


def comparisons_json(comparisons: Sequence[RunComparison]) -> dict[str, Any]:
    """Return all comparisons as one document."""
    documents = [comparison_json(each.comparison, each.second.run_id, each.first.run_id) for each in comparisons]
    return {"schema": DOCUMENT_VERSION, "comparisons": documents}


def _table(runs: RunComparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", style="dim", overflow="fold")
    table.add_column(runs.first.run_id, justify="right", overflow="fold")
    table.add_column(runs.second.run_id, justify="right", overflow="fold")
    table.add_column("", overflow="fold")
    for row in (*_identity_rows(runs), *plan_rows(runs.comparison), *figure_rows(runs.comparison)):
        style = "bold" if row.significance == "real" else ""
        table.add_row(row.name, row.first, row.second, Text(row.difference, style))
    return table


def _identity_rows(runs: RunComparison) -> Iterator[ComparisonRow]:
    """Yield the labels, and the peer and the preset where they differ."""
    for name in ("label", "peer", "preset"):
        first, second = (numbers.sanitize(getattr(row, name) or "") for row in (runs.first, runs.second))
        if (first or second) and (name == "label" or first != second):
            yield ComparisonRow(name, first or numbers.UNKNOWN, second or numbers.UNKNOWN)
