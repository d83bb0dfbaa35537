"""Journals: entries stay, in order, even if a process dies; old ones are pruned."""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.results.run_log import RUN_LOG_FILE_NAME, Journal, RunLog, journal_names
from linkgauge.engine.results.run_log.journal import MAX_ENTRY_CHARACTERS

from ..log_entries import DEADLINE_S, ENDED, start_child, write_run

APPENDER = """
import sys
from pathlib import Path
from linkgauge.engine.results.run_log import Journal
journal = Journal(Path(sys.argv[1]), "watch-a")
for count in range(int(sys.argv[3])):
    journal.append(f'"{sys.argv[2]} {count}"')
    print(count, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a run log that does not exist yet."""
    return tmp_path / "data" / RUN_LOG_FILE_NAME


def _texts(path: Path, name: str = "watch-a") -> list[str]:
    return [entry.text for entry in Journal(path, name).entries()]


def test_entries_are_read_in_the_order_in_which_they_were_appended(path: Path) -> None:
    """Each journal has its own; reading can begin after any entry."""
    with Journal(path, "watch-a") as journal, Journal(path, "watch-b") as other:
        first = journal.append("1")
        other.append("2")
        second = journal.append_all([("3", None), ("4", None)])
        assert [entry.text for entry in journal.entries()] == ["1", "3", "4"]
        assert [entry.text for entry in journal.entries(after=first)] == ["3", "4"]
        assert not list(journal.entries(after=second))
    assert journal_names(path) == ["watch-a", "watch-b"]


def test_a_journal_without_a_file_is_empty_and_makes_none(path: Path) -> None:
    """Only what is appended creates the file, which is its owner's alone."""
    journal = Journal(path, "watch-a")
    assert (list(journal.entries()), journal.prune(0), journal.delete(), journal_names(path)) == ([], 0, 0, [])
    assert not path.exists()
    with journal:
        journal.append("1")
    assert path.stat().st_mode & 0o077 == 0


def test_two_processes_append_to_one_journal_and_nothing_is_lost(path: Path) -> None:
    """Each finds its own entries in its own order."""
    children = [start_child(APPENDER, path, name, 50) for name in ("a", "b")]
    for child in children:
        child.communicate(timeout=DEADLINE_S)
        assert child.returncode == 0
    texts = _texts(path)
    assert len(texts) == 100
    for name in ("a", "b"):
        assert [text for text in texts if text[1] == name] == [f'"{name} {count}"' for count in range(50)]


def test_an_entry_that_was_appended_survives_kill_9(path: Path) -> None:
    """The file has every entry that the process has reported, and at most one more."""
    for wanted in (1, 5, 20):
        before = len(_texts(path))
        child = start_child(APPENDER, path, "a", 10_000)
        assert child.stdout is not None
        for _ in range(wanted):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        said = wanted + len(child.stdout.read().splitlines())
        child.wait(DEADLINE_S)
        child.stdout.close()
        if child.stdin is not None:
            child.stdin.close()
        assert said <= len(_texts(path)) - before <= said + 1


def test_pruning_deletes_what_is_older_and_no_number_comes_again(path: Path) -> None:
    """Entries without an end remain, and other journals."""
    with Journal(path, "watch-a") as journal, Journal(path, "watch-b") as other:
        journal.append("for ever")
        last = journal.append_all([(str(count), float(count)) for count in range(2_500)])
        other.append("another's", keep_until_s=1.0)
        assert journal.prune(2_400.0) == 2_400
        assert len(list(journal.entries())) == 101
        assert journal.prune(1e9) == 100
        assert [entry.text for entry in journal.entries()] == ["for ever"]
        assert [entry.text for entry in other.entries()] == ["another's"]
        assert journal.append("new") > last


def test_a_deleted_journal_leaves_the_runs(path: Path) -> None:
    """Deleting runs does not change the journal."""
    with RunLog.open(path.parent) as log, Journal(path, "watch-a") as journal:
        write_run(log, "r1", ENDED, document={})
        write_run(log, "r2", ENDED, document={})
        log.flush()
        journal.append_all([("1", None), ("2", None)])
        log.delete("r1")
        assert len(list(journal.entries())) == 2
        assert journal.delete() == 2
        assert not list(journal.entries())
        assert [run.run_id for run in log.list_runs()] == ["r2"]


def test_an_entry_that_is_too_long_is_refused_whole(path: Path) -> None:
    """None of the entries of one call is written then."""
    with Journal(path, "watch-a") as journal:
        with pytest.raises(ValueError, match="at most 65536"):
            journal.append_all([("1", None), ("x" * (MAX_ENTRY_CHARACTERS + 1), None)])
        journal.append("x" * MAX_ENTRY_CHARACTERS)
        assert len(list(journal.entries())) == 1
    with pytest.raises(ValueError, match="1 to 200"):
        Journal(path, "")


def test_a_damaged_entry_and_a_damaged_file_name_the_file(path: Path) -> None:
    """SQLite takes any type in any column."""
    with Journal(path, "watch-a") as journal:
        journal.append("1")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE journal SET entry = x'ff'")
        connection.commit()
    with pytest.raises(RunLogError, match="damaged") as raised:
        _texts(path)
    assert str(path) in str(raised.value)
    for other in path.parent.glob("*-*"):
        other.unlink()
    path.write_bytes(b"a letter to a friend " * 100)
    with Journal(path, "watch-a") as journal, pytest.raises(RunLogError, match="is not a run log"):
        journal.append("1")
