"""The run log: stores every event of every run in one SQLite file, and reads them back.

Writing never blocks or ends a run: a separate thread writes the queued events, and failures become `problem`, a
text for the user. Several processes may use the same log at once.
"""

import difflib
import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self, cast, get_args

from ...host.process_identity import is_process_alive, saved_process_identity
from ...model.errors import DecodeError, PlanError, RunLogError
from ...model.events import Ended, Event, Reason, RunEnd, Sampled, Started, Warned
from ...model.labels import truncate_label, validate_label, validate_note
from ...model.serialization import decode_tagged, encode_tagged, make_printable
from .event_blocks import unpack_events
from .removal import RunSize, file_size, remove_runs, run_sizes, used_size
from .schema import RUN_LOG_FILE_NAME, has_blocks, has_tables, missing_columns, open_connection, prepare_database
from .writer import CLOSE_S, MAX_WAITING_BYTES, EventEntry, LogWriter, SqlParameters, SqlStatement

_EVENTS: Final = cast("tuple[type[Event], ...]", get_args(Event))
_PAGE: Final = 256
_MAX_TEXT: Final = 4_000  # well below the limit of the decoder
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # without characters that look alike
_FLUSH_S: Final = 10.0
_MAX_NUMBER: Final = 2**62
_COLUMNS: Final = (
    *("id", "preset", "peer", "label", "owner", "started_utc", "reason", "detail", "verdict", "document"),
    *("note", "grp"),
)


def new_run_id(now: datetime, randomness: random.Random) -> str:
    """Return an id such as `20261121-011530-k3f9`: the time in UTC and a random suffix."""
    tail = "".join(randomness.choice(_ALPHABET) for _ in range(4))
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{tail}"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as an entry of the list of runs; `reason` is None for an active run and for one that was cut off.

    `label` and `note` are the user's texts; `group` is the same for all runs of a series.
    """

    run_id: str
    preset: str
    peer: str
    label: str | None
    started_utc: str | None
    reason: Reason | None
    detail: str | None
    verdict: str | None
    document: dict[str, Any] | None
    is_running: bool
    note: str | None = None
    group: str | None = None


class RunLog:
    """A run log. You must close it, or use it as a context manager, to write the queue and end the thread."""

    def __init__(
        self,
        path: Path,
        on_problem: Callable[[str], None] | None = None,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.path = path
        self._writer = LogWriter(path, on_problem, max_waiting_bytes)
        self._next: dict[str, int] = {}

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        create: bool = True,
        on_problem: Callable[[str], None] | None = None,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> Self:
        """Open the log in a directory; create both if they are missing, unless `create` is False.

        Raises RunLogError, with path and remedy, if the log cannot be used. `on_problem` is called with the text
        of a later failure, in any thread. While another process has locked the file, up to `max_waiting_bytes` of
        entries wait for it.
        """
        path = directory / RUN_LOG_FILE_NAME
        prepare_database(path, create=create)
        return cls(path, on_problem, max_waiting_bytes)

    @property
    def problem(self) -> str | None:
        """The reason why the last run that failed to be written is incomplete; None without failures."""
        return self._writer.problem

    def begin(
        self, run_id: str, preset_id: str, peer: str, label: str | None = None, group: str | None = None
    ) -> None:
        """Begin a run. Never waits, never raises; neither do `add` and `finish`.

        Args:
            run_id: A name from `new_run_id`.
            preset_id: The preset that the run is judged by; empty for none.
            peer: The far end, as it was written.
            label: The user's name for the run; cut to its limit.
            group: The name of the series that the run belongs to; cut as well.
        """
        self._next[run_id] = 0
        words = (make_printable(preset_id), make_printable(peer), truncate_label(label), truncate_label(group))
        row = (run_id, *words, saved_process_identity())
        sql = "INSERT INTO runs (id, preset, peer, label, grp, owner) VALUES (?, ?, ?, ?, ?, ?)"
        self._writer.put(SqlStatement(run_id, sql, lambda: row, is_first=True))

    def add(self, run_id: str, event: Event) -> None:
        """Store an event of a run that has begun."""
        number = self._next.get(run_id)
        if number is None:
            return
        self._next[run_id] = number + 1
        sessions = len(event.sample.sessions) if isinstance(event, Sampled) else 0
        self._writer.put(EventEntry(run_id, number, lambda: _event_text(event), sessions))
        if isinstance(event, Started):
            started_utc = make_printable(event.started_utc)
            sql = "UPDATE runs SET started_utc = ? WHERE id = ?"
            self._writer.put(SqlStatement(run_id, sql, lambda: (started_utc, run_id)))
        elif isinstance(event, Ended):
            end = event.end
            sql = "UPDATE runs SET reason = ?, detail = ? WHERE id = ?"
            self._writer.put(
                SqlStatement(run_id, sql, lambda: (end.reason.value, make_printable(end.detail), run_id))
            )

    def finish(self, run_id: str, verdict: str, document: dict[str, Any]) -> None:
        """Store a run's verdict and document. Later events of the run are ignored."""
        if self._next.pop(run_id, None) is not None:
            sql = "UPDATE runs SET verdict = ?, document = ? WHERE id = ?"
            row = (verdict, document, run_id)
            self._writer.put(SqlStatement(run_id, sql, lambda: (row[0], json.dumps(row[1]), row[2]), is_last=True))

    def flush(self, timeout_s: float = _FLUSH_S) -> bool:
        """Wait until the queue is written or given up; return whether that took less than the timeout."""
        return self._writer.flush(timeout_s)

    def size_bytes(self) -> int:
        """Return the size of the log on the disk."""
        return file_size(self.path)

    def used_bytes(self) -> int:
        """Return the part of the size that deleted runs do not still occupy."""
        return used_size(self.path) if has_tables(self.path) else 0

    def run_sizes(self) -> list[RunSize]:
        """Return each run with the bytes that its deletion frees at least, the oldest first."""
        self._flush_for_reading()
        return run_sizes(self.path) if has_tables(self.path) else []

    def list_runs(self) -> list[RunRecord]:
        """Return all runs, the newest first. Raises RunLogError, as all reading methods do."""
        return self._rows("ORDER BY number DESC", ())

    def find(self, text: str) -> RunRecord:
        """Return the run with an id, or with an unambiguous beginning of it."""
        matches = self._rows("WHERE id = ?", (text,)) if text else []
        if not matches and text:
            matches = self._rows("WHERE substr(id, 1, length(?1)) = ?1 ORDER BY number DESC", (text,))
        if len(matches) == 1:
            return matches[0]
        printable = make_printable(text[:60])
        if matches:
            ids = ", ".join(row.run_id for row in matches[:5])
            raise RunLogError(f"{len(matches)} runs begin with {printable}: {ids}{', …' if matches[5:] else ''}")
        near = difflib.get_close_matches(text, [row.run_id for row in self.list_runs()], n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise RunLogError(f"there is no run {printable!r}; {hint}`linkgauge runs list` shows them")

    def events(self, run_id: str) -> Iterator[Event]:
        """Iterate over the events of a run, in order; those of a crashed run end early."""
        self._flush_for_reading()
        number = 0
        while page := self._page(run_id, number):
            for seq, text in page:
                yield self._read(run_id, seq, text)
                number = seq + 1

    def set_label(self, run_id: str, label: str | None) -> None:
        """Set the label of a run, even of an active one; None removes it.

        Raises RunLogError, and PlanError if the text is too long. So does `set_note`.
        """
        self._set("UPDATE runs SET label = ? WHERE id = ?", run_id, validate_label(label))

    def set_note(self, run_id: str, note: str | None) -> None:
        """Set the note of a run; None removes it."""
        self._set("UPDATE runs SET note = ? WHERE id = ?", run_id, validate_note(note))

    def delete(self, run_id: str) -> None:
        """Delete a run; raise RunLogError if there is none with that id, or if it is active."""
        self.delete_all([run_id])

    def delete_all(self, run_ids: Sequence[str], *, rewrite: bool = False) -> None:
        """Delete runs, in pieces; raise RunLogError, before any is deleted, as `delete` does.

        The file becomes smaller. With `rewrite` also one of an older linkgauge that is large: for that, other
        processes that want to write have to wait.
        """
        active = {row.run_id: row.is_running for row in self.list_runs()}
        for run_id in run_ids:
            if run_id not in active:
                raise self._absence(run_id)
            if active[run_id]:
                raise RunLogError(f"run {run_id} is still running; stop it first")
        remove_runs(self.path, run_ids, rewrite=rewrite)

    def close(self, on_wait: Callable[[str], None] | None = None, timeout_s: float = CLOSE_S) -> None:
        """Write the queue and end the thread. A second call has no effect.

        If another process has locked the file, call `on_wait` with a text and wait for up to `timeout_s`; what
        could not be written then is named in `problem`.
        """
        self._writer.close(on_wait, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, how: str, parameters: SqlParameters) -> list[RunRecord]:
        self._flush_for_reading()
        if not has_tables(self.path):
            return []
        with open_connection(self.path) as connection:
            missing = missing_columns(connection)  # reading changes no file, and a read-only one can be read
            columns = ", ".join("NULL" if name in missing else name for name in _COLUMNS)
            sql = f"SELECT {columns} FROM runs {how}"  # noqa: S608 (names and conditions of ours)
            return [_row(row) for row in connection.execute(sql, parameters)]

    def _exact(self, run_id: str) -> RunRecord:
        rows = self._rows("WHERE id = ?", (run_id,))
        if not rows:
            raise self._absence(run_id)
        return rows[0]

    def _absence(self, run_id: str) -> RunLogError:
        return RunLogError(f"there is no run {make_printable(run_id[:60])!r}; `linkgauge runs list` shows them")

    def _set(self, sql: str, run_id: str, value: str | None) -> None:
        self._exact(run_id)
        prepare_database(self.path, create=True)  # an older file gets the columns that it lacks
        with open_connection(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(sql, (value, run_id))
            connection.execute("COMMIT")

    def _flush_for_reading(self) -> None:
        """Write the queue, but do not wait for a locked file: what is written can be read."""
        self._writer.flush(_FLUSH_S, unless_locked=True)

    def _page(self, run_id: str, number: int) -> list[tuple[int, str]]:
        """Return the next events, from the one with this number on; none after the last."""
        # A connection for each page: a reader that stops half-way leaves nothing open.
        if not has_tables(self.path):
            return []
        with open_connection(self.path) as connection:
            connection.execute("BEGIN")  # rows become blocks meanwhile
            first, block = self._find_block(connection, run_id, number)
            if first is None or first > number:
                sql = "SELECT seq, event FROM events WHERE run_id = ? AND seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
                last = _MAX_NUMBER if first is None else first - 1
                rows = connection.execute(sql, (run_id, number, last, _PAGE)).fetchall()
                if any(not isinstance(seq, int) or not isinstance(text, str) for seq, text in rows):
                    raise self._damage(run_id, number)
                if rows or first is None:
                    return rows
        try:
            events = enumerate(unpack_events(block), first)
        except ValueError as error:
            raise self._damage(run_id, first) from error
        return [(seq, text) for seq, text in events if seq >= number]

    def _read(self, run_id: str, seq: int, text: str) -> Event:
        try:
            return decode_tagged(_EVENTS, json.loads(text))
        except (DecodeError, PlanError, ValueError, TypeError, RecursionError) as error:
            raise self._damage(run_id, seq) from error

    def _find_block(self, connection: sqlite3.Connection, run_id: str, number: int) -> tuple[int | None, bytes]:
        """Return the block that has this event, or else the next one, and the number of its first event."""
        if not has_blocks(connection):
            return None, b""
        sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first <= ? ORDER BY first DESC LIMIT 1"
        row = self._block_of(connection.execute(sql, (run_id, number)).fetchone(), run_id, number)
        if row is None or row[1] < number:
            sql = "SELECT first, last, data FROM blocks WHERE run_id = ? AND first > ? ORDER BY first LIMIT 1"
            row = self._block_of(connection.execute(sql, (run_id, number)).fetchone(), run_id, number)
        return (None, b"") if row is None else (row[0], row[2])

    def _block_of(self, row: tuple[Any, ...] | None, run_id: str, number: int) -> tuple[int, int, bytes] | None:
        """Return a row of blocks with its types checked: SQLite takes any type in any column."""
        if row is None:
            return None
        first, last, data = row
        if not (isinstance(first, int) and isinstance(last, int) and isinstance(data, bytes)):
            raise self._damage(run_id, number)
        if not 0 <= first <= last < _MAX_NUMBER:
            raise self._damage(run_id, number)
        return first, last, data

    def _damage(self, run_id: str, seq: int) -> RunLogError:
        return RunLogError(
            f"run {run_id} in {self.path} is damaged at event {seq}; `linkgauge runs delete {run_id}` removes it"
        )


def _event_text(event: Event) -> str:
    """Return an event as JSON; texts beyond the decoder's limit are truncated."""
    if isinstance(event, Warned):
        event = Warned(event.text[:_MAX_TEXT])
    elif isinstance(event, Ended):
        event = Ended(RunEnd(event.end.reason, event.end.detail[:_MAX_TEXT]))
    return json.dumps(encode_tagged(event), separators=(",", ":"))


def _text(value: object) -> str | None:
    """Return a cell as text: a damaged file may have any type in any column."""
    return value if value is None or isinstance(value, str) else make_printable(repr(value)[:_MAX_TEXT])


def _row(row: tuple[Any, ...]) -> RunRecord:
    row = tuple(map(_text, row))
    run_id, preset, peer, label, owned_by, started_utc, reason, detail, verdict, document, note, group = row
    known = {member.value: member for member in Reason}
    return RunRecord(
        run_id=run_id or "",
        preset=preset or "",
        peer=peer or "",
        label=label,
        started_utc=started_utc,
        reason=None if reason is None else known.get(reason, Reason.FAILED),
        detail=detail,
        verdict=verdict,
        document=_document(document),
        is_running=reason is None and is_process_alive(owned_by or ""),
        note=note,
        group=group,
    )


def _document(text: str | None) -> dict[str, Any] | None:
    """Return a run's document; None if it is missing or damaged, as it can be rebuilt from the events."""
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
