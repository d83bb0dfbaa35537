"""`linkgauge runs`: list, show, replay, compare, label, export, delete and prune the runs of the run log."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ....engine.model.errors import PlanError, UsageError
from ...session.storage import find_run, open_run_list
from ...words.redaction import REDACTION
from ..click_extension import DefaultGroup, argument, flag, option
from ..completion import complete_run
from ..options import json_flag, redact_flag
from ..output import (
    check_output_file,
    discard_stdout,
    emit,
    emit_json,
    emit_json_list,
    emit_line,
    emit_lines,
    emit_rich,
    keep_log_off_screen,
    print_stderr,
    terminal_width,
    write_csv_file,
)
from ..web.browser_page import end_with_server, has_screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ....engine.results.run_log import RunLog, RunRecord
    from ...session.pruning import PrunePlan

_SPEEDS: Final = (0.1, 100.0)
_RUNS_HELP: Final = "Ids of runs, their beginnings, or last; the others are compared with the first."


class VerdictWord(StrEnum):
    """The verdicts to choose from."""

    PASS = "pass"  # noqa: S105 (no password)
    SHORT = "short"
    FAIL = "fail"
    NONE = "none"


class Rows(StrEnum):
    """The subject of a row of an export."""

    INTERVALS = "intervals"
    RUNS = "runs"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One saved run."""

    run: str = argument("ID", "Id of the run or its beginning, or last.", complete=complete_run)


def _force_flag() -> Any:
    """Return the flag for a file that exists."""
    return flag("", "Replace the file if it exists.", "-f")


def _yes_flag() -> Any:
    """Return the flag for what else asks first."""
    return flag("", "Do not ask first.", "-y")


def _filter_option(name: str) -> Any:
    """Return an option that selects the runs with a text in their field `name`."""
    return option("", f"Only runs with this text in their {name}.", metavar="TEXT")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which runs are listed, and how."""

    preset: str | None = _filter_option("preset")
    peer: str | None = _filter_option("peer")
    verdict: VerdictWord | None = option("", "Only runs with this verdict.")
    label: str | None = _filter_option("label")
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def list_runs(options: ListOptions) -> int:
    """List the saved runs, the newest first (the default command)."""
    from ...words.run_line import RunFilter, log_text

    with open_run_list() as log:
        found = log.find_runs(RunFilter(options.preset, options.peer, options.verdict, options.label).query())
        if options.as_json:
            from ..render.runs import row_json

            emit_json_list(map(row_json, log.records(found)))
            return 0
        total = log.count_runs()
        if found:
            from ..render.runs import run_list

            heading, lines = run_list(log.entries(found), terminal_width())
            emit_rich(heading, is_wide=True)
            emit_lines(lines)
            print_stderr(log_text(total, log.size_bytes(), log.path, matches=len(found)))
        else:
            print_stderr(f"none of the {total} saved runs matches these filters" if total else "no saved runs yet")
    return 0


@dataclass(frozen=True, slots=True)
class ShowOptions(RunOptions):
    """A run, and how it is shown."""

    as_json: bool = json_flag()
    redact: bool = redact_flag()


def show_run(options: ShowOptions) -> int:
    """Show the summary of a run again."""
    from ...session.stored_run import load_stored_run

    with open_run_list() as log:
        outcome = load_stored_run(log, find_run(log, options.run)).outcome
    if options.as_json:
        emit_json(outcome.document)
    else:
        from ...words.numbers import sanitize
        from ..render.summary import summary_parts

        emit_line(outcome.run_id)
        emit_rich(*summary_parts(outcome))
        for name in ("label", "note", "group"):
            if outcome.document[name]:
                emit_line(f"  {name:<7}  {sanitize(outcome.document[name])}")
    return 0


@dataclass(frozen=True, slots=True)
class ReplayOptions(RunOptions):
    """A run, and how fast it is played."""

    speed: float = option(
        "", "How many times as fast as it was: 0.1 to 100.", metavar="TIMES", default=1.0, shown="1"
    )


def replay_run(options: ReplayOptions) -> int:
    """Play a run again in the app: gauges, plots and events over time, and its result at the end.

    Space pauses, + and - change the speed, arrows jump 5 seconds, 0 and r jump to the start and to the result.
    """
    if not _SPEEDS[0] <= options.speed <= _SPEEDS[1]:
        raise PlanError("speed", f"{options.speed:g}", f"give {_SPEEDS[0]:g} to {_SPEEDS[1]:g}")
    if not has_screen():
        raise UsageError("a replay needs a terminal; without one: linkgauge runs show ID")
    with open_run_list() as log:
        run_id = find_run(log, options.run).run_id
        from ..terminal_app import run_replay

        keep_log_off_screen()
        end_with_server()
        return run_replay(run_id, log, options.speed)


@dataclass(frozen=True, slots=True)
class LabelOptions(RunOptions):
    """A run and its label."""

    text: str = argument("TEXT", "The label; empty removes it.")


def label_run(options: LabelOptions) -> int:
    """Give a run a label, to find it again."""
    with open_run_list() as log:
        row = find_run(log, options.run)
        log.set_label(row.run_id, options.text)
        label = log.find(row.run_id).label
    print_stderr(f"run {row.run_id} has the label '{label}'" if label else f"run {row.run_id} has no label")
    return 0


@dataclass(frozen=True, slots=True)
class NoteOptions(RunOptions):
    """A run and its note."""

    text: str = argument("TEXT", "The note; empty removes it.")


def note_run(options: NoteOptions) -> int:
    """Save a note with a run: what was changed, a ticket."""
    with open_run_list() as log:
        row = find_run(log, options.run)
        log.set_note(row.run_id, options.text)
        note = log.find(row.run_id).note
    print_stderr(f"note saved with run {row.run_id}" if note else f"run {row.run_id} has no note")
    return 0


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The runs, and how the comparison is printed."""

    runs: tuple[str, ...] = argument("ID ID...", _RUNS_HELP)
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def compare_runs(options: CompareOptions) -> int:
    """Compare runs with the first one: what differs, and whether the difference is significant.

    A difference of rates has its 95 % confidence interval in brackets.
    """
    runs = options.runs
    if len(runs) < 2:
        raise UsageError("give two runs or more; linkgauge runs list shows them")
    from ..render.runs import compare_with_first, comparison_parts, comparisons_json

    with open_run_list() as log:
        rows = [find_run(log, run) for run in runs]
        if len({row.run_id for row in rows}) < len(rows):
            raise UsageError(f"{' '.join(runs)} names a run twice; give different runs")
        comparisons = compare_with_first(log, rows)
    if options.as_json:
        emit_json(comparisons_json(comparisons))
    else:
        emit_rich(*comparison_parts(comparisons))
    return 0


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

        from ...session.run_exports import selected_runs
        from ...words import parsing

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
            from ...session.stored_run import load_stored_run

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

    runs: tuple[str, ...] = argument("ID...", _RUNS_HELP)
    html: Path = option("", "File of the page; required.", metavar="FILE", required=True)
    force: bool = _force_flag()
    redact: bool = redact_flag()


def report_runs(options: ReportOptions) -> int:
    """Write runs as one HTML page with plots."""
    from ...session.run_exports import require_report_packages

    require_report_packages()
    html = options.html
    check_output_file("HTML file", html, force=options.force)
    with open_run_list() as log:
        rows = list({row.run_id: row for row in (find_run(log, run) for run in options.runs)}.values())
        from ...report.run_page import write_run_report

        write_run_report(log, rows, html)
    from ...words import numbers

    print_stderr(f"report of {numbers.quantity(len(rows), 'run')} written to {html}")
    return 0


@dataclass(frozen=True, slots=True)
class DeleteOptions(RunOptions):
    """A run, and whether to ask first."""

    yes: bool = _yes_flag()


def delete_run(options: DeleteOptions) -> int:
    """Delete a saved run. It asks first; without a terminal it needs --yes."""
    with open_run_list() as log:
        row = find_run(log, options.run)
        if not (options.yes or _confirm_deletion(row)):
            print_stderr(f"run {row.run_id} not deleted")
            return 0
        log.delete(row.run_id)
    print_stderr(f"run {row.run_id} deleted")
    return 0


@dataclass(frozen=True, slots=True)
class PruneOptions:
    """Which runs are deleted or thinned."""

    keep: str | None = option("", "Delete older runs: 90d, 12h, 4w.", metavar="AGE")
    max_size: str | None = option("", "Delete the oldest until the log has this size: 2G.", "--max", metavar="SIZE")
    thin: str | None = option("", "Thin older runs to one sample a second: 30d.", metavar="AGE")
    with_named: bool = flag("", "Also runs that have a label or a note.", "--all")
    yes: bool = _yes_flag()

    def plan(self, log: "RunLog") -> "tuple[PrunePlan | None, PrunePlan | None]":
        """Return the runs to delete, and those of the rest to thin. Raises PlanError for the first bad value."""
        from datetime import UTC, datetime

        from ...session.pruning import RunChooser
        from ...words import parsing

        age = None if self.keep is None else parsing.age(self.keep)
        max_bytes = None if self.max_size is None else parsing.log_size(self.max_size)
        thin_age = None if self.thin is None else parsing.age(self.thin, "--thin")
        chooser = RunChooser(log, datetime.now(UTC), self.with_named, with_uncertain=not self.yes)
        deleted, thinned = None, None
        if age is not None or max_bytes is not None:
            deleted = chooser.deletion(age, max_bytes)
        if thin_age is not None:
            thinned = chooser.thinning(thin_age, besides=deleted)
        return deleted, thinned


def prune_runs(options: PruneOptions) -> int:
    """Delete old runs, the oldest first, or thin them, and give their space back.

    A thinned run has its results, and one sample a second. Runs with a label or a note stay as they are, unless
    --all is given; so do runs that are still running. It asks first; without a terminal it needs --yes. With --yes,
    runs before a pause of more than a year stay as well: a clock that is ahead makes every run seem old.
    """
    if options.keep is None and options.max_size is None and options.thin is None:
        raise UsageError(
            "give --keep AGE, --max SIZE, --thin AGE, or several: --keep 90d deletes runs older than 90 days"
        )
    with open_run_list() as log:
        deleted, thinned = options.plan(log)
        question = _pruning_question(deleted, thinned)
        if not options.yes and (pause := _pause_text(deleted, thinned)) is not None:
            print_stderr(f"{pause}: check that the clock of this host is right")
        if question is not None and not options.yes and not _confirm(question, "prune"):
            print_stderr("no runs deleted" if options.thin is None else "no runs deleted or thinned")
            return 0
        _prune(log, deleted, thinned)
    return 0


def _pruning_question(deleted: "PrunePlan | None", thinned: "PrunePlan | None") -> str | None:
    """Return what to ask; None if there is nothing to do."""
    from ...words import numbers

    parts: list[str] = []
    if deleted is not None and deleted.run_ids:
        span = _span(deleted.run_ids)
        runs = numbers.quantity(len(deleted.run_ids), "run")
        parts.append(f"delete {runs} ({span}, {numbers.disk_size(deleted.size_bytes)})")
    if thinned is not None and thinned.run_ids:
        parts.append(f"thin {numbers.quantity(len(thinned.run_ids), 'run')} ({_span(thinned.run_ids)})")
    question = " and ".join(parts)
    return f"{question[0].upper()}{question[1:]}?" if parts else None


def _pause_text(*plans: "PrunePlan | None") -> str | None:
    """Return from when to when no test was saved, if that makes the age of runs uncertain."""
    pause = next((plan.pause for plan in plans if plan is not None and plan.pause is not None), None)
    return None if pause is None else f"no test was saved between {pause[0]:%Y-%m-%d} and {pause[1]:%Y-%m-%d}"


def _span(run_ids: "Sequence[str]") -> str:
    """Return the first and the last run."""
    return run_ids[0] if len(run_ids) == 1 else f"{run_ids[0]} to {run_ids[-1]}"


def _prune(log: "RunLog", deleted: "PrunePlan | None", thinned: "PrunePlan | None") -> None:
    """Delete and thin runs, and print the numbers of both."""
    from ...words import numbers
    from ...words.run_line import log_text

    results: list[str] = []
    problems: tuple[str, ...] = ()
    if deleted is not None:
        if log.size_bytes():
            log.delete_all(deleted.run_ids, rewrite=True)
        results.append(f"{numbers.quantity(len(deleted.run_ids), 'run')} deleted")
    if thinned is not None:
        runs, freed_bytes = 0, 0
        if thinned.run_ids:
            done = log.thin_all(thinned.run_ids, rewrite=True)
            runs, freed_bytes, problems = done.runs, done.freed_bytes, done.problems
        results.append(f"{numbers.quantity(runs, 'run')} thinned, {numbers.disk_size(freed_bytes)} given back")
    for problem in problems:
        print_stderr(numbers.sanitize(problem))
    saved = log_text(log.count_runs(), log.size_bytes(), log.path)
    print_stderr(f"{'; '.join(results)}; saved: {saved}")
    for plan, verb, past in ((deleted, "delete", "deleted"), (thinned, "thin", "thinned")):
        if plan is not None and plan.named:
            named = numbers.quantity(plan.named, "run")
            print_stderr(f"{named} with a label or a note not {past}; --all {verb}s such runs too")
        if plan is not None and plan.uncertain:
            uncertain = numbers.quantity(plan.uncertain, "run")
            print_stderr(
                f"{uncertain} not {past}: {_pause_text(plan)}, so the clock may be wrong; without --yes it asks"
            )


def _confirm_deletion(row: "RunRecord") -> bool:
    """Ask whether to delete a run, and return the answer."""
    from ...words.run_line import run_line

    preset = f", preset {row.preset}" if row.preset else ""
    when = f"{run_line(row).when} UTC" if row.started_utc else "an unknown time"
    description = f"run {row.run_id} of {when}, peer {row.peer}{preset}"
    return _confirm(f"Delete {description}?", "delete")


def _confirm(question: str, command: str) -> bool:
    """Ask for confirmation and return the answer. Raise UsageError if nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"runs {command} asks first, which needs a terminal; without one give --yes")
    from ...words.numbers import sanitize

    sys.stderr.write(f"{sanitize(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _export_runs(runs: "Iterable[RunRecord]", path: Path | None) -> None:
    """Write a row for each run."""
    import csv

    from ....engine.results.csv_export import run_rows

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
    from ....engine.model.errors import RunLogError
    from ....engine.results.csv_export import CsvWriter

    try:
        writer = (
            CsvWriter(sys.stdout, "stdout", edit=REDACTION.text)
            if path is None
            else CsvWriter.create(path, REDACTION.text)
        )
        count = 0
        for row in rows:
            count += 1
            REDACTION.learn_document(row.peer, row.document)
            writer.write_run(log.events(row.run_id), run_id=row.run_id, preset=row.preset, label=row.label)
    except RunLogError as error:
        if path is not None or not isinstance(error.__cause__, BrokenPipeError):
            raise
        discard_stdout()
        return
    if path is not None:
        from ...words import numbers

        writer.close()
        print_stderr(f"{numbers.quantity(count, 'run')} written to {path}")


RUNS: Final = DefaultGroup(
    "runs",
    "List, show, replay, compare, label, export, delete and prune saved runs.",
    {
        "list": list_runs,
        "show": show_run,
        "replay": replay_run,
        "compare": compare_runs,
        "label": label_run,
        "note": note_run,
        "export": export_runs,
        "report": report_runs,
        "delete": delete_run,
        "prune": prune_runs,
    },
)
