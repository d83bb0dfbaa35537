"""`linkgauge runs`: list, show, replay, compare and label saved runs, and the group of all commands."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from .....engine.model.errors import PlanError, UsageError
from ....session.storage import find_run, open_run_list
from ...click_extension.command_groups import DefaultGroup
from ...click_extension.option_fields import argument, option
from ...completion import complete_run
from ...output import (
    emit_json,
    emit_json_list,
    emit_line,
    emit_lines,
    emit_rich,
    keep_log_off_screen,
    print_stderr,
    terminal_width,
)
from ...output_options import json_flag, redact_flag
from ...web.browser_page import end_with_server, has_screen
from .runs_delete import delete_run, prune_runs
from .runs_export import RUNS_HELP, export_runs, report_runs

_SPEEDS: Final = (0.1, 100.0)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One saved run."""

    run: str = argument("ID", "Id of the run or its beginning, or last.", complete=complete_run)


class VerdictWord(StrEnum):
    """The verdicts to choose from."""

    PASS = "pass"  # noqa: S105 (no password)
    SHORT = "short"
    FAIL = "fail"
    NONE = "none"


def _filter_option(name: str) -> Any:
    """Return an option that selects the runs with a text in their field `name`."""
    return option("", f"Only runs with this text in their {name}.", metavar="TEXT")


class KindWord(StrEnum):
    """The kinds of entries to choose from."""

    TEST = "test"
    OBSERVED = "observed"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which runs are listed, and how."""

    preset: str | None = _filter_option("preset")
    peer: str | None = _filter_option("peer")
    verdict: VerdictWord | None = option("", "Only runs with this verdict.")
    label: str | None = _filter_option("label")
    kind: KindWord | None = option("", "Only tests, or only connections of linkgauge observe.")
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def list_runs(options: ListOptions) -> int:
    """List the saved runs, the newest first (the default command)."""
    from ....words.run_line import RunFilter, log_text

    with open_run_list() as log:
        wanted = RunFilter(options.preset, options.peer, options.verdict, options.label, options.kind)
        found = log.find_runs(wanted.query())
        if options.as_json:
            from ...render.runs import row_json

            emit_json_list(map(row_json, log.records(found)))
            return 0
        total = log.count_runs()
        if found:
            from ...render.runs import run_list

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
    from ....session.stored_run import load_stored_run

    with open_run_list() as log:
        outcome = load_stored_run(log, find_run(log, options.run)).outcome
    if options.as_json:
        emit_json(outcome.document)
    else:
        from ....words.numbers import sanitize
        from ...render.summary import summary_parts

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
        from ...terminal_app import run_replay

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

    runs: tuple[str, ...] = argument("ID ID...", RUNS_HELP)
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def compare_runs(options: CompareOptions) -> int:
    """Compare runs with the first one: what differs, and whether the difference is significant.

    A difference of rates has its 95 % confidence interval in brackets.
    """
    runs = options.runs
    if len(runs) < 2:
        raise UsageError("give two runs or more; linkgauge runs list shows them")
    from ...render.runs import compare_with_first, comparison_parts, comparisons_json

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
