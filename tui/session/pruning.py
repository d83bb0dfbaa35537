"""Which runs `linkgauge runs prune` deletes or thins: old ones, and the oldest if the log is too large.

The preference `thin_after` thins old runs without a command, a little at each end of a test or of the app. A clock
may be wrong, now or when a run was made: no run is deleted or thinned by its age alone unless the order of the runs
confirms that age.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final

from ...engine.model.errors import RunLogError, UsageError
from ...engine.results.run_log import RunLog, RunQuery
from ..words.parsing import NEVER, age
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
    the present time, is replaced by the next run's date. If no run was saved for more than a year, the clock
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
    """The runs to delete, or to thin, the oldest first.

    `named` counts runs that would be among them if they had neither label nor note, and `uncertain` the runs of an
    uncertain age. `pause` is why: from when to when no run was saved. `size_bytes` is about what deletion frees.
    """

    run_ids: tuple[str, ...]
    named: int
    uncertain: int = 0
    pause: tuple[datetime, datetime] | None = None
    size_bytes: int = 0


@dataclass(frozen=True)
class RunChooser:
    """Chooses what to delete or to thin of a log, never a run that is still running. Raises RunLogError.

    Args:
        log: The run log.
        now: The present time.
        with_named: Choose runs with a label or a note as well.
        with_uncertain: Choose runs of an uncertain age as well.
    """

    log: RunLog
    now: datetime
    with_named: bool = False
    with_uncertain: bool = False

    @cached_property
    def _ages(self) -> RunAges:
        return RunAges(self.log.start_times(), self.now)

    def deletion(self, keep: timedelta | None, max_bytes: int | None) -> PrunePlan:
        """Return what to delete: runs older than `keep`, and the oldest of a log larger than `max_bytes`."""
        log, ages = self.log, self._ages
        sizes = log.run_sizes()
        newest_first = log.find_runs(RunQuery())
        used_bytes = log.used_bytes()
        run_ids: list[str] = []
        named = uncertain = doubted = 0
        for row in log.entries(newest_first[::-1]):
            is_old = keep is not None and ages.is_older(row.run_id, keep)
            is_certain = keep is None or ages.is_certain(row.run_id, keep)
            is_too_much = max_bytes is not None and used_bytes > max_bytes
            if row.is_running or not (is_old or is_too_much):
                continue
            if not self.with_named and (row.label or row.note):
                named += 1
                continue
            if not is_certain and not is_too_much:
                doubted += 1
                if not self.with_uncertain:
                    uncertain += 1
                    continue
            run_ids.append(row.run_id)
            used_bytes -= sizes.get(row.run_id, 0)
        size_bytes = sum(sizes.get(run_id, 0) for run_id in run_ids)
        return PrunePlan(tuple(run_ids), named, uncertain, ages.pause if doubted else None, size_bytes)

    def thinning(
        self, min_age: timedelta, *, with_damaged: bool = True, besides: PrunePlan | None = None
    ) -> PrunePlan:
        """Return what to thin: runs older than `min_age`, without those that `besides` deletes.

        `with_damaged` includes runs that an earlier attempt found damaged.
        """
        deleted = set(besides.run_ids) if besides is not None else set[str]()
        thinnable = [run for run in self.log.thinnable_runs(with_damaged=with_damaged) if run.run_id not in deleted]
        if not thinnable:
            return PrunePlan((), 0)
        ages = self._ages
        old = [run for run in thinnable if ages.is_older(run.run_id, min_age)]
        chosen = [run for run in old if self.with_named or not run.is_named]
        certain = [run for run in chosen if ages.is_certain(run.run_id, min_age)]
        pause = ages.pause if len(certain) < len(chosen) else None
        thinned = chosen if self.with_uncertain else certain
        run_ids = tuple(run.run_id for run in thinned)
        return PrunePlan(run_ids, len(old) - len(chosen), len(chosen) - len(thinned), pause)


def thin_old_runs(now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
    """Thin runs older than the preference says, for a fraction of a second. Call this when no test is running.

    Runs with a label or a note stay as they are. While any test is running, or if the log cannot
    be used, nothing is done: the next call is soon enough.
    """
    try:
        thin_after = read_preferences(config_dir()).thin_after
    except UsageError as error:  # the file was changed after the test began
        _log.debug("old runs are not thinned: %s", error)
        return
    if thin_after == NEVER:
        return
    deadline = time.monotonic() + _BUDGET_S
    try:
        with open_run_list() as log:
            if log.is_any_running():
                return
            plan = RunChooser(log, now()).thinning(age(thin_after), with_damaged=False)
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
