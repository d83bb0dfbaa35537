"""The layouts of the run log's file: the tables of each version, and whether a file has them and nothing else.

Version 1 had all events in `events`. Version 2 has the newest there, and all others in `blocks`; columns, indexes
and the table `journal` were added to it later. A file of an older linkgauge is read as it is, with
`add_what_is_missing`, and gets the rest when it is next written.

A file that has anything else is refused, as somebody may have sent it: SQLite would carry out a view in the place
of a table, a trigger, or a generated column. So a change of the tables needs another LAYOUT_VERSION: of a file
with a higher one this module says that linkgauge has to be upgraded.
"""

import contextlib
import functools
import re
import sqlite3
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...model.errors import RunLogError, make_printable

LAYOUT_VERSION: Final = 2
_APPLICATION_ID: Final = 0x6C_67_61_75  # "lgau"

_RUNS_BEGIN: Final = """CREATE TABLE runs (
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
        document TEXT"""
_FIRST_COLUMNS: Final = re.findall(r"^ +(\w+)", _RUNS_BEGIN, re.MULTILINE)
# Columns of `runs` that a file may lack, and whose values are unknown then. `thinned` is the number of a run's
# first event whose samples are not merged yet (thinning.py), and COMPLETE when there is none. The last four are
# what a list of runs shows of `document` (listing.py): to read that of each run takes too long.
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

_EVENTS: Final = """CREATE TABLE events (
        run_id TEXT NOT NULL,
        seq INTEGER NOT NULL,
        event TEXT NOT NULL,
        UNIQUE (run_id, seq)
    )"""
# Tables that a file may lack: the events `first` to `last` of a run (event_blocks.py); runs whose row is gone
# already, and whose events a process is deleting; entries of named series, each a JSON text (journal.py), of which
# no number is given twice.
_ADDED_TABLES: Final = {
    "blocks": """CREATE TABLE blocks (
        run_id TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run_id, first)
    )""",
    "removals": "CREATE TABLE removals (run_id TEXT NOT NULL UNIQUE)",
    "journal": """CREATE TABLE journal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        series TEXT NOT NULL,
        keep_until_s REAL,
        entry TEXT NOT NULL
    )""",
}
# Indexes that a file may lack. `runs_list` has all that a list is filtered and sorted by, so that no document is
# read; the others have few runs.
LIST_INDEX: Final = "runs_list"
_INDEXES: Final = {
    LIST_INDEX: (
        "runs (id, preset, peer, label, started_utc, reason, verdict, note, grp, brief, mbit_s, transactions_s, "
        "percent)"
    ),
    "runs_of_group": "runs (grp) WHERE grp IS NOT NULL",
    "runs_without_end": "runs (owner) WHERE reason IS NULL",
    "runs_without_brief": "runs (id) WHERE brief IS NULL AND document IS NOT NULL",
    "journal_of_series": "journal (series, number)",
    "journal_by_age": "journal (keep_until_s) WHERE keep_until_s IS NOT NULL",
}
# SQLite's own tables, as it defines them. A user's ANALYZE makes the last two: their rows are estimates, by which
# SQLite chooses an index. Wrong ones cost time only, which is limited.
_SQLITES_TABLES: Final = {
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}
_SQLITES_INDEXES: Final = (
    *(("index", f"sqlite_autoindex_{table}_1", table, None) for table in ("runs", "events", "blocks", "removals")),
)
_MAX_ITEMS: Final = 30
_MAX_SQL: Final = 2_000

_Item = tuple[str, str, str, str | None]  # its type, its name, its table, and its statement


@dataclass(frozen=True, slots=True)
class Layout:
    """What a run log lacks of this version's tables, columns and indexes."""

    tables: tuple[str, ...]
    columns: tuple[str, ...]
    indexes: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        """Whether it lacks nothing."""
        return not (self.tables or self.columns or self.indexes)


def read_layout(path: Path, connection: sqlite3.Connection) -> Layout | None:
    """Return the layout of a file; None without any table. Raises RunLogError for any other than a run log."""
    sql = "SELECT type, name, tbl_name, substr(sql, 1, ?) FROM main.sqlite_schema LIMIT ?"
    items = tuple(connection.execute(sql, (_MAX_SQL, _MAX_ITEMS)).fetchall())
    if not items:
        return None
    if read_pragma(connection, "application_id") != _APPLICATION_ID:
        raise RunLogError(f"{path} is another program's database; choose another data directory")
    version = read_pragma(connection, "user_version")
    if version > LAYOUT_VERSION:
        raise RunLogError(
            f"{path} was made by a newer linkgauge (its format is {version}, this one reads "
            f"{LAYOUT_VERSION}); upgrade linkgauge, or choose another data directory"
        )
    foreign = _find_foreign_item(items)
    if foreign is not None:
        raise RunLogError(
            f"{path} is not as linkgauge writes it: {foreign}; somebody may have sent or changed it: "
            "move it away, or choose another data directory"
        )
    return _layout_of(items)


def add_what_is_missing(connection: sqlite3.Connection, layout: Layout) -> None:
    """Let a file of an older linkgauge have all tables and columns, empty and for this connection alone."""
    if not (layout.tables or layout.columns):
        return
    connection.execute("PRAGMA temp_store = MEMORY")
    for name in layout.tables:
        connection.execute(_ADDED_TABLES[name].replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    if layout.columns:
        known = [name for name in (*_FIRST_COLUMNS, *_ADDED_COLUMNS) if name not in layout.columns]
        unknown = [f"NULL AS {name}" for name in layout.columns]
        sql = f"CREATE TEMP VIEW runs AS SELECT {', '.join([*known, *unknown])} FROM main.runs"  # noqa: S608 (ours)
        connection.execute(sql)


def prepare_layout(path: Path, connection: sqlite3.Connection, layout: Layout | None) -> Layout | None:
    """Create the tables, or what a file of an older linkgauge lacks; return the layout that it has then.

    Raises RunLogError or sqlite3.Error.
    """
    if layout is None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):  # one process creates the tables; a read-only file fails here
        _create(connection, read_layout(path, connection))
    return read_layout(path, connection)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Write in a transaction: all of the block, or nothing if it raises an error."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection, layout: Layout | None) -> None:
    if layout is None:
        connection.execute(f"{_RUNS_BEGIN}\n    )")
        connection.execute(_EVENTS)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        layout = Layout(tuple(_ADDED_TABLES), tuple(_ADDED_COLUMNS), tuple(_INDEXES))
    for name in layout.tables:
        connection.execute(_ADDED_TABLES[name])
    for name in layout.columns:
        connection.execute(f"ALTER TABLE runs ADD COLUMN {name} {_ADDED_COLUMNS[name]}")
    for name in layout.indexes:
        connection.execute(f"CREATE INDEX {name} ON {_INDEXES[name]}")
    if read_pragma(connection, "user_version") != LAYOUT_VERSION:
        connection.execute(f"PRAGMA user_version = {LAYOUT_VERSION}")


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of a pragma that is a whole number."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


@functools.lru_cache(maxsize=8)
def _find_foreign_item(items: tuple[_Item, ...]) -> str | None:
    """Return what is in a file that no linkgauge writes, or lacks what each writes; None for a run log."""
    for item in items:
        type_, name, table, sql = item
        if (type_, name, table, _plain(sql)) not in _known_items():
            return make_printable(f"its {str(type_)[:20]} {str(name)[:60]!r}")
    missing = {"runs", "events"} - {name for _, name, _, _ in items}
    return f"it has no table {min(missing)!r}" if missing else None


@functools.lru_cache(maxsize=8)
def _layout_of(items: tuple[_Item, ...]) -> Layout:
    names = {name for _, name, _, _ in items}
    (runs,) = [_plain(sql) for _, name, _, sql in items if name == "runs"]
    count = next(count for count, sql in enumerate(_statements_of_runs()) if _plain(sql) == runs)
    tables, indexes = (tuple(name for name in ours if name not in names) for ours in (_ADDED_TABLES, _INDEXES))
    return Layout(tables, tuple(_ADDED_COLUMNS)[count:], indexes)


@functools.cache
def _known_items() -> frozenset[_Item]:
    """Return all that a version of linkgauge may have written."""
    tables = {"events": _EVENTS, **_ADDED_TABLES, **_SQLITES_TABLES}
    items = [
        *(("table", "runs", "runs", sql) for sql in _statements_of_runs()),
        *(("table", name, name, sql) for name, sql in tables.items()),
        *(
            ("index", name, index.split(maxsplit=1)[0], f"CREATE INDEX {name} ON {index}")
            for name, index in _INDEXES.items()
        ),
        *_SQLITES_INDEXES,
    ]
    return frozenset((type_, name, table, _plain(sql)) for type_, name, table, sql in items)


def _statements_of_runs() -> Iterator[str]:
    """Yield the statement of `runs` with each number of the added columns: they came in this order."""
    added = [f", {name} {type_}" for name, type_ in _ADDED_COLUMNS.items()]
    for count in range(len(added) + 1):
        yield f"{_RUNS_BEGIN}{''.join(added[:count])})"


def _plain(sql: object) -> str | None:
    """Return a statement without the white space that does not count."""
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(sql.split())) if isinstance(sql, str) else None
