"""`linkgauge runs export` and `report`: saved runs as CSV, JSON or a page."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .....engine.model.errors import UsageError
from ....session.storage import find_run, open_run_list
from ....words.redaction import REDACTION
from ...click_extension.option_fields import argument, flag, option
from ...output import (
    check_output_file,
    discard_stdout,
    emit,
    emit_json,
    emit_json_list,
    print_stderr,
    write_csv_file,
)
from ...output_options import redact_flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .....engine.results.csv_export import CsvWriter
    from .....engine.results.run_log import RunLog, RunRecord

RUNS_HELP = "Ids of runs, their beginnings, or last; the others are compared with the first."


class Rows(StrEnum):
    """The subject of a row of an export."""

    INTERVALS = "intervals"
    RUNS = "runs"


def _force_flag() -> Any:
    """Return the flag for a file that exists."""
    return flag("", "Replace the file if it exists.", "-f")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Which runs are exported, as what."""

    run: str = argument("[ID|all]", "Id of the run or its beginning, last, or all.", default="all", shown="all")
    csv: Path | None = option("", "File of the rows.", metavar="FILE", shown="stdout")
    rows: Rows = option(
        "",
        "Rows of the CSV: one for each interval, direction and session, or one for each run.",
        default=Rows.INTERVALS,
    )
    since: str | None = option("", "Only later runs: 7d, 12h, 2026-11-21.", metavar="TIME")
    peer: str | None = option("", "Only runs with this peer or remote host.", metavar="TEXT")
    force: bool = _force_flag()
    as_json: bool = flag("", "Print JSON: a document for an ID, a list for all.", "--json", "-J")
    redact: bool = redact_flag()

    def select(self, log: "RunLog") -> "Iterator[RunRecord]":
        """Return the runs; raise PlanError for a time that cannot be read, UsageError for an unknown run."""
        from datetime import UTC, datetime

        from ....session.run_exports import selected_runs
        from ....words import parsing

        if self.run != "all":
            return iter([find_run(log, self.run)])
        return selected_runs(
            log, None if self.since is None else parsing.since(self.since, datetime.now(UTC)), self.peer
        )


def export_runs(options: ExportOptions) -> int:
    """Write a run, or all of them, as CSV or JSON."""
    as_json, csv, is_all = options.as_json, options.csv, options.run == "all"
    if as_json and csv is not None:
        raise UsageError("--csv and --json exclude each other; give one of them")
    if not is_all and (options.since, options.peer) != (None, None):
        raise UsageError("--since and --peer select among all runs; leave out the ID")
    check_output_file("CSV file", csv, force=options.force)
    with open_run_list() as log:
        runs = options.select(log)
        if as_json:
            from ....session.stored_run import load_stored_run

            documents = (load_stored_run(log, row).outcome.document for row in runs)
            if is_all:
                emit_json_list(documents)
            else:
                emit_json(next(documents))
        elif options.rows is Rows.RUNS:
            _export_runs(runs, csv)
        else:
            _export_rows(log, runs, csv)
    return 0


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The runs of a page, and its file."""

    runs: tuple[str, ...] = argument("ID...", RUNS_HELP)
    html: Path = option("", "File of the page; required.", metavar="FILE", required=True)
    force: bool = _force_flag()
    redact: bool = redact_flag()


def report_runs(options: ReportOptions) -> int:
    """Write runs as one HTML page with plots."""
    from ....session.run_exports import require_report_packages

    require_report_packages()
    html = options.html
    check_output_file("HTML file", html, force=options.force)
    with open_run_list() as log:
        rows = list({row.run_id: row for row in (find_run(log, run) for run in options.runs)}.values())
        from ....report.run_page import write_run_report

        write_run_report(log, rows, html)
    from ....words import numbers

    print_stderr(f"report of {numbers.quantity(len(rows), 'run')} written to {html}")
    return 0


def _export_runs(runs: "Iterable[RunRecord]", path: Path | None) -> None:
    """Write a row for each run."""
    import csv

    from .....engine.results.csv_export import run_rows

    runs = map(_learned, runs)
    if path is not None:
        write_csv_file(path, run_rows(runs))
        return
    stream = StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n").writerows(run_rows(runs))
    emit(stream.getvalue())


def _learned(run: "RunRecord") -> "RunRecord":
    REDACTION.learn_document(run.peer, run.document)
    return run


def _export_rows(log: "RunLog", rows: "Iterable[RunRecord]", path: Path | None) -> None:
    from .....engine.model.errors import RunLogError
    from .....engine.results.csv_export import CsvWriter

    if path is not None:
        with CsvWriter.create(path, REDACTION.text) as writer:
            count = _write_runs(log, rows, writer)
        from ....words import numbers

        print_stderr(f"{numbers.quantity(count, 'run')} written to {path}")
        return
    try:
        _write_runs(log, rows, CsvWriter(sys.stdout, "stdout", edit=REDACTION.text))
    except RunLogError as error:
        if not isinstance(error.__cause__, BrokenPipeError):
            raise
        discard_stdout()


def _write_runs(log: "RunLog", rows: "Iterable[RunRecord]", writer: "CsvWriter") -> int:
    """Write the rows of runs, and return how many runs these were."""
    count = 0
    for row in rows:
        count += 1
        REDACTION.learn_document(row.peer, row.document)
        writer.write_run(log.events(row.run_id), run_id=row.run_id, preset=row.preset, label=row.label)
    return count
