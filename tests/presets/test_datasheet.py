"""A preset's sheet: its sections, and the words that tell documented from computed."""

from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.datasheet import Section, Sheet, build_sheet
from linkgauge.presets.expectation import preset_json
from linkgauge.presets.wire import Variant

CATALOG = load_catalog()


def section(of: Sheet, title: str) -> Section:
    """Return the section whose title begins so."""
    return next(s for s in of.sections if s.title.startswith(title))


def lines(of: Section) -> list[str]:
    """Return the lines as text, cells behind labels, no-break spaces as spaces."""
    texts = [" | ".join(filter(None, (line.label, *line.cells))) for line in of.lines]
    return [text.replace("\u00a0", " ") for text in texts]


def test_a_shared_medium_is_derived_once() -> None:
    """Both directions get no more than one."""
    titles = [s.title for s in build_sheet(CATALOG.find("fddi-4352")).sections]
    assert [t for t in titles if t.startswith("computed")] == ["computed, one direction or both"]


def test_an_expected_rate_has_its_source_the_model_and_the_reason_for_a_difference() -> None:
    """Documented and computed, told apart by word."""
    section_lines = lines(section(build_sheet(CATALOG.find("10gbe-fd-9000")), "expected rates"))
    assert section_lines[0] == (
        "one direction, 1 session | 9 631 Mb/s | documented | AIX table 1 | computed 9 900.4 Mb/s, 2.7 % below it"
    )
    assert section_lines[1].startswith("The rate of a single TCP session")
    assert section_lines[2].startswith(
        "one direction, 2 sessions or more | 9 891 Mb/s | documented | AIX table 1 (peak)"
    )


def test_the_sheet_has_transactions_cpu_and_baseline() -> None:
    """z/VM prints them beside throughput."""
    section_lines = lines(section(build_sheet(CATALOG.find("zvm-vctc-1500")), "expected rates"))
    assert section_lines[-1] == (
        "rr, transactions, 10 sessions or more | 1 866.83 transactions/s | documented | "
        "z/VM table 18 (level 430, 10 pairs) | baseline 1 680.3 transactions/s (420 x10) | CPU 99 % | "
        "1.06 cpu_msec/trans"
    )


def test_slips_are_marked_by_word_in_the_table_and_explained_below() -> None:
    """They do not depend on colour."""
    shown = build_sheet(CATALOG.find("gbe-fd-1500"))
    table = section(shown, "AIX table 2, as printed")
    assert [(line.label, line.cells) for line in table.lines if line.kind == "slip"] == [
        ("payload_mib_s", ("215 (error)",)),
        ("peak_mbit_s", ("1\u00a0667 (error)",)),
    ]
    (peak,) = [line for line in section(shown, "errors").lines if line.label == "AIX table 2, peak_mbit_s"]
    assert peak.cells[0] == "1\u00a0667"
    assert "222 MB/s" in peak.cells[1]


def test_a_table_of_many_rows_has_its_rows_side_by_side() -> None:
    """Columns are the many, so they go downwards."""
    table = section(build_sheet(CATALOG.find("zvm-qdio-8992")), "z/VM table 10")
    assert table.lines[0].kind == "head"
    assert table.lines[0].cells == ("420 x1", "420 x5", "420 x10", "430 x1", "430 x5", "430 x10")
    assert table.lines[1].label == "MB/sec"
    assert table.lines[1].cells == ("46.53", "53.15", "49.99", "60.16", "66.67", "61.89")


def test_the_sheet_of_a_tunnel_shows_its_share_of_the_mtu() -> None:
    """The documents' rates are not shown, since they did not measure such a link."""
    shown = build_sheet(CATALOG.find("gbe-fd-1500"), Variant(tunnel="vxlan", ip=6))
    section_lines = lines(section(shown, "computed, one"))
    assert section_lines[0] == "MTU of the link | 1 500 bytes"
    assert "MTU inside the tunnel | 1 450 bytes" in section_lines
    assert "with options | IPv6, VXLAN" in lines(section(shown, "link"))
    assert lines(section(shown, "expected rates")) == [
        "one direction | 903.8 Mb/s | computed | the wire model (IPv6, VXLAN)",
        "both directions, total | 1 724.6 Mb/s | computed | the wire model (IPv6, VXLAN)",
        "udp, one direction | 911.6 Mb/s | computed | the wire model (IPv6, VXLAN)",
        "udp, both directions, total | 1 823.1 Mb/s | computed | the wire model (IPv6, VXLAN)",
        "The document's own rates are for the link without these options.",
    ]


def test_the_rate_of_udp_stands_beside_that_of_tcp_with_its_arithmetic() -> None:
    """Eight bytes of UDP header in place of TCP's, and no acknowledgements."""
    shown = build_sheet(CATALOG.find("gbe-fd-1500"))
    expected = lines(section(shown, "expected rates"))
    assert "udp, one direction | 957.1 Mb/s | computed | the wire model" in expected
    assert "udp, both directions, total | 1 914.2 Mb/s | computed | the wire model" in expected
    steps = lines(section(shown, "UDP, computed"))
    assert "− UDP header | 8 bytes" in steps
    assert "payload of a packet | 1 472 bytes" in steps
    assert steps[-1] == "1 000 Mb/s × 1 472 / 1 538 | 957.1 Mb/s"


def test_the_sheet_of_loopback_says_that_it_has_no_target_rate() -> None:
    """An empty section would say nothing to the user."""
    shown = build_sheet(CATALOG.find("loopback"))
    assert lines(section(shown, "expected rates"))[0].startswith("No expected rate")
    assert not any(s.title.startswith("computed") for s in shown.sections)


def test_the_suggested_window_is_on_the_sheet() -> None:
    """HP asks for 56 KB."""
    section_lines = lines(section(build_sheet(CATALOG.find("hp-atm622-clip-9180")), "link"))
    assert "suggested window | 57 344 bytes (56 KB)" in section_lines


def test_the_name_is_japanese_in_japanese() -> None:
    """Its numbers are the same in every language."""
    assert build_sheet(CATALOG.find("10mb-hd"), language="ja").name == "10 Mb イーサネット、半二重"


def test_every_preset_has_a_sheet_without_empty_sections() -> None:
    """Whatever it lacks."""
    for preset in CATALOG.presets:
        shown = build_sheet(preset)
        assert shown.sections
        assert all(s.lines for s in shown.sections)


def test_ten_gigabit_ethernet_is_derived_step_by_step() -> None:
    """From the MTU to the payload, to the wire, to 9414.8."""
    assert lines(section(build_sheet(CATALOG.find("10gbe-fd-1500")), "computed, one direction")) == [
        "largest IP packet (MTU) | 1 500 bytes",
        "− IPv4 header | 20 bytes",
        "− TCP header | 20 bytes",
        "− TCP timestamps | 12 bytes",
        "payload of a packet | 1 448 bytes",
        "largest IP packet (MTU) | 1 500 bytes",
        "+ preamble and start of frame | 8 bytes",
        "+ Ethernet header | 14 bytes",
        "+ frame check sequence | 4 bytes",
        "+ gap between frames | 12 bytes",
        "packet on the wire | 1 538 bytes",
        "with TCP timestamps: 10 000 Mb/s × 1 448 / 1 538 | 9 414.8 Mb/s",
        "without TCP timestamps: 10 000 Mb/s × 1 460 / 1 538 | 9 492.8 Mb/s",
    ]


def test_atm_is_derived_cell_by_cell_with_and_without_timestamps() -> None:
    """155.52 to 149.76, 192 cells, 134.3 and 134.5."""
    section_lines = lines(section(build_sheet(CATALOG.find("atm155-9180")), "computed, one direction"))
    assert section_lines[:3] == [
        "line rate | 155.52 Mb/s",
        "share of SONET's frame for cells | × 26/27",
        "rate left for cells | 149.76 Mb/s",
    ]
    assert "+ headers of 192 cells | 960 bytes" in section_lines
    assert section_lines[-2:] == [
        "with TCP timestamps: 149.76 Mb/s × 9 128 / 10 176 | 134.3 Mb/s",
        "without TCP timestamps: 149.76 Mb/s × 9 140 / 10 176 | 134.5 Mb/s",
    ]


def test_both_directions_are_derived_from_the_acknowledgement_on() -> None:
    """The packet is the same as above."""
    assert lines(section(build_sheet(CATALOG.find("gbe-fd-1500")), "computed, both")) == [
        "one acknowledgement for every 2 packets shares the line",
        "+ IPv4 header | 20 bytes",
        "+ TCP header | 20 bytes",
        "+ padding to the shortest frame | 6 bytes",
        "+ preamble and start of frame | 8 bytes",
        "+ Ethernet header | 14 bytes",
        "+ frame check sequence | 4 bytes",
        "+ gap between frames | 12 bytes",
        "acknowledgement on the wire | 84 bytes",
        "2 × 1 000 Mb/s × 2 × 1 460 / (2 × 1 538 + 84) | 1 848.1 Mb/s",
    ]


def test_a_rate_of_datagrams_does_not_name_the_options_of_tcp() -> None:
    """They do not change it. The sheet says what the JSON of a preset says."""
    variant = Variant(tcp_option_bytes=8)
    shown = lines(section(build_sheet(CATALOG.find("100mb-fd"), variant), "expected rates"))
    assert "udp, one direction | 95.7 Mb/s | computed | the wire model" in shown
    assert preset_json(CATALOG.find("100mb-fd"), variant)["udp"]["source"] == "the wire model"
