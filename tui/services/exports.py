"""Runs of the log into a file, in the forms that the app and the command line share.

No Textual and no matplotlib here: the report is made by a process of its own, so that an app that asks for it
goes on drawing.
"""

import json
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

_REPORT_S: Final = 300.0  # plots of a day's run on a slow machine take a minute


def export_runs(log: RunLog, run_ids: Sequence[str], export_format: ExportFormat, path: Path) -> Path:
    """Write runs; return the file. Raises StoreError, PlanError or OSError where that cannot be done."""
    match export_format:
        case "csv":
            with CsvWriter.create(path) as writer:
                for run_id in run_ids:
                    row = log.find(run_id)
                    writer.write_run(log.events(row.run_id), run_id=row.run_id, preset=row.preset)
        case "json":
            documents = [load_stored_run(log, log.find(run_id)).outcome.document for run_id in run_ids]
            whole = documents[0] if len(documents) == 1 else documents
            path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        case "html":
            generate_report(log, ["linkgauge", "runs", "report", *run_ids, "--html", str(path)])
    return path


def generate_report(log: RunLog, module: Sequence[str]) -> None:
    """Have a module with arguments write a page; StoreError where it does not. Called in a thread.

    Drawing holds Python's lock, and in this process would stop the app's clock.
    """
    log.flush()
    command = [sys.executable, "-m", *module]
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(log.path.parent)}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment,
            timeout=_REPORT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunLogError(f"the report was not ready after {_REPORT_S:.0f} s; try fewer runs") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RunLogError(
            said[-1].removeprefix("linkgauge: ") if said else f"the report ended with {done.returncode}"
        )
