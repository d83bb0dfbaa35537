"""Numbers as text: one function for one kind of value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload, all_workloads
from linkgauge.presets.number_text import format_time
from linkgauge.tui.words import numbers
from linkgauge.tui.words.numbers import RateUnit

SECOND_NS = 1_000_000_000


def spaced(text: str) -> str:
    """Return text with the no-break spaces written as spaces."""
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("bit_s", "text"),
    [
        (None, "– Mb/s"),
        (0, "0 Mb/s"),
        (9_420_000, "9.42 Mb/s"),
        (94_150_000, "94.15 Mb/s"),
        (941_480_000, "941.5 Mb/s"),
        (9_389_000_000, "9 389 Mb/s"),
        (9_999_400_000, "9 999 Mb/s"),
        (10_000_000_000, "10 Gb/s"),
        (34_132_000_000, "34.13 Gb/s"),
        (123_456_000_000, "123.5 Gb/s"),
    ],
)
def test_a_rate_has_four_significant_digits_and_its_unit(bit_s: float | None, text: str) -> None:
    """Mb is 1,000,000 bits; unknown is a dash, zero is zero."""
    assert spaced(numbers.rate(bit_s)) == text


def test_a_rate_of_fixed_width_keeps_its_unit_in_place() -> None:
    """Numbers are right-aligned, so that the unit does not move when digits come and go."""
    texts = [numbers.rate_cell(r, 7) for r in (None, 0, 9.4e6, 941.48e6, 9_389e6, 123_456e6)]
    assert {len(text) for text in texts} == {len("123 456 Mb/s")}


@pytest.mark.parametrize(
    ("units", "top_bit_s", "unit", "number"),
    [
        (RateUnit.MBIT, 9_389e6, "Mb/s", "9 389"),
        (RateUnit.MBIT, 9_999.6e6, "Gb/s", "10.00"),
        (RateUnit.MBIT, 34_132e6, "Gb/s", "34.13"),
        (RateUnit.MIB, 34_132e6, "MiB/s", "4 069"),
    ],
)
def test_a_gauge_shows_gigabits_from_10_000_mb_s_on(
    units: RateUnit, top_bit_s: float, unit: str, number: str
) -> None:
    """Its highest rate decides, so that its unit does not change back and forth."""
    scale = numbers.rate_scale(units, top_bit_s)
    assert (scale.unit, spaced(scale.number(top_bit_s))) == (unit, number)


@pytest.mark.parametrize(
    ("bit_s", "text"),
    [(None, "– MiB/s"), (8_388_608, "1.00 MiB/s"), (941_480_000, "112.2 MiB/s"), (9_389e6, "1 119 MiB/s")],
)
def test_a_rate_in_mib_counts_1048576_bytes(bit_s: float | None, text: str) -> None:
    """MiB/s are binary, as in the table of words."""
    assert spaced(numbers.rate_with_unit(bit_s, numbers.RateUnit.MIB)) == text


def test_percents_keep_their_width_and_unknown_is_a_dash() -> None:
    """A percentage of nothing is nothing."""
    assert spaced(numbers.percent(99.72)) == "99.7 %"
    assert spaced(numbers.percent(94.96)) == "95.0 %"
    assert spaced(numbers.percent(94.96, mark=95.0)) == "94.9 %"
    assert spaced(numbers.percent(92.47, mark=95.0)) == "92.5 %"
    assert spaced(numbers.percent(None)) == "– %"
    assert spaced(numbers.percent(5, places=0, width=3)) == "  5 %"


@pytest.mark.parametrize(
    ("window_bytes", "text"),
    [(None, "auto"), (57_344, "56K"), (65_535, "65535"), (4_194_304, "4M"), (1 << 30, "1G"), (2_048, "2K")],
)
def test_a_window_is_written_as_it_is_typed(window_bytes: int | None, text: str) -> None:
    """What is on the screen can be given on the command line."""
    assert numbers.window(window_bytes) == text


@given(st.integers(min_value=0, max_value=1 << 50))
def test_a_size_never_takes_more_than_five_cells(value: int) -> None:
    """The column of the session table is five cells wide."""
    assert len(numbers.size(value)) <= 5


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (1_023, "1023 B"), (1_342_177_280, "1.25 GiB"), (1 << 45, "32.0 TiB")],
)
def test_an_amount_of_payload_has_a_binary_unit(value: int | None, text: str) -> None:
    """KiB, MiB, GiB, TiB."""
    assert spaced(numbers.payload(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "until stopped"), (0.5, "0.5 s"), (30, "30 s"), (60, "60 s"), (300, "5 min"), (150, "150 s")],
)
def test_a_duration_is_in_seconds_until_whole_minutes_read_better(seconds: float | None, text: str) -> None:
    """A minute is still 60 s, as on the command line."""
    assert spaced(numbers.duration(None if seconds is None else int(seconds * SECOND_NS))) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "--:--"), (0, "00:00"), (12.9, "00:12"), (754, "12:34"), (3_723, "1:02:03")]
)
def test_the_stopwatch_shows_whole_seconds(seconds: float | None, text: str) -> None:
    """Seconds that have passed, not rounded up."""
    assert numbers.clock(None if seconds is None else int(seconds * SECOND_NS)) == text


@pytest.mark.parametrize("value_us", [0, 4, 99, 100, 273, 999, 12_340, 2_500_000])
def test_a_round_trip_and_a_latency_are_written_alike(value_us: int) -> None:
    """They stand beside each other: 0.26 ms beside 273 µs would look like another order of magnitude."""
    assert numbers.round_trip(value_us) == numbers.latency(1_000 * value_us)
    sentence = format_time(value_us)
    assert float(sentence.split()[0]) == float(numbers.round_trip(value_us).split()[0])
    assert sentence.split()[1] == numbers.round_trip(value_us).split()[1]


def test_counts_and_costs_have_their_units() -> None:
    """Singular and plural, groups of three, unknown is a dash."""
    assert spaced(numbers.sessions(1)) == "1 session"
    assert spaced(numbers.sessions(5)) == "5 sessions"
    assert spaced(numbers.quantity(1_000, "segment")) == "1 000 segments"
    assert spaced(numbers.count(None)) == "–"
    assert spaced(numbers.cpu_cost(0.314)) == "0.31 ms/MiB"
    assert spaced(numbers.cpu_cost(None)) == "– ms/MiB"


def test_a_change_names_what_changed_and_nothing_else() -> None:
    """The words beside the vertical line in the plot."""
    before = Settings()
    assert numbers.settings_change(before, before) == ""
    assert spaced(numbers.settings_change(before, before.with_changes(sessions=5))) == "5 sessions"
    after = Settings(Direction.DUPLEX, 2, 57_344)
    assert spaced(numbers.settings_change(before, after)) == "duplex, 2 sessions, window 56K"
    assert spaced(numbers.settings(after)) == "duplex, 2 sessions, window 56K"


def test_settings_of_datagrams_have_a_rate_and_a_size_in_place_of_a_window() -> None:
    """Without a rate the receiver decides, and without a size the path does."""
    settings = Settings(rate_bit_s=100_000_000, datagram_bytes=1_472)
    assert spaced(numbers.settings(settings, Workload.UDP)) == "out, 1 session, 100 Mb/s, 1 472-byte datagrams"
    plain = "out, 1 session, as fast as the receiver takes it, datagram size auto"
    assert spaced(numbers.settings(Settings(), Workload.UDP)) == plain
    assert spaced(numbers.settings_change(Settings(), settings)) == "100 Mb/s, 1 472-byte datagrams"
    search = Settings(rate_bit_s=20_000_000, searches_rate=True)
    assert spaced(numbers.settings_change(search, settings)) == "100 Mb/s, 1 472-byte datagrams"
    assert spaced(numbers.settings_change(settings, search)) == "search from 20 Mb/s, datagram size auto"
    doubled = settings.with_changes(rate_bit_s=200_000_000)
    assert spaced(numbers.changed_settings([settings, doubled])) == "100 Mb/s → 200 Mb/s"
    small = settings.with_changes(datagram_bytes=64)
    assert spaced(numbers.changed_settings([settings, small])) == "datagram size 1472 → 64"


def test_an_expected_rate_says_where_it_comes_from() -> None:
    """Documented or computed, and by whom."""
    assert numbers.expected_rate(None) == "no expected rate"
    text = numbers.expected_rate(ExpectedRate(9_415_000_000, "documented", "AIX table 1"))
    assert spaced(text) == "9 415 Mb/s (documented: AIX table 1)"


def test_every_reason_and_verdict_has_words() -> None:
    """No end of a run is without a word, and each verdict has a mark of its own."""
    assert all(numbers.reason(reason) for reason in Reason)
    assert numbers.verdict("another") == numbers.UNKNOWN
    marks = {numbers.verdict(word)[0] for word in ("pass", "short", "fail", "none")}
    assert len(marks) == 4


def test_text_of_a_peer_cannot_steer_the_terminal() -> None:
    """Control characters, escape sequences and text direction marks become spaces."""
    assert numbers.sanitize("db\x1b[31m-02\n\u202eevil") == "db [31m-02  evil"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"),
        (1_024, "1.02 µs"),
        (17_792, "17.8 µs"),
        (999_400, "999 µs"),
        (1_250_000, "1.25 ms"),
        (2_000_000_000, "2.00 s"),
    ],
)
def test_latency_has_three_digits_and_the_unit_that_fits(ns: int | None, text: str) -> None:
    """From microseconds to seconds."""
    assert spaced(numbers.latency(ns)) == text


def test_a_workload_is_shown_with_its_sizes() -> None:
    """A stream has none. If each transaction has its own connection, the words name the end that closes it."""
    spaced_texts = [spaced(numbers.workload(Plan(workload=workload))) for workload in all_workloads()]
    assert spaced_texts == [
        "stream",
        "rr 200/1 000 bytes",
        "crr 64/8 192 bytes, closed by the answering end",
        "fetch 20/20 000 000 bytes",
        "udp",
    ]
    assert "4 in flight" in numbers.workload(Plan(workload=Workload.RR, burst=4))


def test_transactions_keep_four_digits() -> None:
    """Small rates have decimals, large ones groups."""
    spaced_texts = [spaced(numbers.transactions(rate)) for rate in (None, 7.5, 123.45, 54_320.9)]
    assert spaced_texts == ["– trans/s", "7.50 trans/s", "123.5 trans/s", "54 321 trans/s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (40, "40 s"), (60, "1 min"), (112, "1 min 52 s"), (3_600, "1 h"), (7_531, "2 h 5 min")],
)
def test_an_estimated_time_has_its_units(seconds: int, text: str) -> None:
    """Digits with a colon could be hours or minutes."""
    assert spaced(numbers.rough_time(seconds * SECOND_NS)) == text


@pytest.mark.parametrize(
    ("bit_s", "text", "cell", "scaled"),
    [
        (936, "0.000936", "   0.94 kb/s", "0.94 kb/s"),
        (9_600, "0.00960", "   9.60 kb/s", "9.60 kb/s"),
        (64_120, "0.0641", "  64.12 kb/s", "64.12 kb/s"),
        (500_000, "0.50", "  500.0 kb/s", "500.0 kb/s"),
        (1_500_000, "1.50", "   1.50 Mb/s", "1.50 Mb/s"),
        (0, "0.00", "   0.00 Mb/s", "0.00 Mb/s"),
    ],
)
def test_a_low_rate_is_in_kbit_or_keeps_its_digits(bit_s: float, text: str, cell: str, scaled: str) -> None:
    """In a column of Mb/s, 9.6 kb/s does not become 0.01."""
    assert numbers.mbit(bit_s) == text
    assert numbers.rate_cell(bit_s, 7).replace(numbers.NBSP, " ") == cell
    scale = numbers.rate_scale(numbers.RateUnit.MBIT, bit_s)
    assert f"{scale.number(bit_s)} {scale.unit}" == scaled
