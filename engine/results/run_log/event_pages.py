"""Pages of events: what a run's rows and blocks have in them, in order, whichever of the two has an event.

Whatever cannot be read is a RunLogError that names the run, the event and the remedy: SQLite takes any type in any
column, and a damaged file may have any bytes in it.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any, Final, cast, get_args

from ...model.errors import DecodeError, PlanError, RunLogError
from ...model.events import Event
from ...model.serialization import decode_tagged, encode_tagged
from ...model.shell_commands import shell_command
from .event_blocks import unpack_events
from .schema import has_blocks, missing_columns

_EVENTS: Final = cast("tuple[type[Event], ...]", get_args(Event))
_PAGE: Final = 256
_MAX_NUMBER: Final = 2**62


def read_page(connection: sqlite3.Connection, path: Path, run_id: str, number: int) -> list[tuple[int, str]]:
    """Return the next events as JSON texts with their numbers: those of a block, or some rows.

    Args:
        connection: A connection in a transaction, as rows become blocks meanwhile.
        path: The file, for messages.
        run_id: The run.
        number: The number of the first event; if there is none with it, the page begins with the next one.

    Raises:
        RunLogError: The events are damaged.
    """
    first, block = _find_block(connection, path, run_id, number)
    if first is None or first > number:
        sql = "SELECT seq, event FROM events WHERE run_id = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
        last = _MAX_NUMBER if first is None else first - 1
        rows = connection.execute(sql, (run_id, number, last, _PAGE)).fetchall()
        if any(not isinstance(seq, int) or not isinstance(text, str) for seq, text in rows):
            raise _damage(path, run_id, number)
        if rows or first is None:
            return rows
    try:
        events = enumerate(unpack_events(block), first)
    except ValueError as error:
        raise _damage(path, run_id, first) from error
    return [(seq, text) for seq, text in events if seq >= number]


def decode_event(path: Path, run_id: str, seq: int, text: str) -> Event:
    """Return an event of a page. Raises RunLogError if it is damaged."""
    try:
        return decode_tagged(_EVENTS, json.loads(text))
    except (DecodeError, PlanError, ValueError, TypeError, RecursionError) as error:
        raise _damage(path, run_id, seq) from error


def encode_event(event: Event) -> str:
    """Return an event as the log has it."""
    return json.dumps(encode_tagged(event), separators=(",", ":"))


def thinned_until(connection: sqlite3.Connection, run_id: str) -> int | None:
    """Return the number of a run's first event whose samples are not merged yet; None if none are merged."""
    if "thinned" in missing_columns(connection):
        return None
    row = connection.execute("SELECT thinned FROM runs WHERE id = ?", (run_id,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else None


def _find_block(connection: sqlite3.Connection, path: Path, run_id: str, number: int) -> tuple[int | None, bytes]:
    """Return the block that has this event, or else the next one, and the number of its first event."""
    if not has_blocks(connection):
        return None, b""
    sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first <= ? ORDER BY first DESC LIMIT 1"
    row = _check_block(connection.execute(sql, (run_id, number)).fetchone(), path, run_id, number)
    if row is None or row[1] < number:
        sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first > ? ORDER BY first LIMIT 1"
        row = _check_block(connection.execute(sql, (run_id, number)).fetchone(), path, run_id, number)
    return (None, b"") if row is None else (row[0], row[2])


def _check_block(
    row: tuple[Any, ...] | None, path: Path, run_id: str, number: int
) -> tuple[int, int, bytes] | None:
    """Return a row of blocks with its types checked."""
    if row is None:
        return None
    first, last, data = row
    if not (isinstance(first, int) and isinstance(last, int) and isinstance(data, bytes)):
        raise _damage(path, run_id, number)
    if not 0 <= first <= last < _MAX_NUMBER:
        raise _damage(path, run_id, number)
    return first, last, data


def _damage(path: Path, run_id: str, seq: int) -> RunLogError:
    remedy = shell_command("linkgauge", "runs", "delete", run_id)
    return RunLogError(f"run {run_id} in {path} is damaged at event {seq}; `{remedy}` removes it")
