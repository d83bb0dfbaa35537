"""The tables and lists of a report, from a run's summary. Pure."""

from collections.abc import Sequence

from ...engine.model.events import ExpectedRate
from ...engine.model.host_info import HostInfo
from ...engine.model.latency_histogram import LatencySummary
from ...engine.model.plan import SECOND_NS, Direction
from ...engine.results.summary import CpuSummary, Measurement, Summary, TcpSummary
from ...presets.diagnosis.finding import Finding
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..services.run_comparison import SIGNIFICANCE_MARKS, ComparisonTable
from ..services.stored_run import StoredRun
from ..text import numbers
from ..text.plan import core_affinity_text
from ..text.run_list import run_line
from .html import Content, Markup, definition_list, element, join, table
from .traces import Traces

_MOST_SESSIONS = 128


def run_details(run: StoredRun) -> Markup:
    """Return who tested with whom, when, and what was asked for."""
    started, summary, line = run.outcome.started, run.outcome.summary, run_line(run.row)
    plan = summary.plan
    warm_up = numbers.duration(plan.effective_warmup_ns)
    if plan.warmup_auto:
        found_ns = summary.periods[0].warmup_ns if summary.periods else None
        warm_up = "auto" if found_ns is None else f"{found_ns / SECOND_NS:.1f} s, found"
    socket = plan.socket
    tuned = [
        f"{name} {value}"
        for name, value in (
            ("congestion control", socket.congestion),
            ("MSS", socket.mss_bytes),
            ("DSCP", socket.dscp),
            ("from", socket.source),
            ("on", socket.device),
            ("mode", plan.mode),
            ("workers", plan.workers),
            ("on", core_affinity_text(plan) or None),
        )
        if value is not None
    ]
    asked = f"{numbers.workload(plan)}, {numbers.settings(plan.settings)}, {numbers.duration(plan.duration_ns)}"
    return definition_list(
        (
            ("run", run.row.run_id),
            ("began", f"{line.when} UTC" if line.started_utc else None),
            ("preset", line.preset or "none: nothing to expect"),
            ("near end", None if started is None else _host(started.near)),
            (
                "far end",
                line.peer if started is None else f"{_host(started.far)}, as {numbers.sanitize(started.peer)}",
            ),
            ("asked for", f"{asked}, warm-up {warm_up}"),
            ("sockets", ", ".join(numbers.sanitize(one) for one in tuned)),
            ("group", line.group),
            ("note", line.note),
        )
    )


def findings(found: Sequence[Finding]) -> Markup:
    """Return why it was not faster: each with what it explains, what shows it, and what to do about it."""
    parts: list[Content] = []
    for one in found:
        share = numbers.share_of_gap(one.share)
        sure = f"confidence {100 * one.confidence:.0f}{numbers.NBSP}%"
        does = None if one.code == "at-expected" else element("code", numbers.sanitize(one.remedy))
        parts.append(
            element(
                "li",
                element("p", element("b", numbers.sanitize(one.text))),
                element("p", numbers.sanitize(one.evidence)),
                element("p", "What to do: ", does) if does else None,
                element("p", ", ".join(filter(None, (share, sure, one.code))), css_class="small"),
            )
        )
    return element("ol", *parts, css_class="why") if parts else Markup("")


def _host(host: HostInfo) -> str:
    nic = host.nic
    parts = [numbers.sanitize(host.hostname), numbers.sanitize(host.system), numbers.quantity(host.cores, "core")]
    if nic is not None:
        rate = None if nic.line_rate_bit_s is None else numbers.rate(nic.line_rate_bit_s)
        mtu = None if nic.mtu_bytes is None else f"MTU {nic.mtu_bytes}"
        kind = None if nic.kind is None else numbers.sanitize(nic.kind)
        parts.append(" ".join(word for word in (numbers.sanitize(nic.name), kind, rate, mtu) if word))
    return ", ".join([*parts, numbers.sanitize(host.software)])


def rates(summary: Summary) -> Markup:
    """Return what was measured against what was to be expected, and where that comes from."""
    expected = summary.expectation
    rows = [
        _rate(name, measured, wanted)
        for name, measured, wanted in (
            ("→ out", summary.out, expected.out),
            ("← in", summary.in_, expected.in_),
            ("⇄ total", summary.total if summary.out and summary.in_ else None, expected.total),
        )
        if measured is not None
    ]
    return table(("", "Mb/s", "± 95 %", "MiB/s", "payload", "expected Mb/s", "of it", "from"), rows, text_columns=2)


def _rate(name: str, measured: Measurement, expected: ExpectedRate | None) -> list[Content]:
    share = numbers.share(measured.bit_s, None if expected is None else expected.bit_s)
    return [
        name,
        element("b", numbers.mbit(measured.bit_s)),
        numbers.margin_of_error(None if measured.estimate is None else measured.estimate.half_width_percent)
        or numbers.UNKNOWN,
        numbers.rate_in_unit(measured.bit_s, numbers.RateUnit.MIB),
        numbers.payload(measured.bytes),
        numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s),
        numbers.UNKNOWN if share is None else numbers.percent(share, mark=DEFAULT_PASS_PERCENT),
        "nothing to expect" if expected is None else f"{expected.basis}: {numbers.sanitize(expected.source)}",
    ]


def periods(summary: Summary) -> Markup:
    """Return each part of a run whose settings were changed."""
    if len(summary.periods) < 2:
        return Markup("")
    rows: list[list[Content]] = []
    for number, stretch in enumerate(summary.periods, start=1):
        parts = [one for one in (stretch.out, stretch.in_) if one is not None and one.span_ns > 0]
        expected = stretch.expectation.total or stretch.expectation.out or stretch.expectation.in_
        whole = sum(one.bit_s for one in parts) if parts else None
        share = numbers.share(whole, None if expected is None else expected.bit_s)
        rows.append(
            [
                f"{number}. {numbers.settings(stretch.settings)}",
                *(numbers.mbit(None if one is None else one.bit_s) for one in (stretch.out, stretch.in_)),
                numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s),
                numbers.UNKNOWN if share is None else numbers.percent(share, mark=DEFAULT_PASS_PERCENT),
            ]
        )
    return table(("settings", "out Mb/s", "in Mb/s", "expected Mb/s", "of it"), rows)


def latencies(summary: Summary) -> Markup:
    """Return how long transactions took, and the probe's before and under the load."""
    rows: list[list[Content]] = []
    for name, measured in (
        ("→ out", summary.out),
        ("← in", summary.in_),
        ("⇄ total", summary.total if summary.out and summary.in_ else None),
    ):
        if measured is not None and measured.transactions is not None:
            rows.append([name, numbers.transaction_number(measured.transactions_s), *_latency(measured.latency)])
    if summary.probe is not None:
        for name, probed in (("idle", summary.probe.idle), ("under load", summary.probe.loaded)):
            if probed is not None:
                rows.append([name, numbers.transaction_number(_per_s(probed)), *_latency(probed.latency)])
    return table(("", "a second", "min", "p50", "p90", "p99", "p99.9", "max"), rows)


def _per_s(probed: object) -> float | None:
    span_ns, count = getattr(probed, "span_ns", 0), getattr(probed, "transactions", 0)
    return count * SECOND_NS / span_ns if span_ns else None


def _latency(latency: LatencySummary | None) -> list[Content]:
    if latency is None:
        return [numbers.UNKNOWN] * 6
    values = (latency.min_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p99_9_ns, latency.max_ns)
    return [numbers.latency(ns) for ns in values]


def cpu(summary: Summary) -> Markup:
    """Return what CPU each end's host and linkgauge's own processes used."""
    of_transaction = not summary.plan.workload.is_bulk
    rows = [_cpu(name, one, of_transaction) for name, one in (("near", summary.near_cpu), ("far", summary.far_cpu))]
    return table(("", "host, all cores", "busiest core", "linkgauge, of a core", "cost"), rows)


def _cpu(name: str, one: CpuSummary, of_transaction: bool) -> list[Content]:
    cost = (
        numbers.transaction_cpu_cost(one.msec_per_transaction)
        if of_transaction
        else numbers.cpu_cost(one.msec_per_mib)
    )
    shares = (one.host_percent, one.hottest_core_percent, one.process_percent)
    return [name, *(numbers.percent(share) for share in shares), cost]


def sessions(traces: Traces) -> Markup:
    """Return each session's share of the measured time."""
    keys = sorted(traces.sessions, key=lambda key: (list(Direction).index(key[0]), key[1]))
    rows: list[list[Content]] = []
    for flow, number in keys[:_MOST_SESSIONS]:
        total = traces.sessions[flow, number]
        rows.append(
            [
                f"{numbers.arrow(flow)} {number}",
                numbers.mbit(total.bit_s),
                numbers.number(total.mib, 1),
                numbers.count(total.retransmits),
                numbers.milliseconds(total.rtt_us) if total.rtt_us is not None else numbers.UNKNOWN,
            ]
        )
    made = table(("session", "Mb/s while open", "MiB", "retransmits", "median RTT"), rows)
    left = len(keys) - _MOST_SESSIONS
    return join((made, element("p", f"and {left} more", css_class="small"))) if left > 0 else made


def tcp(one: TcpSummary) -> str:
    """Return what TCP did, in one line."""
    said = ["retransmits unknown" if one.retransmits is None else numbers.quantity(one.retransmits, "retransmit")]
    if one.rtt_us is not None:
        said.append(f"median RTT {numbers.milliseconds(one.rtt_us)}")
    if one.mss_bytes is not None:
        said.append(f"MSS {numbers.count(one.mss_bytes)} bytes")
    if one.congestion is not None:
        said.append(f"congestion control {numbers.sanitize(one.congestion)}")
    granted = (one.window_granted_near_bytes, one.window_granted_far_bytes)
    if granted != (None, None):
        near, far = (numbers.UNKNOWN if value is None else numbers.window(value) for value in granted)
        said.append(f"window granted {near} near, {far} far")
    return ", ".join(said)


def differences(letters: Sequence[str], found: Sequence[ComparisonTable]) -> Markup:
    """Return each run against the first: what was asked for differently, and what came out."""
    parts: list[Content] = []
    for letter, one in zip(letters[1:], found, strict=False):
        rows: list[list[Content]] = [
            [
                f"{SIGNIFICANCE_MARKS[row.significance]} {row.name}" if row.difference else row.name,
                row.first,
                row.second,
                element("b", row.difference) if row.significance == "real" else row.difference,
            ]
            for row in (*one.plan_rows, *one.figure_rows)
        ]
        parts += [
            element("h3", f"{letter} against {letters[0]}"),
            table(("", letters[0], letter, ""), rows, text_columns=2),
        ]
    return join(parts)
