"""A run as JSON lines: one object for each event, as it happens. Pure.

Each object has a `type` and the `run_id`: `start`, then `interval`, `change` and `warning` in order of time,
`totals` if an end is an iperf3, then `end` with the document of the whole run. The lines of a sweep's runs are
between `sweep_start` and `sweep_end`. `schemas/stream.schema.json` describes all lines. The figures of an interval
have the names and the meaning of the CSV columns.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from ..model.events import Changed, Event, SessionTotal, Started, Totals, Warned
from ..model.workload import Workload
from .figure_codec import DOCUMENT_VERSION, encode, ms, seconds
from .interval_result import IntervalResult
from .measured_result import expected_figures
from .meter import Interval, Meter
from .run_result import PlanFigures, SettingsFigures, SubjectFigures


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
        result = IntervalResult.of(interval, meter)
        if result is not None:
            yield {"type": "interval", "run_id": run_id, **encode(result)}
    match event:
        case Started():
            names = {"run_id": run_id, "preset": preset, "label": label}
            yield {"type": "start", "schema": DOCUMENT_VERSION, **names, **_start(event)}
        case Changed():
            settings = SettingsFigures.of(event.settings, _workload_of(meter))
            yield {
                "type": "change",
                "run_id": run_id,
                "elapsed_s": seconds(event.elapsed_ns),
                **encode(settings),
                "expected": encode(expected_figures(event.expectation)),
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
    """Return the object of a second run's confirmation of the findings of the run with this id."""
    return {"type": "confirmation", "run_id": run_id, "confirmation": confirmation}


def error_line(text: str) -> dict[str, Any]:
    """Return the object of an error before or between runs: nothing follows."""
    return {"type": "error", "text": text}


def _totals(event: Totals, *, run_id: str) -> dict[str, Any]:
    """Return the totals that an end without samples reports at the end, session by session."""
    return {
        "type": "totals",
        "run_id": run_id,
        "end": event.end.value,
        "seconds": seconds(event.span_ns),
        "cpu_seconds": seconds(event.cpu_ns),
        "sessions": [_session_total(session) for session in event.sessions],
    }


def _session_total(total: SessionTotal) -> dict[str, Any]:
    return {
        "direction": total.direction.value,
        "session": total.session,
        "bytes": total.bytes,
        "seconds": seconds(total.span_ns),
        "retransmits": total.retransmits,
        "sent": total.sent,
        "received": total.received,
        "lost": total.lost,
        "jitter_ms": ms(total.jitter_ns),
    }


def _start(event: Started) -> dict[str, Any]:
    plan = event.plan
    return {
        **encode(SubjectFigures.of(event)),
        "plan": encode(PlanFigures.of(plan)),
        "message_bytes": plan.block_bytes,
        "expected": encode(expected_figures(event.expectation)),
    }
