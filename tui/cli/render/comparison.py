"""`linkgauge runs compare`: runs beside each other, in a terminal."""

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
from ...text.comparison import (
    comparison_json,
    difference_words,
    figure_name,
    figure_value_words,
    plan_difference_words,
)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A run against the first one named."""

    first: RunRecord
    second: RunRecord
    comparison: Comparison


def compare_with_first(log: RunLog, rows: Sequence[RunRecord]) -> list[RunComparison]:
    """Return each run against the first, all of them from their events alone."""
    first, *others = ((row, replay(log.events(row.run_id)).summary()) for row in rows)
    return [RunComparison(first[0], row, compare(first[1], summary)) for row, summary in others]


def comparison_parts(found: Sequence[RunComparison]) -> Iterator[RenderableType]:
    """Give a table for each run that was compared with the first."""
    for number, one in enumerate(found):
        if number:
            yield Text()
        yield _table(one)


def comparisons_json(found: Sequence[RunComparison]) -> dict[str, Any]:
    """Return all of it for programs."""
    comparisons = [comparison_json(one.comparison, one.second.run_id, one.first.run_id) for one in found]
    return {"schema": DOCUMENT_VERSION, "comparisons": comparisons}


def _table(one: RunComparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", style="dim", overflow="fold")
    table.add_column(one.first.run_id, justify="right", overflow="fold")
    table.add_column(one.second.run_id, justify="right", overflow="fold")
    table.add_column("", overflow="fold")
    for name in ("label", "peer", "preset"):
        words = [numbers.sanitize(getattr(row, name) or "") for row in (one.first, one.second)]
        if any(words) and (name == "label" or words[0] != words[1]):
            table.add_row(name, *(word or numbers.UNKNOWN for word in words), "")
    for name, first, second in plan_difference_words(one.comparison):
        table.add_row(name, numbers.sanitize(first), numbers.sanitize(second), "")
    for figure in one.comparison.figures:
        if figure.first is None and figure.second is None:
            continue
        values = (figure_value_words(figure, second=False), figure_value_words(figure, second=True))
        found = figure.difference
        style = "bold" if found is not None and found.is_significant else ""
        table.add_row(figure_name(figure), *values, Text(difference_words(figure), style))
    return table
