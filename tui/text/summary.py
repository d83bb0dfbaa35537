"""The rows of a run's summary, as text for the terminal, the report and the app. Pure.

Each row holds cells that are ready to print. Headings, names of rows and styles belong to the printers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...engine.model.events import ExpectedRate
from ...engine.model.latency_histogram import LatencySummary
from ...engine.model.plan import SECOND_NS, Direction, End
from ...engine.results.confidence import Estimate
from ...engine.results.summary import CpuSummary, Measurement, ProbeResult, ProbeSummary, Summary, TcpSummary
from ...presets.verdict import Verdict
from . import numbers

LATENCY_COLUMNS: Final = ("min", "p50", "p90", "p99", "p99.9", "max")
ROW_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "total"}


@dataclass(frozen=True, slots=True)
class RateRow:
    """The payload rate of a direction and its share of the expected rate; `duplex` is the total of both."""

    direction: Direction
    rate: str
    margin: str
    mib_rate: str
    payload: str
    expected: str
    share: str
    source: str


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """Transactions a second in a direction, and the percentiles of their latency, as in LATENCY_COLUMNS."""

    direction: Direction
    per_second: str
    latency: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """Latency of the probe, idle or under load. A state that was not probed has only unknown cells."""

    is_loaded: bool
    is_measured: bool
    per_second: str
    latency: tuple[str, ...]
    rtt: str
    count: str


@dataclass(frozen=True, slots=True)
class PeriodRow:
    """A period of constant settings: its rates, and the share of what is expected under these settings."""

    settings: str
    out: str
    out_margin: str
    in_: str
    in_margin: str
    expected: str
    share: str


@dataclass(frozen=True, slots=True)
class CpuRow:
    """CPU time of one end: its host, the hottest core, linkgauge's processes, and the cost of the payload."""

    end: End
    host: str
    hottest_core: str
    process: str
    cost: str


@dataclass(frozen=True, slots=True)
class TcpFacts:
    """Values of TCP for a summary's line; None where a value is unknown and the line leaves it out."""

    retransmits: str
    rtt: str | None
    mss: str | None
    congestion: str | None
    mode: str | None
    granted_windows: str | None


def verdict_sentence(verdict: Verdict) -> str:
    """Return the verdict's text without its leading word, which is printed separately."""
    return numbers.sanitize(verdict.text.removeprefix(f"{verdict.word.upper()}: "))


def plan_text(summary: Summary) -> str:
    """Return the requested test in one phrase: `stream, out, 1 session, window auto, 10 s`."""
    plan = summary.plan
    return f"{numbers.workload(plan)}, {numbers.settings(plan.settings)}, {numbers.duration(plan.duration_ns)}"


def warmup_text(summary: Summary) -> str:
    """Return the warm-up; for an automatic one, the time until the rates settled."""
    if not summary.plan.warmup_auto:
        return numbers.duration(summary.plan.effective_warmup_ns)
    settled_ns = summary.periods[0].warmup_ns if summary.periods else None
    return "auto" if settled_ns is None else f"{settled_ns / SECOND_NS:.1f}{numbers.NBSP}s, found"


def end_text(summary: Summary) -> str:
    """Return the reason for the end with its detail, without saying the same twice."""
    reason, detail = numbers.reason(summary.end.reason), numbers.sanitize(summary.end.detail)
    return detail if detail.startswith(reason) else f"{reason}: {detail}".removesuffix(": ")


def rate_rows(summary: Summary, pass_percent: float) -> list[RateRow]:
    """Return a row for each direction that was measured, and the total where there are two.

    A share just below `pass_percent` is cut rather than rounded, so that it looks short.
    """
    expected = summary.expectation
    rates = {Direction.OUT: expected.out, Direction.IN: expected.in_, Direction.DUPLEX: expected.total}
    return [
        _rate_row(direction, measured, rates[direction], pass_percent)
        for direction, measured in _directions(summary)
    ]


def transaction_rows(summary: Summary) -> list[TransactionRow]:
    """Return a row for each direction with transactions; percentiles are of all of them, not of a mean."""
    return [
        TransactionRow(
            direction, numbers.transaction_number(measured.transactions_s), latency_cells(measured.latency)
        )
        for direction, measured in _directions(summary)
        if measured.transactions is not None
    ]


def probe_rows(probe: ProbeSummary) -> tuple[ProbeRow, ProbeRow]:
    """Return the probe's rows before payload flowed and under load: the difference is the queues of the load."""
    return _probe_row(probe.idle, is_loaded=False), _probe_row(probe.loaded, is_loaded=True)


def period_rows(summary: Summary, pass_percent: float) -> list[PeriodRow]:
    """Return a row for each period of constant settings."""
    rows: list[PeriodRow] = []
    for number, period in enumerate(summary.periods, start=1):
        measured = [part for part in (period.measured.out, period.measured.in_) if part is not None]
        bit_s = sum(part.bit_s for part in measured) if measured else None
        expected = period.expectation.total or period.expectation.out or period.expectation.in_
        rows.append(
            PeriodRow(
                f"{number}. {numbers.settings(period.settings)}",
                *_rate_and_margin(period.measured.out),
                *_rate_and_margin(period.measured.in_),
                _expected_cell(expected),
                share_cell(bit_s, expected, pass_percent),
            )
        )
    return rows


def cpu_rows(summary: Summary) -> tuple[CpuRow, CpuRow]:
    """Return the CPU rows of the near and the far end."""
    is_bulk = summary.plan.workload.is_bulk
    return _cpu_row(End.NEAR, summary.near_cpu, is_bulk), _cpu_row(End.FAR, summary.far_cpu, is_bulk)


def tcp_facts(tcp: TcpSummary) -> TcpFacts:
    """Return the values of TCP that are known."""
    granted = (tcp.window_granted_near_bytes, tcp.window_granted_far_bytes)
    near, far = (numbers.UNKNOWN if value is None else numbers.window(value) for value in granted)
    return TcpFacts(
        retransmits="retransmits unknown"
        if tcp.retransmits is None
        else numbers.quantity(tcp.retransmits, "retransmit"),
        rtt=None if tcp.rtt_us is None else numbers.milliseconds(tcp.rtt_us),
        mss=None if tcp.mss_bytes is None else numbers.count(tcp.mss_bytes),
        congestion=None if tcp.congestion is None else numbers.sanitize(tcp.congestion),
        mode=tcp.mode,
        granted_windows=None if granted == (None, None) else f"window granted {near} near, {far} far",
    )


def latency_cells(latency: LatencySummary | None) -> tuple[str, ...]:
    """Return a latency distribution's cells, as in LATENCY_COLUMNS."""
    if latency is None:
        return (numbers.UNKNOWN,) * len(LATENCY_COLUMNS)
    values = (latency.min_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p99_9_ns, latency.max_ns)
    return tuple(numbers.latency(value_ns) for value_ns in values)


def margin_cell(estimate: Estimate | None) -> str:
    """Return half of a rate's 95 % interval in percent of the rate: `±0.31 %`, or a dash."""
    return numbers.margin_of_error(None if estimate is None else estimate.half_width_percent) or numbers.UNKNOWN


def share_cell(bit_s: float | None, expected: ExpectedRate | None, pass_percent: float) -> str:
    """Return a rate in percent of the expected rate; a percentage of nothing is a dash."""
    share = numbers.share(bit_s, None if expected is None else expected.bit_s)
    return numbers.UNKNOWN if share is None else numbers.percent(share, mark=pass_percent)


def _directions(summary: Summary) -> Sequence[tuple[Direction, Measurement]]:
    total = summary.measured.total if summary.measured.out and summary.measured.in_ else None
    parts = {Direction.OUT: summary.measured.out, Direction.IN: summary.measured.in_, Direction.DUPLEX: total}
    return [(direction, measured) for direction, measured in parts.items() if measured is not None]


def _rate_row(
    direction: Direction, measured: Measurement, expected: ExpectedRate | None, pass_percent: float
) -> RateRow:
    source = "nothing to expect" if expected is None else f"{expected.basis}: {numbers.sanitize(expected.source)}"
    return RateRow(
        direction,
        *_rate_and_margin(measured),
        mib_rate=numbers.rate_in_unit(measured.bit_s, numbers.RateUnit.MIB),
        payload=numbers.payload(measured.bytes),
        expected=_expected_cell(expected),
        share=share_cell(measured.bit_s, expected, pass_percent),
        source=source,
    )


def _rate_and_margin(measured: Measurement | None) -> tuple[str, str]:
    if measured is None:
        return numbers.UNKNOWN, numbers.UNKNOWN
    return numbers.mbit(measured.bit_s), margin_cell(measured.estimate)


def _expected_cell(expected: ExpectedRate | None) -> str:
    return numbers.mbit(None if expected is None else expected.bit_s)


def _probe_row(result: ProbeResult | None, *, is_loaded: bool) -> ProbeRow:
    if result is None:
        return ProbeRow(
            is_loaded,
            is_measured=False,
            per_second=numbers.UNKNOWN,
            latency=latency_cells(None),
            rtt=numbers.UNKNOWN,
            count=numbers.UNKNOWN,
        )
    per_second = result.transactions * SECOND_NS / result.span_ns if result.span_ns else None
    return ProbeRow(
        is_loaded,
        is_measured=True,
        per_second=numbers.transaction_number(per_second),
        latency=latency_cells(result.latency),
        rtt=numbers.latency(None if result.rtt_us is None else result.rtt_us * 1_000),
        count=f"{numbers.count(result.transactions)} in {result.span_ns / SECOND_NS:.1f}{numbers.NBSP}s",
    )


def _cpu_row(end: End, cpu: CpuSummary, is_bulk: bool) -> CpuRow:
    return CpuRow(
        end,
        numbers.percent(cpu.host_percent),
        numbers.percent(cpu.hottest_core_percent),
        numbers.percent(cpu.process_percent),
        numbers.cpu_cost(cpu.msec_per_mib) if is_bulk else numbers.transaction_cpu_cost(cpu.msec_per_transaction),
    )
