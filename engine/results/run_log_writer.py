"""The thread that writes the run log, so that a slow disk cannot block a run.

Callers put statements into a bounded queue and never wait. The thread commits all queued statements of a run in one
transaction. After a failure, the rest of the run is dropped and the problem is reported, so that the log always
holds the beginning of a run without a gap.
"""

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from .run_log_schema import connect_sqlite, explain_error

# Two minutes of both ends' samples; a sample of 128 duplex sessions is about 40 kB.
QUEUE_CAPACITY: Final = 1_024
_CLOSE_S: Final = 15.0  # a little more than a locked database is waited for

SqlParameters = tuple[str | int | None, ...]


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """A statement of one run. The writing thread computes its parameters."""

    run_id: str
    sql: str
    parameters: Callable[[], SqlParameters]


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place in the queue; `reached` is set when everything before it is processed."""

    reached: threading.Event
    last: bool


class LogWriter:
    """Writes in the background. `on_problem` is called at most once per run, in any thread."""

    def __init__(self, path: Path, on_problem: Callable[[str], None] | None, capacity: int) -> None:
        self.problem: str | None = None
        self._path = path
        self._on_problem = on_problem
        self._queue: queue.Queue[SqlStatement | _Mark] = queue.Queue(capacity)
        self._thread: threading.Thread | None = None
        self._closed = False
        self._full: set[str] = set()  # runs whose further statements are not queued
        self._failed: set[str] = set()  # runs whose further statements are not written

    def put(self, statement: SqlStatement) -> None:
        """Queue a statement; never waits and never raises."""
        if self._closed or statement.run_id in self._full or statement.run_id in self._failed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="linkgauge-runlog", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(statement)
        except queue.Full:
            self._full.add(statement.run_id)
            self._say(f"{self._path}: the disk is too slow, {self._queue.qsize()} entries wait for it")

    def flush(self, timeout_s: float) -> bool:
        """Wait until the queue is written or given up; return whether that took less than the timeout."""
        return self._mark(timeout_s, last=False)

    def close(self) -> None:
        """Write the queue and end the thread."""
        if self._closed:
            return
        self._closed = True
        thread = self._thread
        if thread is None:
            return
        if self._mark(_CLOSE_S, last=True):
            thread.join()
        else:
            self._say(f"{self._path}: the disk does not answer")

    def _mark(self, timeout_s: float, *, last: bool) -> bool:
        if self._thread is None or not self._thread.is_alive():
            return True
        mark = _Mark(threading.Event(), last)
        try:
            self._queue.put(mark, timeout=timeout_s)
        except queue.Full:
            return False
        return mark.reached.wait(timeout_s)

    def _work(self) -> None:
        connection: sqlite3.Connection | None = None
        last = False
        while not last:
            batch = self._take()
            writes = [item for item in batch if isinstance(item, SqlStatement)]
            marks = [item for item in batch if isinstance(item, _Mark)]
            for run_id, group in groupby(writes, key=lambda write: write.run_id):
                if run_id not in self._failed:
                    connection = self._commit(connection, run_id, list(group))
            last = any(mark.last for mark in marks)
            if last and connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
            for mark in marks:
                mark.reached.set()

    def _take(self) -> list[SqlStatement | _Mark]:
        batch = [self._queue.get()]
        with contextlib.suppress(queue.Empty):
            while len(batch) < QUEUE_CAPACITY:
                batch.append(self._queue.get_nowait())
        return batch

    def _commit(
        self, connection: sqlite3.Connection | None, run_id: str, writes: list[SqlStatement]
    ) -> sqlite3.Connection | None:
        """Write all statements in a transaction; return the connection, None if it could not be opened."""
        try:
            connection = connection or connect_sqlite(self._path)
            connection.execute("BEGIN IMMEDIATE")
            for write in writes:
                connection.execute(write.sql, write.parameters())
            connection.execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            self._failed.add(run_id)
            if connection is not None and connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            self._say(explain_error(self._path, error))
        return connection

    def _say(self, text: str) -> None:
        self.problem = f"this run is not saved from here on: {text}"
        if self._on_problem is not None:
            self._on_problem(self.problem)
