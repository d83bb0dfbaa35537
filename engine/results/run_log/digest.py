"""What a list of runs shows of a run's document, in a few words: its plan, its settings in turn, and its rates.

A responsiveness test has the figures of latency under load as well.

It has columns of its own, because a document takes some kilobytes and a tenth of a millisecond. Runs of an older
linkgauge get theirs in pieces (`add_digests`).
"""

import json
import sqlite3
import time
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Final, Self, cast

from ...model.plan import Direction, ResponsivenessTest
from ..json_document import decode, encode, figure, is_number, part
from .removal import pause_after
from .schema import has_list_index, open_connection, prepare_database

DIGEST_COLUMNS: Final = ("brief", "mbit_s", "transactions_s", "percent")
_PIECE: Final = 100  # documents, some milliseconds

DigestRow = tuple[str, float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class ListedPlan:
    """The test that a list names."""

    workload: str | None = figure()
    direction: Direction | None = figure()
    sessions: int | None = figure()
    responsiveness: ResponsivenessTest | None = figure()


@dataclass(frozen=True, slots=True)
class ListedSettings:
    """The settings of a period; a digest does not have those of datagrams."""

    direction: Direction | None = figure()
    sessions: int | None = figure()
    window_bytes: int | None = figure()
    rate: str | None = figure(omitted=True)
    rate_mbit_s: float | None = figure(omitted=True)
    datagram_bytes: int | None = figure(omitted=True)


@dataclass(frozen=True, slots=True)
class ListedLoad:
    """How much latency rose under one load."""

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
class RunBrief:
    """What a list shows of a run: members of its document."""

    plan: ListedPlan = part(ListedPlan)
    stretches: tuple[ListedSettings, ...] = ()
    responsiveness: ListedLatency | None = figure(omitted=True)
    mbit_s: float | None = figure(at="measured.total.mbit_s", omitted=True)
    transactions_s: float | None = figure(at="measured.total.transactions_s", omitted=True)
    percent: float | None = figure(at="measured.total.percent_of_expected", omitted=True)

    @classmethod
    def of(cls, document: object) -> Self:
        """Read a document. What is missing or damaged in it is unknown."""
        return decode(cls, document)


def digest_row(document: object) -> DigestRow:
    """Return the values of DIGEST_COLUMNS for a document; the same settings in a row are one."""
    brief = RunBrief.of(document)
    turns = (ListedSettings(each.direction, each.sessions, each.window_bytes) for each in brief.stretches)
    stretches = tuple(settings for settings, _ in groupby(turns))
    rest = replace(brief, stretches=stretches, mbit_s=None, transactions_s=None, percent=None)
    text = json.dumps(encode(rest), separators=(",", ":"))
    return text, brief.mbit_s, brief.transactions_s, brief.percent


def read_digest(row: tuple[Any, ...]) -> RunBrief:
    """Return what a list shows."""
    brief, *rates = row
    found = RunBrief.of(load_document(brief))
    known = (rate if is_number(rate) else None for rate in rates)
    return RunBrief(found.plan, found.stretches, found.responsiveness, *known)


def load_document(text: object) -> dict[str, Any] | None:
    """Return the document of a cell; None if it is missing or damaged."""
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def add_digests(path: Path) -> bool:
    """Give the runs of an older linkgauge their digests, in pieces with pauses; return whether any lacked one.

    Raises RunLogError.
    """
    prepare_database(path, create=True)
    with open_connection(path) as connection:
        if has_list_index(connection):
            return False
        while _add_piece(connection):
            pass
    return True


def _add_piece(connection: sqlite3.Connection) -> bool:
    """Give some runs their digests; return False if none is left."""
    began = time.monotonic()
    sql = "SELECT number, document FROM runs WHERE brief IS NULL AND document IS NOT NULL LIMIT ?"
    rows = connection.execute(sql, (_PIECE,)).fetchall()
    digests = [(*digest_row(load_document(text)), number) for number, text in rows]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        "UPDATE runs SET brief = ?, mbit_s = ?, transactions_s = ?, percent = ? WHERE number = ?", digests
    )
    connection.execute("COMMIT")
    if rows:
        pause_after(began)
    return bool(rows)
