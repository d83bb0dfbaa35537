"""What a list of runs shows of a run's document, in a few words: its plan, its settings in turn, and its rates.

A responsiveness test has the figures of latency under load as well.

It has columns of its own, because a document takes some kilobytes and a tenth of a millisecond. Runs of an older
linkgauge get theirs in pieces (`add_digests`).
"""

import json
import sqlite3
import time
from pathlib import Path
from typing import Any, Final, cast

from ..json_document import list_in, number_in, value_in
from .removal import pause_after
from .schema import has_list_index, open_connection, prepare_database

DIGEST_COLUMNS: Final = ("brief", "mbit_s", "transactions_s", "percent")
_RATES: Final = ("mbit_s", "transactions_s", "percent_of_expected")
_PLAN: Final = ("workload", "direction", "sessions", "responsiveness")
_SETTINGS: Final = ("direction", "sessions", "window_bytes")
_LOADS: Final = 3  # of a responsiveness test
_PIECE: Final = 100  # documents, some milliseconds
_MAX_TEXT: Final = 100  # of a value that a damaged document may have

DigestRow = tuple[str, float | None, float | None, float | None]


def digest_row(document: object) -> DigestRow:
    """Return the values of DIGEST_COLUMNS for a document. What is missing or damaged in it is left out."""
    turns: list[Any] = []
    for period in list_in(document, "stretches"):
        settings = _part(period, _SETTINGS)
        if not turns or turns[-1] != settings:
            turns.append(settings)
    brief = {"plan": _part(value_in(document, "plan"), _PLAN), "stretches": turns}
    if (responsiveness := _responsiveness(value_in(document, "responsiveness"))) is not None:
        brief["responsiveness"] = responsiveness
    mbit_s, transactions_s, percent = (number_in(document, "measured", "total", name) for name in _RATES)
    return json.dumps(brief, separators=(",", ":")), mbit_s, transactions_s, percent


def read_digest(row: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return a document with just the parts that a list shows; None without any."""
    brief, *rates = row
    try:
        document = json.loads(brief) if isinstance(brief, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    return {**document, "measured": {"total": dict(zip(_RATES, rates, strict=True))}}


def load_document(text: object) -> dict[str, Any] | None:
    """Return the document of a cell; None if it is missing or damaged."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def add_digests(path: Path) -> bool:
    """Give the runs of an older linkgauge their digests, in pieces with pauses; return whether any lacked one.

    Raises RunLogError.
    """
    prepare_database(path, create=True)
    with open_connection(path) as connection:
        if has_list_index(connection):
            return False
        while _add_piece(connection):
            pass
    return True


def _add_piece(connection: sqlite3.Connection) -> bool:
    """Give some runs their digests; return False if none is left."""
    began = time.monotonic()
    sql = "SELECT number, document FROM runs WHERE brief IS NULL AND document IS NOT NULL LIMIT ?"
    rows = connection.execute(sql, (_PIECE,)).fetchall()
    digests = [(*digest_row(load_document(text)), number) for number, text in rows]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "UPDATE runs SET brief = ?, mbit_s = ?, transactions_s = ?, percent = ? WHERE number = ?", digests
    )
    connection.execute("COMMIT")
    if rows:
        pause_after(began)
    return bool(rows)


def _responsiveness(value: object) -> dict[str, Any] | None:
    """Return the grade, the rises of latency and the round trips a minute of a test that has them."""
    found = _part(value, ("grade", "rise_ms"))
    if found is None:
        return None
    return {
        **found,
        "idle_ms": _part(value_in(value, "idle_ms"), ("p50",)),
        "loads": [_part(load, ("direction", "rise_ms")) for load in list_in(value, "loads")[:_LOADS]],
        "round_trips": _part(value_in(value, "round_trips"), ("per_minute", "class")),
    }


def _part(value: object, names: tuple[str, ...]) -> dict[str, Any] | None:
    """Return some members of an object, as far as they are plain values."""
    if not isinstance(value, dict):
        return None
    members = cast("dict[str, Any]", value)
    return {name: _plain(members[name]) for name in names if name in members}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    return value if value is None or isinstance(value, bool) or number_in(value) is not None else "?"
