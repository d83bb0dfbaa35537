"""Thinning of old runs: their samples are merged to one per end and second, and the space is given back.

It works window by window. A transaction of some milliseconds replaces some blocks, or rows of an older linkgauge,
by one block of the merged events. Pauses follow, as in removal.py. Samples of a second that has not ended with the
window are left for the next window. The column `thinned` of the run says how far it has come: if the process is
killed, the next one continues there, and a thinned run is not read again. An older linkgauge reads the merged
events and ignores the column.

A run of less than a minute stays as it is: its confidence interval needs its intervals, and it takes only some kB.
"""

import logging
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...model.errors import RunLogError
from ...model.events import Event, Started
from ...model.plan import SECOND_NS, Plan
from ...model.run_end import Reason
from ..meter import may_end_silent
from ..sample_merging import SampleMerger
from .event_blocks import pack_events
from .listing import is_running
from .log_file import LogConnection, open_for_reading, open_for_writing
from .removal import give_back, pause_after, used_bytes
from .schema_and_older_files import COMPLETE, transaction
from .stored_events import decode_event, encode_event, read_page, replace_events, thinned_until
from .write_backlog import Block

_DAMAGED: Final = -2  # in place of COMPLETE
_MIN_NS: Final = 60 * SECOND_NS
_MIN_EVENTS: Final = 480  # of a minute of both ends, at the usual four intervals a second
_WINDOW_EVENTS: Final = 2_048
_HASTY_WINDOW_EVENTS: Final = 256  # with a deadline
_WINDOW_CHARACTERS: Final = 1 << 20
_NO_WAIT_S: Final = 0.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThinnableRun:
    """An ended run whose samples can be merged; `is_named` means that it has a label or a note."""

    run_id: str
    started_utc: str | None
    is_named: bool


@dataclass(frozen=True, slots=True)
class Thinning:
    """The number of thinned runs, the bytes that this freed, and the damage that was found."""

    runs: int = 0
    freed_bytes: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Window:
    """Successive events with their numbers; `is_last` means that the run has no further events."""

    rows: list[tuple[int, str]]
    is_last: bool


def thinnable_runs(connection: LogConnection, *, with_damaged: bool) -> list[ThinnableRun]:
    """Return the ended runs whose samples may be merged, the oldest first.

    Only the events of a run show whether they can be.
    """
    sql = (
        "SELECT id, started_utc, label, note, reason, owner, thinned AS state, "
        "max(coalesce((SELECT last FROM blocks WHERE run_id = runs.id ORDER BY first DESC LIMIT 1), 0), "
        "coalesce((SELECT seq FROM events WHERE run_id = runs.id ORDER BY seq DESC LIMIT 1), 0)) AS last FROM runs "
        "WHERE state IS NULL AND last >= ? OR state >= 0 OR (? AND state = ?) ORDER BY number"
    )
    rows = connection.rows(sql, (_MIN_EVENTS - 1, with_damaged, _DAMAGED))
    return [
        ThinnableRun(run_id, started if isinstance(started, str) else None, bool(label or note))
        for run_id, started, label, note, reason, owner, _, _ in rows
        if isinstance(run_id, str) and not is_running(reason, owner)
    ]


def thin_runs(path: Path, run_ids: Sequence[str], *, rewrite: bool = False, deadline: float = math.inf) -> Thinning:
    """Merge the samples of runs, and give the space back.

    Args:
        path: The file of the run log.
        run_ids: The runs, in this order; active ones are left out.
        rewrite: Rewrite a file of an older linkgauge even if that takes long.
        deadline: The time of the monotonic clock after which no window begins. With a deadline, this does not wait
            for a lock.

    Raises:
        RunLogError: The file cannot be used.
    """
    count, problems = 0, list[str]()
    # In haste, a file of an older linkgauge stays as it is.
    opened = open_for_writing(path) if deadline == math.inf else open_for_reading(path, _NO_WAIT_S)
    with opened as connection:
        if connection is None or not connection.is_current:
            return Thinning()
        before = used_bytes(connection)
        for run_id in run_ids:
            try:
                count += _RunThinning(connection, path, run_id).work(deadline)
            except RunLogError as error:
                problems.append(str(error))
                sql = "UPDATE runs SET thinned = ? WHERE id = ?"
                connection.execute(sql, (_DAMAGED, run_id))
        freed_bytes = max(0, before - used_bytes(connection))
        if freed_bytes:
            give_back(connection, rewrite=rewrite, deadline=deadline)
    _log.debug("thinned %d runs: %d bytes", count, freed_bytes)
    return Thinning(count, freed_bytes, tuple(problems))


class _RunThinning:
    """Thins one run. Each read has a transaction of its own, and so has each replacement."""

    def __init__(self, connection: LogConnection, path: Path, run_id: str) -> None:
        self._connection = connection
        self._path = path
        self._run_id = run_id
        self._state: int | None = None

    def work(self, deadline: float) -> bool:
        """Return whether any samples were merged before the deadline. Raises RunLogError for a damaged run."""
        sql = "SELECT reason, owner, thinned FROM runs WHERE id = ?"
        row = self._connection.execute(sql, (self._run_id,)).fetchone()
        if row is None or time.monotonic() >= deadline:
            return False
        reason, owner, state = row
        if state == COMPLETE or is_running(reason, owner):
            return False
        self._state = state if isinstance(state, int) else None
        number = max(0, self._state or 0)
        merger = self._merger(reason, number)
        if merger is None:
            self._advance(COMPLETE)
            return False
        has_merged = False
        while time.monotonic() < deadline:
            size = _WINDOW_EVENTS if deadline == math.inf else _HASTY_WINDOW_EVENTS
            window = self._read_window(number, size)
            if not window.rows:
                self._advance(COMPLETE)
                return has_merged
            next_number = self._replace(window, merger)
            has_merged = True
            if next_number is None or window.is_last:
                return has_merged
            number = next_number
        return has_merged

    def _merger(self, reason: object, number: int) -> SampleMerger | None:
        """Return a merger that continues at this number; None if no samples are to be merged."""
        plan = self._plan()
        if plan is None or plan.interval_ns >= SECOND_NS:
            return None
        if self._state is None and self._last_number() < 2 * _MIN_NS // plan.interval_ns - 1:
            return None
        known = {member.value: member for member in Reason}
        merger = SampleMerger(plan, has_silent_end=may_end_silent(plan, known.get(str(reason))))
        merger.skip(self._events_before(number))
        return merger

    def _plan(self) -> Plan | None:
        rows = self._read(0)[:1]
        started = self._decode(rows)[0] if rows else None
        return started.plan if isinstance(started, Started) else None

    def _events_before(self, number: int) -> list[Event]:
        """Return the events of the block before this number, which have the last index of each end."""
        sql = "SELECT first FROM blocks WHERE run_id = ? AND first < ? ORDER BY first DESC LIMIT 1"
        row = self._connection.execute(sql, (self._run_id, number)).fetchone()
        if row is None:
            return []
        return self._decode([(seq, text) for seq, text in self._read(row[0]) if seq < number])

    def _read_window(self, number: int, size: int) -> _Window:
        """Return whole pages from this number on."""
        rows: list[tuple[int, str]] = []
        characters = 0
        while len(rows) < size and characters < _WINDOW_CHARACTERS:
            page = self._read(rows[-1][0] + 1 if rows else number)
            if not page:
                break
            rows += page
            characters += sum(len(text) for _, text in page)
        return _Window(rows, not rows or self._last_number() <= rows[-1][0])

    def _replace(self, window: _Window, merger: SampleMerger) -> int | None:
        """Replace a window by its merged events; return the number of the first event that is not merged yet.

        None means that another process has deleted the run or thins it: then nothing is changed.
        """
        events = self._decode(window.rows)
        texts = {id(event): text for event, (_, text) in zip(events, window.rows, strict=True)}
        merged = merger.merge(events, is_last=window.is_last)
        first, last = window.rows[0][0], window.rows[-1][0]
        rest = [texts[id(event)] for event in merged.remaining]
        next_number = last + 1 - len(rest)
        blocks = [(first, [self._text(first, event, texts) for event in merged.events]), (next_number, rest)]
        made = [Block(self._run_id, at, at + len(part) - 1, pack_events(part)) for at, part in blocks if part]
        began = time.monotonic()
        with transaction(self._connection):
            if not self._advance(COMPLETE if window.is_last else next_number):
                return None
            replace_events(self._connection, self._run_id, first, last, made)
        pause_after(began)
        return next_number

    def _text(self, seq: int, event: Event, texts: dict[int, str]) -> str:
        """Return an event's text: its stored text if it is unchanged, else one that can be decoded."""
        text = texts.get(id(event))
        if text is None:
            text = encode_event(event)
            decode_event(self._path, self._run_id, seq, text)  # sums of damaged numbers may be too large
        return text

    def _advance(self, state: int) -> bool:
        """Note how far the run is thinned; return False if it is deleted, or if another process thins it."""
        sql = "UPDATE runs SET thinned = ? WHERE id = ? AND thinned IS ?"
        if self._connection.execute(sql, (state, self._run_id, self._state)).rowcount != 1:
            return False
        self._state = state
        return True

    def _read(self, number: int) -> list[tuple[int, str]]:
        self._connection.execute("BEGIN")
        try:
            if thinned_until(self._connection, self._run_id) != self._state:
                return []  # another process thins the run
            return read_page(self._connection, self._path, self._run_id, number)
        finally:
            self._connection.execute("ROLLBACK")

    def _last_number(self) -> int:
        """Return the number of the run's last event; -1 without any."""
        sql = (
            "SELECT max(coalesce((SELECT last FROM blocks WHERE run_id = ?1 ORDER BY first DESC LIMIT 1), -1), "
            "coalesce((SELECT seq FROM events WHERE run_id = ?1 ORDER BY seq DESC LIMIT 1), -1))"
        )
        (number,) = self._connection.execute(sql, (self._run_id,)).fetchone()
        return number if isinstance(number, int) else sys.maxsize  # reading the block finds the damage

    def _decode(self, rows: Sequence[tuple[int, str]]) -> list[Event]:
        return [decode_event(self._path, self._run_id, seq, text) for seq, text in rows]
