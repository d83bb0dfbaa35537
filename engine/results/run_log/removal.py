"""Deletion of runs in pieces, and the space that it gives back to the disk.

The rows of the runs go first, in one transaction that also notes the runs in `removals`. Then their events go, in
transactions of some milliseconds with pauses between them, so that no other process waits long for the lock. If the
process is killed, the next deletion completes its work.

A new file gives freed pages back in pieces (`auto_vacuum = INCREMENTAL`). A file of an older linkgauge has to be
rewritten once for that: if it has become small, or if the caller lets other processes wait.
"""

import contextlib
import logging
import math
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .log_file import LogConnection, is_lock_error, open_for_writing
from .schema_and_older_files import read_pragma, transaction

_INCREMENTAL: Final = 2
_PIECE_S: Final = 0.02  # of the lock at a time
_PAUSE: Final = 2.0  # times a piece; others poll for the lock every 100 ms at most
_MIN_PAUSE_S: Final = 0.002
_FIRST_ROWS: Final = 50
_MAX_ROWS: Final = 5_000
_MAX_REWRITTEN_BYTES: Final = 16 << 20  # rewritten in some tenths of a second
_CHECKPOINT_BUSY_MS: Final = 100
_log = logging.getLogger(__name__)


def file_size(path: Path) -> int:
    """Return the bytes of the file; 0 if there is none. Its write-ahead log is small, and comes and goes."""
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def run_sizes(connection: LogConnection) -> dict[str, int]:
    """Return the minimum of bytes that the deletion of each run frees. A file without blocks is read whole."""
    sql = (
        "SELECT runs.id, sum(size) FROM runs JOIN ("
        "SELECT id AS run_id, coalesce(length(document), 0) AS size FROM runs "
        "UNION ALL SELECT run_id, length(event) FROM events UNION ALL SELECT run_id, length(data) FROM blocks"
        ") AS part ON part.run_id = runs.id GROUP BY runs.id"
    )
    rows = connection.rows(sql)
    return {run_id: size for run_id, size in rows if isinstance(run_id, str) and isinstance(size, int)}


def remove_runs(path: Path, run_ids: Sequence[str], *, rewrite: bool = False) -> None:
    """Delete runs and give their space back. Raises RunLogError.

    Args:
        path: The file of the run log.
        run_ids: The runs; none of them may be active.
        rewrite: Rewrite a file of an older linkgauge even if that takes long.

    Raises:
        RunLogError: The file cannot be used.
    """
    with open_for_writing(path) as connection:
        with transaction(connection):
            runs = [(run_id,) for run_id in run_ids]
            connection.executemany("INSERT OR IGNORE INTO removals (run_id) VALUES (?)", runs)
            connection.executemany("DELETE FROM runs WHERE id = ?", runs)
        _remove_events(connection)
        give_back(connection, rewrite=rewrite)


def _remove_events(connection: LogConnection) -> None:
    """Delete the events of all runs in `removals`, also if another process has noted them."""
    while row := connection.execute("SELECT rowid, run_id FROM removals LIMIT 1").fetchone():
        removal, run_id = row
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
        connection.execute("DELETE FROM removals WHERE rowid = ?", (removal,))


def give_back(connection: LogConnection, *, rewrite: bool, deadline: float = math.inf) -> None:
    """Give free pages back to the disk, until the deadline. A disk that is too full for that is not an error.

    Args:
        connection: A connection without a transaction.
        rewrite: Rewrite a file of an older linkgauge even if that takes long.
        deadline: The time of the monotonic clock from which on no piece begins.
    """
    try:
        if read_pragma(connection, "auto_vacuum") == _INCREMENTAL:
            _give_back_in_pieces(connection, deadline)
        elif deadline < math.inf:
            return  # a rewriting cannot be interrupted
        elif rewrite or used_bytes(connection) <= _MAX_REWRITTEN_BYTES:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute_long("VACUUM")
        # While another process reads, the pages are left to the checkpoint of that process.
        connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_BUSY_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        if not is_lock_error(error) and getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_FULL:
            raise
        _log.debug("space is not given back: %s", error)


def _give_back_in_pieces(connection: LogConnection, deadline: float) -> None:
    pages = _FIRST_ROWS
    left, before = read_pragma(connection, "freelist_count"), math.inf
    while 0 < left < before and time.monotonic() < deadline:  # a damaged file may claim pages that are not free
        began = time.monotonic()
        # Each step frees a page. execute() would take only one step, because there are no columns.
        connection.executescript(f"PRAGMA incremental_vacuum({pages})")
        pages = _rest(began, pages)
        left, before = read_pragma(connection, "freelist_count"), left


def used_bytes(connection: LogConnection) -> int:
    """Return the bytes of the file without free pages: its size after `give_back`."""
    pages = read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")
    return pages * read_pragma(connection, "page_size")


def pause_after(began: float) -> float:
    """Let other processes have the lock after a piece that began then; return how long the piece took."""
    spent_s = time.monotonic() - began
    time.sleep(max(_MIN_PAUSE_S, _PAUSE * spent_s))
    return spent_s


def _rest(began: float, amount: int) -> int:
    """Let other processes have the lock; return the amount of the next piece, by the time of this one."""
    spent_s = pause_after(began)
    return max(
        _FIRST_ROWS, min(_MAX_ROWS, 2 * amount if spent_s < _PIECE_S / 2 else int(amount * _PIECE_S / spent_s))
    )
