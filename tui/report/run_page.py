"""The report of runs: one HTML page that loads nothing else. Several runs are compared first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ...engine.host.saved_files import written_whole
from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError
from ...engine.model.host_info import HostInfo
from ...engine.model.plan import Dialect, Mode
from ...engine.results.path.path_result import Way
from ...engine.results.responsiveness.result import Responsiveness
from ...engine.results.run_log import RunLog, RunRecord
from ...engine.results.summary import Summary
from ...engine.results.sums.traces import Traces
from ...presets.diagnosis.finding import Finding
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..session.stored_run import StoredRun, compare_stored_runs, load_stored_run
from ..words import numbers
from ..words.comparison import LETTERS, MARKS_LEGEND
from ..words.datagram_results import (
    capacity_texts,
    delay_table,
    loss_percent,
    loss_table,
    run_losses,
    udp_text,
)
from ..words.iperf3 import host_text, source_sentences
from ..words.observed import observed_facts
from ..words.paths.hop_strip import StripLink, strip_text, way_strip
from ..words.paths.path_hops import path_sentences, way_name, way_table
from ..words.plan import core_affinity_text
from ..words.redaction import REDACTION
from ..words.responsiveness import load_table, result_facts, share_text, split_findings
from ..words.run_line import run_line
from ..words.summary import (
    Headline,
    cpu_table,
    findings_period,
    headline,
    other_tests_text,
    period_table,
    plan_text,
    probe_table,
    rate_table,
    tcp_text,
    transaction_table,
    transfer_text,
    warmup_text,
)
from ..words.table import Column, Table
from .html_templates import render

MAX_RUNS: Final = len(LETTERS)
_MAX_SESSIONS: Final = 128
_ANY_SESSION: Final = (Column("session", is_text=True), Column("Mb/s while open"), Column("MiB"))
_SESSION_COLUMNS: Final = (*_ANY_SESSION, Column("retransmits"), Column("median RTT"))
_DATAGRAM_SESSION_COLUMNS: Final = (*_ANY_SESSION, Column("loss"), Column("jitter"))
_METHOD: Final = (
    "Rates are payload: bytes that the receiving application got, by the receiver's clock.",
    "Mb is 1\u00a0000\u00a0000 bits, MiB 1\u00a0048\u00a0576 bytes; – is unknown, 0 was measured.",
    "The warm-up is drawn and not counted, nor are the seconds after a change of settings and the end of the test.",
    "± is half of the 95 % confidence interval of this run's mean under one setting.",
)
_OBSERVED: Final = (
    "This is a connection of another program, and not a test: linkgauge read the local kernel's figures of it, and "
    "sent nothing. Rates are payload that the other end's kernel acknowledged, or that arrived."
)
_EXPECTED: Final = (
    "An expected rate is documented (by the named source) or computed (what framing and headers leave for "
    "payload). PASS is 95 % of it or more, unless the run had another pass mark."
)
_DATAGRAMS: Final = (
    "Lost are datagrams that were sent and had not arrived when the test was over, those at its end included. "
    "Jitter is that of RFC 3550, delay the one-way delay above the shortest one (RFC 5481)."
)
_LOAD: Final = (
    "Latency under load is that of probes beside the load, counted from when the queue was full. A rise is the "
    "mean under load less the mean without load; the peak is that of the slowest 0.4 s."
)
_MODES: Final = {
    Mode.COPY: "Payload was random bytes, copied into and out of the kernel as in any application.",
    Mode.SENDFILE: "Payload was sent from the page cache (sendfile), which saves the sender a copy.",
    Mode.DISCARD: "The receiving kernel dropped the payload unread, which saves the receiver a copy.",
    Mode.RATE: "Datagrams went to and from the kernel in groups, so that jitter and delays are those of groups.",
    Mode.QUALITY: "Each datagram was sent on its own, and has the time at which the kernel received it.",
}


@dataclass(frozen=True, slots=True)
class _FindingView:
    """A finding as the page prints it; `remedy` is empty if there is nothing to do."""

    text: str
    evidence: str
    remedy: str
    facts: str


@dataclass(frozen=True, slots=True)
class _ComparisonView:
    """The values of a comparison for the template: `tables` has one for each other run."""

    title: str
    legend: Sequence[tuple[str, str]]
    plot: str
    tables: Sequence[Table]
    note: str


def write_run_report(log: RunLog, rows: Sequence[RunRecord], path: Path) -> None:
    """Write the page of these runs; raise PlanError for too many runs, or a file that cannot be written."""
    if len(rows) > MAX_RUNS:
        raise PlanError("report", f"{len(rows)} runs", f"give at most {MAX_RUNS}")
    page = render_report(log, rows)
    try:
        with written_whole(path) as stream:
            stream.write(REDACTION.text(page))
    except OSError as error:
        raise PlanError("HTML file", path, f"{error.strerror}: name a file that can be written") from error


def render_report(history: RunLog, rows: Sequence[RunRecord]) -> str:
    """Return the page of these runs; raise RunLogError for a damaged run."""
    runs = [load_stored_run(history, row) for row in rows]
    is_single = len(runs) == 1
    title = run_line(rows[0]).label or rows[0].run_id if is_single else numbers.quantity(len(rows), "run")
    return render(
        "runs.html.j2",
        title=title,
        comparison=None if is_single else _comparison_view(runs),
        runs=[_run_view(run, "" if is_single else letter) for letter, run in zip(LETTERS, runs, strict=False)],
    )


def _run_view(run: StoredRun, letter: str) -> dict[str, Any]:
    """Return the values of one run by the names in the template; what there is not is empty."""
    summary, line = run.outcome.summary, run_line(run.row)
    name = line.label or f"{line.subject} to {line.peer}"
    first = headline(summary, run.outcome.verdict)
    queue_findings, findings = split_findings(run.outcome.findings)
    load, path = summary.responsiveness, summary.path
    is_mixed = summary.plan.has_phases  # the sums of several loads are no figures of any
    is_datagram = summary.plan.workload.is_datagram
    sessions = _session_table(run.readings.traces, is_datagram=is_datagram)
    return {
        "title": f"{letter}  {name}".strip(),
        "subtitle": f"{line.when} UTC, run {line.run_id}" if line.started_utc else f"run {line.run_id}",
        "first": first,
        "verdict_text": first.text[:1].upper() + first.text[1:],
        "rates": [] if is_mixed else list(_rate_tables(summary)),
        "findings": [_finding_view(finding) for finding in findings],
        "findings_title": _findings_title(first, summary),
        "load_title": _load_title(load),
        "loads": [] if load is None else [load_table(load)],
        "load_facts": [] if load is None else result_facts(load, summary.dialect),
        "queue_findings": [_finding_view(finding) for finding in queue_findings],
        "path_sentences": [] if path is None else list(map(numbers.sanitize, path_sentences(path))),
        "ways": [] if path is None else list(map(_way_view, path.ways)),
        "losses": [loss_table(summary)],
        "loss_places": [*(f"capacity {text}" for text in capacity_texts(summary)), *run_losses(summary)],
        "delays": [delay_table(summary)],
        "latencies": [] if is_mixed else list(_latency_tables(summary)),
        "cpu": [] if summary.dialect is Dialect.OBSERVED else [cpu_table(summary)],
        "sessions": [replace(sessions, rows=sessions.rows[:_MAX_SESSIONS])],
        "hidden_sessions": max(0, len(sessions.rows) - _MAX_SESSIONS),
        "tcp": "" if is_datagram else tcp_text(summary),
        "udp": udp_text(summary),
        "transfer": "" if is_mixed else transfer_text(summary),
        "other_tests": other_tests_text(summary),
        "warnings": [numbers.sanitize(warning) for warning in summary.warnings],
        "details": _details(run),
        "method": [*_method(summary), *source_sentences(summary)],
        "plots": _plots(run),
    }


def _way_view(way: Way) -> dict[str, Any]:
    """Return a direction of the path by the names in the template: each node has the link before it, if any."""
    strip = way_strip(way)
    links: tuple[StripLink | None, ...] = (None, *strip.links)
    return {
        "name": way_name(way),
        "text": strip_text(strip),
        "cells": list(zip(strip.nodes, links, strict=True)),
        "table": way_table(way),
    }


def _plots(run: StoredRun) -> dict[str, str]:
    """Return the plots of a run; one is empty if there is nothing to draw."""
    from . import plots

    traces, is_drawn = run.readings.traces, bool(run.readings.elapsed_ns)
    return {
        "load": plots.latency_under_load(run) if run.readings.load_points else "",
        "throughput": plots.throughput(run) if is_drawn and not run.outcome.summary.plan.has_phases else "",
        "loss": plots.losses(run) if is_drawn and traces.datagrams else "",
        "latency": plots.latency(run) if is_drawn and traces.latency else "",
        "cpu": plots.cpu(run) if any(traces.cpu.values()) else "",
    }


def _load_title(load: Responsiveness | None) -> str:
    title = "Latency under load"
    return title if load is None or load.grade is None else f"{title}: {load.grade}"


def _rate_tables(summary: Summary) -> Iterator[Table]:
    yield rate_table(summary, DEFAULT_PASS_PERCENT)
    if len(summary.periods) > 1:
        yield period_table(summary, DEFAULT_PASS_PERCENT)


def _latency_tables(summary: Summary) -> Iterator[Table]:
    yield transaction_table(summary)
    if summary.probe is not None:
        yield probe_table(summary.probe)


def _finding_view(finding: Finding) -> _FindingView:
    confidence = f"confidence {100 * finding.confidence:.0f}{numbers.NBSP}%"
    return _FindingView(
        text=numbers.sanitize(finding.text),
        evidence=numbers.sanitize(finding.evidence),
        remedy="" if finding.code in {"at-expected", "no-queue"} else numbers.sanitize(finding.remedy),
        facts=", ".join(filter(None, (share_text(finding), confidence, finding.code))),
    )


def _findings_title(first: Headline, summary: Summary) -> str:
    """Return the heading of the findings; only a run below its expected rate has to explain itself."""
    title = "Why it is not faster" if first.word in {"short", "fail"} else "What limits the rate"
    period = findings_period(summary)
    return f"{title} ({period})" if period else title


def _session_table(traces: Traces, *, is_datagram: bool) -> Table:
    """Return a row for each session, in the order of directions and numbers: its part of the measured time."""
    rows: list[tuple[str, ...]] = []
    order = list(Direction)
    sessions = traces.session_sums.sessions.items()
    for key, total in sorted(sessions, key=lambda item: (order.index(item[0][0]), item[0][1])):
        direction, number = key
        if is_datagram:
            datagrams = total.datagrams
            lost_percent = None if datagrams is None else datagrams.lost_percent
            last = loss_percent(lost_percent), numbers.latency(None if datagrams is None else datagrams.jitter_ns)
        else:
            last = numbers.count(total.retransmits), numbers.round_trip(total.rtt_us)
        name = f"{numbers.arrow(direction)} {number}"
        rows.append((name, numbers.mbit(total.bit_s), numbers.number(total.mib, 1), *last))
    return Table(_DATAGRAM_SESSION_COLUMNS if is_datagram else _SESSION_COLUMNS, rows)


def _details(run: StoredRun) -> list[tuple[str, str]]:
    """Return both ends, the time, and the requested test; a value that is empty is left out of the page."""
    started, summary, line = run.outcome.started, run.outcome.summary, run_line(run.row)
    if started is not None and started.observed is not None:
        return [
            ("entry", run.row.run_id),
            ("started", f"{line.when} UTC" if line.started_utc else ""),
            *observed_facts(started),
            ("local host", _host_text(started.near)),
            ("time", plan_text(summary)),
            ("note", line.note),
        ]
    far = line.peer if started is None else _host_text(started.far)
    if started is not None:
        address = numbers.sanitize(started.peer)
        far = f"{address}: {host_text(started.far)}" if started.far.is_unseen else f"{far}, as {address}"
    return [
        ("run", run.row.run_id),
        ("started", f"{line.when} UTC" if line.started_utc else ""),
        ("preset", line.preset or "none: no expected rate"),
        ("local host", "" if started is None else _host_text(started.near)),
        ("remote host", far),
        ("requested", _requested(summary)),
        ("sockets", ", ".join(_socket_options(summary))),
        ("group", line.group),
        ("note", line.note),
    ]


def _requested(summary: Summary) -> str:
    warmup = "" if summary.plan.has_phases else f", warm-up {warmup_text(summary)}"
    return plan_text(summary) + warmup


def _socket_options(summary: Summary) -> Iterator[str]:
    plan, socket = summary.plan, summary.plan.socket
    for name, value in (
        ("congestion control", socket.congestion),
        ("MSS", socket.mss_bytes),
        ("DSCP", socket.dscp),
        ("from", socket.source),
        ("on", socket.device),
        ("mode", plan.mode),
        ("workers", plan.workers),
        ("on", core_affinity_text(plan) or None),
    ):
        if value is not None:
            yield numbers.sanitize(f"{name} {value}")


def _host_text(host: HostInfo) -> str:
    parts = [numbers.sanitize(host.hostname), numbers.sanitize(host.system), numbers.quantity(host.cores, "core")]
    if host.nic is not None:
        nic = host.nic
        rate = "" if nic.line_rate_bit_s is None else numbers.rate(nic.line_rate_bit_s)
        mtu = "" if nic.mtu_bytes is None else f"MTU {nic.mtu_bytes}"
        parts.append(
            " ".join(filter(None, (numbers.sanitize(nic.name), numbers.sanitize(nic.kind or ""), rate, mtu)))
        )
    return ", ".join([*parts, numbers.sanitize(host.program)])


def _method(summary: Summary) -> Iterator[str]:
    if summary.dialect is Dialect.OBSERVED:
        yield from (_OBSERVED, *_METHOD[1:2])
        return
    yield from _METHOD
    if summary.tcp.mode is not None:
        yield _MODES[summary.tcp.mode]
    if summary.plan.workload.is_datagram:
        yield _DATAGRAMS
    if summary.responsiveness is not None:
        yield _LOAD
    if summary.expectation.out or summary.expectation.in_ or summary.expectation.total:
        yield _EXPECTED


def _comparison_view(runs: Sequence[StoredRun]) -> _ComparisonView:
    from . import plots

    named = list(zip(LETTERS, runs, strict=False))
    return _ComparisonView(
        title=f"{numbers.quantity(len(runs), 'run')} compared",
        legend=[(letter, _legend_text(run)) for letter, run in named],
        plot=plots.overlay(named),
        tables=compare_stored_runs(runs),
        note=f"{', '.join(MARKS_LEGEND)}. Significant means: with 95 % confidence.",
    )


def _legend_text(run: StoredRun) -> str:
    line = run_line(run.row)
    label = f"{line.label}: " if line.label else ""
    test = f"{line.subject} to {line.peer}, {line.test}"
    return f"{label}{line.rate_with_unit}, {line.verdict_words}, {test}, {line.when} UTC"
