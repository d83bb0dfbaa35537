"""Which runs `linkgauge runs prune` deletes: those that are too old, and the oldest where the log is too large."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...engine.results.run_log import RunLog, RunRecord


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """The runs to delete, the oldest first.

    `size_bytes` is about what they take on the disk. `named` counts runs that would be deleted, too, if they had
    neither label nor note.
    """

    rows: tuple[RunRecord, ...]
    size_bytes: int
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
    left = log.used_bytes()
    rows: list[RunRecord] = []
    named = 0
    for row in oldest_first:
        started = _start_of(row)
        is_old = keep is not None and started is not None and now - started > keep
        if not is_old and (max_bytes is None or left <= max_bytes):
            continue
        if not with_named and (row.label or row.note):
            named += 1
            continue
        rows.append(row)
        left -= sizes.get(row.run_id, 0)
    size = sum(sizes.get(row.run_id, 0) for row in rows)
    return PrunePlan(tuple(rows), size, named)


def _start_of(row: RunRecord) -> datetime | None:
    """Return when a run started. One that ended before that has the time in its id; None if that has none."""
    try:
        started = datetime.fromisoformat(row.started_utc or "")
    except ValueError:
        try:
            started = datetime.strptime(row.run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
        except ValueError:
            return None
    return started if started.tzinfo is not None else started.replace(tzinfo=UTC)
