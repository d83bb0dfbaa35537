"""Which runs `linkgauge runs prune` deletes or thins: old ones, and the oldest where the log is too large.

The preference `thin_after` thins old runs without a command, a little at each end of a test or of the app. A clock
may be wrong, now or when a run was made: no run is deleted or thinned by its age alone unless the order of the runs
confirms that age.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ...engine.model.errors import RunLogError
from ...engine.results.run_log import RunEntry, RunLog, RunQuery
from ..text.parsing import NEVER, age
from .preferences import read_preferences
from .storage import config_dir, open_run_list

_BUDGET_S: Final = 0.3  # of each end of the program; an hour of one session takes some seconds in all
_LONG_PAUSE: Final = timedelta(days=366)
_FIRST_DATE: Final = datetime(2020, 1, 1, tzinfo=UTC)  # no version is older: an earlier clock was never set
_CLOCK_TOLERANCE: Final = timedelta(days=1)
_log = logging.getLogger(__name__)


class RunAges:
    """The ages of all runs at a time, by the clock and by the order in which the runs were saved.

    A run is not older than one that was saved before it. The date of a clock that was not set, or that was ahead of
    the present time, is replaced by that of the next run. Where no run was saved for more than a year, the clock
    may have been set forward instead: an age that includes such a pause is uncertain.
    """

    def __init__(self, starts: Sequence[tuple[str, str | None]], now: datetime) -> None:
        """Compare the start times of all runs, the oldest first, with the present time."""
        self._ages: dict[str, tuple[timedelta, timedelta]] = {}  # by the clock, and without long pauses
        self.pause: tuple[datetime, datetime] | None = None  # the latest
        known: dict[str, datetime] = {}
        latest = _FIRST_DATE
        for run_id, started_utc in starts:
            start = _start_of(run_id, started_utc)
            if start is not None and _FIRST_DATE <= start <= now + _CLOCK_TOLERANCE:
                latest = max(latest, start)
                known[run_id] = min(latest, now)
        following, paused = now, timedelta()
        for run_id, _ in reversed(starts):
            start = known.get(run_id, following)
            if following - start > _LONG_PAUSE:
                paused += following - start
                self.pause = self.pause or (start, following)
            following = start
            self._ages[run_id] = (now - start, now - start - paused)

    def is_older(self, run_id: str, age: timedelta) -> bool:
        """Return whether a run is older than an age, by the clock. Every run is older than nothing."""
        return not age or self._ages.get(run_id, (timedelta(),) * 2)[0] > age

    def is_certain(self, run_id: str, age: timedelta) -> bool:
        """Return whether a run is as old as an age without any long pause, in which the clock may have been set."""
        return self._ages.get(run_id, (timedelta(),) * 2)[1] >= age


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The runs to delete, the oldest first.

    `size_bytes` is about what they take on the disk. `named` counts runs that would be deleted, too, if they had
    neither label nor note, and `uncertain` those whose age is uncertain. `pause` is why: from when to when no run
    was saved.
    """

    rows: tuple[RunEntry, ...]
    size_bytes: int
    named: int
    uncertain: int = 0
    pause: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True)
class ThinPlan:
    """The runs to thin, the oldest first. The other runs are counted as in `PrunePlan`."""

    run_ids: tuple[str, ...]
    named: int
    uncertain: int = 0
    pause: tuple[datetime, datetime] | None = None


def plan_pruning(
    log: RunLog,
    now: datetime,
    *,
    keep: timedelta | None,
    max_bytes: int | None,
    with_named: bool,
    with_uncertain: bool = False,
) -> PrunePlan:
    """Return what to delete. A run that is still running is never deleted.

    Args:
        log: The run log.
        now: The present time.
        keep: The age from which runs are deleted; None for any.
        max_bytes: The size that the log may have; None for any.
        with_named: Delete runs with a label or a note as well.
        with_uncertain: Delete runs whose age is uncertain as well.

    Raises:
        RunLogError: The log cannot be read.
    """
    sizes = {size.run_id: size.size_bytes for size in log.run_sizes()}
    newest_first = log.find_runs(RunQuery())
    oldest_first = (row for row in log.entries(newest_first[::-1]) if not row.is_running)
    used_bytes = log.used_bytes()
    ages = RunAges(log.start_times(), now)
    rows: list[RunEntry] = []
    named = uncertain = doubted = 0
    for row in oldest_first:
        is_old = keep is not None and ages.is_older(row.run_id, keep)
        is_certain = keep is None or ages.is_certain(row.run_id, keep)
        is_too_much = max_bytes is not None and used_bytes > max_bytes
        if not is_old and not is_too_much:
            continue
        if not with_named and (row.label or row.note):
            named += 1
            continue
        if not is_certain and not is_too_much:
            doubted += 1
            if not with_uncertain:
                uncertain += 1
                continue
        rows.append(row)
        used_bytes -= sizes.get(row.run_id, 0)
    size = sum(sizes.get(row.run_id, 0) for row in rows)
    return PrunePlan(tuple(rows), size, named, uncertain, ages.pause if doubted else None)


def plan_thinning(
    log: RunLog,
    now: datetime,
    min_age: timedelta,
    *,
    with_named: bool = False,
    with_damaged: bool = True,
    with_uncertain: bool = False,
    besides: PrunePlan | None = None,
) -> ThinPlan:
    """Return which runs to thin. A run that is still running is never thinned.

    Args:
        log: The run log.
        now: The present time.
        min_age: The age from which runs are thinned.
        with_named: Thin runs with a label or a note as well.
        with_damaged: Include runs that an earlier attempt found damaged.
        with_uncertain: Thin runs whose age is uncertain as well.
        besides: Leave out the runs that this plan deletes.

    Raises:
        RunLogError: The log cannot be read.
    """
    deleted = {row.run_id for row in besides.rows} if besides is not None else set[str]()
    thinnable = log.thinnable_runs(with_damaged=with_damaged)
    ages = RunAges(log.start_times() if thinnable else [], now)
    old = [run for run in thinnable if run.run_id not in deleted and ages.is_older(run.run_id, min_age)]
    chosen = [run for run in old if with_named or not run.is_named]
    certain = [run for run in chosen if ages.is_certain(run.run_id, min_age)]
    pause = ages.pause if len(certain) < len(chosen) else None
    thinned = chosen if with_uncertain else certain
    run_ids = tuple(run.run_id for run in thinned)
    return ThinPlan(run_ids, len(old) - len(chosen), len(chosen) - len(thinned), pause)


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
