"""Journals: ordered entries of named series beside the runs, in the same file.

A series such as a watch is longer than any run, and must not forget its past: when `append` returns, the entry is
on the disk. It survives the death of the process and of the machine. Several processes may append to a journal.
Each reader sees the entries in the order of their commits.

An entry is a JSON text with a time until which it is kept: `prune` deletes older entries. `runs delete` and `runs
prune` change no journal. `delete` removes a whole journal, and changes no run.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from ...model.errors import RunLogError, make_printable
from .log_file import LogConnection, connect_for_writing, open_for_reading, translate_errors
from .removal import give_back, pause_after
from .schema_and_older_files import transaction

MAX_ENTRY_CHARACTERS: Final = 65_536
MAX_NAME_CHARACTERS: Final = 200
_PAGE: Final = 500
_PIECE: Final = 1_000  # rows deleted at a time, in some milliseconds


class JournalEntry(NamedTuple):
    """An entry: its number, which grows from entry to entry and is never used twice, and its text."""

    number: int
    text: str


class Journal:
    """The journal of a name. Close it, or use it as a context manager.

    Every method waits for the disk, and up to ten seconds for another process that writes. So an event loop calls
    them in a thread, which may be any. All raise RunLogError, with path and remedy, if the file cannot be used.
    """

    def __init__(self, path: Path, name: str) -> None:
        if not 0 < len(name) <= MAX_NAME_CHARACTERS:
            raise ValueError(f"the name of a journal has 1 to {MAX_NAME_CHARACTERS} characters")
        self.path = path
        self.name = name
        self._lock = threading.Lock()
        self._connection: LogConnection | None = None

    def append(self, text: str, *, keep_until_s: float | None = None) -> int:
        """Append an entry and return its number, once it is on the disk.

        Args:
            text: The entry, of up to MAX_ENTRY_CHARACTERS; ValueError for a longer one.
            keep_until_s: When `prune` may delete it, in seconds since 1970; None for never.

        Raises:
            RunLogError: The entry could not be written, and is not in the journal.
        """
        return self.append_all([(text, keep_until_s)])

    def append_all(self, entries: Sequence[tuple[str, float | None]]) -> int:
        """Append entries, all of them or none, each with its `keep_until_s`; return the number of the last one.

        Raises as `append` does.
        """
        if not entries or any(len(text) > MAX_ENTRY_CHARACTERS for text, _ in entries):
            raise ValueError(f"an entry of a journal has at most {MAX_ENTRY_CHARACTERS} characters")
        rows = [(self.name, keep_until_s, text) for text, keep_until_s in entries]
        with self._lock, translate_errors(self.path):
            connection = self._connect()
            with transaction(connection):
                sql = "INSERT INTO journal (series, keep_until_s, entry) VALUES (?, ?, ?)"
                numbers = [connection.execute(sql, row).lastrowid for row in rows]
        return numbers[-1] or 0

    def entries(self, after: int = 0) -> Iterator[JournalEntry]:
        """Iterate over the entries with numbers above `after`, in order, some in memory at a time.

        Reading needs no write access, and changes no file. A missing file has no entries.
        """
        while page := self._page(after):
            yield from page
            after = page[-1].number

    def prune(self, now_s: float) -> int:
        """Delete the entries of this journal whose time is over; return their number.

        It deletes in pieces with pauses, so that no other process waits long.
        """
        return self._delete("keep_until_s < ?", now_s)

    def delete(self) -> int:
        """Delete the journal, and return its number of entries. The runs of its group stay in the run log."""
        return self._delete("TRUE")

    def close(self) -> None:
        """Close the file. A second call has no effect; a later append opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> LogConnection:
        if self._connection is None:
            self._connection = connect_for_writing(self.path, any_thread=True)
            self._connection.execute("PRAGMA synchronous = FULL")  # a notification that was sent is not sent again
        return self._connection

    def _page(self, after: int) -> list[JournalEntry]:
        page: list[JournalEntry] = []
        with open_for_reading(self.path) as connection:
            if connection is None:
                return page
            sql = "SELECT number, entry FROM journal WHERE series = ? AND number > ? ORDER BY number LIMIT ?"
            for number, text in connection.execute(sql, (self.name, after, _PAGE)):
                is_text = isinstance(text, str) and len(text) <= MAX_ENTRY_CHARACTERS
                if not is_text or not isinstance(number, int) or number <= after:
                    raise RunLogError(f"the journal {make_printable(self.name)} in {self.path} is damaged")
                page.append(JournalEntry(number, text))
                after = number
        return page

    def _delete(self, condition: str, *parameters: float) -> int:
        count = 0
        with open_for_reading(self.path) as connection:
            if connection is None:
                return 0
            sql = (
                "DELETE FROM journal WHERE number IN "  # noqa: S608 (conditions of ours)
                f"(SELECT number FROM journal WHERE series = ? AND {condition} LIMIT ?)"
            )
            while True:
                began = time.monotonic()
                deleted = connection.execute(sql, (self.name, *parameters, _PIECE)).rowcount
                count += deleted
                if deleted < _PIECE:
                    break
                pause_after(began)
            if count:
                give_back(connection, rewrite=False, deadline=time.monotonic() + 1.0)
        return count


def journal_names(path: Path) -> list[str]:
    """Return the names of the journals of a run log, in alphabetical order. Raises RunLogError."""
    with open_for_reading(path) as connection:
        if connection is None:
            return []
        rows = connection.rows("SELECT DISTINCT series FROM journal ORDER BY series")
        return [series for (series,) in rows if isinstance(series, str) and len(series) <= MAX_NAME_CHARACTERS]
