"""A run's summary as text: tables of what was measured, its verdict, and what is known of the test. Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...engine.model.counters.latency_histogram import LatencySummary
from ...engine.model.directions import End
from ...engine.model.expected_rate import ExpectedRate
from ...engine.model.plan import SECOND_NS, Dialect, Mode, Plan
from ...engine.model.run_end import STILL_RUNNING, EndText, RunEnd
from ...engine.results.rate_and_loss import percent_of
from ...presets.verdict import judge_period
from . import numbers
from .datagram_results import capacity_texts, delay_table, loss_table, run_losses, udp_text
from .responsiveness import phases_text
from .table import NAMES, Column, Table

if TYPE_CHECKING:
    from ...engine.results.confidence import Estimate
    from ...engine.results.summary import Measurement, Period, ProbeResult, ProbeSummary, Summary, TcpSummary
    from ...presets.verdict import Verdict, VerdictCode

_LATENCY_COLUMNS: Final = (
    Column("min", rank=3),
    Column("p50"),
    Column("p90", rank=4),
    Column("p99", rank=6),
    Column("p99.9", rank=5),
    Column("max"),
)


@dataclass(frozen=True, slots=True)
class Headline:
    """The first line of a result: the verdict with its mark, or what broke the run off, and a sentence."""

    word: "VerdictCode"
    mark: str
    text: str
    is_regular: bool


def headline(summary: "Summary", verdict: "Verdict") -> Headline:
    """Return the verdict; for a run that broke off, the reason; for an observed connection, its result."""
    if summary.dialect is Dialect.OBSERVED:
        return Headline("none", "• OBSERVED", verdict_sentence(verdict), is_regular=True)
    is_regular = not summary.end.reason.is_fault
    mark = numbers.verdict(verdict.word) if is_regular else f"✗ {numbers.reason(summary.end.reason).upper()}"
    return Headline(verdict.word, mark, verdict_sentence(verdict), is_regular)


def verdict_sentence(verdict: "Verdict") -> str:
    """Return the verdict's text without its leading word, which is printed separately."""
    return numbers.sanitize(verdict.explanation)


def plan_text(summary: "Summary") -> str:
    """Return the requested test in one phrase: `stream, out, 1 session, window auto, 10 s`."""
    plan = summary.plan
    if summary.dialect is Dialect.OBSERVED:
        return f"observed {plan.settings.direction} for {(summary.elapsed_ns or 0) / SECOND_NS:.1f}{numbers.NBSP}s"
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


def warmup_text(summary: "Summary") -> str:
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
    if end == STILL_RUNNING:
        return detail
    return detail if detail.startswith(reason) else f"{reason}: {detail}".removesuffix(": ")


def measured_tables(summary: "Summary", pass_percent: float) -> list[Table]:
    """Return the tables of what a run measured, latency under load apart; none if it measured nothing.

    A share just below `pass_percent` is cut rather than rounded, so that it looks short.
    """
    if summary.measured.total is None:
        return []
    tables: list[Table] = []
    if not summary.plan.has_phases:  # the sums of several loads are no figures of any
        tables.append(rate_table(summary, pass_percent))
        if summary.measured.total.transactions is not None:
            tables.append(transaction_table(summary))
        if summary.plan.workload.is_datagram:
            tables += [loss_table(summary), delay_table(summary)]
        if summary.probe is not None and summary.responsiveness is None:
            tables.append(probe_table(summary.probe))
        if len(summary.periods) > 1:
            tables.append(period_table(summary, pass_percent))
    if summary.dialect is not Dialect.OBSERVED:
        tables.append(cpu_table(summary))
    return tables


def rate_table(summary: "Summary", pass_percent: float) -> Table:
    """Return the goodput and its share of the expected rate: a row for each direction, and the total of both."""
    scale = rate_scale(summary)
    columns = (
        NAMES,
        Column(scale.unit, is_key=True),
        Column("± 95 %", rank=4),
        Column("MiB/s", rank=2),
        Column("payload", rank=3),
        Column("expected", rank=5),
        Column("share"),
        Column("source", is_text=True, wraps=True, rank=1),
    )
    rows: list[tuple[str, ...]] = []
    for direction, measured in summary.measurements:
        expected = summary.expectation[direction]
        rows.append(
            (
                numbers.direction_name(direction),
                scale.number(measured.bit_s),
                margin_cell(measured.estimate),
                numbers.rate_in_unit(measured.bit_s, numbers.RateUnit.MIB),
                numbers.payload(measured.bytes),
                scale.number(None if expected is None else expected.bit_s),
                share_cell(measured.bit_s, expected, pass_percent),
                _source_cell(expected),
            )
        )
    return Table(columns, rows)


def rate_scale(summary: "Summary") -> numbers.RateScale:
    """Return the scale of a run's rates: Mb/s, or kb/s if all are below 1 Mb/s."""
    return numbers.table_scale(max((measured.bit_s for _, measured in summary.measurements), default=0.0))


def transaction_table(summary: "Summary") -> Table:
    """Return transactions a second and their latency: percentiles are of all transactions, not of a mean."""
    return Table(
        (NAMES, Column("trans/s"), *_LATENCY_COLUMNS),
        [
            (
                numbers.direction_name(direction),
                numbers.transaction_number(measured.transactions_s),
                *_latency_cells(measured.latency),
            )
            for direction, measured in summary.measurements
            if measured.transactions is not None
        ],
    )


def probe_table(probe: "ProbeSummary") -> Table:
    """Return the probe's latency before payload flowed and under load: the difference is the queues of the load."""
    columns = (NAMES, *_LATENCY_COLUMNS, Column("tcp rtt", rank=2), Column("probes", rank=1))
    return Table(columns, [("idle", *_probe_cells(probe.idle)), ("loaded", *_probe_cells(probe.loaded))])


def _probe_cells(result: "ProbeResult | None") -> tuple[str, ...]:
    if result is None:
        return (*_latency_cells(None), numbers.UNKNOWN, numbers.UNKNOWN)
    count = f"{numbers.count(result.transactions)} in {result.span_ns / SECOND_NS:.1f}{numbers.NBSP}s"
    return (*_latency_cells(result.latency), numbers.round_trip(result.rtt_us), count)


def period_table(summary: "Summary", pass_percent: float) -> Table:
    """Return a row for each period of constant settings: its rates, and its verdict under them."""
    columns = (
        Column(is_text=True, wraps=True),
        Column("out Mb/s"),
        Column("± 95 %", rank=1),
        Column("in Mb/s"),
        Column("± 95 %", rank=2),
        Column("expected Mb/s", is_extra=True),
        Column("verdict"),
        Column("source", is_text=True, wraps=True, is_extra=True),
    )
    rows: list[tuple[str, ...]] = []
    for number, period in enumerate(summary.periods, start=1):
        expected = period.expectation[period.settings.direction]
        rows.append(
            (
                f"{number}. {numbers.settings(period.settings, summary.plan.workload)}",
                *_rate_and_margin(period.measured.out),
                *_rate_and_margin(period.measured.in_),
                numbers.mbit(None if expected is None else expected.bit_s),
                _period_verdict(period, pass_percent),
                _source_cell(expected),
            )
        )
    return Table(columns, rows)


def period_averages(summary: "Summary", pass_percent: float, *, is_over: bool) -> list[tuple[str, str, str]]:
    """Return the rate, the verdict and the settings of each period in which something was measured.

    The verdict is empty if no rate is expected. Until the run is over, it is the share of the expected rate.
    """
    response_bits = response_bits_of(summary.plan)
    unit = "Mb/s" if response_bits is None else "trans/s"
    averages: list[tuple[str, str, str]] = []
    for period in summary.periods:
        bit_s = period_bit_s(period)
        if bit_s is None:
            continue
        share = share_cell(bit_s, period.expectation[period.settings.direction], pass_percent)
        verdict = _period_verdict(period, pass_percent) if is_over else f"{share:>7}"
        averages.append(
            (
                f"{numbers.rate_number(bit_s, response_bits):>8}{numbers.NBSP}{unit}",
                "" if share == numbers.UNKNOWN else verdict,
                numbers.settings(period.settings, summary.plan.workload),
            )
        )
    return averages


def period_bit_s(period: "Period") -> float | None:
    """Return the rate of a period, both directions together; None while nothing is measured."""
    directions = (period.measured.out, period.measured.in_)
    rates = [measured.bit_s for measured in directions if measured is not None and measured.span_ns > 0]
    return sum(rates) if rates else None


def response_bits_of(plan: Plan) -> int | None:
    """Return the payload bits of a transaction; None if a rate is one of bits."""
    return None if plan.workload.is_bulk else plan.transaction_sizes[1] * 8


def _period_verdict(period: "Period", pass_percent: float) -> str:
    """Return a period's verdict with its percentage: `✓ PASS 99.2 %`; a dash without one."""
    verdict = judge_period(period, pass_percent)
    if verdict.percent is None:
        return numbers.UNKNOWN if verdict.word == "none" else numbers.verdict(verdict.word)
    return f"{numbers.verdict(verdict.word)} {numbers.percent(verdict.percent, mark=pass_percent)}"


def cpu_table(summary: "Summary") -> Table:
    """Return the CPU time of both ends: host, busiest core, linkgauge's processes, and the cost of the payload."""
    is_bulk = summary.plan.workload.is_bulk
    columns = (
        NAMES,
        Column("CPU"),
        Column("busiest core", rank=2),
        Column("linkgauge", rank=1),
        Column(f"per {'MiB' if is_bulk else 'trans'}"),
    )
    return Table(
        columns,
        [
            (
                end.label,
                *map(numbers.percent, (cpu.host_percent, cpu.hottest_core_percent, cpu.process_percent)),
                numbers.cpu_cost(cpu.msec_per_mib)
                if is_bulk
                else numbers.transaction_cpu_cost(cpu.msec_per_transaction),
            )
            for end, cpu in ((End.NEAR, summary.near_cpu), (End.FAR, summary.far_cpu))
        ],
    )


def progress_text(percent: float | None) -> str:
    """Return a running test's current share of the expected rate."""
    if percent is None:
        return "No expected rate: measuring only."
    return f"now {numbers.percent(percent)} of the expected rate"


def findings_period(summary: "Summary") -> str:
    """Return which part of a run its findings are about: `last period` after a change of settings, else nothing.

    The findings of a responsiveness test are about its whole run.
    """
    if summary.plan.responsiveness is not None:
        return ""
    return "last period" if len(summary.periods) > 1 else ""


def run_facts(summary: "Summary") -> list[str]:
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


def tcp_text(summary: "Summary") -> str:
    """Return the known values of TCP in one line, the mode and the granted windows last."""
    tcp = summary.tcp
    granted = (tcp.window_granted_near_bytes, tcp.window_granted_far_bytes)
    near, far = (numbers.UNKNOWN if value is None else numbers.window(value) for value in granted)
    windows = "" if granted == (None, None) else f"window granted {near} local, {far} remote"
    congestion = "" if tcp.congestion is None else f"congestion control {numbers.sanitize(tcp.congestion)}"
    return ", ".join(filter(None, (*_tcp_words(tcp), congestion, mode_text(summary), windows)))


def transfer_text(summary: "Summary") -> str:
    """Return the three metrics of RFC 6349 in one line, if they are known; empty without any."""
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


def other_tests_text(summary: "Summary") -> str:
    """Return what other tests of the endpoint carried meanwhile; empty without any, or if it does not tell."""
    others = summary.others
    if others is None or not others.most_tests:
        return ""
    counts = f"{numbers.quantity(others.most_tests, 'test')}, {numbers.quantity(others.most_sessions, 'session')}"
    parts = (("received", others.received_bit_s), ("sent", others.sent_bit_s))
    rates = " and ".join(f"{verb} {numbers.rate(bit_s)}" for verb, bit_s in parts if bit_s) or "carried nothing"
    them = "it" if others.most_tests == 1 else "them"
    return f"at most {counts} on this endpoint; it {rates} in {them} on average"


def mode_text(summary: "Summary", *, is_short: bool = False) -> str:
    """Return how payload moved, and why, if the user did not choose it; empty if it is unknown."""
    mode = summary.tcp.mode
    if mode is None or summary.plan.mode is not None:
        return mode or ""
    reason = "" if is_short or mode is Mode.COPY else ": faster than copy in a trial"
    return f"{mode} (automatic{reason})"


def _tcp_words(tcp: "TcpSummary") -> list[str]:
    words = ["retransmits unknown" if tcp.retransmits is None else numbers.quantity(tcp.retransmits, "retransmit")]
    if tcp.rtt_us is not None:
        words.append(f"median RTT {numbers.round_trip(tcp.rtt_us)}")
    if tcp.mss_bytes is not None:
        words.append(f"MSS {numbers.count(tcp.mss_bytes)}")
    return words


def _latency_cells(latency: LatencySummary | None) -> tuple[str, ...]:
    if latency is None:
        return (numbers.UNKNOWN,) * len(_LATENCY_COLUMNS)
    values = (latency.min_ns, latency.p50_ns, latency.p90_ns, latency.p99_ns, latency.p99_9_ns, latency.max_ns)
    return tuple(map(numbers.latency, values))


def margin_cell(estimate: "Estimate | None") -> str:
    """Return half of a rate's 95 % interval in percent of the rate, for a column headed with ±; or a dash."""
    margin = numbers.margin_of_error(None if estimate is None else estimate.half_width_percent)
    return margin.removeprefix("±") or numbers.UNKNOWN


def share_cell(bit_s: float | None, expected: ExpectedRate | None, pass_percent: float) -> str:
    """Return a rate in percent of the expected rate; a percentage of nothing is a dash."""
    share = percent_of(bit_s, None if expected is None else expected.bit_s)
    return numbers.UNKNOWN if share is None else numbers.percent(share, mark=pass_percent)


def _rate_and_margin(measured: "Measurement | None") -> tuple[str, str]:
    if measured is None:
        return numbers.UNKNOWN, numbers.UNKNOWN
    return numbers.mbit(measured.bit_s), margin_cell(measured.estimate)


def _source_cell(expected: ExpectedRate | None) -> str:
    return "no expected rate" if expected is None else f"{expected.basis}: {numbers.sanitize(expected.source)}"
