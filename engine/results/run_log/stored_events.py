"""The events of the run log: their JSON texts, and the pages in which a run's rows and blocks are read in order.

Damage is a RunLogError that names the run, the event and the remedy: SQLite takes any type in any column, and a
damaged file may have any bytes in it.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any, Final, cast, get_args

from ...model.errors import DecodeError, PlanError, RunLogError
from ...model.events import Ended, Event, Warned
from ...model.run_end import RunEnd
from ...model.serialization import decode_tagged, encode_tagged
from ...model.texts.shell_commands import shell_command
from ...model.texts.warning_text import WarningKind
from .event_blocks import unpack_events
from .log_file import MAX_VALUE_BYTES, LogConnection
from .write_backlog import Block

_EVENTS: Final = cast("tuple[type[Event], ...]", get_args(Event))
_PAGE: Final = 256
_MAX_EVENT: Final = 4 << 20  # a sample of 128 sessions in both directions has 100,000 characters
_MAX_TEXT: Final = 4_000  # well below the limit of the decoder
_MAX_NUMBER: Final = 2**62
_FORMER_KINDS: Final = {
    "through ssh:": WarningKind.DATA_THROUGH_SSH,
    "other traffic on ": WarningKind.OTHER_TRAFFIC,
}


def read_page(connection: LogConnection, path: Path, run_id: str, number: int) -> list[tuple[int, str]]:
    """Return the next events as JSON texts with their numbers: from one block, or from some rows.

    Args:
        connection: A connection in a transaction, because rows become blocks meanwhile.
        path: The file, for messages.
        run_id: The run.
        number: The number of the first event; if it is missing, the page begins with the next one.

    Raises:
        RunLogError: The events are damaged.
    """
    block = _find_block(connection, path, run_id, number)
    if block is None or block[0] > number:
        rows = _read_rows(connection, path, run_id, number, _MAX_NUMBER if block is None else block[0] - 1)
        if rows or block is None:
            return rows
    first, last, data = block
    try:
        texts = unpack_events(data)
    except ValueError as error:
        raise _damage(path, run_id, first) from error
    if len(texts) != last - first + 1:
        raise _damage(path, run_id, first)
    return [(seq, text) for seq, text in enumerate(texts, first) if seq >= number]


def decode_event(path: Path, run_id: str, seq: int, text: str) -> Event:
    """Return an event of a page. Raises RunLogError if it is damaged."""
    if len(text) > _MAX_EVENT:
        raise _damage(path, run_id, seq)
    try:
        event = decode_tagged(_EVENTS, json.loads(text))
    except (DecodeError, PlanError, ValueError, TypeError, RecursionError) as error:
        raise _damage(path, run_id, seq) from error
    if isinstance(event, Warned) and event.kind is None:
        return replace(event, kind=_former_kind(event.text))
    return event


def _former_kind(text: str) -> WarningKind | None:
    """Return the kind of a warning that an earlier version has stored, by its text alone; None for any other."""
    return next((kind for start, kind in _FORMER_KINDS.items() if text.startswith(start)), None)


def encode_event(event: Event) -> str:
    """Return the JSON text of an event."""
    return json.dumps(encode_tagged(event), separators=(",", ":"))


def event_text(event: Event) -> str:
    """Return the JSON text of an event, whose own text is cut to the decoder's limit."""
    if isinstance(event, Warned):
        event = replace(event, text=event.text[:_MAX_TEXT])
    elif isinstance(event, Ended):
        event = Ended(RunEnd(event.end.reason, event.end.detail[:_MAX_TEXT]))
    return encode_event(event)


def event_texts(events: Sequence[Event], texts: Sequence[str | None]) -> list[str]:
    """Return the given JSON texts of events, and encode the others, which takes 0.4 ms for a run of 3 s."""
    given = [*texts[: len(events)], *repeat(None, len(events) - len(texts))]
    return [
        text if text is not None and text.isascii() and text.isprintable() else event_text(event)
        for event, text in zip(events, given, strict=True)
    ]


def insert_block(connection: sqlite3.Connection, block: Block) -> None:
    """Store a block of events."""
    sql = "INSERT INTO blocks (run_id, first, last, data) VALUES (?, ?, ?, ?)"
    connection.execute(sql, (block.run_id, block.first, block.last, block.data))


def replace_events(
    connection: sqlite3.Connection, run_id: str, first: int, last: int, blocks: Sequence[Block]
) -> None:
    """Store blocks in place of a run's rows and blocks with the events `first` to `last`."""
    connection.execute("DELETE FROM blocks WHERE run_id = ? AND first BETWEEN ? AND ?", (run_id, first, last))
    connection.execute("DELETE FROM events WHERE run_id = ? AND seq BETWEEN ? AND ?", (run_id, first, last))
    for block in blocks:
        insert_block(connection, block)


def thinned_until(connection: LogConnection, run_id: str) -> int | None:
    """Return the number of a run's first event whose samples are not merged yet; None if none are merged."""
    row = connection.execute("SELECT thinned FROM runs WHERE id = ?", (run_id,)).fetchone()
    return row[0] if row is not None and isinstance(row[0], int) else None


def _read_rows(connection: LogConnection, path: Path, run_id: str, number: int, last: int) -> list[tuple[int, str]]:
    """Return the rows from an event on, up to the `last` one: at most a page, and less if they are long."""
    sql = "SELECT seq, event FROM events WHERE run_id = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
    rows: list[tuple[int, str]] = []
    characters = 0
    for seq, text in connection.execute(sql, (run_id, number, last, _PAGE)):
        if not isinstance(seq, int) or not isinstance(text, str) or seq < number:  # an index may be damaged, too
            raise _damage(path, run_id, number)
        rows.append((seq, text))
        number = seq + 1
        characters += len(text)
        if characters > MAX_VALUE_BYTES:
            break
    return rows


def _find_block(connection: LogConnection, path: Path, run_id: str, number: int) -> tuple[int, int, bytes] | None:
    """Return the block with this event, or else the next block: its first and last number, and its data."""
    sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first <= ? ORDER BY first DESC LIMIT 1"
    row = _check_block(connection.execute(sql, (run_id, number)).fetchone(), path, run_id, number)
    if row is None or row[1] < number:
        sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first > ? ORDER BY first LIMIT 1"
        row = _check_block(connection.execute(sql, (run_id, number)).fetchone(), path, run_id, number)
    return row


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
