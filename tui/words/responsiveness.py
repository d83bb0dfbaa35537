"""Latency under load, its grade, round trips a minute and the place of the queue, as text. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...engine.model.directions import Direction
from ...engine.model.plan import Dialect, Plan, Settings
from ...engine.results.responsiveness.grade import GRADE_LIMITS_MS, GRADES
from ...presets.number_text import LOAD_NAMES
from . import numbers
from .table import NAMES, Column, Table

if TYPE_CHECKING:
    from ...engine.results.responsiveness.grade import Grade
    from ...engine.results.responsiveness.result import (
        Latency,
        LoadedLatency,
        Responsiveness,
        RoundTrips,
        SenderQueue,
    )
    from ...presets.diagnosis.finding import Finding, FindingCode

QUEUE_CODES: Final["frozenset[FindingCode]"] = frozenset({"no-queue", "queue-local", "queue-remote", "queue-path"})
IDLE_NAME: Final = "idle"
_LOAD_COLUMNS: Final = (
    NAMES,
    Column("p50", rank=5),
    Column("p99", rank=4),
    Column("mean rise", is_key=True),
    Column("peak rise", rank=3),  # of the slowest 0.4 s
    Column("one way out", rank=2),
    Column("one way in", rank=1),
    Column("out Mb/s"),
    Column("in Mb/s"),
)
_LOAD_NAMES: Final = {Direction.OUT: "load out", Direction.IN: "load in", Direction.DUPLEX: "both"}
_LOST_PROBES_PERCENT: Final = 0.05
_LEAST_DELAY_NS: Final = 1_000_000
_LEAST_RISE_NS: Final = 5_000  # 0.01 ms, rounded


def load_name(direction: Direction | None) -> str:
    """Return what was loaded: `idle`, `load out`, `load in`, `both`."""
    return IDLE_NAME if direction is None else _LOAD_NAMES[direction]


def phase_text(plan: Plan, direction: Direction) -> str:
    """Return the phase of a running test in a few words: `2/3 load in`; of a single one, only the load."""
    name, directions = load_name(direction), plan.load_directions
    if len(directions) < 2 or direction not in directions:
        return name
    return f"{directions.index(direction) + 1}/{len(directions)} {name}"


def phases_text(plan: Plan) -> str:
    """Return a test that has phases, in one phrase: `responsiveness test, out, in and both, 8 sessions, …`."""
    *names, last = (LOAD_NAMES[direction] for direction in plan.load_directions)
    loads = f"{', '.join(names)} and {last}" if names else last
    sessions = f"{numbers.sessions(plan.settings.sessions)} each way"
    return f"responsiveness test, {loads}, {sessions}, at most {numbers.duration(plan.duration_ns)}"


def phase_change_text(plan: Plan, before: Settings, after: Settings) -> str:
    """Return what a responsiveness test has changed by itself: its phase, or the sessions of the same one."""
    if before.direction is not after.direction:
        return f"phase {phase_text(plan, after.direction)}, {numbers.sessions(after.sessions)} each way"
    return f"{numbers.sessions(after.sessions)} each way: the rate was not steady"


def load_table(result: "Responsiveness") -> Table:
    """Return latency and goodput: a row for the idle link, and one for each load."""
    idle = (IDLE_NAME, *_percentiles(result.idle), *(numbers.UNKNOWN,) * 6)
    return Table(_LOAD_COLUMNS, [idle, *map(_load_row, result.loads)])


def _load_row(load: "LoadedLatency") -> tuple[str, ...]:
    rises = (load.rise_ns, load.peak_rise_ns, load.one_way_rise_ns.out, load.one_way_rise_ns.in_)
    rates = (load.bit_s.out, load.bit_s.in_)
    return (
        load_name(load.direction),
        *_percentiles(load.latency),
        *map(rise, rises),
        *map(numbers.mbit, rates),
    )


def _percentiles(latency: "Latency | None") -> tuple[str, str]:
    if latency is None:
        return numbers.UNKNOWN, numbers.UNKNOWN
    return numbers.latency(latency.p50_ns), numbers.latency(latency.p99_ns)


def rise(value_ns: float | None) -> str:
    """Return a rise of latency with its sign: `+23.2 ms`; a fall is a rise of 0."""
    if value_ns is None:
        return numbers.UNKNOWN
    return f"+0{numbers.NBSP}ms" if value_ns < _LEAST_RISE_NS else f"+{numbers.latency(value_ns)}"


def grade_text(result: "Responsiveness") -> str:
    """Return the grade with what it is of: `B: mean rise +41.3 ms (30 to 60 ms, limits of DSLReports)`."""
    if result.grade is None:
        return "none: too little was measured under load"
    what = "rise" if len(_graded(result)) == 1 else "mean rise of out and in"
    return f"{result.grade}: {what} {rise(result.rise_ns)} ({grade_range(result.grade)}, limits of DSLReports)"


def _graded(result: "Responsiveness") -> "list[LoadedLatency]":
    """Return the loads that are graded: the loads of one direction, or the only load."""
    one_way = [load for load in result.loads if load.direction is not Direction.DUPLEX]
    return one_way or list(result.loads)


def grade_range(grade: "Grade") -> str:
    """Return the rises that get a grade: `under 5 ms`, `30 to 60 ms`, `400 ms or more`."""
    limits_ms = [limit_ms for _, limit_ms in GRADE_LIMITS_MS]
    at = GRADES.index(grade)
    if at == 0:
        return f"under {limits_ms[0]}{numbers.NBSP}ms"
    if at == len(limits_ms):
        return f"{limits_ms[-1]}{numbers.NBSP}ms or more"
    return f"{limits_ms[at - 1]} to {limits_ms[at]}{numbers.NBSP}ms"


def round_trips_text(result: "RoundTrips | None") -> str:
    """Return the round trips a minute with their class, confidence and parts."""
    if result is None:
        return "unknown: too few probes were answered under load"
    parts = (
        f"handshake {numbers.latency(result.handshake_ns)}",
        f"answer {numbers.latency(result.answer_ns)}",
        f"loaded sessions {numbers.latency(result.loaded_ns)}",
    )
    words = (f"{numbers.number(result.per_minute)} a minute", result.classification)
    return f"{', '.join(words)}, confidence {result.confidence} ({', '.join(parts)})"


def result_facts(result: "Responsiveness", dialect: Dialect = Dialect.LINKGAUGE) -> list[tuple[str, str]]:
    """Return the names and the texts of what a table of loads does not have, the grade first."""
    facts = [
        ("grade", grade_text(result)),
        ("round trips", round_trips_text(result.round_trips)),
        ("probes", probe_text(result, dialect)),
    ]
    if lost := lost_text(result):
        facts.append(("lost", f"probes under load: {lost}"))
    if unsteady := unsteady_text(result):
        facts.append(("not steady", f"rate or latency was still changing at the end: {unsteady}"))
    return [*facts, *(("waiting", text) for text in sender_queue_texts(result))]


def probe_text(result: "Responsiveness", dialect: Dialect = Dialect.LINKGAUGE) -> str:
    """Return how latency was measured, in a sentence."""
    if dialect is Dialect.BROWSER:
        return "pings to the page, whose script answers them; latency in each direction is unknown"
    if result.probe == "datagram":
        return "UDP datagrams every 10 ms, echoed by the remote end"
    return "requests on a TCP connection, because UDP did not pass; latency in each direction is unknown"


def lost_text(result: "Responsiveness") -> str:
    """Return the share of probes that were lost under load: `load out 1.2 %`; empty if none was."""
    lost = [
        f"{load_name(load.direction)} {numbers.percent(load.lost_percent)}"
        for load in result.loads
        if load.lost_percent is not None and load.lost_percent >= _LOST_PROBES_PERCENT
    ]
    return ", ".join(lost)


def unsteady_text(result: "Responsiveness") -> str:
    """Return which loads ended before rate and latency were steady; empty if none did."""
    return ", ".join(load_name(load.direction) for load in result.loads if not load.is_steady)


def sender_queue_texts(result: "Responsiveness") -> list[str]:
    """Return what was queued at the senders' own interfaces under each load, if it was a millisecond or more."""
    return [
        f"{load_name(load.direction)}: {words}"
        for load in result.loads
        for queue in load.queues
        if (words := _sender_queue_text(queue))
    ]


def _sender_queue_text(queue: "SenderQueue") -> str:
    places = (
        (queue.backlog_bytes, numbers.sanitize(queue.qdisc or "its interface")),
        (queue.driver_bytes, "its driver"),
    )
    parts = [f"{numbers.payload(round(part))} queued in {name}" for part, name in places if part]
    if not parts or (queue.delay_ns is not None and queue.delay_ns < _LEAST_DELAY_NS):
        return ""
    where = f"{queue.end.label} {numbers.sanitize(queue.interface or 'host')}"
    delay = "" if queue.delay_ns is None else f": {numbers.latency(queue.delay_ns)} of waiting"
    return f"{where}, {' and '.join(parts)}{delay}"


def is_queue_finding(finding: "Finding") -> bool:
    """Return whether a finding says where latency under load comes from, not why the rate is low."""
    return finding.code in QUEUE_CODES


def share_text(finding: "Finding") -> str:
    """Return what a finding explains: `93 % of the gap`, or of the rise of latency; empty if that is unknown."""
    if finding.code == "unexplained":
        return ""
    if not is_queue_finding(finding):
        return numbers.share_of_gap(finding.share)
    return "" if finding.share is None else f"{100 * finding.share:.0f}{numbers.NBSP}% of the rise"


def split_findings(findings: "Sequence[Finding]") -> "tuple[tuple[Finding, ...], tuple[Finding, ...]]":
    """Return the findings about the queue, and those about the rate, each in their order."""
    queue = tuple(finding for finding in findings if is_queue_finding(finding))
    return queue, tuple(finding for finding in findings if not is_queue_finding(finding))
