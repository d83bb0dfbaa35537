"""A preset: a kind of link, the numbers of its document, and the rates to judge by.

Pure data, which catalog.py reads from TOML. The numbers of a document stay as printed. An impossible number is
marked with the reason, and no rate refers to it. wire.py computes the capacity of the link from its line rate and
MTU.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ..engine.model.plan import MIB

DocumentWorkload = Literal["stream", "rr", "crr", "fetch"]
"""The documents' workloads by name, which are not all workloads of the engine."""

Flow = Literal["simplex", "out", "in", "duplex", "exchange"]
"""The directions of a rate: either one, `out`, `in`, both together, or `exchange` for transactions."""

Framing = Literal["ethernet", "atm", "atm-lane", "fddi", "none"]
"""The framing of packets: `atm` is Classical IP, `atm-lane` LAN emulation, `none` a link without a line."""

Tunnel = Literal["vxlan", "wireguard", "gre", "pppoe"]
"""The protocol that carries the packets of a link inside the packets of another link."""

TUNNELS: Final[tuple[Tunnel, ...]] = get_args(Tunnel)
MIN_MTU_BYTES: Final = 68  # RFC 791
MAX_MTU_BYTES: Final = 65_536

# A column's unit in bit/s, by the end of the column's name. In the documents MB is 1,048,576 bytes. Some of their
# numbers are right in MB and wrong in Mb.
_UNITS_BIT_S: Final = {"mbit_s": 1e6, "gbit_s": 1e9, "mib_s": 8.0 * MIB, "MB/sec": 8.0 * MIB}
_UNITS_TRANSACTIONS: Final = ("trans/sec", "transactions_s")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of a document: its name in the catalog, and its name in sentences (`AIX table 1`)."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class Source:
    """The document of a preset file, with the names of its tables."""

    id: str
    title: str
    tables: tuple[TableName, ...] = ()

    def name_of(self, table: str) -> str:
        """Return the name of a table in a sentence."""
        return next((t.name for t in self.tables if t.table == table), f"{self.title}, table {table}")


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The kind of link that a preset describes, as the sending host sees it.

    `mtu_bytes` is the largest IP packet; for a `tunnel` it is the MTU inside. With `half` duplex the medium carries
    one direction at a time.
    """

    framing: Framing
    line_rate_bit_s: int | None = None
    mtu_bytes: int | None = None
    duplex: Literal["full", "half"] | None = None
    timestamps: bool = False
    tunnel: Tunnel | None = None


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One row of a document's table, named as the document names it."""

    row: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """The rows of a document's table that are about one preset."""

    table: str
    columns: tuple[str, ...]
    rows: tuple[DocumentRow, ...]


@dataclass(frozen=True, slots=True)
class DocumentValue:
    """One number of a document, as printed."""

    source: str
    table: str
    row: str
    column: str
    value: float


@dataclass(frozen=True, slots=True)
class Erratum:
    """A slip of the document: the number stays as printed, and `reason` explains the error.

    `row` may be omitted if the preset has one row of that table, here and in a Rate.
    """

    table: str
    column: str
    reason: str
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate to judge by: a reference to a number of the document.

    It applies from `sessions` up, until another rate of the same flow applies from a larger number. `note` follows
    the table's name whenever the rate is shown; `why` explains a difference from the wire model. `baseline_row` is
    the row for comparison in the document. `cpu_column` is the host's CPU in percent at that rate, `cost_column`
    the CPU milliseconds for each MiB or transaction.
    """

    flow: Flow
    table: str
    column: str
    row: str | None = None
    sessions: int = 1
    workload: DocumentWorkload = "stream"
    note: str | None = None
    why: str | None = None
    baseline_row: str | None = None
    cpu_column: str | None = None
    cost_column: str | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """A network type and MTU, with its link and its documented rates.

    `computed` names the flows without a sound number in the document; the wire model gives their rates.
    """

    id: str
    name: str
    family: str
    source: Source
    link: LinkSpec
    name_ja: str | None = None
    tables: tuple[DocumentTable, ...] = ()
    rates: tuple[Rate, ...] = ()
    computed: tuple[Flow, ...] = ()
    marks: tuple[Erratum, ...] = ()
    notes: tuple[str, ...] = ()
    suggested_window_bytes: int | None = None

    def name_in(self, language: str) -> str:
        """Return the name in a language or locale (`ja`, `ja_JP.UTF-8`), else in English."""
        return self.name_ja if self.name_ja and language.lower().startswith("ja") else self.name

    @property
    def document_values(self) -> tuple[DocumentValue, ...]:
        """All numbers of the document about this preset, in the document's order."""
        return tuple(number for table in self.tables for number in self._numbers_of(table))

    def _numbers_of(self, table: DocumentTable) -> Iterator[DocumentValue]:
        for row in table.rows:
            for column, value in zip(table.columns, row.values, strict=True):
                yield DocumentValue(self.source.id, table.table, row.row, column, value)

    def find_value(self, table: str, row: str | None, column: str | None) -> DocumentValue | None:
        """Return the number with this name; None if there is none, or several because `row` is None."""
        matches = [
            (line.row, name, value)
            for each in self.tables
            if each.table == table
            for line in each.rows
            if row in {None, line.row}
            for name, value in zip(each.columns, line.values, strict=True)
            if name == column
        ]
        return DocumentValue(self.source.id, table, *matches[0]) if len(matches) == 1 else None

    def value_of(self, reference: Rate | Erratum) -> DocumentValue | None:
        """Return the number that a rate or an erratum refers to; None if there is none, or more than one."""
        return self.find_value(reference.table, reference.row, reference.column)

    def erratum_of(self, number: DocumentValue) -> Erratum | None:
        """Return the erratum of a number, if it is a slip."""
        return next((mark for mark in self.marks if self.value_of(mark) == number), None)

    def rate_bit_s(self, rate: Rate) -> int | None:
        """Return a rate in bit/s; None if its column has another unit."""
        return as_bit_s(self.value_of(rate))

    def source_of(self, rate: Rate) -> str:
        """Return the source of a rate, for a sentence."""
        name = self.source.name_of(rate.table)
        return f"{name} ({rate.note})" if rate.note else name


@dataclass(frozen=True, slots=True)
class DocumentSweep:
    """An experiment of a document: one preset, run once for each message size and window."""

    id: str
    name: str
    preset: str
    direction: Literal["out", "in", "duplex"]
    message_bytes: tuple[int, ...]
    window_bytes: tuple[int, ...]
    notes: tuple[str, ...] = ()


def unit_bit_s(column: str) -> float | None:
    """Return the unit of a column in bit/s; None if it is not a bit rate."""
    return next((unit for end, unit in _UNITS_BIT_S.items() if column.endswith(end)), None)


def as_bit_s(number: DocumentValue | None) -> int | None:
    """Return a number in bit/s; None if it has another unit."""
    unit = None if number is None else unit_bit_s(number.column)
    return None if number is None or unit is None else round(number.value * unit)


def as_transactions_s(number: DocumentValue | None) -> float | None:
    """Return a number in transactions a second; None if it has another unit."""
    return None if number is None or not number.column.endswith(_UNITS_TRANSACTIONS) else number.value
