"""Run logs that an attacker sends: each is one of ours that was changed on purpose."""

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

from linkgauge.engine.results.run_log import Journal, RunLog

from .log_entries import ENDED, STARTED, sampled, write_run

RUN_IDS = ("20261121-011530-aaaa", "20261121-011530-bbbb")
WATCH = "watch-sent"
_MIB = 1 << 20
_ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"
_COLUMNS = "id preset peer label owner started_utc reason detail verdict document note grp brief mbit_s percent"
_RUN = ", ".join(["x AS number", *(f"'{{}}' AS {name}" for name in _COLUMNS.split()), "1 AS transactions_s"])
_ENTRY = f"x AS number, '{WATCH}' AS series, 0.0 AS keep_until_s, '{{}}' AS entry"


def make_log(folder: Path) -> Path:
    """Make a run log of two runs and a watch, which no process has open; return its path."""
    with RunLog.open(folder) as log:
        for run_id in RUN_IDS:
            write_run(log, run_id, STARTED, *(sampled(index) for index in range(40)), ENDED, document={"plan": {}})
    with Journal(log.path, WATCH) as journal:
        journal.append("{}")
    _change(log.path, "PRAGMA journal_mode = DELETE")
    return log.path


def _change(path: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _schema(*statements: str) -> Callable[[Path], None]:
    return lambda path: _change(path, *statements)


def _written(pattern: str, replacement: str) -> Callable[[Path], None]:
    """Change the text of a statement in the schema, as no statement of SQLite could."""

    def change(path: Path) -> None:
        sql = f"UPDATE sqlite_schema SET sql = replace(sql, '{pattern}', '{replacement}')"  # noqa: S608 (of this module)
        _change(path, "PRAGMA writable_schema = ON", sql)

    return change


# Items that SQLite would carry out, or tables that are not ours: refused when the file is opened.
REFUSED: dict[str, Callable[[Path], None]] = {
    "endless view": _schema("DROP TABLE runs", f"CREATE VIEW runs AS {_ENDLESS} {_RUN} FROM c"),
    "view of huge values": _schema(
        "ALTER TABLE events RENAME TO e",
        "CREATE VIEW events AS SELECT run_id, seq, hex(zeroblob(900000000)) AS event FROM e",
    ),
    "endless journal": _schema("DROP TABLE journal", f"CREATE VIEW journal AS {_ENDLESS} {_ENTRY} FROM c"),
    "other index": _schema(
        "DROP INDEX runs_without_brief", "CREATE INDEX runs_without_brief ON runs (id, length(hex(zeroblob(99))))"
    ),
    "trigger": _schema(
        f"CREATE TRIGGER t AFTER UPDATE ON runs BEGIN INSERT INTO removals {_ENDLESS} x FROM c; END"
    ),
    "generated column": _written("event TEXT NOT NULL", "event TEXT AS (hex(zeroblob(900000000)))"),
    "check": _written("label TEXT,", "label TEXT CHECK (length(hex(zeroblob(900000000)))),"),
    "virtual table": _schema(
        "DROP TABLE blocks", "CREATE VIRTUAL TABLE blocks USING fts4(run_id, first, last, data)"
    ),
    "view under a table's name": _written("CREATE TABLE removals", "CREATE VIEW removals AS SELECT 1 --"),
    "endless statistics": _schema(
        "PRAGMA writable_schema = ON",
        f"CREATE VIEW sqlite_stat1 AS {_ENDLESS} 'runs' AS tbl, 'runs_list' AS idx, x AS stat FROM c",
    ),
    "computed statistics": _schema(
        "ANALYZE",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET sql = replace(sql, 'idx,stat', 'idx,stat AS (hex(zeroblob(900000000)))')",
    ),
    "another table": _schema("CREATE TABLE friends (name)"),
    "no events": _schema("DROP TABLE events"),
}


def _values(table: str, **values: str) -> Callable[[Path], None]:
    changes = ", ".join(f"{name} = {value}" for name, value in values.items())
    return lambda path: _change(path, "PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {changes}")  # noqa: S608


def _statistics(stat: str) -> Callable[[Path], None]:
    """Let ANALYZE make SQLite's statistics, and change them."""
    return lambda path: _change(path, "ANALYZE", f"UPDATE sqlite_stat1 SET stat = {stat}")  # noqa: S608


def _compress(byte: bytes, mebibytes: int) -> bytes:
    """Return so much of one byte, compressed a MiB once: a whole one takes seconds of CPU."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    part, checksum = byte * _MIB, 1
    first, each = (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    for _ in range(mebibytes):
        checksum = zlib.adler32(part, checksum)
    return b"\x78\xda" + first + each * (mebibytes - 1) + packer.flush() + checksum.to_bytes(4)


def _block(make_data: Callable[[], bytes]) -> Callable[[Path], None]:
    """Replace the data of a block; it is made only then, as 900 MiB take a second to compress."""

    def change(path: Path) -> None:
        _values("blocks", data=f"x'{make_data().hex()}'")(path)

    return change


def _columns(templates: list[str], order: list[int], heads: list[list[object]]) -> bytes:
    """Return a block in columns, whose numbers take no bytes."""
    header = json.dumps([templates, order, heads]).encode()
    return b"\x01" + zlib.compress(len(header).to_bytes(4, "big") + header, 9)


_LONG = '{"type":"' + "x" * _MIB + '"}'
_NESTED = f"replace(hex(zeroblob({_MIB})), '0', '[')"
_EMPTY_LISTS = f"'[' || replace(hex(zeroblob({4 * _MIB})), '0', '[],') || '0]'"
_HUGE = "hex(zeroblob(5000000))"
_ODD = json.dumps(
    {
        "plan": [1],
        "stretches": [{"measured": 7}, [], None],
        "measured": {"out": "x", "total": []},
        "near": 3,
        "why": [{"code": 7}, 3],
        "warnings": {"a": 1},
        "expected": [[]],
        "tcp": 1.5,
        "ended": [],
        "far": "x",
        "started_utc": {},
        "responsiveness": {"loads": 3, "grade": []},
        "address": [],
        "latency_limit": [1],
    }
)
# Values that only a changed file can have: damage, which is reported, or left out.
DAMAGED: dict[str, Callable[[Path], None]] = {
    "long texts": _values("runs", peer=_HUGE, label=_HUGE, document=_HUGE),
    "huge block": _values("blocks", data=_HUGE),
    "huge number": _values("runs", label="9e999", thinned="9223372036854775807", started_utc="-1"),
    "nested document": _values("runs", document=_NESTED, brief=_NESTED),
    "document of lists": _values("runs", document=_EMPTY_LISTS, brief=_EMPTY_LISTS),
    "document of other types": _values("runs", document=f"'{_ODD}'", brief=f"'{_ODD}'", mbit_s="'x'"),
    "block of zeros": _block(lambda: b"\x02" + _compress(b"0", 900)),
    "block of lines": _block(lambda: b"\x02" + _compress(b"\n", 200)),
    "block of long events": _block(lambda: _columns([_LONG], [0] * 50_000, [])),
    "block of many numbers": _block(
        lambda: _columns(['{"a":[\1]}'], [0] * 2, [[40_000_000, 1, 0, None], [7, 1, 0, None]])
    ),
    "block of endless numbers": _block(lambda: _columns(['{"a":\0}'], [0] * 60_000, [[10**4000, 1, 0, 10**4000]])),
    "block of many templates": _block(lambda: _columns(["{}"] * 60_000, list(range(60_000)), [])),
    "false statistics": _statistics("'999999999 999999999 1'"),
    "huge statistics": _statistics(_HUGE),
    "journal of long entries": _values("journal", entry=_HUGE),
    "journal of nested entries": _values("journal", entry="replace(hex(zeroblob(30000)), '0', '[')"),
}


def lead_pages_to_each_other(path: Path) -> None:
    """Let each inner page of `runs` lead to the next one many times: the table has more rows than can be counted.

    The file has the tables of the first version, so that a filtered list reads the table and not an index.
    """
    _change(path, "PRAGMA writable_schema = ON", "DELETE FROM sqlite_schema WHERE name LIKE 'runs@_%' ESCAPE '@'")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'runs'").fetchone()
    data = bytearray(path.read_bytes())
    inner, count = range(len(data) // size + 1, len(data) // size + 12), size // 7 - 4
    leaf = bytes(data[(root - 1) * size : root * size])
    for place, page in enumerate([root, *inner]):
        following = [*inner, inner[-1] + 1][place]
        cells = following.to_bytes(4, "big") + b"\x01"
        head = b"\x05\0\0" + count.to_bytes(2, "big") + (size - 5).to_bytes(2, "big") + b"\0"
        made = head + following.to_bytes(4, "big") + (size - 5).to_bytes(2, "big") * count
        made += bytes(size - len(made) - 5) + cells
        at = (page - 1) * size
        data[at : at + size] = made
    data[inner[-1] * size :] = leaf
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    path.write_bytes(data)
