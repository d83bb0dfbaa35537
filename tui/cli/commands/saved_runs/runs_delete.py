"""`linkgauge runs delete` and `prune`: saved runs are deleted, or thinned to a sample a second."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .....engine.model.errors import UsageError
from ....session.storage import find_run, open_run_list
from ...click_extension.option_fields import argument, flag, option
from ...completion import complete_run
from ...output import print_stderr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .....engine.results.run_log import RunLog, RunRecord
    from ....session.pruning import PrunePlan


def _yes_flag() -> Any:
    """Return the flag for what else asks first."""
    return flag("", "Do not ask first.", "-y")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """A run, and whether to ask first."""

    run: str = argument("ID", "Id of the run or its beginning, or last.", complete=complete_run)
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

        from ....session.pruning import RunChooser
        from ....words import parsing

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
    from ....words import numbers

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
    from ....words import numbers
    from ....words.run_line import log_text

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
    from ....words.run_line import run_line

    preset = f", preset {row.preset}" if row.preset else ""
    when = f"{run_line(row).when} UTC" if row.started_utc else "an unknown time"
    description = f"run {row.run_id} of {when}, peer {row.peer}{preset}"
    return _confirm(f"Delete {description}?", "delete")


def _confirm(question: str, command: str) -> bool:
    """Ask for confirmation and return the answer. Raise UsageError if nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"runs {command} asks first, which needs a terminal; without one give --yes")
    from ....words.numbers import sanitize

    sys.stderr.write(f"{sanitize(question)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
