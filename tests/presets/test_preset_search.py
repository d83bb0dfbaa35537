"""Presets are found by the names that users type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.preset_search import (
    AUTO_SEARCH_TEXT,
    find_presets,
    matches_query,
    search_text,
    unknown_link_hint,
)

PRESETS = load_catalog().presets
MBIT_S = 1_000_000
GBIT_S = 1_000_000_000
UNITS = (
    "g",
    "G",
    "gb",
    "Gb",
    "gbe",
    "GbE",
    "gbit",
    "Gbit/s",
    "gbps",
    "Gb/s",
    "ge",
    "gige",
    "gig",
    "gigabit",
    "gbase-t",
)


def rates(query: str) -> set[int | None]:
    """Return the line rates of the presets that match a query."""
    return {preset.link.line_rate_bit_s for preset in find_presets(PRESETS, query)}


@given(
    space=st.sampled_from(["", " ", "-"]),
    unit=st.sampled_from(UNITS),
    gigabits=st.sampled_from(["1", "2.5", "5", "10", "25", "40", "50", "100", "200", "400", "800"]),
)
def test_a_speed_finds_the_presets_of_just_this_line_rate(gigabits: str, unit: str, space: str) -> None:
    """`5g` is neither 25 nor 2.5 Gb/s."""
    assert rates(f"{gigabits}{space}{unit}") == {int(float(gigabits) * GBIT_S)}


@pytest.mark.parametrize(
    ("query", "rate_bit_s"),
    [
        ("gigabit", GBIT_S),
        ("Gigabit Ethernet", GBIT_S),
        ("gig", GBIT_S),
        ("1000base-t", GBIT_S),
        ("1000 Mb/s", GBIT_S),
        ("1000mbit", GBIT_S),
        ("10 gigabit ethernet", 10 * GBIT_S),
        ("10000m", 10 * GBIT_S),
        ("2,5G", 2_500 * MBIT_S),
        ("2.5gbase-t", 2_500 * MBIT_S),
        ("100m", 100 * MBIT_S),
        ("100mb", 100 * MBIT_S),
        ("100 Mbit/s", 100 * MBIT_S),
        ("100base-tx", 100 * MBIT_S),
        ("fast ethernet", 100 * MBIT_S),
        ("10base-t", 10 * MBIT_S),
        ("10 meg", 10 * MBIT_S),
        ("155m", 155_520_000),
        ("oc-3", 155_520_000),
        ("stm-4", 622_080_000),
        ("１０Ｇ", 10 * GBIT_S),
    ],
)
def test_a_speed_is_known_by_its_usual_names(query: str, rate_bit_s: int) -> None:
    """Units, standards and words, in any case and width."""
    assert rates(query) == {rate_bit_s}


@pytest.mark.parametrize(
    ("query", "preset_ids"),
    [
        ("10g jumbo", {"10gbe-9000", "10gbe-fd-9000", "cloud-10g-8896", "cloud-10g-9001"}),
        ("10 gb 9000", {"10gbe-9000", "10gbe-fd-9000"}),
        ("25gbe 9k", {"25gbe-9000", "cloud-25g-8896", "cloud-25g-9001"}),
        ("100mb hdx ethernet", {"100mb-hd"}),
        ("100 Mb half duplex", {"100mb-hd", "fddi-4352"}),
        ("10mb full-duplex", {"10mb-fd"}),
        ("gcp 10g mtu1460", {"cloud-10g-1460"}),
        ("ec2 100 Gb", {"cloud-100g-9001"}),
        ("wg 1g", {"1gbe-wireguard-1420"}),
        ("dsl 2.5g", {"2.5gbe-pppoe-1492"}),
        ("localhost", {"loopback"}),
        ("oc3 hp lane 4544", {"hp-atm155-lane-4544"}),
        ("1gbe-vx", {"1gbe-vxlan-1450"}),
        ("powervm", {"lpar-1500", "lpar-1500-largesend"}),
        ("no such link", set[str]()),
    ],
)
def test_words_are_looked_up_in_names_aliases_and_ids(query: str, preset_ids: set[str]) -> None:
    """Every word must match."""
    assert {preset.id for preset in find_presets(PRESETS, query)} == preset_ids


def test_every_preset_is_found_by_its_id_and_by_its_name() -> None:
    """A name may be pasted from the list."""
    for preset in PRESETS:
        assert matches_query(search_text(preset), preset.id)
        assert matches_query(search_text(preset), preset.name)
        assert matches_query(search_text(preset, "ja"), preset.name_in("ja"))


def test_an_id_is_found_while_it_is_typed() -> None:
    """The filter of the app searches at every key."""
    texts = [search_text(preset) for preset in PRESETS]
    typed = {preset.id[:end] for preset in PRESETS for end in range(1, len(preset.id))}
    assert [beginning for beginning in typed if not any(matches_query(text, beginning) for text in texts)] == []


@pytest.mark.parametrize("text", ["イーサネット 10 gb", "ＭＴＵ RFC1323", "ETHERNET 10gbe", "aix 10 gb", ""])
def test_a_preset_is_found_by_any_of_its_names(text: str) -> None:
    """English and Japanese, wide letters and narrow ones."""
    assert matches_query(search_text(load_catalog().find("10gbe-fd-1500"), "ja"), text)


def test_a_name_of_another_language_finds_nothing() -> None:
    """`1000 Mb` is the Japanese document's name for 1 Gb."""
    preset = load_catalog().find("gbe-fd-1500")
    assert matches_query(search_text(preset, "ja"), "1000")
    assert not matches_query(search_text(preset), "1000")


def test_a_preset_is_not_found_by_half_of_what_was_typed() -> None:
    """All words must be there."""
    assert not matches_query(search_text(load_catalog().find("10gbe-fd-1500")), "ethernet 9000")


@pytest.mark.parametrize("query", ["auto", "AUTO", "automatic", "detect", "nic"])
def test_the_automatic_choice_is_found_by_its_name(query: str) -> None:
    """A list offers it above the presets."""
    assert matches_query(AUTO_SEARCH_TEXT, query)


@pytest.mark.parametrize("query", ["wifi", "Wi-Fi", "WLAN", "wireless", "802.11ax", "lte"])
def test_a_link_without_a_fixed_rate_gives_a_hint_instead_of_presets(query: str) -> None:
    """A wireless link has no documented rate, and the wire model does not cover it."""
    assert find_presets(PRESETS, query) == ()
    assert "--line-rate" in unknown_link_hint(query)
    assert unknown_link_hint("10g") == ""
