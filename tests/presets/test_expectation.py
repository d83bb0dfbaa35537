"""The expected rates of a run, and the JSON of a preset."""

import json
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation, limit_expectation, preset_json
from linkgauge.presets.preset import DocumentRow, DocumentTable, LinkSpec, Preset, Rate, Source
from linkgauge.presets.wire import Variant, derive

STAIRS = Preset(
    "stairs",
    "Rates at 1, 5 and 10 sessions",
    "Test",
    Source("s", "the book"),
    LinkSpec("none"),
    tables=(DocumentTable("7", ("mbit_s", "gbit_s", "mib_s"), (DocumentRow("r", (10, 0.5, 0.7)),)),),
    rates=(
        Rate("simplex", "7", "mbit_s"),
        Rate("out", "7", "gbit_s", sessions=5, note="five"),
        Rate("in", "7", "mib_s", sessions=10),
        Rate("in", "7", "gbit_s", workload="fetch"),
    ),
)


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("sessions", [1, 128])
def test_loopback_has_no_expected_rate(direction: Direction, sessions: int) -> None:
    """No document has a rate of a machine with itself."""
    assert find_expectation(load_catalog().find("loopback"), Settings(direction, sessions)) == Expectation()


@pytest.mark.parametrize(
    ("direction", "sessions", "bit_s"),
    [
        (Direction.OUT, 1, 10_000_000),
        (Direction.OUT, 4, 10_000_000),
        (Direction.OUT, 5, 500_000_000),
        (Direction.OUT, 128, 500_000_000),
        (Direction.IN, 5, 10_000_000),
        (Direction.IN, 10, 5_872_026),
    ],
)
def test_a_rate_holds_from_its_number_of_sessions_up(direction: Direction, sessions: int, bit_s: int) -> None:
    """Between two printed numbers the lower one's rate holds."""
    got = find_expectation(STAIRS, Settings(direction, sessions))
    rate = got.out or got.in_
    assert rate
    assert rate.bit_s == bit_s


def test_only_the_direction_of_the_run_has_an_expected_rate() -> None:
    """An out run expects nothing of in, and a duplex run only a total."""
    for preset in load_catalog().presets:
        if preset.rates:
            out = find_expectation(preset, Settings(Direction.OUT))
            both = find_expectation(preset, Settings(Direction.DUPLEX))
            assert out.in_ is out.total is both.out is both.in_ is None


def test_a_table_without_a_name_is_called_by_its_document() -> None:
    """A user's file need not name its tables."""
    got = find_expectation(STAIRS, Settings(Direction.OUT, 5)).out
    assert got
    assert got.source == "the book, table 7 (five)"


def test_a_rate_of_another_workload_is_not_expected() -> None:
    """A documented rate of fetch does not hold for streams, nor the other way round."""
    settings = Settings(Direction.IN)
    assert find_expectation(STAIRS, settings, Workload.FETCH).in_ != find_expectation(STAIRS, settings).in_


def test_every_preset_has_a_json_document() -> None:
    """Plain JSON values, keys that name their units, unknown as null."""
    documents: list[dict[str, Any]] = json.loads(json.dumps([preset_json(p) for p in load_catalog().presets]))
    by_id = {preset["id"]: preset for preset in documents}
    loopback = by_id["loopback"]
    assert loopback["link"]["line_rate_bit_s"] is None
    assert loopback["facts"] == loopback["expectations"] == loopback["marks"] == []
    gigabit = by_id["gbe-fd-1500"]
    assert gigabit["link"] == {
        "framing": "ethernet",
        "line_rate_bit_s": 1_000_000_000,
        "mtu_bytes": 1500,
        "duplex": "full",
        "timestamps": False,
        "tunnel": None,
    }
    assert gigabit["expectations"][0] == {
        "workload": "stream",
        "flow": "simplex",
        "sessions_from": 1,
        "bit_s": 948_000_000,
        "transactions_s": None,
        "basis": "documented",
        "source": "AIX table 1",
        "computed_bit_s": 949_284_785,
        "why": None,
        "cpu_percent": None,
        "cpu_msec_per_mib": None,
        "cpu_msec_per_transaction": None,
        "baseline": None,
    }
    assert gigabit["facts"][0] == {
        "source": "aix",
        "table": "simplex",
        "row": "1000 Mb Ethernet, Full Duplex, MTU 1500",
        "column": "payload_mbit_s",
        "value": 948.0,
    }
    assert {(m["table"], m["column"], m["value"]) for m in gigabit["marks"]} == {
        ("duplex", "peak_mbit_s", 1667.0),
        ("duplex", "payload_mib_s", 215.0),
    }


def test_a_link_with_options_has_a_computed_rate() -> None:
    """The document measured IPv4 without tags; its rates say nothing of another link."""
    preset = load_catalog().find("gbe-fd-1500")
    got = find_expectation(preset, Settings(Direction.OUT), variant=Variant(ip=6, vlan_tags=1)).out
    assert got
    assert (got.bit_s, got.basis) == (933_852_140, "computed")
    assert got.source == "the wire model (IPv6, VLAN)"


def test_options_that_change_nothing_leave_the_documented_rate() -> None:
    """A line rate given for a link that has just this one."""
    preset = load_catalog().find("gbe-fd-1500")
    same = Variant(line_rate_bit_s=1_000_000_000, timestamps=False)
    assert find_expectation(preset, Settings(), variant=same) == find_expectation(preset, Settings())


def test_half_duplex_and_links_without_a_line_have_no_computed_rate() -> None:
    """No model has the wait for the wire, or memory."""
    catalog = load_catalog()
    variant = Variant(vlan_tags=1)
    assert find_expectation(catalog.find("10mb-hd"), Settings(), variant=variant) == Expectation()
    for preset_id in ("loopback", "lpar-1500", "zvm-vctc-1500"):
        expectation = find_expectation(catalog.find(preset_id), Settings(), variant=Variant(timestamps=True))
        assert expectation == Expectation()


@pytest.mark.parametrize("preset_id", ["10mb-hd", "fddi-4352"])
def test_a_documented_rate_without_a_model_is_scaled_to_the_ip_version_of_the_connection(preset_id: str) -> None:
    """The basis says so: the document measured IPv4."""
    preset = load_catalog().find(preset_id)
    four = find_expectation(preset, Settings(), ip_version=4).out
    six = find_expectation(preset, Settings(), ip_version=6).out
    assert four
    assert six
    assert 0.95 * four.bit_s < six.bit_s < four.bit_s
    assert six.source == f"{four.source}, scaled from IPv4 to IPv6"


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_the_ip_version_of_the_connection_decides_what_a_link_carries(workload: Workload) -> None:
    """It has the effect of the option that expects IPv6. The document measured IPv4."""
    preset, settings = load_catalog().find("gbe-fd-1500"), Settings()
    plain = find_expectation(preset, settings, workload)
    expected = find_expectation(preset, settings, workload, variant=Variant(ip=6))
    assert find_expectation(preset, settings, workload, ip_version=6) == expected != plain
    assert find_expectation(preset, settings, workload, ip_version=4) == plain
    assert expected.out
    assert "IPv6" in expected.out.source


def test_transactions_over_ipv6_have_the_documents_rate_and_say_so() -> None:
    """A larger header costs them next to nothing."""
    preset = load_catalog().find("zvm-vctc-1500")
    exchanges = [each for each in (Workload.RR, Workload.CRR) if find_expectation(preset, Settings(), each).out]
    assert exchanges
    for workload in exchanges:
        six = find_expectation(preset, Settings(), workload, ip_version=6).out
        assert six
        assert six.source.endswith(", measured over IPv4")


def test_ipv6_that_is_expected_and_not_in_use_is_an_error() -> None:
    """A run is not judged by headers that its packets do not have."""
    with pytest.raises(PlanError, match=r"6 \(--ipv6\) is invalid; the connection uses IPv4"):
        find_expectation(load_catalog().find("gbe-fd-1500"), Settings(), variant=Variant(ip=6), ip_version=4)


def test_the_capacity_of_a_link_is_known_if_it_has_a_line() -> None:
    """A documented rate may be a host's, and another host's be more: what the wire carries is a bound for all."""
    catalog = load_catalog()
    rates = [
        find_expectation(catalog.find(name), Settings()).out for name in ("gbe-fd-1500", "25gbe-9000", "lpar-1500")
    ]
    assert [None if rate is None else rate.most_bit_s for rate in rates] == [949_284_785, 24_751_051_118, None]
    gigabit = rates[0]
    assert gigabit
    assert [gigabit.is_exceeded_by(bit_s) for bit_s in (None, 1e9, 1.2e9, 40e9)] == [False, False, True, True]


def test_a_modern_link_has_a_computed_rate_in_every_direction() -> None:
    """Whatever the number of sessions."""
    preset = load_catalog().find("25gbe-9000")
    out = find_expectation(preset, Settings(Direction.OUT, 8)).out
    both = find_expectation(preset, Settings(Direction.DUPLEX, 8)).total
    assert out
    assert both
    assert (out.bit_s, out.basis, out.source) == (24_751_051_118, "computed", "the wire model")
    assert out.bit_s < both.bit_s < 2 * out.bit_s


@pytest.mark.parametrize(("sessions", "transactions_s"), [(1, 63.61), (4, 63.61), (5, 75.31), (128, 73.15)])
def test_transactions_are_expected_as_the_document_prints_them(sessions: int, transactions_s: float) -> None:
    """By pairs, for either end as client, with their payload. No document has rates with clients at both ends."""
    preset = load_catalog().find("zvm-hipersockets-1500")
    for direction in (Direction.OUT, Direction.IN):
        got = find_expectation(preset, Settings(direction, sessions), Workload.CRR)
        direction_rate = got.out or got.in_
        assert direction_rate
        assert direction_rate.transactions_s == transactions_s
        assert direction_rate.bit_s == round(transactions_s * 8_192 * 8)
    assert find_expectation(preset, Settings(Direction.DUPLEX, sessions), Workload.CRR) == Expectation()
    assert find_expectation(preset, Settings(), Workload.CRR, variant=Variant(timestamps=True)) == Expectation()


def test_every_preset_with_a_line_has_a_udp_rate_in_each_direction() -> None:
    """More than TCP's model, since headers are smaller; a half duplex line is divided."""
    for preset in load_catalog().presets:
        out, in_, both = (find_expectation(preset, Settings(direction, 8), Workload.UDP) for direction in Direction)
        if preset.link.framing == "none":
            assert (out, in_, both) == (Expectation(), Expectation(), Expectation())
            return
        derived = derive(preset.link, "simplex")
        assert derived
        assert out.out
        assert (out.out.basis, out.out.source) == ("computed", "the wire model")
        assert derived.bit_s < out.out.bit_s < (preset.link.line_rate_bit_s or 0)
        assert (out.out, out.in_, out.total) == (in_.in_, in_.out, in_.total)
        assert both.out
        assert both.in_ == both.out
        assert both.total
        parts = 1 if preset.link.duplex == "half" else 2
        assert abs(both.total.bit_s - out.out.bit_s * parts) <= 1
        assert abs(both.total.bit_s - both.out.bit_s * 2) <= 1


@pytest.mark.parametrize("direction", list(Direction))
def test_the_udp_rate_is_that_of_the_datagrams_that_are_sent(direction: Direction) -> None:
    """64 bytes take 130 on the line; what would need fragments has no expected rate."""
    preset = load_catalog().find("1gbe-1500")
    small = find_expectation(preset, Settings(direction, datagram_bytes=64), Workload.UDP)
    assert small == find_expectation(preset, Settings(direction), Workload.UDP, datagram_bytes=64)
    rate = small.out or small.in_
    assert rate
    assert rate.bit_s == rate.most_bit_s == round(1e9 * 64 / 130)
    assert find_expectation(preset, Settings(direction), Workload.UDP, datagram_bytes=1473) == Expectation()


def test_the_source_of_a_udp_rate_names_the_options_that_matter_to_it() -> None:
    """Options of TCP do not."""
    preset = load_catalog().find("1gbe-1500")
    for variant, source in (
        (Variant(timestamps=False, tcp_option_bytes=8), "the wire model"),
        (Variant(ip=6, vlan_tags=1, timestamps=True), "the wire model (IPv6, VLAN)"),
    ):
        out = find_expectation(preset, Settings(), Workload.UDP, variant=variant).out
        assert out
        assert out.source == source


def test_programs_find_the_udp_rates_of_a_preset() -> None:
    """Beside the rates of TCP, with the size of the datagrams."""
    assert preset_json(load_catalog().find("gbe-fd-1500"), Variant(vlan_tags=1))["udp"] == {
        "datagram_bytes": 1472,
        "simplex_bit_s": 954_604_410,
        "duplex_bit_s": 1_909_208_820,
        "basis": "computed",
        "source": "the wire model (VLAN)",
    }
    assert preset_json(load_catalog().find("loopback"))["udp"] is None


@pytest.mark.parametrize("direction", list(Direction))
def test_no_more_is_expected_than_the_test_sends(direction: Direction) -> None:
    """Below the link's rate it is the rate of the test. Above it, and in a search, it is the link's."""
    preset = load_catalog().find("1gbe-1500")
    whole = find_expectation(preset, Settings(direction), Workload.UDP)
    slow = find_expectation(preset, Settings(direction, rate_bit_s=10**8), Workload.UDP)
    for flow in direction.flows:
        rate = slow[flow]
        assert rate
        most = whole[flow]
        assert most
        assert (rate.bit_s, rate.most_bit_s) == (10**8, most.most_bit_s)
        assert "the rate that the test sends" in rate.source
    if direction is Direction.DUPLEX:
        assert slow.total
        assert slow.total.bit_s == 2 * 10**8
    assert find_expectation(preset, Settings(direction, rate_bit_s=2 * 10**9), Workload.UDP) == whole
    search = Settings(direction, rate_bit_s=10**8, searches_rate=True)
    assert find_expectation(preset, search, Workload.UDP) == whole


@pytest.mark.parametrize("direction", list(Direction))
def test_a_test_that_sends_less_on_purpose_is_expected_to_reach_that(direction: Direction) -> None:
    """Both directions of a duplex test each send so much. A higher limit changes nothing."""
    full = find_expectation(load_catalog().find("gbe-fd-1500"), Settings(direction))
    limited = limit_expectation(full, 20_000_000)
    rate = limited.out or limited.in_ or limited.total
    assert rate is not None
    assert rate.bit_s == (40_000_000 if direction is Direction.DUPLEX else 20_000_000)
    assert "the rate that the test sends" in rate.source
    assert limit_expectation(full, None) == limit_expectation(full, 10**10) == full
