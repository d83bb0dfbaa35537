"""Runs of the run log: the list and the comparison, in a terminal and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.text import Text

from ....engine.results.comparison import Comparison, compare
from ....engine.results.figure_codec import DOCUMENT_VERSION
from ....engine.results.run_log import RunEntry, RunLog, RunRecord
from ...kit.drawing.printed_table import PrintedTable
from ...words import numbers
from ...words.comparison import changed_settings, comparison_json, comparison_table, identity_differences
from ...words.redaction import REDACTION
from ...words.run_line import (
    grade_in,
    listed_bit_s,
    loss_text,
    run_end_text,
    settings_count,
    short_peers,
    test_words,
)
from ...words.table import Table

_MIN_NAME: Final = 6  # cells of a name that is cut
_NAMES: Final = {"preset", "peer", "label", "group"}
_HEADINGS: Final = ("run", "peer", "test", "Mb/s", "loss", "verdict", "preset", "ended", "label", "group")
_NUMBERS: Final = {"Mb/s", "loss"}
_IF_ANY: Final = ("loss", "label", "group")  # a terminal has these columns only if a run has such a figure
_READABLE: Final = 12  # cells of a name that still says something
# The columns that a narrow terminal leaves out, unless there is room beside names of at most so many cells.
_FIRST_TO_GO: Final[dict[str, int | None]] = {"group": None, "ended": None, "preset": _READABLE}
_PEER: Final = _HEADINGS.index("peer")


def row_json(row: RunRecord) -> dict[str, Any]:
    """Return a run of the list as JSON values."""
    REDACTION.learn_document(row.peer, row.document)
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


def run_list(rows: Iterable[RunEntry], width: int | None = None) -> tuple[Text, Iterator[str]]:
    """Return the heading of `runs list`, and a line for each run, in `width` cells.

    Ids, rates and verdicts are never cut; names are, the longest first, and peers that differ still look different.
    Loss, labels and groups have a column if a run has one. Without a width nothing is cut, and the columns are
    always the same.
    """
    cells = list(_run_cells(rows))
    needs = [max(map(cell_len, dict.fromkeys(column))) for column in zip(_HEADINGS, *cells, strict=True)]
    widths: dict[str, int] = dict(zip(_HEADINGS, needs, strict=True))
    if width is not None:
        for name in _IF_ANY:
            if not any(row[_HEADINGS.index(name)] for row in cells):
                del widths[name]
        for name, cells_of_names in _FIRST_TO_GO.items():
            if _total_width(widths, cells_of_names) > width:
                widths.pop(name, None)  # `runs show` and JSON have it
        while _total_width(widths) > width:
            longest = max(sorted(_NAMES & widths.keys()), key=widths.__getitem__)
            if widths[longest] <= _MIN_NAME:
                break
            widths[longest] -= 1
    short: Mapping[str, str] = {}
    if width is not None:
        short = short_peers(tuple(dict.fromkeys(row[_PEER] for row in cells)), widths["peer"])
    heading = Text(_line(_HEADINGS, widths, {}), "bold")
    return heading, (_line(row, widths, short) for row in cells)


def _run_cells(rows: Iterable[RunEntry]) -> Iterator[tuple[str, ...]]:
    """Yield the texts of each run. Equal ones are the same object: there may be many runs."""
    same: dict[str, str] = {}
    for row in rows:
        REDACTION.learn_far_end(row.peer)
        rest = (
            numbers.sanitize(row.peer),
            test_words(row.figures),
            _rate_cell(row),
            loss_text(row.figures),
            _verdict_cell(row),
            row.preset or numbers.UNKNOWN,
            run_end_text(row),
            numbers.sanitize(row.label or ""),
            numbers.sanitize(row.group or ""),
        )
        yield row.run_id, *(same.setdefault(text, text) for text in rest)


def _line(cells: Sequence[str], widths: Mapping[str, int], short: Mapping[str, str]) -> str:
    """Return a line of the list with some of the columns."""
    parts: list[str] = []
    for heading, text in zip(_HEADINGS, cells, strict=True):
        width = widths.get(heading)
        if width is None:
            continue
        cut = short.get(text, text) if heading == "peer" else text
        if cell_len(cut) > width:
            cut = set_cell_size(cut, width - 1) + "…"
        room = " " * (width - cell_len(cut))
        parts.append(room + cut if heading in _NUMBERS else cut + room)
    return "  ".join(parts)


def _rate_cell(row: RunEntry) -> str:
    return numbers.mbit(listed_bit_s(row.figures))


def _verdict_cell(row: RunEntry) -> str:
    """Return a run's verdict; without one its status, its grade, the number of its settings, or its end."""
    if row.figures.observed is not None and row.figures.observed.status is not None:
        return f"• {numbers.sanitize(row.figures.observed.status)}"
    if row.verdict == "none" and (grade := grade_in(row.figures)):
        return f"• grade {grade}"
    if row.verdict == "none" and (count := settings_count(row.figures)) > 1:
        return f"• {numbers.quantity(count, 'setting')}"
    return f"• {run_end_text(row)}" if row.verdict is None else numbers.verdict(row.verdict)


def _total_width(widths: Mapping[str, int], most: int | None = None) -> int:
    """Return the width of a line, with names of at most so many cells."""
    cells = (min(width, most) if most is not None and name in _NAMES else width for name, width in widths.items())
    return sum(cells) + 2 * (len(widths) - 1)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A comparison of a run with the first one on the command line."""

    first: RunRecord
    second: RunRecord
    comparison: Comparison


def compare_with_first(log: RunLog, rows: Sequence[RunRecord]) -> list[RunComparison]:
    """Return a comparison of each other run with the first; their events are the only source."""
    from ....engine.results.meter import replay  # a list of runs needs none

    first, *others = ((row, replay(log.events(row.run_id)).summary()) for row in rows)
    return [RunComparison(first[0], row, compare(first[1], summary)) for row, summary in others]


def comparison_parts(comparisons: Sequence[RunComparison]) -> Iterator[RenderableType]:
    """Yield a table for each comparison."""
    for number, comparison in enumerate(comparisons):
        if number:
            yield Text()
        yield PrintedTable(_table(comparison))


def comparisons_json(comparisons: Sequence[RunComparison]) -> dict[str, Any]:
    """Return all comparisons as one document."""
    documents = [comparison_json(each.comparison, each.second.run_id, each.first.run_id) for each in comparisons]
    return {"schema": DOCUMENT_VERSION, "comparisons": documents}


def _table(runs: RunComparison) -> Table:
    first, second = runs.first, runs.second
    label, other = (numbers.sanitize(run.label or "") or numbers.UNKNOWN for run in (first, second))
    settings = [
        *([("label", label, other)] if first.label or second.label else []),
        *identity_differences(first, second),
        *changed_settings(runs.comparison),
    ]
    return comparison_table(runs.comparison, settings, (first.run_id, second.run_id))
