"""What a preset is: a kind of link, the numbers its document prints, and which of them to judge by.

Pure data, read from TOML by catalog.py. A document's number is kept as it is printed; a number that cannot
be right is marked with the reason, and no rate may be taken from it. What the wire itself allows is not
here: wire.py computes it from the link facts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ..engine.model.plan import MIB

DocumentWorkload = Literal["stream", "rr", "crr", "fetch"]
"""The documents' workloads by name; the engine's plan may not know all of them."""

Flow = Literal["simplex", "out", "in", "duplex", "exchange"]
"""What a rate is for: one direction (either), one certain direction, both at once, or asking and answering."""

Framing = Literal["ethernet", "atm", "atm-lane", "fddi", "none"]
"""What a packet is wrapped in: `atm` is Classical IP, `atm-lane` LAN emulation, `none` a link without a wire."""

Tunnel = Literal["vxlan", "wireguard", "gre", "pppoe"]
"""What carries the packets of a link inside those of another."""

TUNNELS: Final[tuple[Tunnel, ...]] = get_args(Tunnel)
MIN_MTU_BYTES: Final = 68  # RFC 791
MAX_MTU_BYTES: Final = 65_536

# How many bit/s one unit of a column is, by the end of the column's name. MB is 1,048,576 bytes in the
# documents, and a number of theirs is at times sound in MB where it is not in Mb.
_UNITS_BIT_S: Final = {"mbit_s": 1e6, "gbit_s": 1e9, "mib_s": 8.0 * MIB, "MB/sec": 8.0 * MIB}
_UNITS_TRANSACTIONS: Final = ("trans/sec", "transactions_s")


@dataclass(frozen=True, slots=True)
class TableName:
    """A table of a document: the name that facts use, and how a sentence calls it (`AIX table 1`)."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class Source:
    """The document that a file of presets comes from, and what its tables are called."""

    id: str
    title: str
    tables: tuple[TableName, ...] = ()

    def name_of(self, table: str) -> str:
        """Return what a sentence calls a table."""
        return next((t.name for t in self.tables if t.table == table), f"{self.title}, table {table}")


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The kind of link that a preset describes, as the sending host sees it.

    `mtu_bytes` is the largest IP packet; in a `tunnel` it is the tunnel's own. `duplex` `half` means that
    the medium carries one direction at a time.
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
    """A slip of the document: the number stays as printed, `reason` says what is wrong with it.

    `row` may be left out where the preset has one row of that table; so it may in a Rate.
    """

    table: str
    column: str
    reason: str
    row: str | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate to judge by, and the fact it is taken from.

    It holds from `sessions` up, until another rate of the same flow holds from a larger number. `note` goes
    with the table's name wherever the rate is shown; `why` says why it stands off the wire model.
    `baseline_row` is the row that the document compares with. `cpu_column` is the host's CPU in percent at
    that rate, `cost_column` the CPU milliseconds for each MiB or transaction.
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
    """A network type and MTU, with its link facts and what its document says to expect.

    `computed` names the flows that are judged by the wire model, for want of a sound number.
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
        """Return the name in a language, by code or locale (`ja`, `ja_JP.UTF-8`); English where there is none."""
        return self.name_ja if self.name_ja and language.lower().startswith("ja") else self.name

    @property
    def document_values(self) -> tuple[DocumentValue, ...]:
        """Every number of the document that is about this preset, in the document's order."""
        return tuple(fact for table in self.tables for fact in self._facts_of(table))

    def _facts_of(self, table: DocumentTable) -> Iterator[DocumentValue]:
        for row in table.rows:
            for column, value in zip(table.columns, row.values, strict=True):
                yield DocumentValue(self.source.id, table.table, row.row, column, value)

    def find_value(self, table: str, row: str | None, column: str | None) -> DocumentValue | None:
        """Return the one fact of that name; None where there is none, or several for want of a row."""
        found = [
            fact
            for each in self.tables
            if each.table == table and column in each.columns
            for fact in self._facts_of(each)
            if fact.column == column and row in {None, fact.row}
        ]
        return found[0] if len(found) == 1 else None

    def value_of(self, reference: Rate | Erratum) -> DocumentValue | None:
        """Return the fact that a rate or a mark names; None where there is no such fact, or more than one."""
        return self.find_value(reference.table, reference.row, reference.column)

    def erratum_of(self, fact: DocumentValue) -> Erratum | None:
        """Return the mark on a fact, if it is a slip."""
        return next((mark for mark in self.marks if self.value_of(mark) == fact), None)

    def rate_bit_s(self, rate: Rate) -> int | None:
        """Return a rate in bit/s; None where its column counts something else."""
        return as_bit_s(self.value_of(rate))

    def source_of(self, rate: Rate) -> str:
        """Return where a rate comes from, as it stands in a sentence."""
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
    """Return how many bit/s one unit of a column is; None where it is no rate of bits."""
    return next((unit for end, unit in _UNITS_BIT_S.items() if column.endswith(end)), None)


def as_bit_s(fact: DocumentValue | None) -> int | None:
    """Return a fact in bit/s; None where it counts something else."""
    unit = None if fact is None else unit_bit_s(fact.column)
    return None if fact is None or unit is None else round(fact.value * unit)


def as_transactions_s(fact: DocumentValue | None) -> float | None:
    """Return a fact in transactions a second; None where it counts something else."""
    return None if fact is None or not fact.column.endswith(_UNITS_TRANSACTIONS) else fact.value
