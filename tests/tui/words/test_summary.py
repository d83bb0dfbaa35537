"""Rows of a summary: cells that every printer shows alike."""

from dataclasses import replace

from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.plan import MIB, SECOND_NS, Mode, Plan, Settings
from linkgauge.engine.model.run_end import STILL_RUNNING, EndText, Reason, RunEnd
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import (
    CpuSummary,
    Measurement,
    Period,
    ProbeResult,
    ProbeSummary,
    Summary,
    TcpSummary,
)
from linkgauge.presets.verdict import Verdict
from linkgauge.tui.words import summary as words
from linkgauge.tui.words.table import Table

CPU = CpuSummary(12.5, 97.04, 31.0, 0.314)
TCP = TcpSummary(None, None, None, None, None, None)
EXPECTED = ExpectedRate(941_000_000, "documented", "a\x1btable")
RATE = Measurement(1_176_250_000, 10 * SECOND_NS)  # 941 Mb/s
UNKNOWN = "–"


def summary(out: Measurement | None, in_: Measurement | None = None, **fields: object) -> Summary:
    """Return a summary with these rates."""
    expected = Expectation(out=EXPECTED)
    end = RunEnd(Reason.COMPLETED, "completed after 10 s")
    values = {"periods": (), "tcp": TCP, "warnings": (), "end": end, "plan": Plan()} | fields
    measured = PerDirection(out, in_, out)
    return Summary(measured=measured, expectation=expected, near_cpu=CPU, far_cpu=CPU, **values)


def plain(text: str) -> str:
    """Return text with plain spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def column(table: Table, title: str) -> list[str]:
    """Return the cells of the first column of a title, with plain spaces."""
    at = next(number for number, column in enumerate(table.columns) if column.title == title)
    return [plain(row[at]) for row in table.rows]


def test_a_total_is_a_row_only_where_both_directions_were_measured() -> None:
    """A single direction is its own total."""
    assert column(words.rate_table(summary(RATE), 95), "") == ["out →"]
    assert column(words.rate_table(summary(RATE, RATE), 95), "") == ["out →", "in  ←", "total ⇄"]


def test_a_rate_without_an_expectation_has_dashes_and_no_share() -> None:
    """And the source says so; text of a source is made harmless."""
    table = words.rate_table(summary(RATE, RATE), 95)
    assert column(table, "share")[:2] == ["100.0 %", UNKNOWN]
    assert column(table, "source")[:2] == ["documented: a table", "no expected rate"]
    assert column(table, "expected")[:2] == ["941.0", UNKNOWN]


def test_a_share_just_below_the_pass_mark_looks_short() -> None:
    """94.96 % is not rounded to 95.0 %."""
    assert plain(words.share_cell(94.96, ExpectedRate(100, "computed", ""), 95)) == "94.9 %"
    assert plain(words.share_cell(94.96, ExpectedRate(100, "computed", ""), 90)) == "95.0 %"


def test_a_margin_is_a_dash_where_the_estimate_is_unknown() -> None:
    """A known one is in percent of the rate; the sign is in the heading of its column."""
    assert words.margin_cell(None) == UNKNOWN
    assert plain(words.margin_cell(Estimate(1e9, 1e6, 15.0, 24))).endswith(" %")
    assert "±" not in words.margin_cell(Estimate(1e9, 1e6, 15.0, 24))


def test_a_period_compares_both_directions_with_the_expected_rate() -> None:
    """A duplex period has one rate, the sum of both. While the run goes on, its share stands for the verdict."""
    both = replace(RATE, bytes=2 * RATE.bytes)
    period = Period(Settings(Direction.DUPLEX), Expectation(total=EXPECTED), PerDirection(RATE, RATE, both))
    short = replace(period, measured=PerDirection(None, None, None), expectation=Expectation())
    found = summary(RATE, RATE, periods=(period, short))
    table = words.period_table(found, 95)
    assert column(table, "") == ["1. duplex, 1 session, window auto", "2. duplex, 1 session, window auto"]
    assert column(table, "out Mb/s") == ["941.0", UNKNOWN]
    assert column(table, "± 95 %") == [UNKNOWN, UNKNOWN]
    assert column(table, "verdict") == ["✓ PASS 200.0 %", UNKNOWN]
    (average,) = words.period_averages(found, 95, is_over=True)
    assert tuple(map(plain, average)) == ("   1 882 Mb/s", "✓ PASS 200.0 %", "duplex, 1 session, window auto")
    assert plain(words.period_averages(found, 95, is_over=False)[0][1]) == "200.0 %"
    unexpected = summary(RATE, periods=(replace(period, expectation=Expectation()),))
    assert words.period_averages(unexpected, 95, is_over=True)[0][1] == ""


def test_a_state_that_was_not_probed_has_only_unknown_cells() -> None:
    """The other one has its count and its round trip."""
    idle, loaded = words.probe_table(ProbeSummary(None, ProbeResult(20, 2 * SECOND_NS, None, 210))).rows
    assert (idle[0], set(idle[1:])) == ("idle", {UNKNOWN})
    assert (loaded[0], *map(plain, loaded[-2:])) == ("loaded", "210 µs", "20 in 2.0 s")


def test_a_mode_that_nobody_asked_for_is_given_with_its_reason() -> None:
    """One that somebody asked for needs none."""
    chosen = summary(RATE, tcp=replace(TCP, mode=Mode.SENDFILE))
    assert words.mode_text(replace(chosen, plan=Plan(mode=Mode.SENDFILE))) == "sendfile"
    assert words.mode_text(summary(RATE, tcp=replace(TCP, mode=Mode.COPY))) == "copy (automatic)"
    assert words.tcp_text(chosen) == "retransmits unknown, sendfile (automatic: faster than copy in a trial)"


def test_unknown_values_of_tcp_are_left_out() -> None:
    """Only unknown retransmits are named."""
    assert words.tcp_text(summary(RATE)) == "retransmits unknown"
    known = plain(words.tcp_text(summary(RATE, tcp=TcpSummary(1, 210, 1_448, "cubic", 57_344, None))))
    assert known == (
        "1 retransmit, median RTT 210 µs, MSS 1 448, congestion control cubic, window granted 56K local, – remote"
    )


def test_the_metrics_of_rfc_6349_stand_in_one_line() -> None:
    """Those that are known; an efficiency just short of all of it is not rounded to 100."""
    tcp = replace(TCP, mean_rtt_us=32_000.0, min_rtt_us=25_000, efficiency_percent=99.9999)
    assert (
        plain(words.transfer_text(summary(RATE, tcp=tcp))) == "TCP efficiency 99.99 %, buffer delay 7.00 ms (28 %)"
    )
    expected = Expectation(out=replace(EXPECTED, most_bit_s=1_411_500_000))
    periods = (Period(Settings(), expected, PerDirection(RATE, None, RATE)),)
    slow = replace(summary(RATE, periods=periods), expectation=expected)
    assert plain(words.transfer_text(slow)) == "transfer time ratio 1.50"
    assert words.transfer_text(summary(RATE)) == ""


def test_a_run_that_broke_off_has_the_reason_in_place_of_its_verdict() -> None:
    """Only a regular end has a verdict."""
    lost = words.headline(summary(RATE, end=RunEnd(Reason.PEER_LOST, "gone")), Verdict("none", "NO VERDICT: gone"))
    assert (lost.mark, lost.text, lost.is_regular) == ("✗ REMOTE LOST", "gone", False)
    for reason in (Reason.STOPPED, Reason.INTERRUPTED):
        cut = words.headline(summary(RATE, end=RunEnd(reason, "by SIGINT")), Verdict("none", "NO VERDICT: stopped"))
        assert (cut.mark, cut.text) == ("• NO VERDICT", "stopped")
    passed = words.headline(summary(RATE), Verdict("pass", "PASS: all is well"))
    assert (passed.mark, passed.is_regular) == ("✓ PASS", True)


def test_neither_the_verdict_nor_the_end_is_repeated() -> None:
    """The word stands beside the sentence; a detail that begins with the reason stands alone."""
    assert words.verdict_sentence(Verdict("pass", "PASS: all is well")) == "all is well"
    assert words.end_words(summary(RATE).end) == "completed after 10 s"
    assert words.end_words(RunEnd(Reason.COMPLETED, EndText.DURATION_UP)) == "completed"
    assert words.end_words(RunEnd(Reason.PEER_LOST, "gone")) == "remote lost: gone"


def test_the_plan_names_its_limits_of_rate_and_bytes() -> None:
    """A run that ends after a number of bytes is not `until stopped`."""
    limited = summary(None, plan=Plan(duration_ns=None, rate_bit_s=500_000_000, bytes_limit=10 * MIB))
    text = "stream, out, 1 session, window auto, at most 500 Mb/s each way, 10.0 MiB each way"
    assert plain(words.plan_text(limited)) == text


def test_the_plan_of_a_run_says_what_was_changed_during_it() -> None:
    """Its first settings alone would be taken for those of the whole run."""
    first, second = (Settings(sessions=number) for number in (1, 4))
    rates = PerDirection(RATE, None, RATE)
    periods = tuple(Period(settings, Expectation(), rates) for settings in (first, second))
    assert plain(words.plan_text(summary(RATE, periods=periods))).endswith(
        "; changed during the test: 1 → 4 sessions"
    )
    assert "changed" not in words.plan_text(summary(RATE, periods=periods[:1]))


def test_only_this_host_says_that_a_run_is_still_running() -> None:
    """A far end that ends a run with these words has stopped it all the same."""
    assert words.end_words(STILL_RUNNING) == "still running"
    assert (
        words.end_words(RunEnd(Reason.PEER_STOPPED, STILL_RUNNING.detail))
        == "stopped by the remote end: still running"
    )
