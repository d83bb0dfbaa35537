"""The rows of a run's summary, as text for the terminal, the report and the app. Pure.

Each row holds cells that are ready to print. Headings, names of rows and styles belong to the printers.
"""

from dataclasses import dataclass
from typing import Final

from ...engine.model.events import EndText, ExpectedRate, RunEnd
from ...engine.model.latency_histogram import LatencySummary
from ...engine.model.plan import SECOND_NS, Direction, End, Mode, Plan
from ...engine.results.confidence import Estimate
from ...engine.results.counter_sums import percent_of
from ...engine.results.summary import (
    CpuSummary,
    Measurement,
    Period,
    ProbeResult,
    ProbeSummary,
    Summary,
    TcpSummary,
)
from ...presets.verdict import Verdict, VerdictCode, judge_period
from . import numbers
from .datagram_results import capacity_texts, run_losses, udp_text
from .responsiveness import phases_text

LATENCY_COLUMNS: Final = ("min", "p50", "p90", "p99", "p99.9", "max")
ROW_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "total"}


@dataclass(frozen=True, slots=True)
class RateRow:
    """The payload rate of a direction and its share of the expected rate; `duplex` is the total of both.

    Its rates are in the unit of the run (`rate_unit`).
    """

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
    """A period of constant settings: its rates, the share of the rate expected under them, and its verdict.

    `rate` is that of both directions together, in `unit`: Mb/s, or transactions a second. A period that was no
    longer than its warm-up has nothing measured.
    """

    is_measured: bool
    settings: str
    rate: str
    unit: str
    out: str
    out_margin: str
    in_: str
    in_margin: str
    expected: str
    share: str
    verdict: str
    source: str


@dataclass(frozen=True, slots=True)
class CpuRow:
    """CPU time of one end: its host, the hottest core, linkgauge's processes, and the cost of the payload."""

    end: str
    host: str
    hottest_core: str
    process: str
    cost: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The first line of a result: the verdict with its mark, or what broke the run off, and a sentence."""

    word: VerdictCode
    mark: str
    text: str
    is_regular: bool


def headline(summary: Summary, verdict: Verdict) -> Headline:
    """Return the verdict; for a run that broke off, the reason in its place."""
    is_regular = not summary.end.reason.is_fault
    mark = numbers.verdict(verdict.word) if is_regular else f"✗ {numbers.reason(summary.end.reason).upper()}"
    return Headline(verdict.word, mark, verdict_sentence(verdict), is_regular)


def verdict_sentence(verdict: Verdict) -> str:
    """Return the verdict's text without its leading word, which is printed separately."""
    return numbers.sanitize(verdict.explanation)


def plan_text(summary: Summary) -> str:
    """Return the requested test in one phrase: `stream, out, 1 session, window auto, 10 s`."""
    plan = summary.plan
    if plan.has_phases:
        return phases_text(plan)
    words = [numbers.workload(plan), numbers.settings(plan.settings, plan.workload)]
    if plan.rate_bit_s is not None:
        words.append(f"at most {numbers.rate(plan.rate_bit_s)} each way")
    if plan.bytes_limit is not None:
        words.append(f"{numbers.payload(plan.bytes_limit)} each way")
    if plan.bytes_limit is None or plan.duration_ns is not None:
        words.append(numbers.duration(plan.duration_ns))
    changed = numbers.changed_settings(period.settings for period in summary.periods)
    return ", ".join(words) + (f"; changed during the test: {changed}" if changed else "")


def warmup_text(summary: Summary) -> str:
    """Return the warm-up; for an automatic one, the time until the rates settled."""
    if not summary.plan.warmup_auto:
        return numbers.duration(summary.plan.effective_warmup_ns)
    settled_ns = summary.periods[0].warmup_ns if summary.periods else None
    return "auto" if settled_ns is None else f"{settled_ns / SECOND_NS:.1f}{numbers.NBSP}s, automatic"


def end_words(end: RunEnd) -> str:
    """Return why a run ended, with the detail, without saying the same twice."""
    reason, detail = numbers.reason(end.reason), numbers.sanitize(end.detail)
    if detail == EndText.DURATION_UP.value:  # `completed` says it
        return reason
    if detail == EndText.STILL_RUNNING.value:
        return detail
    return detail if detail.startswith(reason) else f"{reason}: {detail}".removesuffix(": ")


def rate_rows(summary: Summary, pass_percent: float) -> list[RateRow]:
    """Return a row for each direction that was measured, and the total where there are two.

    A share just below `pass_percent` is cut rather than rounded, so that it looks short.
    """
    expected = summary.expectation
    rates = {Direction.OUT: expected.out, Direction.IN: expected.in_, Direction.DUPLEX: expected.total}
    scale = _rate_scale(summary)
    return [
        _rate_row(direction, measured, rates[direction], pass_percent, scale)
        for direction, measured in summary.measurements
    ]


def rate_unit(summary: Summary) -> str:
    """Return the unit of a run's rates: Mb/s, or kb/s if all are below 1 Mb/s."""
    return _rate_scale(summary).unit


def _rate_scale(summary: Summary) -> numbers.RateScale:
    return numbers.table_scale(max((measured.bit_s for _, measured in summary.measurements), default=0.0))


def transaction_rows(summary: Summary) -> list[TransactionRow]:
    """Return a row for each direction with transactions; percentiles are of all of them, not of a mean."""
    return [
        TransactionRow(
            direction, numbers.transaction_number(measured.transactions_s), latency_cells(measured.latency)
        )
        for direction, measured in summary.measurements
        if measured.transactions is not None
    ]


def probe_rows(probe: ProbeSummary) -> tuple[ProbeRow, ProbeRow]:
    """Return the probe's rows before payload flowed and under load: the difference is the queues of the load."""
    return _probe_row(probe.idle, is_loaded=False), _probe_row(probe.loaded, is_loaded=True)


def period_rows(summary: Summary, pass_percent: float) -> list[PeriodRow]:
    """Return a row for each period of constant settings."""
    response_bits = response_bits_of(summary.plan)
    rows: list[PeriodRow] = []
    for period in summary.periods:
        bit_s, expected = period_bit_s(period), period.expectation[period.settings.direction]
        rows.append(
            PeriodRow(
                bit_s is not None,
                numbers.settings(period.settings, summary.plan.workload),
                numbers.rate_number(bit_s, response_bits),
                "Mb/s" if response_bits is None else "trans/s",
                *_rate_and_margin(period.measured.out),
                *_rate_and_margin(period.measured.in_),
                _expected_cell(expected),
                share_cell(bit_s, expected, pass_percent),
                _period_verdict(period, pass_percent),
                _source_cell(expected),
            )
        )
    return rows


def period_bit_s(period: Period) -> float | None:
    """Return the rate of a period, both directions together; None while nothing is measured."""
    directions = (period.measured.out, period.measured.in_)
    rates = [measured.bit_s for measured in directions if measured is not None and measured.span_ns > 0]
    return sum(rates) if rates else None


def response_bits_of(plan: Plan) -> int | None:
    """Return the payload bits of a transaction; None if a rate is one of bits."""
    return None if plan.workload.is_bulk else plan.transaction_sizes[1] * 8


def _period_verdict(period: Period, pass_percent: float) -> str:
    """Return a period's verdict with its percentage: `✓ PASS 99.2 %`; a dash without one."""
    verdict = judge_period(period, pass_percent)
    if verdict.percent is None:
        return numbers.UNKNOWN if verdict.word == "none" else numbers.verdict(verdict.word)
    return f"{numbers.verdict(verdict.word)} {numbers.percent(verdict.percent, mark=pass_percent)}"


def cpu_rows(summary: Summary) -> tuple[CpuRow, CpuRow]:
    """Return the CPU rows of the near and the far end."""
    is_bulk = summary.plan.workload.is_bulk
    return _cpu_row(End.NEAR, summary.near_cpu, is_bulk), _cpu_row(End.FAR, summary.far_cpu, is_bulk)


def progress_text(percent: float | None) -> str:
    """Return a running test's current share of the expected rate."""
    if percent is None:
        return "No expected rate: measuring only."
    return f"now {numbers.percent(percent)} of the expected rate"


def findings_period(summary: Summary) -> str:
    """Return which part of a run its findings are about: `last period` after a change of settings, else nothing.

    Those of a responsiveness test are about its whole run.
    """
    if summary.plan.responsiveness is not None:
        return ""
    return "last period" if len(summary.periods) > 1 else ""


def run_facts(summary: Summary) -> list[str]:
    """Return the amount of payload, the reason for the end, and the known values of TCP or of datagrams."""
    amount = [] if summary.measured.total is None else [numbers.payload(summary.payload_bytes)]
    if summary.plan.workload.is_datagram:
        return [
            *(f"capacity {text}" for text in capacity_texts(summary)),
            *amount,
            numbers.reason(summary.end.reason),
            *run_losses(summary),
            *filter(None, [udp_text(summary)]),
        ]
    congestion = numbers.sanitize(summary.tcp.congestion or "")
    mode = "" if summary.plan.workload.is_transactional else mode_text(summary, is_short=True)
    words = [*amount, numbers.reason(summary.end.reason), *_tcp_words(summary.tcp), congestion, mode]
    return list(filter(None, words))


def tcp_text(summary: Summary) -> str:
    """Return the known values of TCP in one line, the mode and the granted windows last."""
    tcp = summary.tcp
    granted = (tcp.window_granted_near_bytes, tcp.window_granted_far_bytes)
    near, far = (numbers.UNKNOWN if value is None else numbers.window(value) for value in granted)
    windows = "" if granted == (None, None) else f"window granted {near} local, {far} remote"
    congestion = "" if tcp.congestion is None else f"congestion control {numbers.sanitize(tcp.congestion)}"
    return ", ".join(filter(None, (*_tcp_words(tcp), congestion, mode_text(summary), windows)))


def transfer_text(summary: Summary) -> str:
    """Return the three metrics of RFC 6349 in one line, those that are known; empty where none is."""
    ratio, efficiency = summary.transfer_time_ratio, summary.efficiency_percent
    delay_us, delay_percent = summary.buffer_delay_us, summary.buffer_delay_percent
    words: list[str] = []
    if ratio is not None:
        words.append(f"transfer time ratio {numbers.number(ratio, 2)}")
    if efficiency is not None:
        words.append(f"TCP efficiency {numbers.percent(efficiency, 2, mark=100)}")
    if delay_us is not None:
        share = "" if delay_percent is None else f" ({numbers.percent(delay_percent, 0)})"
        words.append(f"buffer delay {numbers.round_trip(delay_us)}{share}")
    return ", ".join(words)


def other_tests_text(summary: Summary) -> str:
    """Return what other tests of the endpoint carried meanwhile; empty without any, or if it does not tell."""
    others = summary.others
    if others is None or not others.most_tests:
        return ""
    counts = f"{numbers.quantity(others.most_tests, 'test')}, {numbers.quantity(others.most_sessions, 'session')}"
    parts = (("received", others.received_bit_s), ("sent", others.sent_bit_s))
    rates = " and ".join(f"{verb} {numbers.rate(bit_s)}" for verb, bit_s in parts if bit_s) or "carried nothing"
    them = "it" if others.most_tests == 1 else "them"
    return f"at most {counts} on this endpoint; it {rates} in {them} on average"


def mode_text(summary: Summary, *, is_short: bool = False) -> str:
    """Return how payload moved, and why so where nobody asked for it; empty where that is unknown."""
    mode = summary.tcp.mode
    if mode is None or summary.plan.mode is not None:
        return mode or ""
    reason = "" if is_short or mode is Mode.COPY else ": faster than copy in a trial"
    return f"{mode} (automatic{reason})"


def _tcp_words(tcp: TcpSummary) -> list[str]:
    words = ["retransmits unknown" if tcp.retransmits is None else numbers.quantity(tcp.retransmits, "retransmit")]
    if tcp.rtt_us is not None:
        words.append(f"median RTT {numbers.round_trip(tcp.rtt_us)}")
    if tcp.mss_bytes is not None:
        words.append(f"MSS {numbers.count(tcp.mss_bytes)}")
    return words


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
    share = percent_of(bit_s, None if expected is None else expected.bit_s)
    return numbers.UNKNOWN if share is None else numbers.percent(share, mark=pass_percent)


def _rate_row(
    direction: Direction,
    measured: Measurement,
    expected: ExpectedRate | None,
    pass_percent: float,
    scale: numbers.RateScale,
) -> RateRow:
    return RateRow(
        direction,
        scale.number(measured.bit_s),
        margin_cell(measured.estimate),
        mib_rate=numbers.rate_in_unit(measured.bit_s, numbers.RateUnit.MIB),
        payload=numbers.payload(measured.bytes),
        expected=scale.number(None if expected is None else expected.bit_s),
        share=share_cell(measured.bit_s, expected, pass_percent),
        source=_source_cell(expected),
    )


def _rate_and_margin(measured: Measurement | None) -> tuple[str, str]:
    if measured is None:
        return numbers.UNKNOWN, numbers.UNKNOWN
    return numbers.mbit(measured.bit_s), margin_cell(measured.estimate)


def _source_cell(expected: ExpectedRate | None) -> str:
    return "no expected rate" if expected is None else f"{expected.basis}: {numbers.sanitize(expected.source)}"


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
        rtt=numbers.round_trip(result.rtt_us),
        count=f"{numbers.count(result.transactions)} in {result.span_ns / SECOND_NS:.1f}{numbers.NBSP}s",
    )


def _cpu_row(end: End, cpu: CpuSummary, is_bulk: bool) -> CpuRow:
    return CpuRow(
        end.label,
        numbers.percent(cpu.host_percent),
        numbers.percent(cpu.hottest_core_percent),
        numbers.percent(cpu.process_percent),
        numbers.cpu_cost(cpu.msec_per_mib) if is_bulk else numbers.transaction_cpu_cost(cpu.msec_per_transaction),
    )
