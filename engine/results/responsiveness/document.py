"""The results of a responsiveness test in a run's JSON document. Pure.

Times are in milliseconds, rates in Mb/s, unknown values are null.
"""

from typing import Any

from ...model.plan import PROBE_PACE_NS, SECOND_NS
from ..rounding import round_figure, round_known, round_ms
from .grade import GRADE_SCALE
from .result import Latency, LoadedLatency, Responsiveness, RoundTrips, SenderQueue
from .round_trips import RPM_METHOD


def responsiveness_document(result: Responsiveness) -> dict[str, Any]:
    """Return the results with their scales and methods."""
    return {
        "probe": result.probe,
        "probe_pace_ms": round_ms(PROBE_PACE_NS),
        "idle_ms": _latency(result.idle),
        "rise_ms": round_ms(result.rise_ns),
        "grade": result.grade,
        "grade_scale": GRADE_SCALE,
        "round_trips": _round_trips(result.round_trips),
        "rpm_method": RPM_METHOD,
        "loads": [_load(load) for load in result.loads],
    }


def _load(load: LoadedLatency) -> dict[str, Any]:
    rises, rates = load.one_way_rise_ns, load.bit_s
    return {
        "direction": load.direction.value,
        "sessions": load.sessions,
        "start_s": round_figure(load.start_ns / SECOND_NS),
        "measured_s": round_figure(load.measured_ns / SECOND_NS),
        "end_s": round_figure(load.end_ns / SECOND_NS),
        "mbit_s": {"out": _mbit_s(rates.out), "in": _mbit_s(rates.in_), "total": _mbit_s(rates.total)},
        "latency_ms": _latency(load.latency),
        "rise_ms": round_ms(load.rise_ns),
        "rise_p99_ms": round_ms(load.rise_p99_ns),
        "peak_rise_ms": round_ms(load.peak_rise_ns),
        "one_way_rise_ms": {"out": round_ms(rises.out), "in": round_ms(rises.in_)},
        "lost_percent": round_known(load.lost_percent),
        "handshake_ms": _latency(load.handshake),
        "answer_ms": _latency(load.answer),
        "tcp_rtt_ms": _latency(load.tcp_rtt),
        "queues": [_queue(queue) for queue in load.queues],
        "round_trips": _round_trips(load.round_trips),
        "is_steady": load.is_steady,
    }


def _queue(queue: SenderQueue) -> dict[str, Any]:
    return {
        "end": queue.end.value,
        "interface": queue.interface,
        "qdisc": queue.qdisc,
        "backlog_bytes": round_known(queue.backlog_bytes),
        "most_backlog_bytes": queue.most_backlog_bytes,
        "dropped": queue.dropped,
        "driver_bytes": round_known(queue.driver_bytes),
        "unsent_bytes": round_known(queue.unsent_bytes),
        "drain_mbit_s": _mbit_s(queue.drain_bit_s),
        "delay_ms": round_ms(queue.delay_ns),
        "unsent_ms": round_ms(queue.unsent_ns),
    }


def _round_trips(result: RoundTrips | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "per_minute": round_figure(result.per_minute),
        "class": result.classification,
        "confidence": result.confidence,
        "foreign": round_figure(result.foreign),
        "loaded": round_figure(result.loaded),
        "handshake_ms": round_ms(result.handshake_ns),
        "answer_ms": round_ms(result.answer_ns),
        "loaded_ms": round_ms(result.loaded_ns),
    }


def _latency(latency: Latency | None) -> dict[str, Any] | None:
    if latency is None:
        return None
    return {
        "count": latency.count,
        "mean": round_ms(latency.mean_ns),
        "p50": round_ms(latency.p50_ns),
        "p99": round_ms(latency.p99_ns),
    }


def _mbit_s(bit_s: float | None) -> float | None:
    return None if bit_s is None else round_figure(bit_s / 1e6)
