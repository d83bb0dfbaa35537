"""The thread that writes the run log, so that neither a slow disk nor a locked file can block a run.

Callers put entries into a queue and never wait. The thread commits them run by run, in order, in a transaction for
all that have come meanwhile. While another process has locked the file, the entries wait in memory. Many events
together become a block (event_blocks.py), so that a day of one session takes less than the limit. If the limit is
exceeded, or if writing fails, the thread drops the rest of the run and reports the problem: the log always has the
beginning of a run without a gap.

Events are committed as rows at once, so that none is lost with the process. When there are enough rows for a block,
the block replaces them. The events of a run that is over come together, and are blocks from the start.
"""

import contextlib
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...model.errors import RunLogError
from .log_file import connect_for_writing, explain_error, is_lock_error
from .schema_and_older_files import transaction
from .stored_events import insert_block, replace_events
from .write_backlog import (
    BLOCK_CHARACTERS,
    BLOCK_EVENTS,
    Backlog,
    Block,
    BoundStatement,
    EventEntry,
    EventsEntry,
    QueueEntry,
    Rows,
    SqlStatement,
    WaitingEntry,
)

# The maximum weight of the queue while a disk hangs: two hours of both ends' samples of one session, or two minutes
# of 128 duplex sessions, in about 180 MB. An entry weighs as much as some sessions.
_MAX_QUEUED: Final = 1 << 18
_ENTRY_WEIGHT: Final = 4
_MAX_BATCH: Final = 1_024
MAX_WAITING_BYTES: Final = 128 << 20  # a day of one session is 25 to 45 MB
_MAX_WAITING_S: Final = 48 * 3600.0
_TRANSACTION_BYTES: Final = 1 << 20  # written in some milliseconds: other processes wait no longer for the lock
_BUSY_S: Final = 0.25  # new entries wait in the queue meanwhile
_LOCKED_AFTER_S: Final = 1.0  # other processes' commits are shorter
CLOSE_S: Final = 75.0
_POLL_S: Final = 0.05
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in the queue; `reached` is set when all entries before it are written or given up."""

    reached: threading.Event
    last: bool


_ENCODING_ERRORS: Final = (ValueError, TypeError, ArithmeticError, RecursionError, OSError)


class LogWriter:
    """Writes in the background. It calls `on_problem` at most once per run, in any thread."""

    def __init__(
        self,
        path: Path,
        on_problem: Callable[[str], None] | None,
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.problem: str | None = None
        self._path = path
        self._on_problem = on_problem
        self._max_waiting_bytes = max_waiting_bytes
        self._queue: queue.SimpleQueue[list[QueueEntry] | QueueEntry | _Mark] = queue.SimpleQueue()
        self._held: list[QueueEntry] | None = None
        self._queued = 0  # the weight of the queue
        self._queued_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._abandoned = False  # the thread writes no more
        self._given_up: set[str] = set()  # runs of which nothing more is taken
        self._backlog = Backlog()
        self._lock: tuple[float, Exception] | None = None  # since when another process has locked the file
        self._tables = _Tables(path)

    def put(self, entry: QueueEntry) -> None:
        """Queue an entry; never waits and never raises."""
        if self._closed or entry.run_id in self._given_up:
            return
        if self._thread is None and not self._start():
            self._refuse(entry.run_id, "no thread can be started: raise ulimit -u, or the limits of the service")
            return
        if self._queued > _MAX_QUEUED:
            self._refuse(entry.run_id, "the disk is too slow, or does not answer")
            return
        self._change_queued(_weight(entry))
        if self._held is None:
            self._queue.put(entry)
        else:
            self._held.append(entry)

    def _start(self) -> bool:
        """Start the thread; return whether this user may have one now."""
        thread = threading.Thread(target=self._work, name="linkgauge-runlog", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    @contextlib.contextmanager
    def together(self) -> Generator[None]:
        """Queue the entries of this block at once: a run that is over becomes one transaction.

        Only one thread may have such a block.
        """
        held = self._held = []
        try:
            yield
        finally:
            self._held = None
            if held:
                self._queue.put(held)

    @property
    def is_locked_out(self) -> bool:
        """Whether another process has had the file locked for longer than a commit takes."""
        return self._locked_s() > _LOCKED_AFTER_S

    def _locked_s(self) -> float:
        lock = self._lock
        return 0.0 if lock is None else time.monotonic() - lock[0]

    def flush(self, timeout_s: float, *, unless_locked: bool = False) -> bool:
        """Wait until the queue is written or given up; return whether that took less than the timeout.

        With `unless_locked`, do not wait for another process that has locked the file.
        """
        return self._mark(timeout_s, last=False, is_over=lambda: unless_locked and self.is_locked_out)

    def close(self, on_wait: Callable[[str], None] | None = None, timeout_s: float = CLOSE_S) -> None:
        """Write the queue and end the thread. Entries that cannot be written in time become a problem.

        `on_wait` is called with a text if another process has locked the file.
        """
        if self._closed:
            return
        self._closed = True
        thread = self._thread
        if thread is None:
            return

        def tell_once() -> bool:
            nonlocal on_wait
            if on_wait is not None and self.is_locked_out:
                on_wait(f"{self._path}: another process has locked it; waiting for up to {timeout_s:g} s")
                on_wait = None
            return False

        if self._mark(timeout_s, last=True, is_over=tell_once):
            thread.join()
            return
        self._abandoned = True
        thread.join(_BUSY_S + _LOCKED_AFTER_S)
        if thread.is_alive():
            self._report(f"this run is not saved from here on: {self._path}: the disk does not answer")
        else:
            self._report_unsaved()

    def _mark(self, timeout_s: float, *, last: bool, is_over: Callable[[], bool]) -> bool:
        if self._thread is None or not self._thread.is_alive():
            return True
        deadline = time.monotonic() + timeout_s
        mark = _Mark(threading.Event(), last)
        self._queue.put(mark)
        while not mark.reached.wait(min(_POLL_S, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline or is_over():
                return mark.reached.is_set()
        return True

    # The thread.

    def _work(self) -> None:
        marks: list[_Mark] = []
        while not self._abandoned and not any(mark.last for mark in marks if mark.reached.is_set()):
            for item in self._take():
                if isinstance(item, _Mark):
                    marks.append(item)
                else:
                    self._prepare(item)
            self._write()
            if not self._backlog:
                for mark in marks:
                    mark.reached.set()
                marks = [mark for mark in marks if mark.last]
        self._tables.close()

    def _take(self) -> list[QueueEntry | _Mark]:
        """Return the entries that have come. Wait for them, but not for long while others wait for the file."""
        batch: list[QueueEntry | _Mark] = []
        with contextlib.suppress(queue.Empty):
            item = self._queue.get(timeout=_POLL_S if self._backlog else None)
            while True:
                batch.extend(item if isinstance(item, list) else [item])
                if len(batch) >= _MAX_BATCH:
                    break
                item = self._queue.get_nowait()
        self._change_queued(-sum(map(_weight, batch)))
        return batch

    def _change_queued(self, weight: int) -> None:
        with self._queued_lock:
            self._queued += weight

    def _prepare(self, item: QueueEntry) -> None:
        """Make the entry's values, and append it to the backlog."""
        run_id = item.run_id
        if run_id in self._given_up:
            return
        if self._backlog.size > self._max_waiting_bytes or self._locked_s() > _MAX_WAITING_S:
            megabytes = round(self._backlog.size / 1e6)
            self._refuse(run_id, f"another process has locked it, and {megabytes} MB wait to be written")
            return
        try:
            if isinstance(item, EventEntry):
                self._backlog.append_event(run_id, item.number, item.text())
            elif isinstance(item, EventsEntry):
                self._backlog.append_blocks(run_id, item.first, item.texts())
            else:
                parameters = item.parameters()
                size = sum(len(value) for value in parameters if isinstance(value, str))
                self._backlog.append(
                    BoundStatement(run_id, item.sql, parameters, item.is_first, item.is_last, size)
                )
        except _ENCODING_ERRORS as error:
            self._fail(run_id, error)

    def _write(self) -> None:
        """Write the backlog, in transactions of one run and of limited size, until the file is locked."""
        while self._backlog and not self._abandoned:
            entries = self._backlog.first(_TRANSACTION_BYTES)
            try:
                self._tables.commit(entries)
            except (sqlite3.Error, RunLogError, *_ENCODING_ERRORS) as error:
                if is_lock_error(error):
                    self._lock = time.monotonic() if self._lock is None else self._lock[0], error
                    return
                self._fail(entries[0].run_id, error)
                continue
            self._lock = None
            self._backlog.remove(entries)
            self._tables.make_blocks(entries)

    # Problems.

    def _fail(self, run_id: str, error: Exception) -> None:
        """Drop the waiting entries of a run, and take no more."""
        self._given_up.add(run_id)
        self._tables.forget(run_id)
        self._backlog.drop(run_id)
        self._report(f"this run is not saved from here on: {explain_error(self._path, error)}")

    def _refuse(self, run_id: str, why: str) -> None:
        """Take no more entries of a run. The waiting ones are still written."""
        if run_id not in self._given_up:
            self._given_up.add(run_id)
            self._report(f"this run is not saved from here on: {self._path}: {why}")

    def _report_unsaved(self) -> None:
        """Report the entries that were still waiting at the end."""
        why = str(self._path) if self._lock is None else explain_error(self._path, self._lock[1])
        self._report(f"{self._backlog.describe()}: {why}")

    def _report(self, text: str) -> None:
        _log.debug("%s", text)
        self.problem = text
        if self._on_problem is not None:
            self._on_problem(text)


class _Tables:
    """Writes entries into the file's tables. When there are enough rows for a block, it replaces them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._tails: dict[str, Rows] = {}  # events that are written as rows, for each run's next block

    def commit(self, entries: Sequence[WaitingEntry]) -> None:
        """Write entries of one run, all of them or none. Raises sqlite3.Error, RunLogError or ValueError."""
        with self._transaction() as connection:
            for entry in entries:
                if isinstance(entry, Rows):
                    sql = "INSERT INTO events (run_id, seq, event) VALUES (?, ?, ?)"
                    rows = ((entry.run_id, number, text) for number, text in enumerate(entry.texts, entry.first))
                    connection.executemany(sql, rows)
                elif isinstance(entry, Block):
                    insert_block(connection, entry)
                else:
                    connection.execute(entry.sql, entry.parameters)

    def make_blocks(self, entries: Sequence[WaitingEntry]) -> None:
        """Note written rows; replace them if there are enough, or if the run has ended."""
        for entry in entries:
            self._note_tail(entry)
        has_ended = any(isinstance(entry, BoundStatement) and entry.is_last for entry in entries)
        tail = self._tails.get(entries[0].run_id)
        if tail is not None and (has_ended or tail.is_full):
            self._replace_tail(tail, can_wait=not has_ended)

    def forget(self, run_id: str) -> None:
        """Leave the rows of a run as they are."""
        self._tails.pop(run_id, None)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()

    def _note_tail(self, entry: WaitingEntry) -> None:
        """Note written rows for the next block."""
        if not isinstance(entry, Rows):
            return
        tail = self._tails.get(entry.run_id)
        if tail is not None and tail.last + 1 != entry.first:  # a block came between
            self._replace_tail(tail, can_wait=False)
            tail = None
        if tail is None:
            tail = self._tails[entry.run_id] = Rows(entry.run_id, entry.first)
        tail.extend(entry.texts)

    def _replace_tail(self, tail: Rows, *, can_wait: bool) -> None:
        """Replace rows by their block.

        The block is made before the transaction, so that the file is locked only for moments. If rows cannot be
        replaced, they are tried again with the next ones, or remain: no event is lost.
        """
        block = tail.to_block()
        try:
            with self._transaction() as connection:
                replace_events(connection, tail.run_id, block.first, block.last, [block])
        except (sqlite3.Error, RunLogError) as error:
            _log.debug("rows of %s stay as they are: %s", tail.run_id, error)
            if can_wait and len(tail.texts) < 2 * BLOCK_EVENTS and tail.size < 2 * BLOCK_CHARACTERS:
                return
        del self._tails[tail.run_id]

    @contextlib.contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Write in a transaction. The first one opens the file, which may have been locked until then."""
        if self._connection is None:
            self._connection = connect_for_writing(self._path, _BUSY_S)
        with transaction(self._connection):
            yield self._connection


def _weight(item: QueueEntry | _Mark) -> int:
    if isinstance(item, _Mark):
        return 0
    return _ENTRY_WEIGHT + (0 if isinstance(item, SqlStatement) else item.sessions)
