"""The run log's file: how it is opened, the limits of its connections, and the explanation of its errors.

Write-ahead logging lets one process write a run while others read. With `synchronous = NORMAL`, committed entries
survive the death of the process, and no sample waits for the disk. The log names hosts and has the user's notes
about them, so that only the owner can read its files.

The file may be one that somebody sent. So linkgauge carries out nothing in it: schema_and_older_files.py compares
its tables with ours before anything is read. Whatever its pages claim, a statement has a limit of time and of
memory, ends at Ctrl-C, and gives no more rows than the file has room for.
"""

import contextlib
import errno
import functools
import math
import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ...host.saved_files import create_private_directory, create_private_file, restrict_to_owner
from ...model.errors import RunLogError, RunLogFull, RunLogLocked, explain_os_error, make_printable
from .schema_and_older_files import SchemaGaps, fill_gaps_for_reading, find_gaps, prepare_schema, read_pragma

RUN_LOG_FILE_NAME: Final = "runs.sqlite3"
_JOURNAL_SUFFIX: Final = "-journal"
_WITH_ENTRIES: Final = ("-wal", _JOURNAL_SUFFIX)  # files that may have what the log itself lacks
_SUFFIXES: Final = (*_WITH_ENTRIES, "-shm")  # SQLite makes them with the mode of the log
LOCK_WAIT_S: Final = 10.0  # another process's commit takes milliseconds; a disk that hangs takes longer
_PREPARE_S: Final = 1.0  # a file that is locked for longer is prepared by the writer, which can wait
_WAL_BYTES: Final = 4 << 20  # the size that the file of the write-ahead log is cut to when it has been written back

MAX_VALUE_BYTES: Final = 8 << 20  # the largest are documents and blocks, of some megabytes at most
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 17,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
}
_PRAGMAS: Final = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "hard_heap_limit = 268435456",  # of all connections of this process
    "cache_size = -2000",  # whatever the file asks for
    "synchronous = NORMAL",
    f"journal_size_limit = {_WAL_BYTES}",
)
# CPU time, which a slow disk does not take: enough for a sorted list of 50,000 runs without briefs.
_STATEMENT_S: Final = 20.0
_OPENING_S: Final = 2.0  # SQLite reads the schema in a millisecond
_STEPS: Final = 50_000  # of SQLite's machine between two looks at the time: some milliseconds
_MIN_ROW_BYTES: Final = 6
_READER_BYTES: Final = 32_768  # of the index of the write-ahead log (sqlite.org/walformat.html)
_SUPER_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names another file

_ELSEWHERE: Final = "or choose another data directory"
_AWAY: Final = f"move it away, {_ELSEWHERE}"
_REMEDIES: Final = {
    sqlite3.SQLITE_NOTADB: f"it is not a run log; {_AWAY}",
    sqlite3.SQLITE_CORRUPT: f"it is damaged; {_AWAY}",
    sqlite3.SQLITE_TOOBIG: f"it has a value that is too long for a run log; {_AWAY}",
    sqlite3.SQLITE_NOMEM: f"it takes more memory than a run log does; {_AWAY}",
    sqlite3.SQLITE_INTERRUPT: f"it takes too long to read; {_AWAY}",
    sqlite3.SQLITE_READONLY: f"it cannot be written; make it writable, {_ELSEWHERE}",
    sqlite3.SQLITE_PERM: f"it cannot be read; make it readable, {_ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened; make its directory writable, {_ELSEWHERE}",
    sqlite3.SQLITE_FULL: f"the disk is full; free space on it, {_ELSEWHERE}",
    sqlite3.SQLITE_IOERR: f"the disk failed; check it and its free space, {_ELSEWHERE}",
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        "another process has locked it; end that process and try again",
    ),
}
_NOT_WRITTEN: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
_LOCK_CODES: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def explain_error(path: Path, error: Exception) -> str:
    """Return a text for the user: the error of the file, and the remedy."""
    if isinstance(error, RunLogError):
        return str(error)
    if isinstance(error, sqlite3.Error | MemoryError):
        why = f"it cannot be used ({make_printable(str(error))}); choose another data directory"
        code = sqlite3.SQLITE_FULL if _is_disk_full(path, error) else _code(error)
        return f"{path}: {_REMEDIES.get(code, why)}"
    if isinstance(error, OSError):
        return f"{path}: {explain_os_error(error)}; make it writable, {_ELSEWHERE}"
    return f"{path}: {error}"


@contextlib.contextmanager
def translate_errors(path: Path) -> Generator[None]:
    """Translate errors of SQLite and the system to RunLogError, and to its kinds for a lock and a full disk."""
    try:
        yield
    except UnicodeDecodeError as error:  # a damaged file may have any bytes in SQLite's own messages
        raise RunLogError(f"the run log cannot be used: {path}: {_REMEDIES[sqlite3.SQLITE_CORRUPT]}") from error
    except (sqlite3.Error, MemoryError, OSError) as error:
        kind = RunLogLocked if is_lock_error(error) else RunLogFull if _is_disk_full(path, error) else RunLogError
        raise kind(f"the run log cannot be used: {explain_error(path, error)}") from error


def _is_disk_full(path: Path, error: Exception) -> bool:
    """Return whether there is no room. A reader needs some too, and SQLite calls its lack an error of the disk."""
    if _code(error) == sqlite3.SQLITE_IOERR:
        with contextlib.suppress(OSError):
            free = os.statvfs(path.parent)
            return free.f_bavail * free.f_frsize < _READER_BYTES
    return _code(error) == sqlite3.SQLITE_FULL or getattr(error, "errno", None) == errno.ENOSPC


def is_lock_error(error: Exception) -> bool:
    """Return whether another connection has locked the file: the same statement may succeed later."""
    return _code(error) in _LOCK_CODES


def _code(error: Exception) -> int:
    """Return SQLite's code of an error; -1 for an error that the Python module makes itself."""
    code = sqlite3.SQLITE_NOMEM if isinstance(error, MemoryError) else getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else -1


class LogConnection(sqlite3.Connection):
    """A connection with explicit transactions, and with a limit for the time of each statement.

    Attributes:
        gaps: the missing parts of the file when it was opened; None without any table.
        limit_s: the limit for a statement.
        is_late: whether the limit, and not Ctrl-C, ended a statement.
    """

    gaps: SchemaGaps | None = None
    limit_s = _OPENING_S
    is_late = False
    _began_s = math.inf

    @property
    def is_current(self) -> bool:
        """Whether the file has all tables, columns and indexes of this version."""
        return self.gaps is not None and self.gaps.is_current

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement, with the limit of time for it and for its rows."""
        self._began_s = time.thread_time()
        return super().execute(sql, parameters)

    def execute_long(self, sql: str) -> None:
        """Execute a statement whose time grows with the file. Ctrl-C ends it."""
        self._began_s = math.inf
        super().execute(sql)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Iterate over rows. Raises sqlite3.Error if they exceed the file's room: a page can lead to itself."""
        room = read_pragma(self, "page_count") * read_pragma(self, "page_size") // _MIN_ROW_BYTES
        for count, row in enumerate(self.execute(sql, parameters)):
            if count > room:
                error = sqlite3.DatabaseError("more rows than pages can have")
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise error
            yield row

    def is_over(self) -> bool:
        """Return whether the statement has to end. If Ctrl-C raises an error here, SQLite ends it as well."""
        self.is_late = time.thread_time() - self._began_s > self.limit_s
        return self.is_late

    def close(self) -> None:
        """Close the file."""
        self.set_progress_handler(None, 0)  # it refers to this connection
        super().close()


def _connect(
    path: Path, busy_s: float = LOCK_WAIT_S, *, any_thread: bool = False, is_fixed: bool = False
) -> LogConnection:
    """Return a connection that waits for a lock for `busy_s`. Raises RunLogError or sqlite3.Error.

    It is for the calling thread. With `any_thread`, other threads may use it too, if the caller lets only one at a
    time. With `is_fixed`, nobody writes the file, and SQLite makes none beside it (sqlite.org/uri.html).
    """
    _check_journal(path)
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?immutable=1" if is_fixed else path,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=not any_thread,
        factory=LogConnection,
        uri=is_fixed,
    )
    try:
        for limit, most in _LIMITS.items():
            connection.setlimit(limit, most)
        connection.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
        connection.set_progress_handler(connection.is_over, _STEPS)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.gaps = find_gaps(path, connection)
        connection.limit_s = _STATEMENT_S
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_for_reading(path: Path, busy_s: float) -> LogConnection:
    """Return a connection to a log, also if its disk is full or read-only. Raises as `_connect` does."""
    try:
        return _connect(path, busy_s)
    except sqlite3.OperationalError as error:
        cannot_write = _code(error) in _NOT_WRITTEN or _is_disk_full(path, error)
        if not cannot_write or any(_has_content(path.with_name(path.name + suffix)) for suffix in _WITH_ENTRIES):
            raise
    return _connect(path, busy_s, is_fixed=True)


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _check_journal(path: Path) -> None:
    """Raise RunLogError if a rollback journal names another file: SQLite may delete it, and ours never do."""
    journal = path.with_name(path.name + _JOURNAL_SUFFIX)
    with contextlib.suppress(OSError):
        if not journal.is_file():
            return
        with journal.open("rb") as stream:
            stream.seek(-len(_SUPER_JOURNAL), os.SEEK_END)
            if stream.read() == _SUPER_JOURNAL:
                raise RunLogError(f"no linkgauge has made {journal}; somebody may have sent it: move it away")


def connect_for_writing(path: Path, busy_s: float = LOCK_WAIT_S, *, any_thread: bool = False) -> LogConnection:
    """Return a connection to a log, which is created or upgraded if necessary. Raises as `_connect` does."""
    with translate_errors(path.parent):
        create_private_directory(path.parent)
        create_private_file(path.resolve())
    connection = _connect(path, busy_s, any_thread=any_thread)
    try:
        connection.gaps = prepare_schema(path, connection, connection.gaps)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _closing(path: Path, connect: Callable[[], LogConnection]) -> Generator[LogConnection]:
    """Close a connection at the end of the context, and translate errors. Raises RunLogError."""
    with translate_errors(path), contextlib.closing(connect()) as connection:
        try:
            yield connection
        except sqlite3.OperationalError as error:
            if _code(error) == sqlite3.SQLITE_INTERRUPT and not connection.is_late:
                raise KeyboardInterrupt from error
            raise


@contextlib.contextmanager
def open_for_reading(path: Path, busy_s: float = LOCK_WAIT_S) -> Generator[LogConnection | None]:
    """Open a log for the duration of the context; None if there is no log yet. Raises RunLogError.

    A disk that is full or read-only does not matter if all entries are in the file itself, as after a writer's end.
    A file of an older linkgauge stays as it is. Its missing parts are there for this connection alone, and empty.
    """
    if not _exists(path):
        yield None
        return
    with _closing(path, lambda: _connect_for_reading(path, busy_s)) as connection:
        if connection.gaps is None:
            yield None
            return
        fill_gaps_for_reading(connection, connection.gaps)
        yield connection


@contextlib.contextmanager
def open_for_writing(path: Path) -> Generator[LogConnection]:
    """Open a log for the duration of the context; create or upgrade it if necessary. Raises RunLogError."""
    with _closing(path, lambda: connect_for_writing(path)) as connection:
        yield connection


def prepare_log(path: Path, *, create: bool) -> None:
    """Check that the file is a run log of a supported version; create or upgrade it if necessary.

    Without `create`, the file is only checked, and may be missing. With `create`, a file that another process has
    locked stays as it is: the writer prepares it before its first entry. Raises RunLogError.
    """
    if create:
        try:
            with translate_errors(path):
                connect_for_writing(path, _PREPARE_S).close()
        except RunLogLocked:
            return
    else:
        with open_for_reading(path):
            pass
    restrict_to_owner(path)
    for suffix in _SUFFIXES:
        beside = path.with_name(path.name + suffix)
        if not beside.is_symlink():
            restrict_to_owner(beside)


def _exists(path: Path) -> bool:
    with translate_errors(path):
        try:
            path.stat()
        except FileNotFoundError:
            return False
        return True
