"""Runs of the run log: the list and the comparison, in a terminal and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ....engine.results.comparison import Comparison, compare
from ....engine.results.json_document import DOCUMENT_VERSION
from ....engine.results.meter import replay
from ....engine.results.run_log import RunLog, RunRecord
from ...text import numbers
from ...text.comparison import ComparisonRow, comparison_json, figure_rows, plan_rows
from ...text.run_list import run_end_text, run_line, settings_count, short_peers

_MIN_NAME: Final = 6  # cells of a name that is cut
_NAMES: Final = {"preset", "peer", "label", "group"}


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


def run_list(rows: Sequence[RunRecord], width: int | None = None) -> Table:
    """Return the table of `runs list`, a line for each run, in so many cells.

    Ids, rates and verdicts are never cut; names are, the longest first, and peers that differ still look different.
    Labels and groups have a column where a run has one. Without a width nothing is cut, and the columns are always
    the same.
    """
    more = [name for name in ("label", "group") if width is None or any(getattr(row, name) for row in rows)]
    columns = _run_columns(rows, more)
    if width is not None and _total_width(columns) > width:
        columns.pop("group", None)  # `runs show` and JSON have it
    widths = {heading: max(map(cell_len, cells)) for heading, cells in columns.items()}
    while width is not None and sum(widths.values()) + 2 * (len(widths) - 1) > width:
        longest = max(sorted(_NAMES & widths.keys()), key=widths.__getitem__)
        if widths[longest] <= _MIN_NAME:
            break
        widths[longest] -= 1
    if width is not None:
        heading, *peers = columns["peer"]
        short = short_peers(tuple(peers), widths["peer"])
        columns["peer"] = [heading, *(short[peer] for peer in peers)]
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading, cell_width in widths.items():
        justify = "right" if heading == "Mb/s" else "left"
        table.add_column(heading, width=cell_width, justify=justify, no_wrap=True, overflow="ellipsis")
    for cells in list(zip(*columns.values(), strict=True))[1:]:
        table.add_row(*cells)
    return table


def _run_columns(rows: Sequence[RunRecord], more: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns by their headings, which are also their first cells."""
    columns = {
        "run": [row.run_id for row in rows],
        "preset": [row.preset or numbers.UNKNOWN for row in rows],
        "peer": [numbers.sanitize(row.peer) for row in rows],
        "Mb/s": [numbers.mbit(run_line(row).bit_s) for row in rows],
        "verdict": [_verdict_cell(row) for row in rows],
        "ended": [run_end_text(row) for row in rows],
        **{name: [numbers.sanitize(getattr(row, name) or "") for row in rows] for name in more},
    }
    return {heading: [heading, *cells] for heading, cells in columns.items()}


def _verdict_cell(row: RunRecord) -> str:
    """Return a run's verdict. A run of several settings has none as a whole, and their number instead."""
    if row.verdict == "none" and (count := settings_count(row.document)) > 1:
        return f"• {numbers.quantity(count, 'setting')}"
    return numbers.UNKNOWN if row.verdict is None else numbers.verdict(row.verdict)


def _total_width(columns: dict[str, list[str]]) -> int:
    return sum(max(map(cell_len, cells)) for cells in columns.values()) + 2 * (len(columns) - 1)


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
    for run_id in (runs.first.run_id, runs.second.run_id):
        table.add_column(run_id, justify="right", overflow="fold", min_width=len(run_id))
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
