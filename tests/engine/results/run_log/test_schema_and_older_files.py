"""The layouts of the run log's file: each that a version wrote is read, and nothing else."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.results.run_log import (
    RUN_LOG_FILE_NAME,
    SORT_COLUMNS,
    Journal,
    RunLog,
    RunQuery,
    journal_names,
)

from ..log_entries import ENDED, write_run

_EARLIER = Path(__file__).parents[1] / "data" / "earlier_version.sqlite3"
# What later versions have added to the first one, in this order, by the statements that they used.
_BLOCKS = """CREATE TABLE blocks (
        run_id TEXT NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        data BLOB NOT NULL,
        UNIQUE (run_id, first)
    )"""
_JOURNAL = """CREATE TABLE IF NOT EXISTS journal (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        series TEXT NOT NULL,
        keep_until_s REAL,
        entry TEXT NOT NULL
    )"""
_LIST = """CREATE INDEX IF NOT EXISTS runs_list ON runs (id, preset, peer, label, started_utc, reason, verdict, \
note, grp, brief, mbit_s, transactions_s, percent)"""
_BRIEFS = ("brief TEXT", "mbit_s REAL", "transactions_s REAL", "percent REAL")
_ALLOW = "PRAGMA writable_schema = ON"  # names that SQLite keeps for itself
_STEPS = (
    ("ALTER TABLE runs ADD COLUMN note TEXT", "ALTER TABLE runs ADD COLUMN grp TEXT"),
    (_BLOCKS, "CREATE TABLE removals (run_id TEXT NOT NULL UNIQUE)", "PRAGMA user_version = 2"),
    ("ALTER TABLE runs ADD COLUMN thinned INTEGER",),
    (
        *(f"ALTER TABLE runs ADD COLUMN {column}" for column in _BRIEFS),
        _LIST,
        "CREATE INDEX IF NOT EXISTS runs_of_group ON runs (grp) WHERE grp IS NOT NULL",
        "CREATE INDEX IF NOT EXISTS runs_without_end ON runs (owner) WHERE reason IS NULL",
        "CREATE INDEX IF NOT EXISTS runs_without_brief ON runs (id) WHERE brief IS NULL AND document IS NOT NULL",
    ),
    (
        _JOURNAL,
        "CREATE INDEX IF NOT EXISTS journal_of_series ON journal (series, number)",
        "CREATE INDEX IF NOT EXISTS journal_by_age ON journal (keep_until_s) WHERE keep_until_s IS NOT NULL",
    ),
)


@pytest.mark.parametrize("steps", range(len(_STEPS) + 1))
def test_a_file_of_each_version_is_read_as_it_is_and_upgraded_when_it_is_written(
    tmp_path: Path, steps: int
) -> None:
    """Whatever it lacks is empty, and its bytes stay until something is written."""
    path = tmp_path / RUN_LOG_FILE_NAME
    shutil.copy(_EARLIER, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        if steps == 0:
            for name in ("note", "grp"):
                connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
        for statement in [statement for step in _STEPS[1:steps] for statement in step]:
            connection.execute(statement)
        connection.execute("PRAGMA journal_mode = DELETE")
    before = path.read_bytes()
    with RunLog.open(tmp_path, create=False) as log:
        (run,) = log.list_runs()
        (entry,) = log.read_entries(log.find_runs(RunQuery((("", "loopback"),), column="rate")))
        assert (entry.run_id, run.note, run.group) == (run.run_id, None, None)
        assert entry.figures is not None
        assert len(list(log.events(run.run_id))) == 26
        assert log.run_sizes().keys() == {run.run_id}
        assert (log.thinnable_runs(), log.runs_of_group("none"), log.is_any_running()) == ([], [], False)
        assert (journal_names(path), list(Journal(path, "a").entries())) == ([], [])
        assert path.read_bytes() == before
        log.set_note(run.run_id, "seen")
        assert log.find(run.run_id).note == "seen"
        assert log.add_briefs()
        assert len(list(log.events(run.run_id))) == 26
        log.begin("r1", "", "h", group="g")
        assert [run.run_id for run in log.runs_of_group("g")] == ["r1"]
    with Journal(path, "a") as journal:
        journal.append("1")
        assert [entry.text for entry in journal.entries()] == ["1"]


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["CREATE VIEW sent AS SELECT 1"], "its view 'sent'"),
        (["DROP INDEX runs_list", "CREATE INDEX runs_list ON runs (peer)"], "its index 'runs_list'"),
        (["ALTER TABLE runs ADD COLUMN sent TEXT"], "its table 'runs'"),
        (["DROP TABLE events"], "it has no table 'events'"),
        ([f"CREATE TABLE t{number} (a)" for number in range(50)], "its table 't"),
        ([_ALLOW, "CREATE TABLE sqlite_stat1(tbl,idx,stat,more)"], "its table 'sqlite_stat1'"),
        ([_ALLOW, "CREATE TABLE sqlite_stat1(tbl,idx,stat AS (hex(zeroblob(9))))"], "its table 'sqlite_stat1'"),
        ([_ALLOW, "CREATE VIEW sqlite_stat1 AS SELECT 1 AS tbl, 1 AS idx, 1 AS stat"], "its view 'sqlite_stat1'"),
        ([_ALLOW, "CREATE TABLE sqlite_stat2(tbl,idx,sampleno,sample)"], "its table 'sqlite_stat2'"),
    ],
)
def test_a_file_with_anything_else_is_refused(tmp_path: Path, statements: list[str], says: str) -> None:
    """By every method, and also for writing."""
    path = tmp_path / RUN_LOG_FILE_NAME
    with RunLog.open(tmp_path) as log:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        with pytest.raises(RunLogError, match=says) as raised:
            log.list_runs()
        assert str(path) in str(raised.value)
        assert "move it away" in str(raised.value)
        log.begin("r1", "", "h")
        log.flush()
        assert log.problem is not None
        assert says in log.problem
    with pytest.raises(RunLogError, match=says):
        RunLog.open(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (_ALLOW, "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
        ("UPDATE sqlite_stat1 SET stat = '1 1'",),
        ("UPDATE sqlite_stat1 SET stat = x'ff'",),
    ],
    ids=["as it is", "with samples", "wrong", "damaged"],
)
def test_a_file_that_the_user_has_analyzed_is_read_and_written_as_before(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    """SQLite keeps its statistics in tables of its own. Whatever they say, the same runs are found."""
    path = tmp_path / RUN_LOG_FILE_NAME
    queries = [RunQuery((("", "db"),), column=column) for column in SORT_COLUMNS]
    with RunLog.open(tmp_path) as log:
        for number in range(30):
            document: dict[str, object] = {"measured": {"total": {"mbit_s": number % 5}}}
            write_run(log, f"r{number:02}", ENDED, document=document)
        before = [list(log.find_runs(query)) for query in queries]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in ("ANALYZE", *changes):
            connection.execute(statement)
    with RunLog.open(tmp_path) as log:
        assert [list(log.find_runs(query)) for query in queries] == before
        log.begin("r30", "", "h", group="g")
        assert [run.run_id for run in log.runs_of_group("g")] == ["r30"]
        log.delete("r01")
        assert log.count_runs() == 30
        assert log.problem is None
