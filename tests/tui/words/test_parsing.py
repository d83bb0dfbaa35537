"""Typed values: windows, durations, pass marks, peers, and the errors of wrong ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.peer import Peer, SshSettings
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.words import parsing
from linkgauge.tui.words.parsing import line_rate_bit_s, resolve_language

ABSURD = ["", " ", "-1", "nan", "inf", "-inf", "1e400", "0x10", "1_000", "½", "٣", "9" * 5_000, "1\n2", "ten"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", None),
        ("AUTO", None),
        ("65536", 65_536),
        ("56K", 57_344),
        ("56k", 57_344),
        ("64KiB", 65_536),
        ("64KB", 65_536),
        ("1M", 1_048_576),
        ("1.5M", 1_572_864),
        ("1 GiB", 1 << 30),
    ],
)
def test_windows_are_read_as_people_write_them(text: str, expected: int | None) -> None:
    """K, M and G are powers of 1,024, with or without iB."""
    assert parsing.window_bytes(text) == expected


@pytest.mark.parametrize("text", [*ABSURD, "56T", "K", "1.0000000001K", "0.3"])
def test_an_invalid_window_names_its_value_and_the_allowed_range(text: str) -> None:
    """The error is a PlanError of the window."""
    with pytest.raises(PlanError, match="window") as caught:
        parsing.window_bytes(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", 10 * SECOND_NS),
        ("1.5", 1_500_000_000),
        (".5", SECOND_NS // 2),
        ("10s", 10 * SECOND_NS),
        ("2m", 120 * SECOND_NS),
        ("2 min", 120 * SECOND_NS),
        ("1h", 3_600 * SECOND_NS),
        ("750ms", 750_000_000),
        ("0.1", 100_000_000),
        ("none", None),
        ("until stopped", None),
    ],
)
def test_durations_are_read_exactly(text: str, expected: int | None) -> None:
    """Nanoseconds come from decimal digits, not from a binary fraction."""
    assert parsing.duration_ns(text) == expected


@pytest.mark.parametrize("text", [*ABSURD, "10 parsecs", "1:30", "--"])
def test_a_duration_that_cannot_be_is_a_plan_error(text: str) -> None:
    """No text makes another error, or a number without an end."""
    with pytest.raises(PlanError, match="duration"):
        parsing.duration_ns(text)


@pytest.mark.parametrize(("text", "expected"), [("95", 95.0), ("97.5", 97.5), ("90%", 90.0), ("100", 100.0)])
def test_pass_marks_are_percents(text: str, expected: float) -> None:
    """With or without the sign."""
    assert parsing.pass_percent(text) == expected


@pytest.mark.parametrize("text", [*ABSURD, "0", "100.1", "9500"])
def test_a_pass_mark_outside_of_0_to_100_is_refused(text: str) -> None:
    """A mark that no rate can reach, or that every rate reaches, is a slip."""
    with pytest.raises(PlanError, match="pass mark"):
        parsing.pass_percent(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db-02", Peer("db-02", 5820)),
        ("db-02:99", Peer("db-02", 99)),
        ("[::1]:99", Peer("::1", 99)),
        ("fe80::1%eth0", Peer("fe80::1%eth0", 5820)),
        ("[fe80::1%br-lan]:99", Peer("fe80::1%br-lan", 99)),
        ("loopback", Peer("loopback")),
    ],
)
def test_peers_are_hosts_with_or_without_a_port(text: str, expected: Peer) -> None:
    """An IPv6 address with a port stands in brackets."""
    assert parsing.peer(text) == expected


def test_a_peer_may_be_started_by_ssh() -> None:
    """Its port is ssh's own."""
    assert parsing.peer("SSH://me@db-02:2222") == Peer("db-02", ssh=SshSettings("me", 2222))


@pytest.mark.parametrize(
    "text", ["", "http://db-02/", "db-02:0", "db-02:65536", "db-02:http", "[::1", "[::1]99", "a b", "db-02:-1"]
)
def test_a_peer_that_cannot_be_is_a_plan_error(text: str) -> None:
    """Ports out of range and web addresses among them."""
    with pytest.raises(PlanError):
        parsing.peer(text)


@given(st.text(max_size=40))
def test_no_text_raises_anything_but_a_plan_error(text: str) -> None:
    """Whatever is typed."""
    for read in (parsing.window_bytes, parsing.duration_ns, parsing.pass_percent, parsing.peer, parsing.sessions):
        try:
            read(text)
        except PlanError as error:
            assert str(error).isprintable()  # noqa: PT017 - most texts raise, a few do not


def test_a_precision_is_percents_of_the_mean() -> None:
    """From a hundredth to a half."""
    assert [parsing.ci_percent(text) for text in ("1%", "0.5", "10 %")] == [1.0, 0.5, 10.0]
    for text in (*ABSURD, "0", "51"):
        with pytest.raises(PlanError, match="until-ci"):
            parsing.ci_percent(text)


K = 1024


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("16K..128K", (16 * K, 32 * K, 64 * K, 128 * K)),
        ("16K..100K", (16 * K, 32 * K, 64 * K, 100 * K)),
        ("auto,64K", (None, 64 * K)),
        ("4K..16K/4K", (4 * K, 8 * K, 12 * K, 16 * K)),
        ("4K,4K", (4 * K,)),
    ],
)
def test_windows_are_read_with_ranges_that_double_or_add(text: str, values: tuple[int | None, ...]) -> None:
    """The last value is always among them."""
    assert parsing.window_values(text) == values


def test_sessions_messages_and_directions_are_read() -> None:
    """Numbers, sizes and words."""
    assert parsing.session_values("1,2,5,10") == (1, 2, 5, 10)
    assert parsing.session_values("1..4/1") == (1, 2, 3, 4)
    assert parsing.message_values("512..2K/512") == (512, 1024, 1536, 2048)
    assert parsing.direction_values("out, in") == (Direction.OUT, Direction.IN)


@pytest.mark.parametrize(
    "text", ["", "16K..", "..4M", "4M..16K", "16K..4M/0", "auto..4M", "64..16M/1", "1..2..3", "x"]
)
def test_impossible_ranges_are_refused_with_the_reason(text: str) -> None:
    """With what was given, and never with a million values."""
    with pytest.raises(PlanError):
        parsing.window_values(text)
    with pytest.raises(PlanError):
        parsing.direction_values(text)


@pytest.mark.parametrize(
    ("text", "bit_s"),
    [
        ("2.5G", 2_500_000_000),
        ("100M", 100_000_000),
        ("10Gb", 10_000_000_000),
        ("10g", 10_000_000_000),
        (" 622.08 Mbit/s ", 622_080_000),
        ("1Gbps", 1_000_000_000),
        ("64kbit", 64_000),
        ("1.6T", 1_600_000_000_000),
    ],
)
def test_a_line_rate_is_bits_a_second_in_powers_of_1000(text: str, bit_s: int) -> None:
    """As every data sheet has it."""
    assert line_rate_bit_s(text) == bit_s


@pytest.mark.parametrize(
    "text", ["", "fast", "10", "10GB", "-1G", "0G", "100T", "1e9", "1GiB", "0.0000001G", "9" * 50 + "G", "１G"]
)
def test_an_invalid_line_rate_is_refused_with_an_example(text: str) -> None:
    """A bare number is refused as well: 10 would be ten bits a second."""
    with pytest.raises(PlanError, match=r"line rate .* 2\.5G"):
        line_rate_bit_s(text)


@pytest.mark.parametrize(
    ("environment", "named_in"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LC_MESSAGES": "ja_JP.eucJP", "LANG": "de_DE.UTF-8"}, "ja"),
        ({"LC_ALL": "C.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8", "LANG": "ja_JP.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "jam_JM.UTF-8"}, "en"),
        ({"LC_CTYPE": "ja_JP.UTF-8"}, "en"),
    ],
)
def test_the_locale_says_which_language_presets_are_named_in(environment: dict[str, str], named_in: str) -> None:
    """The first of LC_ALL, LC_MESSAGES and LANG that is set counts; an empty one is not set."""
    assert resolve_language(None, environment) == named_in


@pytest.mark.parametrize(("language", "named_in"), [("en", "en"), ("ja", "ja"), ("JA", "ja")])
def test_a_requested_language_takes_precedence_over_the_locale(language: str, named_in: str) -> None:
    """In letters of any size."""
    assert resolve_language(language, {"LC_ALL": "ja_JP.UTF-8"}) == named_in


@pytest.mark.parametrize("language", ["", "de", "ja_JP"])
def test_a_language_without_names_is_refused(language: str) -> None:
    """With those that there are."""
    with pytest.raises(PlanError, match="en or ja"):
        resolve_language(language, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("100M", 10**8),
        ("2.5G", 25 * 10**8),
        ("expected", "expected"),
        (" Search ", "search"),
        ("MAX", "max"),
        ("flood", "flood"),
    ],
)
def test_rates_of_datagrams_are_numbers_or_words(text: str, expected: int | str) -> None:
    """Words in upper or lower case; numbers as for a line rate."""
    assert parsing.sending_rate(text) == expected


@pytest.mark.parametrize("text", [*ABSURD, "100", "100MB", "fast", "0.5K"])
def test_an_invalid_rate_of_datagrams_names_the_words(text: str) -> None:
    """A number without a letter could be anything."""
    with pytest.raises(PlanError, match="give expected, search, max, flood, or bits a second") as caught:
        parsing.sending_rate(text)
    assert caught.value.field == "rate"


@pytest.mark.parametrize(("text", "expected"), [("auto", None), ("AUTO", None), ("1400", 1_400), ("8K", 8_192)])
def test_datagram_sizes_are_bytes_or_auto(text: str, expected: int | None) -> None:
    """Auto is what the path's MTU holds."""
    assert parsing.datagram_bytes(text) == expected


@pytest.mark.parametrize("text", [*ABSURD, "1T"])
def test_an_invalid_datagram_size_names_the_range(text: str) -> None:
    """From the header of a datagram to the largest of IPv4."""
    with pytest.raises(PlanError, match="give auto, or 24 to 65507 bytes"):
        parsing.datagram_bytes(text)


@pytest.mark.parametrize(("text", "rise"), [("30", 30_000_000), ("0.5ms", 500_000), (" 30 ms ", 30_000_000)])
def test_a_rise_of_latency_is_typed_in_milliseconds(text: str, rise: int) -> None:
    """With the unit or without."""
    assert parsing.rise_ns(text) == rise


@pytest.mark.parametrize(("text", "grade"), [("A+", "A+"), ("b", "B"), (" d ", "D")])
def test_a_grade_may_be_typed_small(text: str, grade: str) -> None:
    """The last one, which everything passes, is none to ask for."""
    assert parsing.grade(text) == grade
    with pytest.raises(PlanError, match=r"give one of A\+, A, B, C, D"):
        parsing.grade("F")


def test_the_address_of_metrics_is_of_this_host_alone_where_only_a_port_is_given() -> None:
    """Every address has to be asked for by name."""
    assert parsing.metrics_address("9820") == ("127.0.0.1", 9820)
    assert parsing.metrics_address("0.0.0.0:0") == ("0.0.0.0", 0)  # noqa: S104
    assert parsing.metrics_address("[2001:db8::7]:9820") == ("2001:db8::7", 9820)
    for text in (":9820", "::1:9820", "[]:1", "db-1:", "db-1:70000", "db 1:80", ""):
        with pytest.raises(PlanError, match="give ADDR:PORT"):
            parsing.metrics_address(text)
