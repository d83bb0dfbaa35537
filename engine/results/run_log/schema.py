"""The run log's SQLite file: its name, its tables, and the explanation of its errors.

Write-ahead logging lets one process write a run while others read; `synchronous = NORMAL` is enough for what
was committed to survive the death of the process, and does not make the disk wait for each sample. The log names
hosts and people's notes about them: its files are the owner's alone.

Version 1 had all events in `events`. Version 2 has the newest there, and all others in `blocks`. A file of version
1 is read as it is, and gets the new tables when it is next written.
"""

import contextlib
import errno
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Final

from ...host.saved_files import create_private_directory, create_private_file, restrict_to_owner
from ...model.errors import RunLogError, RunLogFull, RunLogLocked, explain_os_error, make_printable

RUN_LOG_FILE_NAME: Final = "runs.sqlite3"
SCHEMA_VERSION: Final = 2
_APPLICATION_ID: Final = 0x6C_67_61_75  # "lgau"
_FILE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")  # SQLite makes the others with the mode of the first
LOCK_WAIT_S: Final = 10.0  # another process's commit takes milliseconds; a disk that hangs takes longer
_PREPARE_S: Final = 1.0  # what is locked for longer is prepared by the writer, which can wait
_WAL_BYTES: Final = 4 << 20  # the size that the file of the write-ahead log is cut to when it has been written back

_RUNS: Final = """CREATE TABLE runs (
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
        document TEXT
    )"""
_EVENTS: Final = """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        UNIQUE (run_id, seq)
    )"""
# The events `first` to `last` of a run (event_blocks.py).
_BLOCKS: Final = """CREATE TABLE blocks (
        run_id TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run_id, first)
    )"""
# Runs whose row is gone already, and whose events a process is deleting.
_REMOVALS: Final = "CREATE TABLE removals (run_id TEXT NOT NULL UNIQUE)"
# Entries of named series, each a JSON text (journal.py). No number is given twice. An older linkgauge of version 2
# does not mind this table, and its files lack it.
_JOURNAL: Final = """CREATE TABLE IF NOT EXISTS journal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        series TEXT NOT NULL,
        keep_until_s REAL,
        entry TEXT NOT NULL
    )"""

# Columns that a file of an older linkgauge may lack; they are added when it is next written. `thinned` is the
# number of a run's first event whose samples are not merged yet (thinning.py), and COMPLETE when there is none.
# The last four are what a list of runs shows of `document` (digest.py): to read that of each run takes too long.
_ADDED_COLUMNS: Final = {
    "note": "TEXT",
    "grp": "TEXT",
    "thinned": "INTEGER",
    "brief": "TEXT",
    "mbit_s": "REAL",
    "transactions_s": "REAL",
    "percent": "REAL",
}
COMPLETE: Final = -1

# Indexes that a file of an older linkgauge may lack. It keeps them right without knowing them. `runs_list` has all
# that a list is filtered and sorted by, so that no document is read; the others have few runs.
LIST_INDEX: Final = "runs_list"
_INDEXES: Final = (
    (
        f"{LIST_INDEX} ON runs (id, preset, peer, label, started_utc, reason, verdict, note, grp, brief, mbit_s, "
        "transactions_s, percent)"
    ),
    "runs_of_group ON runs (grp) WHERE grp IS NOT NULL",
    "runs_without_end ON runs (owner) WHERE reason IS NULL",
    "runs_without_brief ON runs (id) WHERE brief IS NULL AND document IS NOT NULL",
    "journal_of_series ON journal (series, number)",
    "journal_by_age ON journal (keep_until_s) WHERE keep_until_s IS NOT NULL",
)

_REMEDIES: Final = {
    sqlite3.SQLITE_NOTADB: "it is not a run log; move it away, or choose another data directory",
    sqlite3.SQLITE_CORRUPT: "it is damaged; move it away, or choose another data directory",
    sqlite3.SQLITE_READONLY: "it cannot be written; make it writable, or choose another data directory",
    sqlite3.SQLITE_PERM: "it cannot be read; make it readable, or choose another data directory",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; make its directory writable, or choose another data directory",
    sqlite3.SQLITE_FULL: "the disk is full; free space on it, or choose another data directory",
    sqlite3.SQLITE_IOERR: "the disk failed; check it and its free space, or choose another data directory",
    sqlite3.SQLITE_BUSY: "another process has locked it; end that process and try again",
    sqlite3.SQLITE_LOCKED: "another process has locked it; end that process and try again",
    sqlite3.SQLITE_PROTOCOL: "another process has locked it; end that process and try again",
}
_LOCK_CODES: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def explain_error(path: Path, error: Exception) -> str:
    """Return a text for the user: the error of the file, and the remedy."""
    if isinstance(error, RunLogError):
        return str(error)
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", None)  # errors made by the Python module have none
        remedy = _REMEDIES.get(code & 0xFF) if isinstance(code, int) else None
        why = f"it cannot be used ({make_printable(str(error))}); choose another data directory"
        return f"{path}: {remedy or why}"
    if isinstance(error, OSError):
        return f"{path}: {explain_os_error(error)}; make it writable, or choose another data directory"
    return f"{path}: {error}"


@contextlib.contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Translate errors of SQLite and the system to RunLogError, and to its kinds for a lock and a full disk."""
    try:
        yield
    except UnicodeDecodeError as error:  # a damaged file may have any bytes in SQLite's own messages
        raise RunLogError(f"the run log cannot be used: {path}: {_REMEDIES[sqlite3.SQLITE_CORRUPT]}") from error
    except (sqlite3.Error, OSError) as error:
        kind = RunLogLocked if is_lock_error(error) else RunLogFull if _is_disk_full(error) else RunLogError
        raise kind(f"the run log cannot be used: {explain_error(path, error)}") from error


def _is_disk_full(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC


def is_lock_error(error: Exception) -> bool:
    """Return whether another connection has locked the file: the same statement may succeed later."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & 0xFF in _LOCK_CODES


def connect_sqlite(path: Path, busy_s: float = LOCK_WAIT_S, *, any_thread: bool = False) -> sqlite3.Connection:
    """Return a connection with explicit transactions. It waits for a lock for `busy_s`.

    It is for the thread that calls this. With `any_thread`, others may use it in turn, and the caller sees to that.
    """
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=not any_thread)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")  # the file may be one that somebody sent
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def open_connection(path: Path, busy_s: float = LOCK_WAIT_S) -> Generator[sqlite3.Connection]:
    """Open a connection for the duration of the context. It waits for a lock for `busy_s`."""
    with translate_errors(path), contextlib.closing(connect_sqlite(path, busy_s)) as connection:
        yield connection


def prepare_database(path: Path, *, create: bool) -> None:
    """Check that the file is a run log of a supported version; create or upgrade it if necessary.

    Without `create`, the file is only checked, and may be missing. With it, a file that another process has locked
    stays as it is: whoever writes to it prepares it first (`prepare_connection`). Raises RunLogError.
    """
    if create:
        with translate_errors(path.parent):
            create_private_directory(path.parent)
            create_private_file(path.resolve())
    elif not _exists(path):
        return
    busy_s = _PREPARE_S if create else LOCK_WAIT_S
    with translate_errors(path), contextlib.closing(connect_sqlite(path, busy_s)) as connection:
        try:
            _check(path, connection)
            for suffix in _FILE_SUFFIXES:
                restrict_to_owner(path.with_name(path.name + suffix))
            if create:
                prepare_connection(path, connection)
        except sqlite3.Error as error:
            if not (create and is_lock_error(error)):
                raise


def prepare_connection(path: Path, connection: sqlite3.Connection) -> None:
    """Create the tables, or those that a file of an older linkgauge lacks. Raises RunLogError or sqlite3.Error."""
    if not _check(path, connection):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")  # one process creates the tables; a read-only file fails here
    try:
        _create_tables(path, connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create_tables(path: Path, connection: sqlite3.Connection) -> None:
    if not _check(path, connection):
        for statement in (_RUNS, _EVENTS, _BLOCKS, _REMOVALS):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    elif not has_blocks(connection):
        connection.execute(_BLOCKS)
        connection.execute(_REMOVALS)
    connection.execute(_JOURNAL)
    for name in missing_columns(connection):
        connection.execute(f"ALTER TABLE runs ADD COLUMN {name} {_ADDED_COLUMNS[name]}")
    for index in _INDEXES:
        connection.execute(f"CREATE INDEX IF NOT EXISTS {index}")
    if read_pragma(connection, "user_version") != SCHEMA_VERSION:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check(path: Path, connection: sqlite3.Connection) -> bool:
    """Return whether the tables exist; raise RunLogError if the database is not a supported run log."""
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
        return False
    if read_pragma(connection, "application_id") != _APPLICATION_ID:
        raise RunLogError(f"{path} is another program's database; choose another data directory")
    version = read_pragma(connection, "user_version")
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


def has_list_index(connection: sqlite3.Connection) -> bool:
    """Return whether a list of runs can be read from its index alone, as no run lacks its part of it."""
    sql = "SELECT 1 FROM sqlite_schema WHERE type = 'index' AND name = ?"
    if missing_columns(connection) or connection.execute(sql, (LIST_INDEX,)).fetchone() is None:
        return False
    sql = "SELECT EXISTS (SELECT 1 FROM runs WHERE brief IS NULL AND document IS NOT NULL)"
    return connection.execute(sql).fetchone() == (0,)


def has_blocks(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the tables of version 2."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'blocks'").fetchone() is not None


def has_journal(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the table of journals."""
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").fetchone() is not None


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


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of a pragma that is a whole number."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
