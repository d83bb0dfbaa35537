"""The list of runs: their order by any column and a filter, the entries of some of them.

An order has only the numbers of the runs. SQLite finds it in an index, and reads neither documents nor events. Then
the entries of the shown runs are read.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, Literal

from ...host.process_identity import is_process_alive
from ...model.run_end import Reason
from ...model.serialization import make_printable
from .log_file import LogConnection
from .run_brief import BRIEF_COLUMNS, RunBrief, brief_row, lacks_briefs, load_document, read_brief
from .schema_and_older_files import LIST_INDEX

_MAX_TEXT: Final = 4_000
_MAX_PARTS: Final = 32  # of a filter; SQLite limits the depth of an expression
_BATCH: Final = 256
_COLUMNS: Final = (
    *("number", "id", "preset", "peer", "label", "owner", "started_utc", "reason", "verdict", "note", "grp"),
    *BRIEF_COLUMNS,
)
# Entries of connections that were observed; the brief is JSON without white space, in which a text's quotes are
# escaped. It is part of the index of lists.
_IS_OBSERVED: Final = """coalesce(instr(brief, '"observed":{'), 0) > 0"""
# The fields that a filter may name, and their columns.
_TEXT_FIELDS: Final = {
    **{name: name for name in ("preset", "peer", "verdict", "label", "note")},
    "group": "grp",
}
SEARCH_FIELDS: Final = {
    **_TEXT_FIELDS,
    "kind": f"CASE WHEN {_IS_OBSERVED} THEN 'observed' ELSE 'test' END",
}
WHOLE: Final = "="  # after the name of a field: its whole text is compared
_ALL_FIELDS: Final = (
    *_TEXT_FIELDS.values(),
    "id",
    "started_utc",
    f"CASE WHEN {_IS_OBSERVED} THEN 'observed' END",
)
ID_BEGINS: Final = "WHERE id >= ?1 AND id < ?1 || char(1114111)"


def _folded(text: str) -> str:
    """Return an expression for a text in lower case. SQLite knows ASCII letters only; Python does the others."""
    return f"CASE WHEN length(CAST({text} AS BLOB)) = length({text}) THEN lower({text}) ELSE fold({text}) END"


# Each column's key. Unknown values come last in either order. None is the order in which the runs were saved, since
# the clock may have been set back between two runs.
_SORT_KEYS: Final = {
    "when": None,
    "preset": "nullif(preset, '')",
    "peer": "peer",
    "test": "brief",
    "rate": "coalesce(transactions_s, mbit_s * 1e6)",
    "%": "percent",
    "verdict": "CASE verdict WHEN 'fail' THEN 0 WHEN 'short' THEN 1 WHEN 'none' THEN 2 WHEN 'pass' THEN 3 END",
    "label": "nullif(" + _folded("coalesce(label, '')") + ", '')",
}
SORT_COLUMNS: Final = tuple(_SORT_KEYS)

RunNumbers = Sequence[int]
"""The numbers of runs, in the order of a list. A number is a run's for as long as the run is stored."""


@dataclass(frozen=True, slots=True)
class RunQuery:
    """The filter and the order of a list of runs.

    Each of `parts` is a field of SEARCH_FIELDS, or empty for any of them, and a part of its text, in upper or lower
    case. With `=` after the field's name, the whole text is compared. `verdict` is always compared as a whole.
    """

    parts: tuple[tuple[str, str], ...] = ()
    verdict: str | None = None
    column: str = "when"
    is_descending: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A run in a list. `figures` has the parts of its document that a list shows.

    `reason` is None for an active run and for one that was cut off. `label` and `note` are the user's texts. All
    runs of a series have the same `group`.
    """

    number: int
    run_id: str
    preset: str
    peer: str
    label: str | None
    started_utc: str | None
    reason: Reason | None
    verdict: str | None
    is_running: bool
    note: str | None
    group: str | None
    figures: RunBrief

    @property
    def kind(self) -> Literal["observed", "test"]:
        """Whether it is a connection of another program that was observed, or a test."""
        return "test" if self.figures.observed is None else "observed"


def find_numbers(connection: LogConnection, query: RunQuery) -> RunNumbers:
    """Return the runs that match a query, in its order. Raises sqlite3.Error."""
    sql, parameters = order_sql(connection, query)
    connection.create_function("fold", 1, _fold, deterministic=True)
    numbers = array("q", (number for (number,) in connection.rows(sql, parameters)))
    if _SORT_KEYS.get(query.column) is None:
        return array("q", sorted(numbers, reverse=query.is_descending))
    return numbers


def order_sql(connection: LogConnection, query: RunQuery) -> tuple[str, tuple[str, ...]]:
    """Return the statement that finds the numbers of a query, and its parameters."""
    conditions: list[str] = []
    parameters: list[str] = []
    for field, text in [each for each in query.parts if each[1]][:_MAX_PARTS]:
        columns = (SEARCH_FIELDS[field.removesuffix(WHOLE)],) if field else _ALL_FIELDS
        parameters.append(text.casefold())
        place = f"?{len(parameters)}"
        matches = _is_whole if field.endswith(WHOLE) else _contains
        conditions.append(f"({' OR '.join(matches(column, place) for column in columns)})")
    if query.verdict is not None:
        parameters.append(query.verdict)
        conditions.append(f"verdict = ?{len(parameters)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = _order(query)
    if not (where or order):
        source = "runs"  # SQLite takes the smallest index
    elif connection.is_current and not lacks_briefs(connection):
        source = f"runs INDEXED BY {LIST_INDEX}"
    else:
        source = _unindexed_source(connection)
    return f"SELECT number FROM {source}{where}{order}", tuple(parameters)  # noqa: S608 (names of ours)


def read_entries(connection: LogConnection, numbers: RunNumbers) -> list[RunEntry]:
    """Return the entries of runs, in the order of their numbers. Deleted runs are left out."""
    columns = (*_COLUMNS, "CASE WHEN brief IS NULL THEN document END")
    found: dict[int, RunEntry] = {}
    for first in range(0, len(numbers), _BATCH):
        batch = numbers[first : first + _BATCH]
        places = ", ".join("?" * len(batch))
        sql = f"SELECT {', '.join(columns)} FROM runs WHERE number IN ({places})"  # noqa: S608 (names of ours)
        for row in connection.execute(sql, tuple(batch)):
            found[row[0]] = _entry(row)
    return [found[number] for number in numbers if number in found]


def count_runs(connection: LogConnection) -> int:
    """Return the number of stored runs."""
    return sum(1 for _ in connection.rows("SELECT 1 FROM runs"))


def read_start_times(connection: LogConnection) -> list[tuple[str, str | None]]:
    """Return the id of each run and its start in UTC, in the order in which the runs were saved."""
    rows = connection.rows("SELECT number, id, started_utc FROM runs")
    starts = [(number, cell_text(run_id) or "", cell_text(started_utc)) for number, run_id, started_utc in rows]
    return [(run_id, started_utc) for _, run_id, started_utc in sorted(starts, key=itemgetter(0))]


def newest_of_peers(connection: LogConnection, limit: int) -> RunNumbers:
    """Return the newest test with each peer, the newest first: nobody serves tests at an observed address."""
    sql = (
        f"SELECT max(number) AS newest FROM runs WHERE NOT {_IS_OBSERVED} "  # noqa: S608 (a condition of ours)
        "GROUP BY peer ORDER BY newest DESC LIMIT ?"
    )
    return [number for (number,) in connection.execute(sql, (limit,))]


def newest_with_beginning(connection: LogConnection, beginning: str, limit: int) -> RunNumbers:
    """Return the runs whose id begins so, the newest first; at most `limit`."""
    sql = f"SELECT number FROM runs {ID_BEGINS} ORDER BY +number DESC LIMIT ?2"  # noqa: S608 (a condition of ours)
    return [number for (number,) in connection.execute(sql, (beginning, limit))]


def cell_text(value: object) -> str | None:
    """Return a cell as text: a damaged or a foreign file may have any type and any text in any column."""
    return None if value is None else make_printable(value if isinstance(value, str) else repr(value))[:_MAX_TEXT]


def is_running(reason: object, owner: object) -> bool:
    """Return whether a run is active: it has no reason of an end, and its process is alive."""
    return reason is None and is_process_alive(cell_text(owner) or "")


def read_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a run's cells by the names of RunEntry: all but its figures."""
    reason = cell_text(cells["reason"])
    return {
        "number": cells["number"],
        "run_id": cell_text(cells["id"]) or "",
        "preset": cell_text(cells["preset"]) or "",
        "peer": cell_text(cells["peer"]) or "",
        "label": cell_text(cells["label"]),
        "started_utc": cell_text(cells["started_utc"]),
        "reason": _read_reason(reason),
        "verdict": cell_text(cells["verdict"]),
        "is_running": is_running(reason, cells["owner"]),
        "note": cell_text(cells["note"]),
        "group": cell_text(cells["grp"]),
    }


def _read_reason(text: str | None) -> Reason | None:
    """Return why a run has ended; None if it has not. A reason of a newer linkgauge is a failure."""
    known = {member.value: member for member in Reason}
    return None if text is None else known.get(text, Reason.FAILED)


def _order(query: RunQuery) -> str:
    """Return the clause to sort by, if any. Of runs with the same key the newest comes first, in either order.

    Numbers alone are sorted by Python: SQLite would read the whole table instead of an index.
    """
    key = _SORT_KEYS.get(query.column)
    direction = "DESC" if query.is_descending else "ASC"
    return "" if key is None else f" ORDER BY {key} IS NULL, {key} {direction}, number DESC"


def _contains(column: str, place: str) -> str:
    """Return a condition: the column contains the parameter, in upper or lower case."""
    folded = f"length(CAST({column} AS BLOB)) <> length({column}) AND instr(fold({column}), {place})"
    return f"instr(lower({column}), {place}) OR {folded}"


def _is_whole(column: str, place: str) -> str:
    """Return a condition: the column is the parameter, in upper or lower case."""
    return f"coalesce({_folded(column)}, '') = {place}"


def _fold(value: object) -> str:
    return (cell_text(value) or "").casefold()


def _unindexed_source(connection: LogConnection) -> str:
    """Return a subquery in place of the table, for a file without all briefs."""
    connection.create_function("brief_value", 2, _brief_value, deterministic=True)
    known = [name for name in _COLUMNS if name not in BRIEF_COLUMNS]
    briefs = [
        f"CASE WHEN brief IS NULL THEN brief_value(document, {place}) ELSE {name} END AS {name}"
        for place, name in enumerate(BRIEF_COLUMNS)
    ]
    return f"(SELECT {', '.join([*known, *briefs])} FROM runs)"  # noqa: S608 (names of ours)


def _brief_value(text: object, index: int) -> str | float | None:
    document = load_document(text)
    return None if document is None else brief_row(document)[index]


def _entry(row: tuple[Any, ...]) -> RunEntry:
    cells = dict(zip(_COLUMNS, row[:-1], strict=True))
    brief = tuple(cells[name] for name in BRIEF_COLUMNS)
    document = load_document(row[-1])
    figures = read_brief(brief if document is None else brief_row(document))
    return RunEntry(**read_cells(cells), figures=figures)
