"""Labels, notes and groups in the run log: set with the run or after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PlanError, RunLogError
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.label_validation import (
    MAX_LABEL_CHARACTERS,
    MAX_NOTE_CHARACTERS,
    validate_label,
    validate_note,
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """Give a log with one run in it."""
    with RunLog.open(tmp_path) as opened:
        opened.begin("r1", "gbe-fd-1500", "db-02", label="before", group="mtu sweep")
        yield opened


def test_a_run_begins_with_its_label_and_its_group(log: RunLog) -> None:
    """It has no note."""
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
    """The user gets an error. A run begins in any case."""
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
