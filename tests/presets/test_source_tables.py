"""The catalogue against the project's own copies of the tables of all four documents."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Settings
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation, preset_json
from linkgauge.presets.wire import derive

TABLES = Path(__file__).with_name("tables")
CATALOG = load_catalog()
LARGESEND = "the largesend note on LPARs (on, one stream)"
Printed = Iterator[tuple[tuple[str, str, str, str], float]]


def rows(name: str) -> Iterator[dict[str, str]]:
    """Give the rows of a copied table."""
    with (TABLES / name).open(encoding="utf-8", newline="") as handle:
        yield from csv.DictReader(handle)


def printed_aix() -> Printed:
    """Every number of the AIX document."""
    for row in rows("aix.csv"):
        for column in ("payload_mbit_s", "payload_mib_s", "peak_mbit_s", "peak_mib_s"):
            if row[column]:
                yield ("aix", row["table"], row["network_type"], column), float(row[column])


def printed_hp() -> Printed:
    """Every number of the HP document."""
    for row in rows("hp.csv"):
        for column in ("throughput_mbit_s", "cpu_utilization_percent"):
            interface = f"{row['interface_type']} {row['mtu_bytes']}"
            yield ("hp", row["adapter_mbit"], interface, f"{row['direction']}.{column}"), float(row[column])


def printed_lpar() -> Printed:
    """Every number of the note on LPARs."""
    for row in rows("lpar.csv"):
        yield ("lpar", "largesend", row["largesend"], "throughput_gbit_s"), float(row["throughput_gbit_s"])


def printed_zvm() -> Printed:
    """Every number of the z/VM document but its ratios, which follow from the others."""
    for row in rows("zvm.csv"):
        if row["level"] != "ratio":
            yield ("zvm", row["table"], f"{row['level']} x{row['clients']}", row["metric"]), float(row["value"])


PRINTED = {"aix": printed_aix, "hp": printed_hp, "lpar": printed_lpar, "zvm": printed_zvm}


@pytest.mark.parametrize(("source", "count"), [("aix", 64), ("hp", 48), ("lpar", 2), ("zvm", 1500)])
def test_the_catalogue_has_every_number_of_a_document_and_no_other(source: str, count: int) -> None:
    """Number by number, none missing, none wrong, none invented, none twice."""
    facts = [fact for preset in CATALOG.presets for fact in preset.document_values if fact.source == source]
    printed = dict(PRINTED[source]())
    assert {(f.source, f.table, f.row, f.column): f.value for f in facts} == printed
    assert len(facts) == len(printed) == count


def half_unit(text: str) -> float:
    """Return half a unit of the last digit that a number prints."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def test_the_printed_ratios_of_zvm_agree_with_the_numbers_they_compare() -> None:
    """Level 430 over level 420, within what both rounded to: a slip in any of the three would show."""
    cells = {(r["table"], r["clients"], r["level"], r["metric"]): r["value"] for r in rows("zvm.csv")}
    compared = 0
    for (table, clients, level, metric), ratio in cells.items():
        if level != "ratio":
            continue
        base, new = cells[table, clients, "420", metric], cells[table, clients, "430", metric]
        least = (float(new) - half_unit(new)) / (float(base) + half_unit(base)) - half_unit(ratio)
        most = (float(new) + half_unit(new)) / (float(base) - half_unit(base)) + half_unit(ratio)
        assert least - 1e-9 <= float(ratio) <= most + 1e-9, (table, clients, metric)
        compared += 1
    assert compared == 750


def test_the_cpu_costs_of_zvm_follow_from_its_cpu_and_its_rates() -> None:
    """Two processors' mean utilization over the rate is the cost of each MB or transaction."""
    cells = dict(printed_zvm())
    for (source, table, row, column), rate in cells.items():
        if column not in {"MB/sec", "trans/sec"}:
            continue
        unit = column.partition("/")[0]
        cost = cells[source, table, row, f"cpu_msec/{unit}"]
        util = cells[source, table, row, "total_cpu_util"]
        assert cost == pytest.approx(util * 20 / rate, abs=0.006 + 1.0 / rate + cost * 0.006 / rate)


def test_hp_rates_above_the_capacity_of_cells_are_marked() -> None:
    """540.4 of 538.1; the 134.55 of 134.51 is within what clocks and rounding may differ by."""
    above, marked = set[tuple[str, float]](), set[tuple[str, float]]()
    for preset in (p for p in CATALOG.presets if p.source.id == "hp"):
        derived = derive(preset.link, "simplex")
        assert derived
        for fact in preset.document_values:
            if preset.erratum_of(fact):
                marked.add((preset.id, fact.value))
            one_way = fact.column in {"outbound.throughput_mbit_s", "inbound.throughput_mbit_s"}
            if one_way and fact.value * 1e6 > derived.bit_s * 1.001:
                above.add((preset.id, fact.value))
    assert above == marked == {("hp-atm622-clip-9180", 540.4)}


@pytest.mark.parametrize(
    ("preset_id", "direction", "sessions", "mbit_s", "basis", "source"),
    [
        ("gbe-fd-1500", Direction.OUT, 1, 948, "documented", "AIX table 1"),
        ("gbe-fd-1500", Direction.IN, 8, 948, "documented", "AIX table 1"),
        ("gbe-fd-9000", Direction.DUPLEX, 1, 1936, "documented", "AIX table 2"),
        ("gbe-fd-9000", Direction.DUPLEX, 2, 1938, "documented", "AIX table 2 (peak)"),
        ("10gbe-fd-1500", Direction.OUT, 1, 7200, "documented", "AIX table 1"),
        ("10gbe-fd-1500", Direction.OUT, 128, 9415, "documented", "AIX table 1 (peak)"),
        ("10mb-fd", Direction.OUT, 1, 9.48, "documented", "AIX table 1"),
        ("fddi-4352", Direction.DUPLEX, 5, 97, "documented", "AIX table 2"),
        ("hp-atm155-clip-9180", Direction.OUT, 1, 134.55, "documented", "HP table 2 (outbound)"),
        ("hp-atm155-lane-1516", Direction.IN, 4, 126.82, "documented", "HP table 2 (inbound)"),
        ("hp-atm622-lane-4544", Direction.DUPLEX, 1, 396.2, "documented", "HP table 3 (bidirectional)"),
        ("hp-atm622-clip-9180", Direction.IN, 1, 538.052830, "computed", "the wire model"),
        ("lpar-1500", Direction.OUT, 1, 1000, "documented", "the largesend note on LPARs (off, one stream)"),
        ("lpar-1500-largesend", Direction.IN, 1, 3800, "documented", LARGESEND),
        ("zvm-hipersockets-1500", Direction.IN, 1, 339.570852, "documented", "z/VM table 1 (level 430, 1 pair)"),
        ("zvm-hipersockets-56k", Direction.IN, 7, 606.915789, "documented", "z/VM table 2 (level 430, 5 pairs)"),
        ("zvm-claw-2000", Direction.IN, 128, 18.958254, "documented", "z/VM table 13 (level 430, 10 pairs)"),
    ],
)  # fmt: skip
def test_the_expected_rate_is_that_of_the_document(
    preset_id: str, direction: Direction, sessions: int, mbit_s: float, basis: str, source: str
) -> None:
    """One direction has AIX table 1, both have table 2, several sessions the peak if it is printed.

    Of z/VM it is level 430 and not its baseline; of HP the computed rate if the printed one is impossible.
    """
    got = find_expectation(CATALOG.find(preset_id), Settings(direction, sessions))
    (expected,) = [rate for rate in (got.out, got.in_, got.total) if rate]
    assert expected.bit_s == pytest.approx(mbit_s * 1e6, abs=1)
    assert (expected.basis, expected.source) == (basis, source)


def test_a_direction_that_a_document_did_not_measure_has_no_expected_rate() -> None:
    """The z/VM server answers. The document did not measure the other direction, or both."""
    preset = CATALOG.find("zvm-qdio-8992")
    assert find_expectation(preset, Settings(Direction.OUT)).out is None
    assert find_expectation(preset, Settings(Direction.DUPLEX)).total is None


def test_transactions_cpu_and_baseline_are_in_the_json_document() -> None:
    """Rates of RR and CRR are not in bits, and level 430 is compared with level 420."""
    expectations = preset_json(CATALOG.find("zvm-vctc-1500"))["expectations"]
    rr = next(rate for rate in expectations if rate["workload"] == "rr" and rate["sessions_from"] == 10)
    assert rr["flow"] == "exchange"
    assert rr["bit_s"] is None
    assert (rr["transactions_s"], rr["cpu_percent"], rr["cpu_msec_per_transaction"]) == (1866.83, 99.0, 1.06)
    assert rr["cpu_msec_per_mib"] is None
    assert rr["baseline"] == {"row": "420 x10", "bit_s": None, "transactions_s": 1680.3}
    hp = preset_json(CATALOG.find("hp-atm155-clip-9180"))
    assert hp["expectations"][0]["cpu_percent"] == 8.14
    assert hp["suggested_window_bytes"] == 56 * 1024


def test_every_aix_preset_has_its_japanese_name() -> None:
    """One document is Japanese; a locale asks for it, and others get English."""
    for preset in CATALOG.presets:
        if preset.source.id == "aix":
            assert preset.name_ja
            assert preset.name_in("ja_JP.UTF-8") == preset.name_in("ja") == preset.name_ja
            assert preset.name_in("en_GB.UTF-8") == preset.name_in("C") == preset.name
        else:
            assert preset.name_in("ja") == preset.name


def test_figure_1_of_hp_is_a_sweep_of_a_preset_that_exists() -> None:
    """Message sizes to 10240 bytes, windows of 32 and 56 KB, outbound, Classical IP on 155 Mb/s."""
    (sweep,) = CATALOG.sweeps
    assert sweep.window_bytes == (32 * 1024, 56 * 1024)
    assert sweep.message_bytes[-1] == 10_240
    assert sweep.direction == "out"
    assert CATALOG.find(sweep.preset).name == "ATM 155, Classical IP, MTU 9180"


def test_the_thirteen_network_types_have_their_ids_in_the_order_of_the_document() -> None:
    """Others name presets by these ids."""
    ids = [p.id for p in CATALOG.presets if p.source.id == "aix"]
    assert ids == [
        *("10mb-hd", "10mb-fd", "100mb-hd", "100mb-fd", "gbe-fd-1500", "gbe-fd-9000", "10gbe-fd-1500"),
        *("10gbe-fd-9000", "fddi-4352", "atm155-1500", "atm155-9180", "atm622-1500", "atm622-9180"),
    ]


def test_every_pair_of_mb_and_megabytes_that_disagrees_beyond_rounding_is_marked() -> None:
    """A slip is found by arithmetic, not by eye: either number of such a pair bears the mark."""
    numbers = {name[1:]: value for name, value in printed_aix()}
    marked = {
        (f.table, f.row, f.column)
        for p in CATALOG.presets
        for f in p.document_values
        if f.source == "aix" and p.erratum_of(f)
    }
    found = set[tuple[str, str, str]]()
    for (table, row, column), mbit in numbers.items():
        if not column.endswith("mbit_s"):
            continue
        other = column.replace("mbit", "mib")
        mib = numbers[table, row, other]
        slack = half_unit(f"{mbit:g}") + half_unit(f"{mib:g}") * 8.388608
        if abs(mbit - mib * 8.388608) > slack:
            pair = {(table, row, column), (table, row, other)}
            assert len(pair & marked) == 1, pair
            found |= pair & marked
    assert found == marked


@pytest.mark.parametrize(("preset_id", "sessions", "mb_s"), [("gbe-fd-1500", 5, 222), ("10gbe-fd-9000", 1, 2162)])
def test_a_slip_of_the_aix_tables_is_judged_by_its_megabytes(preset_id: str, sessions: int, mb_s: int) -> None:
    """1667 Mb is printed beside 222 MB/s, which is 1862 Mb, and 18000 Mb beside 2162. The source says so."""
    got = find_expectation(CATALOG.find(preset_id), Settings(Direction.DUPLEX, sessions)).total
    assert got
    assert got.bit_s == mb_s * 8 * 1_048_576
    assert "the printed Mb is an error" in got.source
