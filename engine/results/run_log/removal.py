"""Deletion of runs in pieces, and the space that it gives back to the disk.

The rows of the runs go first, in one transaction with a note of what is to follow; then their events, in
transactions of some milliseconds with pauses between them, so that no other process waits long for the lock. What a
process that is killed leaves behind is deleted by the next one.

A new file gives freed pages back in pieces (`auto_vacuum = INCREMENTAL`). A file of an older linkgauge has to be
rewritten once for that: when little of it is left, or when the caller allows that other processes wait.
"""

import contextlib
import logging
import math
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .schema import has_blocks, is_lock_error, open_connection, prepare_database, read_pragma

_INCREMENTAL: Final = 2
_PIECE_S: Final = 0.02  # of the lock at a time
_PAUSE: Final = 2.0  # times a piece; others poll for the lock every 100 ms at most
_MIN_PAUSE_S: Final = 0.002
_FIRST_ROWS: Final = 50
_MAX_ROWS: Final = 5_000
_MAX_REWRITTEN_BYTES: Final = 16 << 20  # rewritten in some tenths of a second
_CHECKPOINT_BUSY_MS: Final = 100
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunSize:
    """A run, and at least how many bytes of the file its deletion frees."""

    run_id: str
    size_bytes: int


def file_size(path: Path) -> int:
    """Return the bytes of the file; 0 if there is none. Its write-ahead log is small, and comes and goes."""
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def used_size(path: Path) -> int:
    """Return the bytes of the file without free pages: its size once those are given back."""
    with open_connection(path) as connection:
        return used_bytes(connection)


def run_sizes(path: Path) -> list[RunSize]:
    """Return the sizes of all runs, the oldest first. It reads the whole file of an older linkgauge."""
    parts = ["SELECT id AS run_id, coalesce(length(document), 0) AS size FROM runs"]
    parts.append("SELECT run_id, length(event) FROM events")
    with open_connection(path) as connection:
        if has_blocks(connection):
            parts.append("SELECT run_id, length(data) FROM blocks")
        sql = (
            f"SELECT runs.id, sum(size) FROM runs JOIN ({' UNION ALL '.join(parts)}) AS part "  # noqa: S608 (ours)
            "ON part.run_id = runs.id GROUP BY runs.id ORDER BY runs.number"
        )
        return [RunSize(run_id, size) for run_id, size in connection.execute(sql)]


def remove_runs(path: Path, run_ids: Sequence[str], *, rewrite: bool = False) -> None:
    """Delete runs and give their space back. Raises RunLogError.

    Args:
        path: The file of the run log.
        run_ids: The runs; none of them may be active.
        rewrite: Rewrite a file of an older linkgauge even if that takes long.

    Raises:
        RunLogError: The file cannot be used.
    """
    prepare_database(path, create=True)
    with open_connection(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT OR IGNORE INTO removals (run_id) VALUES (?)", [(run,) for run in run_ids])
        connection.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in run_ids])
        connection.execute("COMMIT")
        _remove_events(connection)
        give_back(connection, rewrite=rewrite)


def _remove_events(connection: sqlite3.Connection) -> None:
    """Delete the events of all runs whose removal has begun, also of those that another process left."""
    for (run_id,) in connection.execute("SELECT run_id FROM removals").fetchall():
        for table in ("events", "blocks"):
            rows = _FIRST_ROWS
            sql = (
                f"DELETE FROM {table} WHERE rowid IN "  # noqa: S608 (names of ours)
                f"(SELECT rowid FROM {table} WHERE run_id = ? LIMIT ?)"
            )
            while True:
                began = time.monotonic()
                if connection.execute(sql, (run_id, rows)).rowcount < rows:
                    break
                rows = _rest(began, rows)
        connection.execute("DELETE FROM removals WHERE run_id = ?", (run_id,))


def give_back(connection: sqlite3.Connection, *, rewrite: bool, deadline: float = math.inf) -> None:
    """Give free pages back to the disk, until the deadline. A disk that is too full for that is no error.

    Args:
        connection: A connection without a transaction.
        rewrite: Rewrite a file of an older linkgauge even if that takes long.
        deadline: The time of the monotonic clock from which on no piece begins.
    """
    try:
        if read_pragma(connection, "auto_vacuum") == _INCREMENTAL:
            _give_back_in_pieces(connection, deadline)
        elif deadline < math.inf:
            return  # it would be rewritten
        elif rewrite or used_bytes(connection) <= _MAX_REWRITTEN_BYTES:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        # A transaction that begins while another process reads leaves the pages to that one's checkpoint.
        connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_BUSY_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        if not is_lock_error(error) and getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
            raise
        _log.debug("space is not given back: %s", error)


def _give_back_in_pieces(connection: sqlite3.Connection, deadline: float) -> None:
    pages = _FIRST_ROWS
    while read_pragma(connection, "freelist_count") and time.monotonic() < deadline:
        began = time.monotonic()
        # It frees a page a step, and has no columns: execute() would take one step only.
        connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        pages = _rest(began, pages)


def used_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the file's pages in use."""
    pages = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
    return pages * read_pragma(connection, "page_size")


def pause_after(began: float) -> float:
    """Let others have the lock after a piece that began then; return how long it took."""
    spent_s = time.monotonic() - began
    time.sleep(max(_MIN_PAUSE_S, _PAUSE * spent_s))
    return spent_s


def _rest(began: float, amount: int) -> int:
    """Let others have the lock; return the amount for the next piece by the time that this one took."""
    spent_s = pause_after(began)
    return max(
        _FIRST_ROWS, min(_MAX_ROWS, 2 * amount if spent_s < _PIECE_S / 2 else int(amount * _PIECE_S / spent_s))
    )
