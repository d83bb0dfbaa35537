"""A report into a file, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from ...engine.host.atomic_write import write_atomically
from ...engine.model.errors import PlanError
from ...engine.results.run_log import RunLog, RunRecord
from .run_page import MAX_RUNS, render_report


def write_run_report(log: RunLog, rows: Sequence[RunRecord], path: Path) -> None:
    """Write the page of these runs; raise PlanError where there are too many, or the file cannot be written."""
    if len(rows) > MAX_RUNS:
        raise PlanError("report", f"{len(rows)} runs", f"give at most {MAX_RUNS}")
    page = render_report(log, rows)
    try:
        write_atomically(path, page)
    except OSError as error:
        raise PlanError("HTML file", path, f"{error.strerror}: name a file that can be written") from error
