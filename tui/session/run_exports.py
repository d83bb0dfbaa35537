"""Files made of stored runs: which runs, as CSV, as JSON, and as HTML pages.

Another process makes a page, so that the app keeps drawing meanwhile. Neither Jinja2 nor matplotlib is imported
here.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from ...engine.host.saved_files import check_output_path, written_whole
from ...engine.model.errors import PlanError, RunLogError, require_extra
from ...engine.results.csv_export import CsvWriter
from ...engine.results.run_log import RunLog, RunQuery, RunRecord
from ...engine.results.run_result import RunResult
from ..words.redaction import REDACTION
from ..words.redaction import VARIABLE as REDACT_VARIABLE
from .stored_run import load_stored_run

ExportFormat = Literal["csv", "json", "html"]
ExportRuns = Callable[[Sequence[str], ExportFormat, Path], Path]
"""Writes runs to a file and returns its path; called in a thread. Raises OSError or LinkgaugeError."""

_log = logging.getLogger(__name__)
_REPORT_TIMEOUT_S: Final = 300.0  # plots of a day's run on a slow machine take a minute


def export_runs(log: RunLog, run_ids: Sequence[str], export_format: ExportFormat, path: Path) -> Path:
    """Write runs to a file and return its path. Raises RunLogError, PlanError or OSError."""
    match export_format:
        case "csv":
            with CsvWriter.create(path, REDACTION.text) as writer:
                for run_id in run_ids:
                    row = log.find(run_id)
                    REDACTION.learn_document(row.peer, row.document)
                    writer.write_run(log.events(row.run_id), run_id=row.run_id, preset=row.preset, label=row.label)
        case "json":
            documents = [load_stored_run(log, log.find(run_id)).outcome.document for run_id in run_ids]
            content = documents[0] if len(documents) == 1 else documents
            with written_whole(path) as stream:
                stream.write(json.dumps(REDACTION.document(content), indent=2, ensure_ascii=False) + "\n")
        case "html":
            generate_report(log, ["linkgauge", "runs", "report", *run_ids, "--force", "--html", str(path)])
    return path


def selected_runs(log: RunLog, earliest: datetime | None = None, host: str | None = None) -> Iterator[RunRecord]:
    """Yield runs from `earliest` on, the oldest first, with a text in their peer or remote host.

    The text is a part of the peer, of its address or of its host's name, in upper or lower case. A run without a
    known start has none that is late enough.
    """
    for run in log.records(log.find_runs(RunQuery(is_descending=False))):
        if (earliest is None or _is_since(run, earliest)) and (host is None or _has_host(run, host.casefold())):
            yield run


def _is_since(run: RunRecord, earliest: datetime) -> bool:
    try:
        return run.started_utc is not None and datetime.fromisoformat(run.started_utc) >= earliest
    except (ValueError, TypeError):  # no time, or one without a zone
        return False


def _has_host(run: RunRecord, text: str) -> bool:
    subject = RunResult.of(run.document).subject
    names = (run.peer, subject.address, None if subject.far is None else subject.far.hostname)
    return any(text in str(name).casefold() for name in names if name is not None)


def generate_report(log: RunLog, module: Sequence[str]) -> None:
    """Run a module with arguments that writes a report. Call this in a thread. Raises RunLogError.

    matplotlib holds Python's global lock: in this process it would stop the app's clock.
    """
    log.flush()
    command = [sys.executable, "-P", "-m", *module]  # -P keeps the current folder out of its imports
    redact = {REDACT_VARIABLE: "1"} if REDACTION.is_on else {}
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(log.path.parent), **redact}
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


def check_report_path(path: Path) -> Path:
    """Return the path of a report. Called before anything runs.

    Raises:
        ExtraMissing: The packages that make a report are not installed.
        PlanError: No report can be written there.
    """
    require_report_packages()
    if path.suffix.lower() not in {".html", ".htm"}:
        raise PlanError("report", path, "name a file that ends in .html")
    check_output_path("report", path)
    return path


def require_report_packages() -> None:
    """Raise ExtraMissing if the packages that make a report are not installed: they are six times a test's."""
    require_extra("a report needs Jinja2 and matplotlib", "report", "jinja2", "matplotlib")
