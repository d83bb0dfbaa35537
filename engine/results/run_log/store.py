"""The run log: stores every event of every run in one SQLite file, and reads them back.

Writing never blocks or ends a run: a separate thread writes the queued events. A failure becomes `problem`, a text
for the user. Several processes may use the same log at once.
"""

import difflib
import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from ...host.process_identity import saved_process_identity
from ...model.errors import RunLogError, UnknownRun
from ...model.events import Ended, Event, Sampled, Started
from ...model.serialization import make_printable
from .label_validation import truncate_label, validate_label, validate_note
from .listing import (
    ID_BEGINS,
    RunEntry,
    RunNumbers,
    RunQuery,
    cell_text,
    count_runs,
    find_numbers,
    is_running,
    newest_of_peers,
    newest_with_beginning,
    read_cells,
    read_entries,
    read_start_times,
)
from .log_file import RUN_LOG_FILE_NAME, LogConnection, open_for_reading, open_for_writing, prepare_log
from .removal import file_size, remove_runs, run_sizes, used_bytes
from .run_brief import BRIEF_COLUMNS, RunBrief, add_briefs, brief_row, load_document
from .stored_events import decode_event, event_text, event_texts, read_page, thinned_until
from .write_backlog import EventEntry, EventsEntry, SqlParameters, SqlStatement
from .writer import CLOSE_S, MAX_WAITING_BYTES, LogWriter

if TYPE_CHECKING:
    from .thinning import ThinnableRun, Thinning

_ALPHABET: Final = "23456789abcdefghjkmnpqrstuvwxyz"  # without characters that look alike
_FLUSH_S: Final = 10.0
_RECORDS: Final = 100  # documents in memory at a time
_RECORDS_CHARACTERS: Final = 4 << 20
_ENTRIES: Final = 2_000
_COMPARED_IDS: Final = 1_000  # for the hint at a similar id
_ACTIVE_OWNERS: Final = "SELECT owner FROM runs WHERE reason IS NULL"
T = TypeVar("T")
_COLUMNS: Final = (
    *("number", "id", "preset", "peer", "label", "owner", "started_utc", "reason", "detail", "verdict", "document"),
    *("note", "grp"),
)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM runs "  # noqa: S608 (names of ours)


def new_run_id(now: datetime, randomness: random.Random) -> str:
    """Return an id such as `20261121-011530-k3f9`: the time in UTC and a random suffix."""
    number = randomness.getrandbits(64)  # one draw: the kernel is asked for it
    tail = "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(4))
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(RunEntry):
    """A run with the detail of its end and its whole document."""

    detail: str | None
    document: dict[str, Any] | None


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
        prepare_log(path, create=create)
        return cls(path, on_problem, max_waiting_bytes)

    @property
    def problem(self) -> str | None:
        """The reason why the last run that could not be written is incomplete; None without failures."""
        return self._writer.problem

    def together(self) -> AbstractContextManager[None]:
        """Store everything in this block at once: for a run that is over."""
        return self._writer.together()

    def begin(
        self, run_id: str, preset_id: str, peer: str, label: str | None = None, group: str | None = None
    ) -> None:
        """Begin a run. Never waits, never raises; neither do `add` and `finish`.

        Args:
            run_id: A name from `new_run_id`.
            preset_id: The preset that the run is judged by; empty for none.
            peer: The far end, as the user wrote it.
            label: The user's name for the run, which is cut to its limit.
            group: The name of the run's series, which is cut as well.
        """
        self._next[run_id] = 0
        words = (make_printable(preset_id), make_printable(peer), truncate_label(label), truncate_label(group))
        row = (run_id, *words, saved_process_identity())
        sql = "INSERT INTO runs (id, preset, peer, label, grp, owner) VALUES (?, ?, ?, ?, ?, ?)"
        self._writer.put(SqlStatement(run_id, sql, lambda: row, is_first=True))

    def append_event(self, run_id: str, event: Event) -> None:
        """Store an event of a run that has begun."""
        number = self._next.get(run_id)
        if number is None:
            return
        self._next[run_id] = number + 1
        self._writer.put(EventEntry(run_id, number, lambda: event_text(event), _session_count(event)))
        self._note(run_id, event)

    def add_all(self, run_id: str, events: Sequence[Event], texts: Sequence[str | None] = ()) -> None:
        """Store all events of a run that has begun and is over: this is faster than one by one.

        Args:
            run_id: The run.
            events: All its events.
            texts: The first events as JSON, if the caller has that; None for an event that is to be encoded. A text
                that is not one line of printable ASCII is not used.
        """
        first = self._next.get(run_id)
        if first is None:
            return
        self._next[run_id] = first + len(events)
        sessions = sum(map(_session_count, events))
        self._writer.put(EventsEntry(run_id, first, lambda: event_texts(events, texts), sessions))
        for event in events:
            self._note(run_id, event)

    def _note(self, run_id: str, event: Event) -> None:
        """Store the values of an event that a list of runs shows."""
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
        """Store a run's verdict and document, and ignore later events of it."""
        if self._next.pop(run_id, None) is not None:
            assignments = ", ".join(f"{name} = ?" for name in ("verdict", "document", *BRIEF_COLUMNS))
            sql = f"UPDATE runs SET {assignments} WHERE id = ?"  # noqa: S608 (names of ours)

            def parameters() -> SqlParameters:
                return (verdict, json.dumps(document), *brief_row(document), run_id)

            self._writer.put(SqlStatement(run_id, sql, parameters, is_last=True))

    def flush(self, timeout_s: float = _FLUSH_S) -> bool:
        """Wait until the queue is written or given up; return whether that took less than the timeout."""
        return self._writer.flush(timeout_s)

    def size_bytes(self) -> int:
        """Return the size of the log on the disk."""
        return file_size(self.path)

    def used_bytes(self) -> int:
        """Return the size without the space of deleted runs."""
        return self._read(used_bytes, 0)

    def run_sizes(self) -> dict[str, int]:
        """Return the minimum of bytes that the deletion of each run frees."""
        return self._read(run_sizes, {})

    def list_runs(self) -> list[RunRecord]:
        """Return all runs with their documents, the newest first. Raises RunLogError, as all reading methods do.

        All documents are in memory at once. For lists, use `find_runs` and `read_entries`.
        """
        return self._rows("ORDER BY number DESC")

    def start_times(self) -> list[tuple[str, str | None]]:
        """Return the id of each run and its start in UTC, in the order in which the runs were saved."""
        return self._read(read_start_times, [])

    def records(self, numbers: RunNumbers) -> Iterator[RunRecord]:
        """Iterate over runs with their documents, in the order of their numbers, some in memory at a time."""
        first = 0
        while batch := self._read(partial(_read_records, numbers=numbers[first : first + _RECORDS]), []):
            yield from (record for record in batch if record is not None)
            first += len(batch)

    def count_runs(self) -> int:
        """Return the number of stored runs."""
        return self._read(count_runs, 0)

    def find_runs(self, query: RunQuery) -> RunNumbers:
        """Return the runs that match a query, in its order, for `read_entries`."""
        return self._read(lambda connection: find_numbers(connection, query), ())

    def read_entries(self, numbers: RunNumbers) -> list[RunEntry]:
        """Return the entries of runs, in the order of their numbers. Deleted runs are left out."""
        return self._read(lambda connection: read_entries(connection, numbers), [])

    def entries(self, numbers: RunNumbers) -> Iterator[RunEntry]:
        """Iterate over the entries of runs, some in memory at a time."""
        for first in range(0, len(numbers), _ENTRIES):
            yield from self.read_entries(numbers[first : first + _ENTRIES])

    def newest_of_peers(self, limit: int) -> list[RunEntry]:
        """Return the newest test with each peer, the newest first, without observed connections."""
        return self._read(lambda connection: read_entries(connection, newest_of_peers(connection, limit)), [])

    def runs_of_group(self, group: str) -> list[RunRecord]:
        """Return the runs of a series, the newest first."""
        return self._rows("WHERE grp = ? ORDER BY number DESC", (group,))

    def add_briefs(self) -> bool:
        """Prepare the runs of an older linkgauge for lists, in pieces; return whether there were any."""
        return add_briefs(self.path) if self.size_bytes() else False

    def find(self, text: str) -> RunRecord:
        """Return the run with an id, or the only run whose id begins so."""
        matches = self._rows("WHERE id = ?", (text,)) if text else []
        if matches:
            return matches[0]
        newest_first = f"{ID_BEGINS} ORDER BY +number DESC"
        ids = self._read(lambda connection: _ids(connection, newest_first, (text,)), []) if text else []
        if len(ids) == 1:
            return self._exact(ids[0])
        printable = make_printable(text[:60])
        if ids:
            some = ", ".join(map(make_printable, ids[:5]))
            raise UnknownRun(f"{len(ids)} runs begin with {printable}: {some}{', …' if ids[5:] else ''}")
        newest = self._read(lambda connection: _ids(connection, "ORDER BY id DESC LIMIT ?", (_COMPARED_IDS,)), [])
        near = difflib.get_close_matches(text[:60], newest, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise UnknownRun(f"there is no run {printable!r}; {hint}`linkgauge runs list` shows them")

    def find_newest(self) -> RunRecord:
        """Return the run that was saved last. Raises UnknownRun if there is none."""
        newest = self._rows("ORDER BY number DESC LIMIT 1")
        if not newest:
            raise UnknownRun("no run is saved yet; `linkgauge run HOST` saves one")
        return newest[0]

    def find_entries(self, beginning: str, limit: int) -> list[RunEntry]:
        """Return the runs whose id begins so, the newest first; at most `limit`."""

        def read(connection: LogConnection) -> list[RunEntry]:
            return read_entries(connection, newest_with_beginning(connection, beginning, limit))

        return self._read(read, [])

    def events(self, run_id: str) -> Iterator[Event]:
        """Iterate over the events of a run, in order; a crashed run has no last ones."""
        self._flush_for_reading()
        number = 0
        marks: set[int | None] = set()
        while rows := self._page(run_id, number, marks):
            for seq, text in rows:
                yield decode_event(self.path, run_id, seq, text)
                number = seq + 1

    def set_label(self, run_id: str, label: str | None) -> None:
        """Set the label of a run, even of an active one; None removes it.

        Raises RunLogError, and PlanError if the text is too long, as `set_note` does.
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

        The file becomes smaller. A large file of an older linkgauge becomes smaller only with `rewrite`: meanwhile
        other processes cannot write.
        """
        absent = [(run_id, None, None) for run_id in run_ids]
        for run_id, owner, reason in self._read(lambda connection: _owners(connection, run_ids), absent):
            if owner is None:
                raise self._absence(run_id)
            if is_running(reason, owner):
                raise RunLogError(f"run {run_id} is still running; stop it first")
        remove_runs(self.path, run_ids, rewrite=rewrite)

    def thinnable_runs(self, *, with_damaged: bool = True) -> "list[ThinnableRun]":
        """Return the ended runs whose samples can be merged to one per second, the oldest first.

        `with_damaged` includes runs that an earlier attempt found damaged.
        """
        from .thinning import thinnable_runs

        return self._read(partial(thinnable_runs, with_damaged=with_damaged), [])

    def thin_all(self, run_ids: Sequence[str], *, rewrite: bool = False, deadline: float = math.inf) -> "Thinning":
        """Merge the samples of runs to one per end and second, piece by piece. Active runs are left out.

        Args:
            run_ids: The runs, in this order.
            rewrite: Let a large file of an older linkgauge become smaller too, as `delete_all` does.
            deadline: The time of the monotonic clock after which no piece begins; the next call does the rest. With
                a deadline, this does not wait for a locked file.

        Raises:
            RunLogError: The log cannot be used. Damaged runs are in the result's `problems`.
        """
        from .thinning import thin_runs

        return thin_runs(self.path, run_ids, rewrite=rewrite, deadline=deadline)

    def is_any_running(self) -> bool:
        """Return whether a run is active, in this process or in another."""

        def read(connection: LogConnection) -> bool:
            return any(is_running(None, owner) for (owner,) in connection.rows(_ACTIVE_OWNERS))

        return self._read(read, nothing=False)

    def close(self, on_wait: Callable[[str], None] | None = None, timeout_s: float = CLOSE_S) -> None:
        """Write the queue and end the thread. A second call has no effect.

        If another process has locked the file, call `on_wait` with a text and wait for up to `timeout_s`. Then
        `problem` names the runs that could not be written.
        """
        self._writer.close(on_wait, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, read: Callable[[LogConnection], T], nothing: T) -> T:
        """Return the result of a reading function; `nothing` if there is no log yet."""
        self._flush_for_reading()
        with open_for_reading(self.path) as connection:
            return nothing if connection is None else read(connection)

    def _rows(self, how: str, parameters: SqlParameters = ()) -> list[RunRecord]:
        """Return the runs that a condition selects."""
        return self._read(lambda connection: [_row(row) for row in connection.rows(_SELECT + how, parameters)], [])

    def _exact(self, run_id: str) -> RunRecord:
        rows = self._rows("WHERE id = ?", (run_id,))
        if not rows:
            raise self._absence(run_id)
        return rows[0]

    def _absence(self, run_id: str) -> RunLogError:
        return RunLogError(f"there is no run {make_printable(run_id[:60])!r}; `linkgauge runs list` shows them")

    def _set(self, sql: str, run_id: str, value: str | None) -> None:
        self._exact(run_id)
        with open_for_writing(self.path) as connection:
            connection.execute(sql, (value, run_id))

    def _page(self, run_id: str, number: int, marks: set[int | None]) -> list[tuple[int, str]]:
        """Return the next events, from this number on; none after the last.

        Numbers change when samples are merged. So `marks` has the values of `thinned` so far; RunLogError if they
        differ.
        """
        # A connection for each page: a reader that stops half-way leaves nothing open.
        with open_for_reading(self.path) as connection:
            if connection is None:
                return []
            connection.execute("BEGIN")  # rows become blocks meanwhile
            marks.add(thinned_until(connection, run_id))
            rows = read_page(connection, self.path, run_id, number)
        if len(marks) > 1:
            raise RunLogError(f"run {run_id} was thinned while it was read; try again")
        return rows

    def _flush_for_reading(self) -> None:
        """Write the queue, but do not wait for a locked file: the events in it can be read."""
        self._writer.flush(_FLUSH_S, unless_locked=True)


def _session_count(event: Event) -> int:
    return len(event.sample.sessions) if isinstance(event, Sampled) else 0


def _ids(connection: LogConnection, how: str, parameters: SqlParameters) -> list[str]:
    sql = f"SELECT id FROM runs {how}"  # noqa: S608 (conditions of ours)
    return [run_id for (run_id,) in connection.execute(sql, parameters) if isinstance(run_id, str)]


def _owners(connection: LogConnection, run_ids: Sequence[str]) -> list[tuple[str, str | None, str | None]]:
    """Return runs with their owners and the reasons of their ends; the owner of a missing run is None."""
    found: list[tuple[str, str | None, str | None]] = []
    for run_id in run_ids:
        row = connection.execute("SELECT owner, reason FROM runs WHERE id = ?", (run_id,)).fetchone()
        found.append((run_id, None, None) if row is None else (run_id, cell_text(row[0]) or "", cell_text(row[1])))
    return found


def _read_records(connection: LogConnection, numbers: RunNumbers) -> list[RunRecord | None]:
    """Return the first runs, at least one, and as many as fit into memory; None for a deleted one."""
    records: list[RunRecord | None] = []
    size = 0
    for number in numbers:
        row = connection.execute(f"{_SELECT} WHERE number = ?", (number,)).fetchone()
        records.append(None if row is None else _row(row))
        size += len(str(row[_COLUMNS.index("document")])) if row is not None else 0
        if size > _RECORDS_CHARACTERS:
            break
    return records


def _row(row: tuple[Any, ...]) -> RunRecord:
    cells = dict(zip(_COLUMNS, row, strict=True))
    document, detail = _document(cells["document"]), cell_text(cells["detail"])
    return RunRecord(**read_cells(cells), figures=RunBrief.of(document), document=document, detail=detail)


def _document(text: object) -> dict[str, Any] | None:
    """Return a run's document; None if it is missing or damaged: the events can rebuild it."""
    try:
        value = load_document(text)
        return None if value is None else _printable(value)
    except RecursionError:
        return None


def _printable(value: Any) -> Any:
    """Return a JSON value with its texts printable."""
    if isinstance(value, str):
        return make_printable(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {_printable(key): _printable(item) for key, item in members.items()}
    return [_printable(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
