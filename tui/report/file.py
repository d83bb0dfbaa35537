"""A report into a file, whole or not at all."""

import os
from collections.abc import Sequence
from pathlib import Path

from ...engine.model.errors import PlanError
from ...engine.results.run_log import RunLog, RunRecord
from .run_page import MAX_RUNS, render_report


def write_run_report(log: RunLog, rows: Sequence[RunRecord], path: Path) -> None:
    """Write the page of these runs; raise PlanError where there are too many, or the file cannot be written."""
    if len(rows) > MAX_RUNS:
        raise PlanError("report", f"{len(rows)} runs", f"give at most {MAX_RUNS}")
    page = render_report(log, rows)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise PlanError("HTML file", path, f"{error.strerror}: name a file that can be written") from error
