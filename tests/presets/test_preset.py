"""The model of a preset: how a number of its document is looked up and read as a rate."""

import pytest
from linkgauge.presets.preset import (
    DocumentRow,
    DocumentTable,
    DocumentValue,
    Erratum,
    LinkSpec,
    Preset,
    Rate,
    Source,
    TableName,
    as_bit_s,
    as_transactions_s,
)

TABLE = DocumentTable(
    "1",
    ("payload_mbit_s", "payload_mib_s", "cpu_percent"),
    (DocumentRow("1 session", (90.0, 11.0, 5.0)), DocumentRow("5 sessions", (94.0, 11.2, 7.0))),
)
PRESET = Preset(
    "mine",
    "Mine",
    "Ethernet",
    Source("notes", "My notes", (TableName("1", "my table"),)),
    LinkSpec("ethernet"),
    name_ja="私の",
    tables=(TABLE,),
    marks=(Erratum("1", "payload_mib_s", "cannot be", "5 sessions"),),
)


def test_a_value_is_looked_up_only_by_an_unambiguous_name() -> None:
    """Without a row there are two of that column."""
    assert PRESET.find_value("1", "5 sessions", "payload_mbit_s") == DocumentValue(
        "notes", "1", "5 sessions", "payload_mbit_s", 94.0
    )
    assert PRESET.find_value("1", None, "payload_mbit_s") is None
    assert PRESET.find_value("2", "5 sessions", "payload_mbit_s") is None
    assert PRESET.find_value("1", "5 sessions", None) is None


def test_a_slip_is_marked_at_its_own_number_alone() -> None:
    """The same column of another row is sound."""
    marked = [value.row for value in PRESET.document_values if PRESET.erratum_of(value)]
    assert marked == ["5 sessions"]


@pytest.mark.parametrize(
    ("column", "bit_s", "transactions_s"),
    [
        ("peak_mbit_s", 2_000_000, None),
        ("peak_gbit_s", 2_000_000_000, None),
        ("peak_mib_s", 16_777_216, None),
        ("MB/sec", 16_777_216, None),
        ("trans/sec", None, 2.0),
        ("transactions_s", None, 2.0),
        ("cpu_percent", None, None),
    ],
)
def test_the_end_of_a_columns_name_is_its_unit(
    column: str, bit_s: int | None, transactions_s: float | None
) -> None:
    """MB is 1,048,576 bytes in the documents."""
    value = DocumentValue("notes", "1", "x", column, 2.0)
    assert as_bit_s(value) == bit_s
    assert as_transactions_s(value) == transactions_s


def test_the_source_of_a_rate_has_the_tables_name_and_the_note() -> None:
    """A table without a name is called by its document."""
    assert PRESET.source_of(Rate("simplex", "1", "payload_mbit_s")) == "my table"
    assert PRESET.source_of(Rate("simplex", "2", "payload_mbit_s", note="peak")) == "My notes, table 2 (peak)"


def test_the_name_is_japanese_in_a_japanese_locale_and_else_english() -> None:
    """A code or a whole locale is accepted."""
    assert [PRESET.name_in(language) for language in ("ja", "ja_JP.UTF-8", "de", "")] == [
        "私の", "私の", "Mine", "Mine",
    ]  # fmt: skip
