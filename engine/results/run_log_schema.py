"""The run log's SQLite file: its name, its tables, and the explanation of its errors.

Write-ahead logging lets one process write a run while others read; `synchronous = NORMAL` is enough for what
was committed to survive the death of the process, and does not make the disk wait for each sample. The log names
hosts and people's notes about them: its files are the owner's alone.
"""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Final

from ..host.saved_files import create_private_directory, create_private_file, restrict_to_owner
from ..model.errors import RunLogError, explain_os_error

RUN_LOG_FILE_NAME: Final = "runs.sqlite3"
SCHEMA_VERSION: Final = 1
_APPLICATION_ID: Final = 0x6C_67_61_75  # "lgau"
_FILE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")  # SQLite makes the others with the mode of the first
_BUSY_S: Final = 10.0  # another process's commit takes milliseconds; a disk that hangs takes longer

_TABLES: Final = (
    """CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        preset TEXT NOT NULL,
        peer TEXT NOT NULL,
        label TEXT,
        owner TEXT NOT NULL,
        started_utc TEXT,
        reason TEXT,
        detail TEXT,
        verdict TEXT,
        document TEXT,
        note TEXT,
        grp TEXT
    )""",
    """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        UNIQUE (run_id, seq)
    )""",
)

# Columns that an older file of version 1 may lack; they are added when it is next written.
_ADDED_COLUMNS: Final = ("note", "grp")

_REMEDIES: Final = {
    sqlite3.SQLITE_NOTADB: "it is not a run log; move it away, or choose another data directory",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away, or choose another data directory",
    sqlite3.SQLITE_READONLY: "it cannot be written; make it writable, or choose another data directory",
    sqlite3.SQLITE_PERM: "it cannot be read; make it readable, or choose another data directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; make its directory writable, or choose another data directory",
    sqlite3.SQLITE_FULL: "the disk is full; free space on it, or choose another data directory",
    sqlite3.SQLITE_IOERR: "the disk failed; check it and its free space, or choose another data directory",
    sqlite3.SQLITE_BUSY: "another process has locked it; end that process and try again",
}


def explain_error(path: Path, error: Exception) -> str:
    """Return a text for the user: the error of the file, and the remedy."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)  # errors made by the Python module have none
        remedy = _REMEDIES.get(code & 0xFF) if isinstance(code, int) else None
        return f"{path}: {remedy or f'it cannot be used ({error}); choose another data directory'}"
    if isinstance(error, OSError):
        return f"{path}: {explain_os_error(error)}; make it writable, or choose another data directory"
    return f"{path}: {error}"


@contextlib.contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Translate errors of SQLite and the system to RunLogError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise RunLogError(f"the run log cannot be used: {explain_error(path, error)}") from error


def connect_sqlite(path: Path) -> sqlite3.Connection:
    """Return a connection for a single thread, with explicit transactions."""
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def open_connection(path: Path) -> Generator[sqlite3.Connection]:
    """Open a connection for the duration of the context."""
    with translate_errors(path), contextlib.closing(connect_sqlite(path)) as connection:
        yield connection


def prepare_database(path: Path, *, create: bool) -> None:
    """Check that the file is a run log of a supported version; create or upgrade it if necessary.

    Without `create`, the file is only checked, and may be missing. Raises RunLogError.
    """
    if create:
        with translate_errors(path.parent):
            create_private_directory(path.parent)
            create_private_file(path.resolve())
    elif not _exists(path):
        return
    with open_connection(path) as connection:
        _check(path, connection)
        for suffix in _FILE_SUFFIXES:
            restrict_to_owner(path.with_name(path.name + suffix))
        if create:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")  # one process creates the tables; a read-only file fails here
            if _check(path, connection):
                for name in missing_columns(connection):
                    connection.execute(f"ALTER TABLE runs ADD COLUMN {name} TEXT")
            else:
                for statement in _TABLES:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")


def _check(path: Path, connection: sqlite3.Connection) -> bool:
    """Return whether the tables exist; raise RunLogError if the database is not a supported run log."""
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
        return False
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise RunLogError(f"{path} is another program's database; choose another data directory")
    version = _pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise RunLogError(
            f"{path} was made by a newer linkgauge (its format is {version}, this one reads "
            f"{SCHEMA_VERSION}); upgrade linkgauge, or choose another data directory"
        )
    return True


def missing_columns(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the columns of `runs` that a file of an older linkgauge lacks; their values are unknown."""
    existing = {row[1] for row in connection.execute("PRAGMA table_info(runs)")}
    return tuple(name for name in _ADDED_COLUMNS if name not in existing)


def has_tables(path: Path) -> bool:
    """Return whether the file exists and has the tables."""
    if not _exists(path):
        return False
    with open_connection(path) as connection:
        return _check(path, connection)


def _exists(path: Path) -> bool:
    with translate_errors(path):
        try:
            path.stat()
        except FileNotFoundError:
            return False
        return True


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
