"""The brief of a run: what a list shows of its document, in columns of its own.

A brief has the plan, the settings in turn, the rates, the loss, the figures of latency under load, and the program
of an observed connection. A document
takes some kilobytes and a tenth of a millisecond, so that a list cannot read each. Runs of an older linkgauge get
their briefs in pieces (`add_briefs`).
"""

import json
import time
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Self, cast

from ...model.directions import Direction
from ...model.plan import ResponsivenessTest
from ..figure_codec import decode, encode, figure, is_number, part
from .log_file import LogConnection, open_for_writing
from .removal import pause_after
from .schema_and_older_files import transaction

BRIEF_COLUMNS: Final = ("brief", "mbit_s", "transactions_s", "percent")
_PIECE: Final = 100  # documents, some milliseconds
_MAX_DOCUMENT: Final = 4 << 20  # characters: a run with 1,000 changes has half as many
BriefRow = tuple[str, float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class ListedPlan:
    """The test that a list names."""

    workload: str | None = figure()
    direction: Direction | None = figure()
    sessions: int | None = figure()
    responsiveness: ResponsivenessTest | None = figure()


@dataclass(frozen=True, slots=True)
class ListedSettings:
    """The settings of a period; a brief has no settings of datagrams."""

    direction: Direction | None = figure()
    sessions: int | None = figure()
    window_bytes: int | None = figure()
    rate: str | None = figure(omitted=True)
    rate_mbit_s: float | None = figure(omitted=True)
    datagram_bytes: int | None = figure(omitted=True)


@dataclass(frozen=True, slots=True)
class ListedLoad:
    """The rise of latency under one load."""

    direction: Direction | None = figure()
    rise_ms: float | None = figure()


@dataclass(frozen=True, slots=True)
class ListedLatency:
    """Latency under load in a few figures."""

    grade: str | None = figure()
    rise_ms: float | None = figure()
    idle_ms: float | None = figure(at="idle_ms.p50")
    loads: tuple[ListedLoad, ...] = ()
    per_minute: float | None = figure(at="round_trips.per_minute")
    class_: str | None = figure(at="round_trips.class")


@dataclass(frozen=True, slots=True)
class ListedConnection:
    """The connection of another program that an entry is of: its program, and its last result."""

    program: str | None = figure()
    status: str | None = figure()


@dataclass(frozen=True, slots=True)
class RunBrief:
    """The members of a run's document that a list shows."""

    plan: ListedPlan = part(ListedPlan)
    stretches: tuple[ListedSettings, ...] = ()
    responsiveness: ListedLatency | None = figure(omitted=True)
    mbit_s: float | None = figure(at="measured.total.mbit_s", omitted=True)
    transactions_s: float | None = figure(at="measured.total.transactions_s", omitted=True)
    percent: float | None = figure(at="measured.total.percent_of_expected", omitted=True)
    lost_percent: float | None = figure(at="measured.total.udp.lost_percent", omitted=True)
    observed: ListedConnection | None = figure(omitted=True)

    @classmethod
    def of(cls, document: object) -> Self:
        """Read a document. Missing and damaged members are unknown."""
        return decode(cls, document)


def brief_row(document: object) -> BriefRow:
    """Return the values of BRIEF_COLUMNS for a document; repeated settings count once."""
    brief = RunBrief.of(document)
    turns = (ListedSettings(each.direction, each.sessions, each.window_bytes) for each in brief.stretches)
    stretches = tuple(settings for settings, _ in groupby(turns))
    rest = replace(brief, stretches=stretches, mbit_s=None, transactions_s=None, percent=None)
    text = json.dumps(encode(rest), separators=(",", ":"))
    return text, brief.mbit_s, brief.transactions_s, brief.percent


def read_brief(row: tuple[Any, ...]) -> RunBrief:
    """Return the brief of the values of BRIEF_COLUMNS."""
    brief, *rates = row
    found = RunBrief.of(load_document(brief))
    mbit_s, transactions_s, percent = (rate if is_number(rate) else None for rate in rates)
    return replace(found, mbit_s=mbit_s, transactions_s=transactions_s, percent=percent)


def load_document(text: object) -> dict[str, Any] | None:
    """Return the document of a cell; None if it is missing or damaged."""
    try:
        value = json.loads(text) if isinstance(text, str) and len(text) <= _MAX_DOCUMENT else None
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def add_briefs(path: Path) -> bool:
    """Give the runs of an older linkgauge their briefs, in pieces with pauses; return whether any lacked one.

    Raises RunLogError.
    """
    with open_for_writing(path) as connection:
        if not lacks_briefs(connection):
            return False
        while _add_piece(connection):
            pass
    return True


def lacks_briefs(connection: LogConnection) -> bool:
    """Return whether a run of an older linkgauge lacks its brief."""
    sql = "SELECT EXISTS (SELECT 1 FROM runs WHERE brief IS NULL AND document IS NOT NULL)"
    return connection.execute(sql).fetchone() == (1,)


def _add_piece(connection: LogConnection) -> bool:
    """Give some runs their briefs; return False if none is left."""
    began = time.monotonic()
    sql = "SELECT number, document FROM runs WHERE brief IS NULL AND document IS NOT NULL LIMIT ?"
    rows = connection.execute(sql, (_PIECE,))
    briefs = [(*brief_row(load_document(text)), number) for number, text in rows]
    with transaction(connection):
        sql = "UPDATE runs SET brief = ?, mbit_s = ?, transactions_s = ?, percent = ? WHERE number = ?"
        connection.executemany(sql, briefs)
    if briefs:
        pause_after(began)
    return bool(briefs)
