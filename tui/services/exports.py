"""Export of runs of the log to a file: CSV, JSON or an HTML report.

A report is made by another process, so that the app keeps drawing meanwhile. Neither Textual nor matplotlib is
imported here.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...engine.model.errors import RunLogError
from ...engine.results.csv_export import CsvWriter
from ...engine.results.run_log import RunLog
from ..interfaces import ExportFormat
from .stored_run import load_stored_run

_log = logging.getLogger(__name__)
_REPORT_TIMEOUT_S: Final = 300.0  # plots of a day's run on a slow machine take a minute


def export_runs(log: RunLog, run_ids: Sequence[str], export_format: ExportFormat, path: Path) -> Path:
    """Write runs to a file and return its path. Raises RunLogError, PlanError or OSError."""
    match export_format:
        case "csv":
            with CsvWriter.create(path) as writer:
                for run_id in run_ids:
                    row = log.find(run_id)
                    writer.write_run(log.events(row.run_id), run_id=row.run_id, preset=row.preset)
        case "json":
            documents = [load_stored_run(log, log.find(run_id)).outcome.document for run_id in run_ids]
            content = documents[0] if len(documents) == 1 else documents
            path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        case "html":
            generate_report(log, ["linkgauge", "runs", "report", *run_ids, "--html", str(path)])
    return path


def generate_report(log: RunLog, module: Sequence[str]) -> None:
    """Run a module with arguments that writes a report. Call this in a thread. Raises RunLogError.

    matplotlib holds Python's global lock: in this process it would stop the app's clock.
    """
    log.flush()
    command = [sys.executable, "-m", *module]
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(log.path.parent)}
    _log.debug("report by %s", command)
    try:
        process = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_REPORT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunLogError(f"the report was not ready after {_REPORT_TIMEOUT_S:.0f} s; try fewer runs") from error
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines()
        raise RunLogError(
            lines[-1].removeprefix("linkgauge: ") if lines else f"the report ended with {process.returncode}"
        )
