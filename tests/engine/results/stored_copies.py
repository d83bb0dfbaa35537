"""Many runs in a log, by copies of one row."""

import contextlib
import sqlite3
from pathlib import Path


def add_copies(path: Path, count: int) -> None:
    """Add copies of the newest run, without events, as the oldest ones: `0-run-0000` is the very first."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(runs)")]
        names = [name for name in names if name not in {"number", "id", "started_utc"}]
        (oldest,) = connection.execute("SELECT min(number) FROM runs").fetchone()
        rows = [
            (oldest - count + number, f"0-run-{number:04}", f"2020-10-01T00:{number % 60:02}:00Z")
            for number in range(count)
        ]
        columns = ", ".join(names)
        sql = (
            f"INSERT INTO runs (number, id, started_utc, {columns}) "  # noqa: S608 (names of ours)
            f"SELECT ?, ?, ?, {columns} FROM runs ORDER BY number DESC LIMIT 1"
        )
        connection.executemany(sql, rows)
