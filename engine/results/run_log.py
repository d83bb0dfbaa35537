"""The run log: every event of every run, in one SQLite file, read back as it was told.

Writing never holds up or ends a run: events go through a queue to a thread of their own, and trouble becomes
`problem`, a text for a person. Several processes may use the same log at once.
"""

import difflib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self, cast, get_args

from ..host.process_identity import is_process_alive, process_identity
from ..model.errors import DecodeError, PlanError, RunLogError
from ..model.events import Ended, Event, Reason, RunEnd, Started, Warned
from ..model.labels import truncate_label, validate_label, validate_note
from ..model.serialization import decode_tagged, encode_tagged, make_printable
from .run_log_schema import RUN_LOG_FILE_NAME, has_tables, missing_columns, open_connection, prepare_database
from .run_log_writer import QUEUE_CAPACITY, LogWriter, SqlParameters, SqlStatement

_EVENTS: Final = cast("tuple[type[Event], ...]", get_args(Event))
_PAGE: Final = 256
_LONGEST_TEXT: Final = 4_000  # what the codec reads back, with room to spare
_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # nothing that is mistaken for another
_FLUSH_S: Final = 10.0
_COLUMNS: Final = (
    *("id", "preset", "peer", "label", "owner", "started_utc", "reason", "detail", "verdict", "document"),
    *("note", "grp"),
)


def new_run_id(now: datetime, randomness: random.Random) -> str:
    """Return a name such as `20261121-011530-k3f9`: the moment in UTC, and a little chance."""
    tail = "".join(randomness.choice(_ALPHABET) for _ in range(4))
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{tail}"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as the list of runs shows it. `reason` is None while it goes on, and for good where it was cut off.

    `label` and `note` are a person's own words, `group` is what a series of runs has in common.
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
    """One log. Close it, or use it as a context: what is queued is then written and the thread ended."""

    def __init__(
        self, path: Path, on_problem: Callable[[str], None] | None = None, capacity: int = QUEUE_CAPACITY
    ) -> None:
        self.path = path
        self._writer = LogWriter(path, on_problem, capacity)
        self._next: dict[str, int] = {}

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        create: bool = True,
        on_problem: Callable[[str], None] | None = None,
        capacity: int = QUEUE_CAPACITY,
    ) -> Self:
        """Open the log in a directory; make both where they are missing, unless `create` is False.

        Raises StoreError, with path and remedy, where the log cannot be used. `on_problem` is called, in any
        thread, with the text of what goes wrong later.
        """
        path = directory / RUN_LOG_FILE_NAME
        prepare_database(path, create=create)
        return cls(path, on_problem, capacity)

    @property
    def problem(self) -> str | None:
        """Why the newest run that could not be kept is not kept; None while all is well."""
        return self._writer.problem

    def begin(
        self, run_id: str, preset_id: str, peer: str, label: str | None = None, group: str | None = None
    ) -> None:
        """Begin a run. Never waits, never raises; neither do `add` and `finish`."""
        self._next[run_id] = 0
        words = (make_printable(preset_id), make_printable(peer), truncate_label(label), truncate_label(group))
        row = (run_id, *words, process_identity())
        sql = "INSERT INTO runs (id, preset, peer, label, grp, owner) VALUES (?, ?, ?, ?, ?, ?)"
        self._writer.put(SqlStatement(run_id, sql, lambda: row))

    def add(self, run_id: str, event: Event) -> None:
        """Keep an event of a run that has begun."""
        number = self._next.get(run_id)
        if number is None:
            return
        self._next[run_id] = number + 1
        sql = "INSERT INTO events (run_id, seq, event) VALUES (?, ?, ?)"
        self._writer.put(SqlStatement(run_id, sql, lambda: (run_id, number, _written(event))))
        if isinstance(event, Started):
            began = make_printable(event.started_utc)
            sql = "UPDATE runs SET started_utc = ? WHERE id = ?"
            self._writer.put(SqlStatement(run_id, sql, lambda: (began, run_id)))
        elif isinstance(event, Ended):
            end = event.end
            sql = "UPDATE runs SET reason = ?, detail = ? WHERE id = ?"
            self._writer.put(
                SqlStatement(run_id, sql, lambda: (end.reason.value, make_printable(end.detail), run_id))
            )

    def finish(self, run_id: str, verdict: str, document: dict[str, Any]) -> None:
        """Keep what came out of a run; nothing more is taken of it after that."""
        if self._next.pop(run_id, None) is not None:
            sql = "UPDATE runs SET verdict = ?, document = ? WHERE id = ?"
            self._writer.put(SqlStatement(run_id, sql, lambda: (verdict, json.dumps(document), run_id)))

    def flush(self, timeout_s: float = _FLUSH_S) -> bool:
        """Wait until what was told is written or given up; return whether that came to pass in time."""
        return self._writer.flush(timeout_s)

    def list_runs(self) -> list[RunRecord]:
        """Return all runs, the newest first. Raises StoreError, as do all that read."""
        return self._rows("ORDER BY number DESC", ())

    def find(self, text: str) -> RunRecord:
        """Return the run of an id, or of the beginning of one that no other begins with."""
        found = self._rows("WHERE id = ?", (text,)) if text else []
        if not found and text:
            found = self._rows("WHERE substr(id, 1, length(?1)) = ?1 ORDER BY number DESC", (text,))
        if len(found) == 1:
            return found[0]
        shown = make_printable(text[:60])
        if found:
            ids = ", ".join(row.run_id for row in found[:5])
            raise RunLogError(f"{len(found)} runs begin with {shown}: {ids}{', …' if found[5:] else ''}")
        near = difflib.get_close_matches(text, [row.run_id for row in self.list_runs()], n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise RunLogError(f"there is no run {shown!r}; {hint}`linkgauge runs list` shows them")

    def events(self, run_id: str) -> Iterator[Event]:
        """Iterate over the events of a run, in the order they were told; a crashed run ends early."""
        self.flush()
        number = 0
        while page := self._page(run_id, number):
            for seq, text in page:
                yield self._read(run_id, seq, text)
                number = seq + 1

    def set_label(self, run_id: str, label: str | None) -> None:
        """Name a run, also one that goes on; nothing takes its label away.

        Raises StoreError, and PlanError where it is too long; `set_note` does so, too.
        """
        self._set("UPDATE runs SET label = ? WHERE id = ?", run_id, validate_label(label))

    def set_note(self, run_id: str, note: str | None) -> None:
        """Keep what a person has to say about a run; nothing takes it away."""
        self._set("UPDATE runs SET note = ? WHERE id = ?", run_id, validate_note(note))

    def delete(self, run_id: str) -> None:
        """Delete a run; raise StoreError where there is none of that id, or it still goes on."""
        if self._exact(run_id).is_running:
            raise RunLogError(f"run {run_id} still goes on; stop it first")
        with open_connection(self.path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("DELETE FROM events WHERE run_id = ?", (run_id,))
            connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
            connection.execute("COMMIT")

    def close(self) -> None:
        """Write what is queued and end the thread; closing twice is closing once."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, how: str, parameters: SqlParameters) -> list[RunRecord]:
        self.flush()
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
            raise RunLogError(f"there is no run {make_printable(run_id[:60])!r}; `linkgauge runs list` shows them")
        return rows[0]

    def _set(self, sql: str, run_id: str, value: str | None) -> None:
        self._exact(run_id)
        prepare_database(self.path, create=True)  # an older file gets the columns that it lacks
        with open_connection(self.path) as connection:
            connection.execute(sql, (value, run_id))

    def _page(self, run_id: str, number: int) -> list[tuple[int, str]]:
        # A connection for each page: a reader that stops half-way leaves nothing open.
        if not has_tables(self.path):
            return []
        sql = "SELECT seq, event FROM events WHERE run_id = ? AND seq >= ? ORDER BY seq LIMIT ?"
        with open_connection(self.path) as connection:
            return connection.execute(sql, (run_id, number, _PAGE)).fetchall()

    def _read(self, run_id: str, seq: int, text: str) -> Event:
        try:
            return decode_tagged(_EVENTS, json.loads(text))
        except (DecodeError, PlanError, ValueError, TypeError, RecursionError) as error:
            raise RunLogError(
                f"run {run_id} in {self.path} is damaged at event {seq}: {error}; "
                f"`linkgauge runs delete {run_id}` takes it away"
            ) from error


def _written(event: Event) -> str:
    """Return an event as it is kept; a text that is longer than can be read back is cut."""
    if isinstance(event, Warned):
        event = Warned(event.text[:_LONGEST_TEXT])
    elif isinstance(event, Ended):
        event = Ended(RunEnd(event.end.reason, event.end.detail[:_LONGEST_TEXT]))
    return json.dumps(encode_tagged(event), separators=(",", ":"))


def _row(row: tuple[Any, ...]) -> RunRecord:
    run_id, preset, peer, label, owned_by, started_utc, reason, detail, verdict, document, note, group = row
    known = {member.value: member for member in Reason}
    return RunRecord(
        run_id=run_id,
        preset=preset,
        peer=peer,
        label=label,
        started_utc=started_utc,
        reason=None if reason is None else known.get(reason, Reason.FAILED),
        detail=detail,
        verdict=verdict,
        document=_document(document),
        is_running=reason is None and is_process_alive(owned_by),
        note=note,
        group=group,
    )


def _document(text: str | None) -> dict[str, Any] | None:
    """Return a run's document; None where there is none or it is damaged: events can make it again."""
    try:
        value = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
