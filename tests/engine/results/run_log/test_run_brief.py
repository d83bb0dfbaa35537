"""The briefs of runs: what a list shows of their documents."""

import contextlib
import math
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.run_log import RunLog, RunQuery
from linkgauge.engine.results.run_log.run_brief import (
    BRIEF_COLUMNS,
    ListedPlan,
    ListedSettings,
    RunBrief,
    brief_row,
    read_brief,
)

from ..log_entries import write_run
from ..stored_copies import add_copies

PLAN = {"workload": "stream", "direction": "out", "sessions": 4, "window_bytes": None, "duration_s": 10.0}
TOTAL = {"mbit_s": 941.5, "transactions_s": None, "percent_of_expected": 99.6, "bytes": 10**15}
PERIOD = {"direction": "out", "sessions": 4, "window_bytes": 65_536, "start_s": 0.0}
DOCUMENT: dict[str, Any] = {"plan": PLAN, "measured": {"out": {}, "total": TOTAL}, "stretches": [PERIOD, PERIOD]}


def test_a_brief_has_the_plan_the_settings_in_turn_and_the_rates() -> None:
    """The same settings in a row are one."""
    settings = ListedSettings(Direction.OUT, 4, 65_536)
    found = RunBrief(ListedPlan("stream", Direction.OUT, 4), (settings,), mbit_s=941.5, percent=99.6)
    assert read_brief(brief_row(DOCUMENT)) == found


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"plan": [], "measured": 1, "stretches": {}},
        {"plan": {"direction": {"a": []}, "sessions": "x" * 10_000}, "stretches": [[], None, {"sessions": [1]}]},
        {"measured": {"total": {"mbit_s": 10**400, "transactions_s": math.nan, "percent_of_expected": True}}},
    ],
)
def test_a_damaged_document_has_a_short_brief(document: object) -> None:
    """Each run has a brief, so that its document is not read again."""
    brief, *rates = brief_row(document)
    assert len(brief) < 400
    assert rates == [None] * 3
    assert read_brief((brief, *rates)).mbit_s is None


def _columns(path: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        sql = f"SELECT {', '.join(BRIEF_COLUMNS)} FROM runs ORDER BY number"  # noqa: S608 (names of ours)
        return connection.execute(sql).fetchall()


def test_runs_of_an_older_linkgauge_get_the_brief_that_a_new_run_has(tmp_path: Path) -> None:
    """Once, even if an older linkgauge ends it in a new file, or if its document cannot be read."""
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", document=DOCUMENT)
        assert log.flush()
        assert not log.add_briefs()
        add_copies(log.path, 250)
        expected = _columns(log.path)
        with contextlib.closing(sqlite3.connect(log.path)) as connection, connection:
            connection.execute("UPDATE runs SET brief = NULL, mbit_s = NULL, percent = NULL")
            connection.execute("UPDATE runs SET document = ? WHERE id = '0-run-0006'", (b"\xff\xfe",))
        assert log.add_briefs()
        assert not log.add_briefs()
        rows = _columns(log.path)
    assert read_brief(rows.pop(6)) == RunBrief()
    del expected[6]
    assert rows == expected


@pytest.mark.every
def test_old_runs_are_prepared_while_others_write_and_list(tmp_path: Path) -> None:
    """They wait for one piece at most."""
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", document=DOCUMENT)
        assert log.flush()
        add_copies(log.path, 1_000)
        with contextlib.closing(sqlite3.connect(log.path)) as connection, connection:
            connection.execute("UPDATE runs SET brief = NULL, mbit_s = NULL, percent = NULL")
        thread = threading.Thread(target=log.add_briefs)
        thread.start()
        seen = 0
        while thread.is_alive() or not seen:
            write_run(log, f"20261122-011530-{seen:04}", document=DOCUMENT)
            found = log.find_runs(RunQuery(column="rate"))
            assert len(found) == 1_002 + seen
            assert {entry.figures.mbit_s for entry in log.entries(found)} == {941.5}
            seen += 1
        thread.join()
        assert None not in [row[0] for row in _columns(log.path)]
