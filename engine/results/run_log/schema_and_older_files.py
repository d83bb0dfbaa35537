"""The schema of the run log's file: the tables of each version, and whether a file has them and nothing else.

Version 1 had all events in `events`. Version 2 has the newest events there, and all others in `blocks`. Columns,
indexes and the table `journal` were added to it later. A file of an older linkgauge is read as it is, with
`fill_gaps_for_reading`. It gets the missing parts when it is next written.

A file with anything else is refused, because a stranger may have sent it: SQLite would carry out a view in place of
a table, a trigger, or a generated column. So a change of the tables needs another SCHEMA_VERSION. If a file has a
higher version, the error says that linkgauge has to be upgraded.
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

SCHEMA_VERSION: Final = 2
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
# Columns of `runs` that a file may lack. Their values are unknown then. `thinned` is the number of a run's first
# event whose samples are not merged yet (thinning.py), or COMPLETE if all are merged. The last four are the brief
# of `document` for lists (run_brief.py): it takes too long to read the document of each run.
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
# Tables that a file may lack. `blocks` has the events `first` to `last` of a run (event_blocks.py). `removals` has
# the runs whose row is gone already, and whose events a process is deleting. `journal` has the entries of named
# series, each a JSON text (journal.py); no number is given twice.
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
# Indexes that a file may lack. `runs_list` has every column that lists are filtered and sorted by, so that no
# document is read. The other indexes of `runs` have few rows.
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

_Item = tuple[str, str, str, str | None]  # type, name, table and statement


@dataclass(frozen=True, slots=True)
class SchemaGaps:
    """The tables, columns and indexes of this version that a run log lacks."""

    tables: tuple[str, ...]
    columns: tuple[str, ...]
    indexes: tuple[str, ...]

    @property
    def is_current(self) -> bool:
        """Whether nothing is missing."""
        return not (self.tables or self.columns or self.indexes)


def find_gaps(path: Path, connection: sqlite3.Connection) -> SchemaGaps | None:
    """Return the gaps of a file; None without any table. Raises RunLogError if the file is not a run log."""
    sql = "SELECT type, name, tbl_name, substr(sql, 1, ?) FROM main.sqlite_schema LIMIT ?"
    items = tuple(connection.execute(sql, (_MAX_SQL, _MAX_ITEMS)).fetchall())
    if not items:
        return None
    if read_pragma(connection, "application_id") != _APPLICATION_ID:
        raise RunLogError(f"{path} is another program's database; choose another data directory")
    version = read_pragma(connection, "user_version")
    if version > SCHEMA_VERSION:
        raise RunLogError(
            f"{path} was made by a newer linkgauge (its format is {version}, this one reads "
            f"{SCHEMA_VERSION}); upgrade linkgauge, or choose another data directory"
        )
    foreign = _find_foreign_item(items)
    if foreign is not None:
        raise RunLogError(
            f"{path} is not as linkgauge writes it: {foreign}; somebody may have sent or changed it: "
            "move it away, or choose another data directory"
        )
    return _gaps_of(items)


def fill_gaps_for_reading(connection: sqlite3.Connection, gaps: SchemaGaps) -> None:
    """Give this connection all tables and columns that an older linkgauge did not write. They are empty."""
    if not (gaps.tables or gaps.columns):
        return
    connection.execute("PRAGMA temp_store = MEMORY")
    for name in gaps.tables:
        connection.execute(_ADDED_TABLES[name].replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    if gaps.columns:
        known = [name for name in (*_FIRST_COLUMNS, *_ADDED_COLUMNS) if name not in gaps.columns]
        unknown = [f"NULL AS {name}" for name in gaps.columns]
        sql = f"CREATE TEMP VIEW runs AS SELECT {', '.join([*known, *unknown])} FROM main.runs"  # noqa: S608 (ours)
        connection.execute(sql)


def prepare_schema(path: Path, connection: sqlite3.Connection, gaps: SchemaGaps | None) -> SchemaGaps | None:
    """Create the tables, or fill the gaps of a file of an older linkgauge; return the gaps that are left.

    Raises RunLogError or sqlite3.Error.
    """
    if gaps is None:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # counts only before the first table
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):  # one process creates the tables; a read-only file fails here
        _create(connection, find_gaps(path, connection))
    return find_gaps(path, connection)


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


def _create(connection: sqlite3.Connection, gaps: SchemaGaps | None) -> None:
    if gaps is None:
        connection.execute(f"{_RUNS_BEGIN}\n    )")
        connection.execute(_EVENTS)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        gaps = SchemaGaps(tuple(_ADDED_TABLES), tuple(_ADDED_COLUMNS), tuple(_INDEXES))
    for name in gaps.tables:
        connection.execute(_ADDED_TABLES[name])
    for name in gaps.columns:
        connection.execute(f"ALTER TABLE runs ADD COLUMN {name} {_ADDED_COLUMNS[name]}")
    for name in gaps.indexes:
        connection.execute(f"CREATE INDEX {name} ON {_INDEXES[name]}")
    if read_pragma(connection, "user_version") != SCHEMA_VERSION:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def read_pragma(connection: sqlite3.Connection, name: str) -> int:
    """Return the value of a pragma that is a whole number."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


@functools.lru_cache(maxsize=8)
def _find_foreign_item(items: tuple[_Item, ...]) -> str | None:
    """Return a part of a file that no linkgauge writes, or a table that is missing; None for a run log."""
    for item in items:
        type_, name, table, sql = item
        if (type_, name, table, _plain(sql)) not in _known_items():
            return make_printable(f"its {str(type_)[:20]} {str(name)[:60]!r}")
    missing = {"runs", "events"} - {name for _, name, _, _ in items}
    return f"it has no table {min(missing)!r}" if missing else None


@functools.lru_cache(maxsize=8)
def _gaps_of(items: tuple[_Item, ...]) -> SchemaGaps:
    names = {name for _, name, _, _ in items}
    (runs,) = [_plain(sql) for _, name, _, sql in items if name == "runs"]
    count = next(count for count, sql in enumerate(_statements_of_runs()) if _plain(sql) == runs)
    tables, indexes = (tuple(name for name in ours if name not in names) for ours in (_ADDED_TABLES, _INDEXES))
    return SchemaGaps(tables, tuple(_ADDED_COLUMNS)[count:], indexes)


@functools.cache
def _known_items() -> frozenset[_Item]:
    """Return every item that a version of linkgauge may have written."""
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
    """Yield the statement of `runs` with each number of added columns, which came in this order."""
    added = [f", {name} {type_}" for name, type_ in _ADDED_COLUMNS.items()]
    for count in range(len(added) + 1):
        yield f"{_RUNS_BEGIN}{''.join(added[:count])})"


def _plain(sql: object) -> str | None:
    """Return a statement without the white space that has no meaning."""
    return re.sub(r" ?([(),]) ?", r"\1", " ".join(sql.split())) if isinstance(sql, str) else None
