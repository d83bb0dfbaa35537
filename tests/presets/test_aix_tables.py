"""The AIX presets against the project's own copy of the document's two tables."""

import csv
from pathlib import Path

import pytest
from linkgauge.engine.model.plan import Direction, Settings
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation

TABLES = Path(__file__).with_name("tables")
COLUMNS = ("payload_mbit_s", "payload_mib_s", "peak_mbit_s", "peak_mib_s")


def printed_numbers() -> dict[tuple[str, str, str], float]:
    """Every number of both tables, by table, row and column."""
    with (TABLES / "aix.csv").open(encoding="utf-8", newline="") as handle:
        return {
            (row["table"], row["network_type"], column): float(row[column])
            for row in csv.DictReader(handle)
            for column in COLUMNS
            if row[column]
        }


def test_the_catalogue_has_every_number_of_both_tables_and_no_other() -> None:
    """Number by number, none missing, none wrong, none invented, none twice."""
    facts = [f for p in load_catalog().presets for f in p.document_values if f.source == "aix"]
    assert {(f.table, f.row, f.column): f.value for f in facts} == printed_numbers()
    assert len(facts) == len(printed_numbers())


def test_the_thirteen_network_types_have_their_ids_in_the_order_of_the_document() -> None:
    """Others name presets by these ids."""
    ids = [p.id for p in load_catalog().presets if p.source.id == "aix"]
    assert ids == [
        *("10mb-hd", "10mb-fd", "100mb-hd", "100mb-fd", "gbe-fd-1500", "gbe-fd-9000", "10gbe-fd-1500"),
        *("10gbe-fd-9000", "fddi-4352", "atm155-1500", "atm155-9180", "atm622-1500", "atm622-9180"),
    ]


def half_units(value: float) -> float:
    """Half a unit of the last digit that a number prints."""
    text = f"{value:g}"
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def test_every_pair_of_mb_and_megabytes_that_disagrees_beyond_rounding_is_marked() -> None:
    """A slip is found by arithmetic, not by eye: either number of such a pair bears the mark."""
    numbers = printed_numbers()
    marked = {
        (f.table, f.row, f.column)
        for p in load_catalog().presets
        for f in p.document_values
        if f.source == "aix" and p.erratum_of(f)
    }
    found = set[tuple[str, str, str]]()
    for (table, row, column), mbit in numbers.items():
        if not column.endswith("mbit_s"):
            continue
        other = column.replace("mbit", "mib")
        mib = numbers[table, row, other]
        slack = half_units(mbit) + half_units(mib) * 8.388608
        if abs(mbit - mib * 8.388608) > slack:
            pair = {(table, row, column), (table, row, other)}
            assert len(pair & marked) == 1, pair
            found |= pair & marked
    assert found == marked


@pytest.mark.parametrize(
    ("preset_id", "direction", "sessions", "bit_s", "source"),
    [
        ("gbe-fd-1500", Direction.OUT, 1, 948_000_000, "AIX table 1"),
        ("gbe-fd-1500", Direction.IN, 8, 948_000_000, "AIX table 1"),
        ("gbe-fd-9000", Direction.DUPLEX, 1, 1_936_000_000, "AIX table 2"),
        ("gbe-fd-9000", Direction.DUPLEX, 2, 1_938_000_000, "AIX table 2 (peak)"),
        ("10gbe-fd-1500", Direction.OUT, 1, 7_200_000_000, "AIX table 1"),
        ("10gbe-fd-1500", Direction.OUT, 128, 9_415_000_000, "AIX table 1 (peak)"),
        ("10mb-fd", Direction.OUT, 1, 9_480_000, "AIX table 1"),
        ("fddi-4352", Direction.DUPLEX, 5, 97_000_000, "AIX table 2"),
    ],
)
def test_the_rate_to_expect_is_the_one_the_tables_print(
    preset_id: str, direction: Direction, sessions: int, bit_s: int, source: str
) -> None:
    """One direction has table 1, both have table 2, several sessions the peak where it is printed."""
    got = find_expectation(load_catalog().find(preset_id), Settings(direction, sessions))
    expected = [rate for rate in (got.out, got.in_, got.total) if rate]
    assert [(e.bit_s, e.basis, e.source) for e in expected] == [(bit_s, "documented", source)]


def test_the_slip_of_the_gigabit_duplex_peak_is_judged_by_its_megabytes() -> None:
    """1667 Mb is printed beside 222 MB/s, which is 1862 Mb; the source says so wherever it is shown."""
    got = find_expectation(load_catalog().find("gbe-fd-1500"), Settings(Direction.DUPLEX, 5)).total
    assert got
    assert got.bit_s == 222 * 8 * 1_048_576
    assert "1667 Mb" in got.source
    assert "slip" in got.source


def test_the_slip_of_the_ten_gigabit_jumbo_duplex_rate_is_judged_by_its_megabytes() -> None:
    """18000 Mb is printed beside 2162 MB/s."""
    got = find_expectation(load_catalog().find("10gbe-fd-9000"), Settings(Direction.DUPLEX, 1)).total
    assert got
    assert got.bit_s == 2162 * 8 * 1_048_576
    assert "slip" in got.source
