"""Which runs `linkgauge runs prune` deletes or thins: old ones, and the oldest where the log is too large.

The preference `thin_after` thins old runs without a command, a little at each end of a test or of the app.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ...engine.model.errors import RunLogError
from ...engine.results.run_log import RunLog, RunRecord
from ..text.parsing import NEVER, age
from .preferences import read_preferences
from .storage import config_dir, open_run_list

_BUDGET_S: Final = 0.3  # of each end of the program; an hour of one session takes some seconds in all
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The runs to delete, the oldest first.

    `size_bytes` is about what they take on the disk. `named` counts runs that would be deleted, too, if they had
    neither label nor note.
    """

    rows: tuple[RunRecord, ...]
    size_bytes: int
    named: int


@dataclass(frozen=True, slots=True)
class ThinPlan:
    """The runs to thin, the oldest first. `named` counts those with a label or a note, which stay as they are."""

    run_ids: tuple[str, ...]
    named: int


def plan_pruning(
    log: RunLog, now: datetime, *, keep: timedelta | None, max_bytes: int | None, with_named: bool
) -> PrunePlan:
    """Return what to delete. A run that is still running is never deleted.

    Args:
        log: The run log.
        now: The present time.
        keep: The age from which runs are deleted; None for any.
        max_bytes: The size that the log may have; None for any.
        with_named: Delete runs with a label or a note as well.

    Raises:
        RunLogError: The log cannot be read.
    """
    sizes = {size.run_id: size.size_bytes for size in log.run_sizes()}
    oldest_first = [row for row in reversed(log.list_runs()) if not row.is_running]
    used_bytes = log.used_bytes()
    rows: list[RunRecord] = []
    named = 0
    for row in oldest_first:
        started = _start_of(row.run_id, row.started_utc)
        is_old = keep is not None and started is not None and now - started > keep
        if not is_old and (max_bytes is None or used_bytes <= max_bytes):
            continue
        if not with_named and (row.label or row.note):
            named += 1
            continue
        rows.append(row)
        used_bytes -= sizes.get(row.run_id, 0)
    size = sum(sizes.get(row.run_id, 0) for row in rows)
    return PrunePlan(tuple(rows), size, named)


def plan_thinning(
    log: RunLog,
    now: datetime,
    min_age: timedelta,
    *,
    with_named: bool = False,
    with_damaged: bool = True,
    besides: PrunePlan | None = None,
) -> ThinPlan:
    """Return which runs to thin. A run that is still running is never thinned.

    Args:
        log: The run log.
        now: The present time.
        min_age: The age from which runs are thinned.
        with_named: Thin runs with a label or a note as well.
        with_damaged: Include runs that an earlier attempt found damaged.
        besides: Leave out the runs that this plan deletes.

    Raises:
        RunLogError: The log cannot be read.
    """
    deleted = {row.run_id for row in besides.rows} if besides is not None else set[str]()
    old = [
        run
        for run in log.thinnable_runs(with_damaged=with_damaged)
        if run.run_id not in deleted
        and (started := _start_of(run.run_id, run.started_utc)) is not None
        and now - started > min_age
    ]
    chosen = [run for run in old if with_named or not run.is_named]
    return ThinPlan(tuple(run.run_id for run in chosen), len(old) - len(chosen))


def thin_old_runs(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Thin runs older than the preference says, for a fraction of a second. Call this when no test is running.

    Runs with a label or a note stay as they are. While any test is running nothing is done, and neither is it where
    the log cannot be used: the next call is soon enough.
    """
    thin_after = read_preferences(config_dir()).preferences.thin_after
    if thin_after == NEVER:
        return
    deadline = time.monotonic() + _BUDGET_S
    try:
        with open_run_list() as log:
            if log.is_any_running():
                return
            plan = plan_thinning(log, now(), age(thin_after), with_damaged=False)
            if plan.run_ids:
                log.thin_all(plan.run_ids, deadline=deadline)
    except (RunLogError, OSError) as error:
        _log.debug("old runs are not thinned: %s", error)


def _start_of(run_id: str, started_utc: str | None) -> datetime | None:
    """Return when a run started. One that ended before that has the time in its id; None if that has none."""
    try:
        started = datetime.fromisoformat(started_utc or "")
    except ValueError:
        try:
            started = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return None
    return started if started.tzinfo is not None else started.replace(tzinfo=UTC)
