"""Labels, notes and groups in the run log: set with the run or after it, and in a file that lacks their columns."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.labels import (
    MAX_LABEL_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    validate_label,
    validate_note,
)

OLD = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, preset TEXT NOT NULL, peer TEXT NOT NULL, label TEXT,
    owner TEXT NOT NULL, started_utc TEXT, reason TEXT, detail TEXT, verdict TEXT, document TEXT
);
CREATE TABLE events (run_id TEXT NOT NULL, seq INTEGER NOT NULL, event TEXT NOT NULL, UNIQUE (run_id, seq));
INSERT INTO runs (id, preset, peer, owner, verdict) VALUES ('r0', 'gbe-fd-1500', 'db-02', 'gone/1/1', 'pass');
PRAGMA application_id = 1818714485;
PRAGMA user_version = 1;
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """Give a log with one run in it."""
    with RunLog.open(tmp_path) as opened:
        opened.begin("r1", "gbe-fd-1500", "db-02", label="before", group="mtu sweep")
        yield opened


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Give the directory of a log that was made before there were notes and groups."""
    with closing(sqlite3.connect(tmp_path / "runs.sqlite3")) as connection:
        connection.executescript(OLD)
    return tmp_path


def test_a_run_begins_with_its_label_and_its_group(log: RunLog) -> None:
    """And with no note."""
    (row,) = log.list_runs()
    assert (row.label, row.group, row.note) == ("before", "mtu sweep", None)


def test_label_and_note_are_set_and_taken_away(log: RunLog) -> None:
    """On one line, without control characters; nothing, or nothing but spaces, takes them away."""
    log.set_label("r1", "  after\nthe\tchange ")
    log.set_note("r1", "MTU 9000 on both ends\x1b[2J")
    (row,) = log.list_runs()
    assert (row.label, row.note) == ("after the change", "MTU 9000 on both ends�[2J")
    log.set_label("r1", " ")
    log.set_note("r1", None)
    (row,) = log.list_runs()
    assert (row.label, row.note, row.group) == (None, None, "mtu sweep")


def test_overlong_text_is_refused_or_cut(log: RunLog) -> None:
    """A person is told; a run that begins is not kept from it."""
    assert validate_label("x" * MAX_LABEL_CHARACTERS) == "x" * MAX_LABEL_CHARACTERS
    with pytest.raises(PlanError, match="label of 81 characters is invalid; give at most 80"):
        log.set_label("r1", "x" * (MAX_LABEL_CHARACTERS + 1))
    with pytest.raises(PlanError, match="note of 2001 characters"):
        validate_note("x" * (MAX_NOTE_CHARACTERS + 1))
    log.begin("r2", "p", "h", label="y" * 500)
    assert log.find("r2").label == "y" * MAX_LABEL_CHARACTERS


def test_a_run_that_is_not_there_cannot_be_named(log: RunLog) -> None:
    """The error says so."""
    with pytest.raises(RunLogError, match="there is no run 'r9'"):
        log.set_note("r9", "a note")


def test_an_older_file_is_read_as_it_is(old: Path) -> None:
    """Reading changes nothing in it; what it does not have is unknown."""
    with RunLog.open(old, create=False) as log:
        (row,) = log.list_runs()
    assert (row.run_id, row.verdict, row.note, row.group) == ("r0", "pass", None, None)
    with closing(sqlite3.connect(old / "runs.sqlite3")) as connection:
        assert len(connection.execute("PRAGMA table_info(runs)").fetchall()) == 11


def test_an_older_file_gets_what_it_lacks_when_a_note_is_written(old: Path) -> None:
    """Its runs stay."""
    with RunLog.open(old, create=False) as log:
        log.set_note("r0", "from before")
        assert [(row.run_id, row.note) for row in log.list_runs()] == [("r0", "from before")]


def test_an_older_index_gets_its_missing_columns_when_a_run_is_saved(old: Path) -> None:
    """Twice is once."""
    for number in (1, 2):
        with RunLog.open(old) as log:
            log.begin(f"r{number}", "p", "h", group="g")
            assert log.flush()
            assert log.problem is None
            assert log.find(f"r{number}").group == "g"
