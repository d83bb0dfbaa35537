"""Runs of the run log: as lines of a list, and shown again from their events."""

from collections.abc import Sequence
from typing import Any, Final, cast, get_args

from rich.table import Table

from ...engine.meter import replay
from ...engine.runlog import RunLog, RunRow
from ...presets.verdict import Verdict, Word, judge
from .. import format as fmt
from ..conduct import Outcome, run_document

WORDS: Final[dict[str, Word]] = {word: word for word in get_args(Word)}


def row_json(row: RunRow) -> dict[str, Any]:
    """Return a line of the list for programs."""
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


def run_list(rows: Sequence[RunRow]) -> Table:
    """Return the table of `runs list`; labels and groups have a column where there are any."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("run", "preset", "peer"):
        table.add_column(name, overflow="fold")
    table.add_column("Mb/s", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("ended", no_wrap=True)
    words = [name for name in ("label", "group") if any(getattr(row, name) for row in rows)]
    for name in words:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(
            row.run_id,
            row.preset or fmt.UNKNOWN,
            fmt.plain(row.peer),
            _mbit(row),
            fmt.UNKNOWN if row.verdict is None else fmt.verdict(row.verdict),
            ended_text(row),
            *(fmt.plain(getattr(row, name) or "") for name in words),
        )
    return table


def ended_text(row: RunRow) -> str:
    """Return how a run ended; one that did not may still go on, or its process may have died."""
    if row.reason is not None:
        return fmt.reason(row.reason)
    return "goes on" if row.is_running else "cut off"


def _mbit(row: RunRow) -> str:
    """Return the rate in a run's document, if there is one: the log is a file, and files get changed."""
    value: Any = row.document
    for key in ("measured", "total", "mbit_s"):
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return fmt.mbit(value * 1e6 if isinstance(value, int | float) else None)


def shown_again(log: RunLog, row: RunRow) -> Outcome:
    """Return what came out of a run, from its events alone; the verdict it was given then stands.

    Its label and its note are those of now.
    """
    meter = replay(log.events(row.run_id))
    summary = meter.summary()
    verdict = judge(summary)
    then = WORDS.get(row.verdict or "", verdict.word)
    if then != verdict.word:
        verdict = Verdict(then, f"{then.upper()}: by the pass mark of that time.")
    found = row.document or run_document(summary, verdict, row.run_id, row.preset or None)
    found = {**found, "label": row.label, "note": row.note, "group": row.group}
    return Outcome(row.run_id, row.preset or None, meter.started, summary, verdict, found)
