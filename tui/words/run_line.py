"""A stored run as a line of a list: its cells, short names of peers, and the filter of the list. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix
from pathlib import Path
from typing import Final

from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError
from ...engine.model.peer import DEFAULT_PORT
from ...engine.model.plan import ResponsivenessTest, Settings
from ...engine.model.workload import Workload
from ...engine.results.responsiveness.grade import GRADES
from ...engine.results.run_log import SEARCH_FIELDS, WHOLE, RunEntry, RunQuery
from ...engine.results.run_log.run_brief import ListedLatency, ListedSettings, RunBrief
from . import numbers, responsiveness
from .datagram_results import loss_percent
from .redaction import REDACTION

_UNDER_LOAD: Final = "under load"
OBSERVED: Final = "observed"
"""The word for an entry of a connection that linkgauge did not make."""
_OF_ONE_LOAD: Final = set(ResponsivenessTest) - {ResponsivenessTest.PHASES, ResponsivenessTest.ALONGSIDE}
_MILLISECOND_NS: Final = 1_000_000
_FIELD: Final = re.compile(rf"(?P<name>[a-z]+)(?P<sign>[:{WHOLE}])")
_VERDICTS: Final = frozenset({"fail", "short", "none", "pass"})


@dataclass(frozen=True, slots=True)
class RunLine:
    """The cells of a run in a list. `rate` is in Mb/s, or has the unit of transactions: `9 389`, `17 714/s`.

    With `has_changes` the settings were changed during the run, and `test` says how. `grade` and `latency` are of a
    run that measured latency under load: its grade, and all its figures in one phrase. `program` and `status` are
    of an observed connection.
    """

    run_id: str
    started_utc: str | None
    preset: str
    peer: str
    test: str
    rate: str
    percent: float | None
    verdict: str | None
    end_words: str
    label: str
    note: str
    group: str
    has_changes: bool = False
    grade: str = ""
    latency: str = ""
    program: str = ""
    status: str = ""

    @property
    def short_test(self) -> str:
        """The test in five cells."""
        if self.test.startswith(_UNDER_LOAD):
            return "load"
        if self.test.startswith(OBSERVED):
            return self.test.replace(OBSERVED, "obs")
        return "mixed" if self.has_changes else self.test

    @property
    def subject(self) -> str:
        """The program of an observed connection, or the preset of a test."""
        return self.program or self.preset or "no preset"

    @property
    def when(self) -> str:
        """The start of the run in UTC, to the minute: `2026-11-21 01:46`."""
        return (
            numbers.UNKNOWN
            if self.started_utc is None
            else numbers.sanitize(self.started_utc[:16].replace("T", " "))
        )

    @property
    def rate_with_unit(self) -> str:
        """The measured rate with its unit: `9 389 Mb/s`, `17 714/s`."""
        return self.rate if self.rate.endswith("/s") else f"{self.rate}{numbers.NBSP}Mb/s"

    @property
    def verdict_words(self) -> str:
        """The verdict with its mark; without one the result of an observed connection, or the reason of the end."""
        if self.status:
            return self.status
        return numbers.verdict(self.verdict) if self.verdict in _VERDICTS else self.end_words


def run_line(row: RunEntry) -> RunLine:
    """Return the line of a run."""
    REDACTION.learn_far_end(row.peer)
    figures, observed = row.figures, row.figures.observed
    return RunLine(
        run_id=row.run_id,
        started_utc=row.started_utc,
        preset=numbers.sanitize(row.preset),
        peer=numbers.sanitize(row.peer),
        test=_test(figures),
        rate=_rate(figures),
        percent=figures.percent,
        verdict=row.verdict,
        end_words=run_end_text(row),
        label=numbers.sanitize(row.label or ""),
        note=numbers.sanitize(row.note or ""),
        group=numbers.sanitize(row.group or ""),
        has_changes=settings_count(figures) > 1,
        grade=grade_in(figures),
        latency=_latency(figures.responsiveness),
        program="" if observed is None else numbers.sanitize(observed.program or "another program"),
        status="" if observed is None else numbers.sanitize(observed.status or ""),
    )


def log_text(total: int, size_bytes: int, path: Path | None = None, matches: int | None = None) -> str:
    """Return how many runs are saved, in how much space: `37 runs, 12 MB in PATH`, `3 of 37 runs, …`.

    Args:
        total: The number of saved runs.
        size_bytes: The size of the run log.
        path: The file, if it is to be named.
        matches: The number of runs that are shown, if it may be smaller.
    """
    of_total = "" if matches is None or matches == total else f"{numbers.count(matches)} of "
    where = "" if path is None else f" in {numbers.sanitize(str(path))}"
    return f"{of_total}{numbers.quantity(total, 'run')}, {numbers.disk_size(size_bytes)}{where}"


def run_end_text(row: RunEntry) -> str:
    """Return why a run ended. A run without an end is still running, or its process died."""
    if row.reason is not None:
        return numbers.reason(row.reason)
    return "running" if row.is_running else "interrupted"


def _rate(figures: RunBrief) -> str:
    """Return the measured rate."""
    if figures.transactions_s is not None:
        return f"{numbers.transaction_number(figures.transactions_s)}/s"
    return numbers.mbit(listed_bit_s(figures))


def _test(figures: RunBrief) -> str:
    """Return workload, direction and sessions in a few cells: `→5`, `⇄2`, `rr→10`.

    The plan has the settings of the start only; if they changed, it is what changed: `1 → 4 sessions`.
    """
    plan = figures.plan
    if plan.direction is None or plan.sessions is None:
        return numbers.UNKNOWN
    if _is_in_phases(figures):
        return _UNDER_LOAD
    direction = numbers.arrow(plan.direction)
    if figures.observed is not None:
        return f"{OBSERVED} {direction}"
    if plan.responsiveness in _OF_ONE_LOAD:
        return f"{_UNDER_LOAD} {direction}"
    workload = numbers.sanitize(plan.workload or "")
    workload = "" if workload == "stream" else workload
    if changed := numbers.changed_settings(_settings_in_turn(figures)):
        return f"{workload} {changed}".strip()
    return f"{workload}{direction}{plan.sessions}"


def test_words(figures: RunBrief) -> str:
    """Return workload and direction of a run in words: `out`, `udp duplex`, `under load`."""
    plan = figures.plan
    if plan.direction is None:
        return numbers.UNKNOWN
    if figures.observed is not None:
        return f"{OBSERVED} {plan.direction.value}"
    if plan.responsiveness is not None and plan.responsiveness is not ResponsivenessTest.ALONGSIDE:
        return _UNDER_LOAD if _is_in_phases(figures) else f"{plan.direction.value} {_UNDER_LOAD}"
    workload = numbers.sanitize(plan.workload or "")
    return plan.direction.value if workload in {"", "stream"} else f"{workload} {plan.direction.value}"


def loss_text(figures: RunBrief) -> str:
    """Return the share of datagrams that a run lost; empty if it sent none."""
    return loss_percent(figures.lost_percent) if figures.plan.workload == Workload.UDP else ""


def _is_in_phases(figures: RunBrief) -> bool:
    """Return whether a run loaded a link in several directions in turn: a rate of all of it means nothing."""
    return figures.plan.responsiveness is ResponsivenessTest.PHASES


def listed_bit_s(figures: RunBrief) -> float | None:
    """Return the rate of a run; a mean over loads of different directions would mean nothing."""
    return None if figures.mbit_s is None or _is_in_phases(figures) else figures.mbit_s * 1e6


def grade_in(figures: RunBrief) -> str:
    """Return the grade of latency under load; empty without one."""
    grade = None if figures.responsiveness is None else figures.responsiveness.grade
    return grade if grade in GRADES else ""


def _latency(latency: ListedLatency | None) -> str:
    """Return the latency under load in one phrase: `idle 412 µs, out +45.2 ms, …`; empty if none was measured."""
    if latency is None:
        return ""
    words = [] if latency.idle_ms is None else [f"idle {numbers.latency(latency.idle_ms * _MILLISECOND_NS)}"]
    for load in latency.loads:
        if load.direction is not None and load.rise_ms is not None:
            name = "both" if load.direction is Direction.DUPLEX else load.direction.value
            words.append(f"{name} {responsiveness.rise(load.rise_ms * _MILLISECOND_NS)}")
    if latency.grade in GRADES:
        words.append(f"grade {latency.grade}")
    if latency.per_minute is not None:
        words.append(f"{numbers.number(latency.per_minute)} round trips a minute")
    return ", ".join(words)


def settings_count(figures: RunBrief) -> int:
    """Return how many different settings a run had; 0 if that is unknown."""
    return len(set(_settings_in_turn(figures)))


def _settings_in_turn(figures: RunBrief) -> list[Settings]:
    """Return the settings of a run's periods; none if they are damaged."""
    try:
        return [_settings(period) for period in figures.stretches]
    except (PlanError, ValueError):
        return []


def _settings(period: ListedSettings) -> Settings:
    """Return a period's settings. Raises ValueError or PlanError for a damaged one."""
    if period.direction is None or period.sessions is None:
        raise ValueError("no settings")
    return Settings(
        period.direction,
        period.sessions,
        period.window_bytes,
        None if period.rate_mbit_s is None else round(period.rate_mbit_s * 1e6),
        period.datagram_bytes,
        searches_rate=period.rate == "search",
        floods=period.rate == "flood",
    )


@lru_cache(maxsize=8)
def short_peers(peers: tuple[str, ...], width: int) -> Mapping[str, str]:
    """Return each peer in at most `width` characters, so that peers that differ can still be told apart.

    A long name loses its middle. Names that would look alike then lose what they have in common instead.
    """
    names = {peer: peer.removesuffix(f":{DEFAULT_PORT}") for peer in peers}
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names.values()):
        groups.setdefault(_cut_middle(name, width), []).append(name)
    short: dict[str, str] = {}
    for cut, alike in groups.items():
        short |= {name: cut if len(alike) == 1 else _cut_common(name, alike, width) for name in alike}
    return {peer: short[name] for peer, name in names.items()}


def _cut_middle(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _cut_common(name: str, alike: list[str], width: int) -> str:
    """Return a name; if there is no room, without the beginning and the end that it shares with others."""
    head = len(commonprefix(alike))  # noqa: RUF071 (names, not paths)
    tail = min(len(commonprefix([other[::-1] for other in alike])), min(map(len, alike)) - head)  # noqa: RUF071 (as above)
    core = _cut_middle(name[head : len(name) - tail], max(width - 2, 1))
    room = max(width - len(core) - 2, 0)
    end = "…" if tail else ""
    return f"{name[: min(head, room)]}{'…' if head > room else ''}{core}{end}"


@dataclass(frozen=True, slots=True)
class RunFilter:
    """The filters of the command line; None matches every run. Texts match as parts, in upper or lower case."""

    preset: str | None = None
    peer: str | None = None
    verdict: str | None = None
    label: str | None = None
    kind: str | None = None

    def query(self) -> RunQuery:
        """Return the query of the run log, the newest run first."""
        named = {"preset": self.preset, "peer": self.peer, "label": self.label, "kind": self.kind}
        parts = tuple((name, text) for name, text in named.items() if text is not None)
        return RunQuery(parts, self.verdict)


def filter_parts(text: str) -> tuple[tuple[str, str], ...]:
    """Return the parts of a query for a filter that the user types: a run has every word of it.

    `peer:db` looks for `db` in the peer alone, `label=db-1` for the label that is `db-1` and no longer one.
    """
    parts: list[tuple[str, str]] = []
    for word in text.casefold().split():
        found = _FIELD.match(word)
        if found is None or found["name"] not in SEARCH_FIELDS:
            parts.append(("", word))
        else:
            is_whole = found["sign"] == WHOLE
            parts.append((found["name"] + WHOLE * is_whole, word[found.end() :]))
    return tuple(parts)
