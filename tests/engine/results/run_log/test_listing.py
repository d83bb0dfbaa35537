"""The list of runs: its order and filters against a plain model, and what is read for it."""

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.results.run_log import SEARCH_FIELDS, SORT_COLUMNS, RunEntry, RunLog, RunQuery, log_file
from linkgauge.engine.results.run_log.listing import order_sql, read_entries
from linkgauge.engine.results.run_log.log_file import LogConnection, open_for_reading

from ..log_entries import ENDED, STARTED, write_run
from ..stored_copies import add_copies

VERDICTS = ("fail", "short", "none", "pass")
LABELS = (None, "", "before", "After", "Zürich", "ZÜRICH", "straße", "STRASSE", "İstanbul", "10% _off", "a'b\"c")


def _document(chance: random.Random) -> dict[str, Any]:
    plan = {"workload": chance.choice(("rr", "stream")), "direction": "out", "sessions": chance.choice((1, 2))}
    names = ("mbit_s", "transactions_s", "percent_of_expected")
    return {"plan": plan, "measured": {"total": {name: chance.choice((None, 1.5, 20.0, 3)) for name in names}}}


@pytest.fixture(scope="module")
def drawn_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunLog]:
    """Yield a log of 60 runs with few different values, and so with many equal ones; some did not end."""
    chance = random.Random(7)  # noqa: S311 (no secret)
    with RunLog.open(tmp_path_factory.mktemp("drawn")) as log:
        for number in range(60):
            run_id = f"20261121-{chance.randrange(240_000):06}-{number:04}"
            log.begin(run_id, chance.choice(("", "gbe", "10GBE")), f"db-{number % 3}", chance.choice(LABELS))
            if number % 7:
                log.finish(run_id, chance.choice(VERDICTS), _document(chance))
        assert log.flush()
        yield log


@pytest.fixture(params=["new", "old, read-only"])
def log(request: pytest.FixtureRequest, drawn_log: RunLog, tmp_path: Path) -> Iterator[RunLog]:
    """Yield the log as it is, and as a file that a version without indexes and briefs has written."""
    if request.param == "new":
        yield drawn_log
        return
    path = tmp_path / drawn_log.path.name
    with contextlib.closing(sqlite3.connect(drawn_log.path)) as source:
        source.execute("VACUUM INTO ?", (str(path),))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        sql = "SELECT name FROM sqlite_schema WHERE name LIKE 'runs@_%' ESCAPE '@'"
        for (name,) in connection.execute(sql).fetchall():
            connection.execute(f"DROP INDEX {name}")
        for name in ("note", "grp", "thinned", "brief", "mbit_s", "transactions_s", "percent"):
            connection.execute(f"ALTER TABLE runs DROP COLUMN {name}")
    before = path.read_bytes()
    with RunLog.open(tmp_path, create=False) as old:
        yield old
    assert path.read_bytes() == before


def _test(entry: RunEntry) -> tuple[Any, ...] | None:
    plan = entry.figures.plan
    return None if plan.workload is None else (plan.workload, plan.direction, plan.sessions)


def _rate(entry: RunEntry) -> float | None:
    mbit_s, transactions_s = entry.figures.mbit_s, entry.figures.transactions_s
    return (None if mbit_s is None else mbit_s * 1e6) if transactions_s is None else transactions_s


MODEL: dict[str, Callable[[RunEntry], Any]] = {
    "when": lambda entry: entry.number,
    "preset": lambda entry: entry.preset or None,
    "peer": lambda entry: entry.peer,
    "test": _test,
    "rate": _rate,
    "%": lambda entry: entry.figures.percent,
    "verdict": lambda entry: None if entry.verdict is None else VERDICTS.index(entry.verdict),
    "label": lambda entry: (entry.label or "").casefold() or None,
}


@pytest.mark.parametrize("column", SORT_COLUMNS)
@pytest.mark.parametrize("is_descending", [True, False])
def test_runs_are_sorted_by_each_column(log: RunLog, column: str, is_descending: bool) -> None:
    """Unknown values come last, and of equal ones the newest run comes first, in either order."""
    newest_first = list(log.entries(log.find_runs(RunQuery())))
    assert [entry.number for entry in newest_first] == list(range(60, 0, -1))
    key = MODEL[column]
    known = [entry for entry in newest_first if key(entry) is not None]
    unknown = [entry for entry in newest_first if key(entry) is None]
    expected = [*sorted(known, key=key, reverse=is_descending), *unknown]
    assert list(log.entries(log.find_runs(RunQuery((), None, column, is_descending)))) == expected


TEXTS = (
    "be",
    "BEFORE",
    "zürich",
    "ZÜ",
    "strasse",
    "straße",
    "i̇st",
    "% _",
    "'",
    '"',
    "gbe",
    "db-1",
    "\\",
    "\0",
    "*",
)


@pytest.mark.parametrize("field", ["", *SEARCH_FIELDS])
def test_runs_are_found_by_a_part_of_their_texts(log: RunLog, field: str) -> None:
    """In upper or lower case of any language, and without any character that means something else."""
    entries = list(log.entries(log.find_runs(RunQuery())))
    names = (field,) if field else (*SEARCH_FIELDS, "run_id", "started_utc")
    for text in TEXTS:
        expected = [
            entry.run_id
            for entry in entries
            if any(text.casefold() in (getattr(entry, name) or "").casefold() for name in names)
        ]
        assert [e.run_id for e in log.entries(log.find_runs(RunQuery(((field, text),))))] == expected, text
    assert len(log.find_runs(RunQuery(((field, ""),)))) == len(entries)


def test_a_run_matches_every_part_and_the_verdict(log: RunLog) -> None:
    """A filter may be as long as a line: nothing fails."""
    query = RunQuery((("peer", "DB-1"), ("", "before")), "pass")
    found = list(log.entries(log.find_runs(query)))
    assert all((e.peer, e.label, e.verdict) == ("db-1", "before", "pass") for e in found)
    assert len(log.find_runs(RunQuery((("", "db"),) * 500))) == 60


def test_observed_connections_are_found_by_their_kind_and_are_no_peers_to_test_against(tmp_path: Path) -> None:
    """Nobody serves tests at their addresses. A text that looks like the mark in a brief is none."""
    mark = '"observed":{'
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", STARTED, ENDED, document={"plan": {}, "label": mark})
        log.begin("20261121-011531-bbbb", "", "192.0.2.9:443", label=mark)
        log.finish("20261121-011531-bbbb", "none", {"observed": {"program": mark, "status": "limited"}})
        for kind, ids in (("observed", ["20261121-011531-bbbb"]), ("test", ["20261121-011530-aaaa"])):
            found = log.read_entries(log.find_runs(RunQuery((("kind=", kind),))))
            assert [(each.run_id, each.kind) for each in found] == [(run_id, kind) for run_id in ids]
        assert [each.run_id for each in log.newest_of_peers(9)] == ["20261121-011530-aaaa"]
        assert len(log.find_runs(RunQuery((("", "observed"),)))) == 1


def _plans(connection: LogConnection, query: RunQuery) -> str:
    sql, parameters = order_sql(connection, query)
    connection.create_function("fold", 1, str, deterministic=True)
    return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters))


def test_an_order_is_read_from_an_index_alone(drawn_log: RunLog) -> None:
    """That of the history screen even without being sorted; a filter and other columns without any document."""
    with open_for_reading(drawn_log.path) as connection:
        assert connection is not None
        assert "USING COVERING INDEX" in _plans(connection, RunQuery())
        for column in SORT_COLUMNS:
            plan = _plans(connection, RunQuery((("", "db"), ("label", "a")), "pass", column))
            assert "USING COVERING INDEX runs_list" in plan, plan


class _Statements(LogConnection):
    """A connection that notes its statements."""

    noted: list[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.set_trace_callback(self.noted.append)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that are executed from now on, with their values."""
    _Statements.noted = []
    monkeypatch.setattr(log_file, "LogConnection", _Statements)
    return _Statements.noted


def test_no_command_about_one_run_reads_the_others(tmp_path: Path, statements: list[str]) -> None:
    """To find it by its id or a part of it, its group, its peer, or what runs now; to delete it."""
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", STARTED, ENDED, document={"plan": {}})
        assert log.flush()
        add_copies(log.path, 20)
        del statements[:]
        assert log.find("20261121-0115").run_id == "20261121-011530-aaaa"
        newest = [entry.run_id for entry in log.find_entries("0-run-", 5)]
        assert newest == [f"0-run-{number:04}" for number in range(19, 14, -1)]
        assert log.runs_of_group("none") == []
        assert len(log.newest_of_peers(5)) == 1
        assert not log.is_any_running()
        assert not log.add_briefs()
        with pytest.raises(RunLogError, match="there is no run '0-run-99'"):
            log.find("0-run-99")
        log.delete("0-run-0003")
        selects = [sql for sql in statements if sql.startswith("SELECT") and "FROM runs" in sql]
        assert len(selects) >= 8
        with contextlib.closing(sqlite3.connect(log.path)) as connection:
            for sql in selects:
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
                assert not [step for step in plan if step.startswith("SCAN runs") and "INDEX" not in step], sql


def test_a_list_of_many_runs_is_read_by_the_page(tmp_path: Path) -> None:
    """SQLite takes as many steps for a page of 10,000 runs as of 300."""
    steps: list[int] = []
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", document={"plan": {}})
        assert log.flush()
        for count in (300, 9_700):
            with contextlib.closing(sqlite3.connect(log.path)) as connection, connection:
                connection.execute("UPDATE runs SET id = 'x' || id WHERE id LIKE '0-run-%'")
            add_copies(log.path, count)
            numbers = log.find_runs(RunQuery())
            assert len(numbers) == log.count_runs()
            steps.append(_steps_of_page(log, numbers[:256]))
    assert steps[0] == steps[1] > 0


def _steps_of_page(log: RunLog, numbers: Any) -> int:
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    with open_for_reading(log.path) as connection:
        assert connection is not None
        connection.set_progress_handler(count, 10)
        assert len(read_entries(connection, numbers)) == 256
    return taken


def test_damaged_cells_are_listed(tmp_path: Path) -> None:
    """SQLite takes any type in any column."""
    with RunLog.open(tmp_path) as log:
        write_run(log, "20261121-011530-aaaa", document={"plan": {}})
        assert log.flush()
        columns = (
            "id",
            "preset",
            "peer",
            "label",
            "verdict",
            "reason",
            "owner",
            "note",
            "brief",
            "mbit_s",
            "percent",
        )
        for column in columns:
            for value in (None, 7, 1.5, b"\xff\0", "\ud83d\N{BELL}".encode("utf-8", "ignore").decode(), "[[["):
                with (
                    contextlib.closing(sqlite3.connect(log.path)) as connection,
                    contextlib.suppress(sqlite3.IntegrityError),
                    connection,
                ):
                    connection.execute(f"UPDATE runs SET {column} = ?", (value,))  # noqa: S608 (names of ours)
                for each in SORT_COLUMNS:
                    assert len(list(log.entries(log.find_runs(RunQuery(column=each))))) == 1
                assert len(log.find_runs(RunQuery((("", "nothing like it"),)))) == 0
