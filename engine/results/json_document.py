"""A run as one JSON document, and the rounding of its numbers. Pure.

`schemas/run.schema.json` describes the document.
"""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

from ..model.events import Expectation, ExpectedRate, Started
from ..model.host_info import HostInfo
from ..model.latency_histogram import LatencySummary
from ..model.plan import MIB, SECOND_NS, Dialect, Direction, PerDirection, Plan, Settings
from ..model.workload import Workload
from .confidence import Estimate
from .responsiveness.document import responsiveness_document
from .rounding import round_figure, round_known, round_ms
from .summary import (
    CapacitySummary,
    CpuSummary,
    DatagramSummary,
    Measurement,
    PacketOverhead,
    Period,
    ProbeResult,
    ProbeSummary,
    Summary,
)
from .sums.other_tests_sum import other_tests_document

DOCUMENT_VERSION: Final = 1
DIRECTION_KEYS: Final = {"out": Direction.OUT, "in": Direction.IN, "total": Direction.DUPLEX}


def build_document(
    summary: Summary, *, run_id: str, preset: str | None, verdict: str, period_verdicts: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the document of `--json`: unknown values are null, seconds and rates are floats.

    Args:
        summary: the results of the run.
        run_id: the run's id.
        preset: the id of the preset; None without one.
        verdict: the verdict's word.
        period_verdicts: a word for each period, of a run that has several.
    """
    plan, expected = summary.plan, _expected_rates(summary)
    return {
        "schema": DOCUMENT_VERSION,
        "run_id": run_id,
        "dialect": (Dialect.LINKGAUGE if summary.unseen_end is None else Dialect.IPERF3).value,
        "preset": preset,
        "verdict": verdict,
        "plan": plan_document(plan, _warmup_s(summary)),
        "expected": expected_document(expected),
        "measured": _measurements(summary.measured, expected, summary.overhead),
        "latency": _probe(summary.probe),
        "responsiveness": (
            None if summary.responsiveness is None else responsiveness_document(summary.responsiveness)
        ),
        "stretches": [
            _period(period, plan.workload, summary.overhead) | ({"verdict": word} if word else {})
            for period, word in zip_longest(summary.periods, period_verdicts)
        ],
        "cpu": {"near": _cpu(summary.near_cpu), "far": _cpu(summary.far_cpu)},
        "tcp": _tcp(summary),
        "other_tests": other_tests_document(summary.others),
        "warnings": list(summary.warnings),
        "ended": {"reason": summary.end.reason.value, "detail": summary.end.detail},
    }


def subject_document(started: Started | None) -> dict[str, Any]:
    """Return what a run tests: its start, the peer, the address in use, both hosts; null if it did not start."""
    if started is None:
        return dict.fromkeys(("started_utc", "peer", "address", "ip_version", "near", "far"))
    return {
        "started_utc": started.started_utc,
        "peer": started.peer,
        "address": started.address,
        "ip_version": started.ip_version,
        "near": _host(started.near),
        "far": _host(started.far),
    }


def _host(host: HostInfo) -> dict[str, Any]:
    """Return the facts of a host; an iperf3 tells nothing of its own, so that they are null."""
    system, cores = (None, None) if host.is_iperf3 else (host.system, host.cores)
    return {"hostname": host.hostname, "system": system, "cores": cores, "software": host.program}


def plan_document(plan: Plan, warmup_s: float | None) -> dict[str, Any]:
    """Return the requested test; `warmup_s` is None for an automatic warm-up of unknown length."""
    return {
        "workload": str(plan.workload),
        "direction": plan.settings.direction.value,
        "sessions": plan.settings.sessions,
        "window_bytes": plan.settings.window_bytes,
        "duration_s": None if plan.duration_ns is None else plan.duration_ns / SECOND_NS,
        "warmup": "auto" if plan.warmup_auto else "fixed",
        "warmup_s": warmup_s,
        "probe": plan.probe,
        "responsiveness": None if plan.responsiveness is None else plan.responsiveness.value,
        **rate_document(plan.settings, plan.workload),
        "rate_mbit_s": _mbit_s(plan.settings.rate_bit_s if plan.workload.is_datagram else plan.rate_bit_s),
        "bytes": plan.bytes_limit,
        "exclusive": plan.exclusive,
        **_transactions(plan),
    }


def rate_document(settings: Settings, workload: Workload) -> dict[str, Any]:
    """Return how datagrams are to be sent: rate and size; all null for TCP, whose rate is none of the settings."""
    rate = "search" if settings.searches_rate else "max" if settings.rate_bit_s is None else "fixed"
    return {
        "rate": rate if workload.is_datagram else None,
        "rate_mbit_s": _mbit_s(settings.rate_bit_s),
        "datagram_bytes": settings.datagram_bytes,
    }


def expected_document(expected: Expectation) -> dict[str, Any]:
    """Return the expected rates of out, in and total; null where there is none."""
    return {name: _expected(expected[direction]) for name, direction in DIRECTION_KEYS.items()}


def _warmup_s(summary: Summary) -> float | None:
    """Return the requested warm-up; for an automatic one, the measured warm-up of the first period."""
    if not summary.plan.warmup_auto:
        return summary.plan.effective_warmup_ns / SECOND_NS
    warmup_ns = summary.periods[0].warmup_ns if summary.periods else None
    return None if warmup_ns is None else warmup_ns / SECOND_NS


def percent_of_expected(measured: Measurement, expected: ExpectedRate | None) -> float | None:
    """Return a rate in percent of the expected rate; None if nothing or 0 is expected."""
    return None if expected is None else round_known(measured.percent_of(expected))


def _expected_rates(summary: Summary) -> Expectation:
    """Return the expected rates; of a single direction, the total is that direction's."""
    expected, direction = summary.expectation, summary.newest_direction
    if expected.total is not None or direction is None:
        return expected
    return Expectation(expected.out, expected.in_, expected[direction])


def _expected(expected: ExpectedRate | None) -> dict[str, Any] | None:
    if expected is None:
        return None
    transactions = {} if expected.transactions_s is None else {"transactions_s": expected.transactions_s}
    rate = {"mbit_s": round_figure(expected.bit_s / 1e6), **transactions}
    return {**rate, "basis": expected.basis, "source": expected.source}


def _mbit_s(bit_s: float | None) -> float | None:
    return None if bit_s is None else bit_s / 1e6


def _measurements(
    measured: PerDirection[Measurement | None], expected: Expectation, overhead: PacketOverhead | None
) -> dict[str, Any]:
    return {
        name: _measured(measured[direction], expected[direction], overhead)
        for name, direction in DIRECTION_KEYS.items()
    }


def _measured(
    measured: Measurement | None, expected: ExpectedRate | None, overhead: PacketOverhead | None
) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "bytes": measured.bytes,
        "seconds": measured.span_ns / SECOND_NS,
        "mbit_s": round_figure(measured.bit_s / 1e6),
        "mib_s": round_figure(measured.bit_s / 8 / MIB),
        "percent_of_expected": percent_of_expected(measured, expected),
        "transactions_s": None if measured.transactions_s is None else round_figure(measured.transactions_s),
        "latency_us": _latency(measured.latency),
        "ci95_mbit_s": _interval(measured.estimate, 1e-6),
        "ci95_percent": _half_width_percent(measured.estimate),
        "ci95_transactions_s": _interval(measured.transactions_estimate),
        **_packets(measured, overhead),
        "udp": None if measured.datagrams is None else datagrams_document(measured.datagrams),
        "counted_by": measured.counted_by,
    }


def _packets(measured: Measurement, overhead: PacketOverhead | None) -> dict[str, float | None]:
    """Return packets a second, and the rates with the headers around the payload; null for TCP."""
    packets_s, ip_bit_s, wire_bit_s = measured.packets_s, None, None
    if packets_s is not None and overhead is not None:
        ip_bit_s = overhead.ip_bit_s(measured.bit_s, packets_s)
        wire_bit_s = overhead.wire_bit_s(measured.bit_s, packets_s)
    return {
        "packets_s": round_known(packets_s),
        "ip_mbit_s": round_known(_mbit_s(ip_bit_s)),
        "wire_mbit_s": round_known(_mbit_s(wire_bit_s)),
    }


def _capacity(capacity: CapacitySummary) -> dict[str, Any]:
    return {
        "mbit_s": round_known(capacity.bit_s / 1e6),
        "lost_percent": round_known(capacity.lost_percent),
        "delay_variation_ms": round_ms(capacity.delay_variation_ns),
        "rtt_ms": round_ms(capacity.rtt_ns),
        "loss_free_mbit_s": None
        if capacity.loss_free_bit_s is None
        else round_known(capacity.loss_free_bit_s / 1e6),
        "is_complete": capacity.is_complete,
    }


def datagrams_document(counts: DatagramSummary) -> dict[str, Any]:
    """Return what became of datagrams; unknown counts are null."""
    places, variation = counts.lost_at, counts.delay_variation
    percentiles = ("p50", "p90", "p99", "p99_9", "max")
    return {
        "sent": counts.sent,
        "sent_mbit_s": round_known(_mbit_s(counts.sent_bit_s)),
        "skipped": counts.skipped,
        "received": counts.received,
        "lost": counts.lost,
        "lost_percent": round_known(counts.lost_percent),
        "lost_at": {
            "near": places and places.near,
            "far": places and places.far,
            "network": places and places.network,
        },
        "duplicates": counts.duplicates,
        "late": counts.late,
        "reordered": counts.reordered,
        "reordered_percent": round_known(counts.reordered_percent),
        "reordered_3_percent": round_known(counts.reordered_3_percent),
        "max_extent": counts.max_extent,
        "bursts": counts.bursts,
        "burst_mean": round_known(counts.mean_burst),
        "burst_max": counts.longest_burst,
        "jitter_ms": {"mean": round_ms(counts.jitter_mean_ns), "max": round_ms(counts.jitter_max_ns)},
        "delay_variation_ms": variation
        and {name: round_ms(getattr(variation, f"{name}_ns")) for name in percentiles},
        "delay_rise_ms": {"forward": round_ms(counts.delay_rise_ns), "return": round_ms(counts.return_rise_ns)},
        "rtt_us": counts.rtt_us,
        "datagram_bytes": counts.datagram_bytes,
        "capacity": None if counts.capacity is None else _capacity(counts.capacity),
        "mode": counts.mode,
        "dscp": {"sent": _dscp(counts.sent_tos), "received": _dscp(counts.received_tos)},
        "ce_marks": counts.ce_marks,
    }


def _dscp(tos: int | None) -> int | None:
    """Return the upper six bits (RFC 2474)."""
    return None if tos is None else tos >> 2


def _period(period: Period, workload: Workload, overhead: PacketOverhead | None) -> dict[str, Any]:
    """Return a period of constant settings, with its own measurements and confidence intervals."""
    settings, expected = period.settings, period.expectation
    return {
        "direction": settings.direction.value,
        "sessions": settings.sessions,
        "window_bytes": settings.window_bytes,
        **rate_document(settings, workload),
        "start_s": period.start_ns / SECOND_NS,
        "warmup_s": None if period.warmup_ns is None else period.warmup_ns / SECOND_NS,
        "measured": _measurements(
            period.measured,
            Expectation(expected.out, expected.in_, expected.total or expected[settings.direction]),
            overhead,
        ),
    }


def _interval(estimate: Estimate | None, factor: float = 1.0) -> list[float] | None:
    return None if estimate is None else [round_figure(estimate.low * factor), round_figure(estimate.high * factor)]


def _half_width_percent(estimate: Estimate | None) -> float | None:
    percent = None if estimate is None else estimate.half_width_percent
    return None if percent is None else round_figure(percent)


def _transactions(plan: Plan) -> dict[str, Any]:
    """Return the sizes of a transaction; `closed_by` is the end that closes its connection and holds TIME_WAIT."""
    if not plan.workload.is_transactional:
        return {}
    request, response = plan.transaction_sizes
    closed_by = "answering end" if plan.workload.opens_connections else None
    return {"request_bytes": request, "response_bytes": response, "burst": plan.burst, "closed_by": closed_by}


def _probe(probe: ProbeSummary | None) -> dict[str, Any] | None:
    """Return the probe's latency, idle and under load; None without a probe."""
    if probe is None:
        return None
    results = {"idle": probe.idle, "loaded": probe.loaded}
    return {
        **{f"{name}_us": _latency(result.latency if result else None) for name, result in results.items()},
        **{f"{name}_probes": _probe_result(result) for name, result in results.items()},
    }


def _probe_result(result: ProbeResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "transactions": result.transactions,
        "seconds": result.span_ns / SECOND_NS,
        "tcp_rtt_us": result.rtt_us,
    }


def _tcp(summary: Summary) -> dict[str, Any]:
    """Return TCP's values, with the three metrics of RFC 6349."""
    tcp, delay_us = summary.tcp, summary.buffer_delay_us
    return {
        "retransmits": tcp.retransmits,
        "rtt_us": tcp.rtt_us,
        "mss_bytes": tcp.mss_bytes,
        "congestion": tcp.congestion,
        "mode": None if tcp.mode is None else tcp.mode.value,
        "mode_choice": "automatic" if summary.plan.mode is None else "requested",
        "window_granted_bytes": {
            "near": tcp.window_granted_near_bytes,
            "far": tcp.window_granted_far_bytes,
        },
        "transfer_time_ratio": round_known(summary.transfer_time_ratio),
        "efficiency_percent": round_known(summary.efficiency_percent),
        "buffer_delay_percent": round_known(summary.buffer_delay_percent),
        "buffer_delay_ms": None if delay_us is None else round_figure(delay_us / 1_000),
    }


def _latency(latency: LatencySummary | None) -> dict[str, float] | None:
    if latency is None:
        return None
    values_ns = {
        "min": latency.min_ns,
        "p50": latency.p50_ns,
        "p90": latency.p90_ns,
        "p99": latency.p99_ns,
        "p99_9": latency.p99_9_ns,
        "max": latency.max_ns,
    }
    return {name: round_figure(ns / 1_000) for name, ns in values_ns.items()}


def _cpu(cpu: CpuSummary) -> dict[str, float | None]:
    shares = {
        "host_percent": cpu.host_percent,
        "hottest_core_percent": cpu.hottest_core_percent,
        "process_percent": cpu.process_percent,
        "msec_per_mib": cpu.msec_per_mib,
        "msec_per_transaction": cpu.msec_per_transaction,
    }
    return {name: None if value is None else round_figure(value) for name, value in shares.items()}
