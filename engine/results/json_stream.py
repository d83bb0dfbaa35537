"""A run as JSON lines: one object for each event, as it happens. Pure.

Each object has a `type` and the `run_id`: `start`, then `interval`, `change` and `warning` in order of time,
`totals` where an end is an iperf3, then `end` with the document of the whole run. The lines of a sweep's runs stand
between `sweep_start` and `sweep_end`. `schemas/stream.schema.json` describes all lines. The figures of an interval
have the names and the meaning of the CSV columns.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..model.events import Changed, Event, SessionTotal, Started, Totals, Warned
from ..model.plan import SECOND_NS, Direction, End
from ..model.workload import Workload
from .csv_export import ALL_SESSIONS, interval_rows
from .json_document import (
    DIRECTION_KEYS,
    DOCUMENT_VERSION,
    expected_document,
    plan_document,
    rate_document,
    round_figure,
    subject_document,
)
from .meter import Interval, Meter
from .responsiveness.interval_figures import FIGURES as RESPONSIVENESS_FIGURES
from .sums.other_tests_sum import FIGURES as OTHER_TESTS_FIGURES
from .udp.interval_figures import FIGURES

_RATE_COLUMNS: Final = (
    "bytes",
    "mbit_s",
    "percent_of_expected",
    "transactions_s",
    "latency_p50_us",
    "latency_p99_us",
    "retransmits",
    "rtt_us",
    "cwnd_bytes",
)
_SESSION_COLUMNS: Final = tuple(name for name in _RATE_COLUMNS if name != "percent_of_expected")
_CPU_COLUMNS: Final = ("cpu_percent", "hottest_core_percent", "cpu_msec_per_mib")


def event_lines(
    event: Event,
    intervals: Sequence[Interval],
    meter: Meter,
    *,
    run_id: str,
    preset: str | None,
    label: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the objects of an event and of the intervals that it completed.

    `Ended` has no object here: its document needs the verdict.

    Args:
        event: the newest event of the run.
        intervals: the intervals that the meter released for it.
        meter: the meter that processed it.
        run_id: the run's id.
        preset: the id of the preset; None without one.
        label: the user's name for the run.
    """
    for interval in intervals:
        line = _interval(interval, meter)
        if line is not None:
            yield {"type": "interval", "run_id": run_id, **line}
    match event:
        case Started():
            names = {"run_id": run_id, "preset": preset, "label": label}
            yield {"type": "start", "schema": DOCUMENT_VERSION, **names, **_start(event)}
        case Changed():
            settings = event.settings
            yield {
                "type": "change",
                "run_id": run_id,
                "elapsed_s": event.elapsed_ns / SECOND_NS,
                "direction": settings.direction.value,
                "sessions": settings.sessions,
                "window_bytes": settings.window_bytes,
                **rate_document(settings, _workload_of(meter)),
                "expected": expected_document(event.expectation),
            }
        case Totals():
            yield _totals(event, run_id=run_id)
        case Warned():
            yield warning_line(event.text, run_id=run_id)
        case _:
            pass


def _workload_of(meter: Meter) -> Workload:
    return Workload.STREAM if meter.started is None else meter.started.plan.workload


def warning_line(text: str, *, run_id: str) -> dict[str, Any]:
    """Return the object of a warning."""
    return {"type": "warning", "run_id": run_id, "text": text}


def end_line(document: dict[str, Any], *, run_id: str) -> dict[str, Any]:
    """Return the last object of a run, with the document of the whole run."""
    return {"type": "end", "run_id": run_id, "summary": document}


def confirmation_line(confirmation: dict[str, Any], *, run_id: str) -> dict[str, Any]:
    """Return the object of what a second run says about the findings of the run with this id."""
    return {"type": "confirmation", "run_id": run_id, "confirmation": confirmation}


def error_line(text: str) -> dict[str, Any]:
    """Return the object of an error before or between runs: nothing follows."""
    return {"type": "error", "text": text}


def _totals(event: Totals, *, run_id: str) -> dict[str, Any]:
    """Return what an end without samples reports at the end, session by session."""
    return {
        "type": "totals",
        "run_id": run_id,
        "end": event.end.value,
        "seconds": event.span_ns / SECOND_NS,
        "cpu_seconds": None if event.cpu_ns is None else event.cpu_ns / SECOND_NS,
        "sessions": [_session_total(session) for session in event.sessions],
    }


def _session_total(total: SessionTotal) -> dict[str, Any]:
    return {
        "direction": total.direction.value,
        "session": total.session,
        "bytes": total.bytes,
        "seconds": total.span_ns / SECOND_NS,
        "retransmits": total.retransmits,
        "sent": total.sent,
        "received": total.received,
        "lost": total.lost,
        "jitter_ms": None if total.jitter_ns is None else round_figure(total.jitter_ns / 1e6),
    }


def _start(event: Started) -> dict[str, Any]:
    plan = event.plan
    return {
        **subject_document(event),
        "plan": plan_document(plan, None if plan.warmup_auto else plan.effective_warmup_ns / SECOND_NS),
        "message_bytes": plan.block_bytes,
        "expected": expected_document(event.expectation),
    }


def _interval(interval: Interval, meter: Meter) -> dict[str, Any] | None:
    """Return an interval; None if neither end has a sample of a direction that ran."""
    flows: dict[Direction, dict[str, Any]] = {}
    first: dict[str, Any] = {}
    for row in interval_rows(meter, interval):
        flow = Direction(row["direction"])
        if row["session"] == ALL_SESSIONS:
            first = first or row
            flows[flow] = {name: row.get(name) for name in _RATE_COLUMNS} | {"sessions": []}
            flows[flow] |= {name: _seconds(row, name) for name in ("elapsed_s", "interval_s")}
            flows[flow]["udp"] = _datagrams(row)
            flows[flow]["counted_by"] = row.get("counted_by")
        else:
            figures = {name: row.get(name) for name in _SESSION_COLUMNS}
            flows[flow]["sessions"].append({"session": row["session"], **figures, "udp": _datagrams(row)})
    if not flows:
        return None
    rates = [flow["mbit_s"] for flow in flows.values()]
    ends = [flow["elapsed_s"] for flow in flows.values() if flow["elapsed_s"] is not None]
    return {
        "elapsed_s": max(ends, default=None),
        "warmup": bool(first["warmup"]),
        "sessions": first["sessions"],
        "window_bytes": first["window_bytes"],
        "responsiveness": _responsiveness(interval, first, meter),
        "other_tests": _other_tests(first),
        **{name: flows.get(flow) for name, flow in DIRECTION_KEYS.items() if flow is not Direction.DUPLEX},
        "total_mbit_s": None if None in rates else round_figure(sum(rates)),
        **{end.value: {name: first.get(f"{end.value}_{name}") for name in _CPU_COLUMNS} for end in End},
    }


def _responsiveness(interval: Interval, row: dict[str, Any], meter: Meter) -> dict[str, Any] | None:
    """Return what is loaded, and the latency of an interval; None where the run is no responsiveness test."""
    sampled = interval.near or interval.far
    if sampled is None or meter.started is None or meter.started.plan.responsiveness is None:
        return None
    load = sampled.settings.direction.value
    return {"load": load, **{name: row.get(name) for name in RESPONSIVENESS_FIGURES}}


def _other_tests(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the other tests of the endpoint; None if it does not tell."""
    if OTHER_TESTS_FIGURES[0] not in row:
        return None
    return {name.removeprefix("other_"): row[name] for name in OTHER_TESTS_FIGURES}


def _datagrams(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the figures of datagrams; None for TCP."""
    return {name: row.get(name) for name in FIGURES} if "sent" in row else None


def _seconds(row: dict[str, Any], name: str) -> float | None:
    return None if row.get(name) is None else float(row[name])
