"""Runs of the run log as lines of a list, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from ....engine.results.run_log import RunRecord
from ...text import numbers
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
