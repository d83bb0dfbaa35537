"""The summary of a run as a person reads it in a terminal."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....engine.model.events import Expectation, ExpectedRate, Started
from ....engine.model.latency_histogram import LatencySummary
from ....engine.model.plan import SECOND_NS, Direction
from ....engine.model.workload import Workload
from ....engine.results.confidence import Estimate
from ....engine.results.summary import (
    CpuSummary,
    Measurement,
    Period,
    ProbeResult,
    ProbeSummary,
    Summary,
    TcpSummary,
)
from ....presets.diagnosis.finding import Finding
from ....presets.verdict import DEFAULT_PASS_PERCENT, Verdict
from ...text import numbers
from ...text.plan import core_affinity_text
from .findings import findings_part

_STYLES: Final = {"pass": "bold green", "short": "bold yellow", "fail": "bold red", "none": "bold"}


def summary_parts(
    summary: Summary,
    verdict: Verdict,
    *,
    preset_id: str | None,
    started: Started | None,
    pass_percent: float = DEFAULT_PASS_PERCENT,
    findings: tuple[Finding, ...] = (),
) -> Iterator[RenderableType]:
    """Give the parts of a summary: the verdict first, then its evidence.

    A share that is short of the pass mark by little is written so that it looks short.
    """
    yield _verdict(verdict)
    yield Text()
    if findings:
        yield findings_part(findings)
        yield Text()
    yield _what(summary, preset_id, started)
    yield Text()
    if summary.total is None:
        yield Text("  nothing was measured after the warm-up")
    else:
        yield _rates(summary, pass_percent)
        if summary.total.transactions is not None:
            yield Text()
            yield _transactions(summary)
        if summary.probe is not None:
            yield Text()
            yield _under_load(summary.probe)
        if len(summary.periods) > 1:
            yield Text()
            yield _stretches(summary.periods, pass_percent)
        yield Text()
        yield _cpu(summary.near_cpu, summary.far_cpu, summary.plan.workload)
    yield Text()
    yield _rest(summary)


def _verdict(verdict: Verdict) -> Text:
    words = verdict.text.removeprefix(f"{verdict.word.upper()}: ")
    return Text.assemble((numbers.verdict(verdict.word), _STYLES[verdict.word]), "  ", words)


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column(overflow="fold")
    return grid


def _indent(table: Table) -> Padding:
    return Padding(table, (0, 0, 0, 2), expand=False)


def _warmup(summary: Summary) -> str:
    """Return the warm-up; where it was to be found out, how long the rates took to settle."""
    if not summary.plan.warmup_auto:
        return numbers.duration(summary.plan.effective_warmup_ns)
    found_ns = summary.periods[0].warmup_ns if summary.periods else None
    return "auto" if found_ns is None else f"{found_ns / SECOND_NS:.1f}{numbers.NBSP}s, found"


def _what(summary: Summary, preset_id: str | None, started: Started | None) -> Padding:
    grid, plan = _grid(), summary.plan
    grid.add_row("preset", preset_id or "none")
    if started is not None:
        grid.add_row("near", numbers.sanitize(started.near.hostname))
        grid.add_row("far", f"{numbers.sanitize(started.far.hostname)} ({numbers.sanitize(started.peer)})")
    how_long = numbers.duration(plan.duration_ns)
    words = f"{numbers.workload(plan)}, {numbers.settings(plan.settings)}, {how_long}"
    kept = core_affinity_text(plan)
    grid.add_row("plan", f"{words} (warm-up {_warmup(summary)}){kept and f', {kept}'}")
    return _indent(grid)


def _table(*columns: str) -> Table:
    """Return a table of numbers, its first column named by its rows."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", min_width=7, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _rates(summary: Summary, mark: float) -> Padding:
    table = _table("Mb/s", "± 95 %", "MiB/s", "payload", "expected", "of it")
    table.add_column("from", overflow="fold")
    expected = summary.expectation
    if summary.out is not None:
        table.add_row(f"out {numbers.arrow(Direction.OUT)}", *_rate_cells(summary.out, expected.out, mark))
    if summary.in_ is not None:
        table.add_row(f"in  {numbers.arrow(Direction.IN)}", *_rate_cells(summary.in_, expected.in_, mark))
    if summary.total is not None and summary.out is not None and summary.in_ is not None:
        table.add_row(f"total {numbers.arrow(Direction.DUPLEX)}", *_rate_cells(summary.total, expected.total, mark))
    return _indent(table)


def _transactions(summary: Summary) -> Padding:
    """Transactions a second, and how long they took: the percentiles of all of them, not of a mean."""
    table = _table("trans/s", "min", "p50", "p90", "p99", "p99.9", "max")
    for name, measured in (
        (f"out {numbers.arrow(Direction.OUT)}", summary.out),
        (f"in  {numbers.arrow(Direction.IN)}", summary.in_),
        (f"total {numbers.arrow(Direction.DUPLEX)}", summary.total if summary.out and summary.in_ else None),
    ):
        if measured is not None:
            table.add_row(
                name, numbers.transaction_number(measured.transactions_s), *latency_cells(measured.latency)
            )
    return _indent(table)


def _under_load(probe: ProbeSummary) -> Padding:
    """Latency of the probe before payload flowed and under its load: what the load's queues add is seen here."""
    table = _table("min", "p50", "p90", "p99", "p99.9", "max", "tcp rtt", "probes")
    for name, probed in (("idle", probe.idle), ("loaded", probe.loaded)):
        table.add_row(name, *_probed_cells(probed))
    return _indent(table)


def _probed_cells(probed: ProbeResult | None) -> tuple[str, ...]:
    if probed is None:
        return (numbers.UNKNOWN,) * 8
    rtt_ns = None if probed.rtt_us is None else probed.rtt_us * 1_000
    asked = f"{numbers.count(probed.transactions)} in {probed.span_ns / SECOND_NS:.1f}{numbers.NBSP}s"
    return (*latency_cells(probed.latency), numbers.latency(rtt_ns), asked)


def latency_cells(latency: LatencySummary | None) -> tuple[str, ...]:
    """Return the shortest, four percentiles and the longest, as text."""
    if latency is None:
        return (numbers.UNKNOWN,) * 6
    return tuple(
        numbers.latency(ns)
        for ns in (
            latency.min_ns,
            latency.p50_ns,
            latency.p90_ns,
            latency.p99_ns,
            latency.p99_9_ns,
            latency.max_ns,
        )
    )


def _rate_cells(measured: Measurement, expected: ExpectedRate | None, mark: float) -> tuple[str, ...]:
    bit_s = measured.bit_s
    return (
        numbers.mbit(bit_s),
        margin_cell(measured.estimate),
        numbers.rate_in_unit(bit_s, numbers.RateUnit.MIB),
        numbers.payload(measured.bytes),
        numbers.UNKNOWN if expected is None else numbers.mbit(expected.bit_s),
        share_text(bit_s, expected, mark),
        "nothing to expect" if expected is None else f"{expected.basis}: {numbers.sanitize(expected.source)}",
    )


def margin_cell(steady: Estimate | None) -> str:
    """Return how sure a rate is: half of its 95 % interval, in percent of it."""
    percent = None if steady is None else steady.half_width_percent
    return numbers.UNKNOWN if percent is None else numbers.margin_of_error(percent).removeprefix("±")


def share_text(bit_s: float, expected: ExpectedRate | None, mark: float) -> str:
    """Return a rate in percent of what is expected; a percentage of nothing is nothing."""
    share = numbers.share(bit_s, None if expected is None else expected.bit_s)
    return numbers.UNKNOWN if share is None else numbers.percent(share, mark=mark)


def _stretches(stretches: tuple[Period, ...], mark: float) -> Padding:
    table = _table("out Mb/s", "± 95 %", "in Mb/s", "± 95 %", "of expected")
    for number, stretch in enumerate(stretches, start=1):
        rates: list[str] = []
        for one in (stretch.out, stretch.in_):
            rates += [numbers.UNKNOWN] * 2 if one is None else [numbers.mbit(one.bit_s), margin_cell(one.estimate)]
        table.add_row(f"{number}. {numbers.settings(stretch.settings)}", *rates, _stretch_share(stretch, mark))
    return _indent(table)


def _stretch_share(stretch: Period, mark: float) -> str:
    expected: Expectation = stretch.expectation
    parts = [one for one in (stretch.out, stretch.in_) if one is not None]
    if not parts:
        return numbers.UNKNOWN
    return share_text(sum(one.bit_s for one in parts), expected.total or expected.out or expected.in_, mark)


def _cpu(near: CpuSummary, far: CpuSummary, workload: Workload) -> Padding:
    table = _table("CPU", "hottest core", "linkgauge", "cost")
    for name, cpu in (("near", near), ("far", far)):
        table.add_row(
            name,
            numbers.percent(cpu.host_percent),
            numbers.percent(cpu.hottest_core_percent),
            numbers.percent(cpu.process_percent),
            numbers.cpu_cost(cpu.msec_per_mib)
            if workload.is_bulk
            else numbers.transaction_cpu_cost(cpu.msec_per_transaction),
        )
    return _indent(table)


def _rest(summary: Summary) -> Padding:
    grid = _grid()
    grid.add_row("tcp", tcp_text(summary.tcp))
    for warning in summary.warnings:
        grid.add_row(Text("! note", "bold yellow"), numbers.sanitize(warning))
    why, detail = numbers.reason(summary.end.reason), numbers.sanitize(summary.end.detail)
    grid.add_row("ended", detail if detail.startswith(why) else f"{why}: {detail}".removesuffix(": "))
    return _indent(grid)


def tcp_text(tcp: TcpSummary) -> str:
    """Return what TCP did, in one line; what is unknown is left out."""
    words = [
        numbers.UNKNOWN if tcp.retransmits is None else numbers.quantity(tcp.retransmits, "retransmit"),
        f"RTT {numbers.milliseconds(tcp.rtt_us)}",
        f"MSS {numbers.count(tcp.mss_bytes)}",
    ]
    if tcp.retransmits is None:
        words[0] = "retransmits unknown"
    if tcp.congestion is not None:
        words.append(numbers.sanitize(tcp.congestion))
    if tcp.mode is not None:
        words.append(tcp.mode)
    granted = (tcp.window_granted_near_bytes, tcp.window_granted_far_bytes)
    if granted != (None, None):
        near, far = (numbers.UNKNOWN if one is None else numbers.window(one) for one in granted)
        words.append(f"window granted {near} near, {far} far")
    return ", ".join(words)
