"""The wire model's arithmetic, step by step."""

from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.sheet import build_sheet

from .sheet_text import lines, section

CATALOG = load_catalog()


def test_ten_gigabit_ethernet_is_derived_step_by_step() -> None:
    """From the MTU to the payload, to the wire, to 9414.8."""
    assert lines(section(build_sheet(CATALOG.find("10gbe-fd-1500")), "computed, one direction")) == [
        "largest IP packet (MTU) | 1500 bytes",
        "− IPv4 header | 20 bytes",
        "− TCP header | 20 bytes",
        "− TCP timestamps | 12 bytes",
        "payload of a packet | 1448 bytes",
        "largest IP packet (MTU) | 1500 bytes",
        "+ preamble and start of frame | 8 bytes",
        "+ Ethernet header | 14 bytes",
        "+ frame check sequence | 4 bytes",
        "+ gap between frames | 12 bytes",
        "packet on the wire | 1538 bytes",
        "with TCP timestamps: 10000 Mb/s × 1448 / 1538 | 9414.8 Mb/s",
        "without TCP timestamps: 10000 Mb/s × 1460 / 1538 | 9492.8 Mb/s",
    ]


def test_atm_is_derived_cell_by_cell_with_and_without_timestamps() -> None:
    """155.52 to 149.76, 192 cells, 134.3 and 134.5."""
    told = lines(section(build_sheet(CATALOG.find("atm155-9180")), "computed, one direction"))
    assert told[:3] == [
        "line rate | 155.52 Mb/s",
        "SONET carries cells in the rest of its frame | × 26/27",
        "rate left for cells | 149.76 Mb/s",
    ]
    assert "+ headers of 192 cells | 960 bytes" in told
    assert told[-2:] == [
        "with TCP timestamps: 149.76 Mb/s × 9128 / 10176 | 134.3 Mb/s",
        "without TCP timestamps: 149.76 Mb/s × 9140 / 10176 | 134.5 Mb/s",
    ]


def test_both_directions_are_derived_from_the_acknowledgement_on() -> None:
    """The packet is the same as above."""
    assert lines(section(build_sheet(CATALOG.find("gbe-fd-1500")), "computed, both")) == [
        "an acknowledgement for every 2 packets shares the wire",
        "+ IPv4 header | 20 bytes",
        "+ TCP header | 20 bytes",
        "+ padding to the shortest frame | 6 bytes",
        "+ preamble and start of frame | 8 bytes",
        "+ Ethernet header | 14 bytes",
        "+ frame check sequence | 4 bytes",
        "+ gap between frames | 12 bytes",
        "acknowledgement on the wire | 84 bytes",
        "2 × 1000 Mb/s × 2 × 1460 / (2 × 1538 + 84) | 1848.1 Mb/s",
    ]
