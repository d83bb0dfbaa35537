"""A preset's datasheet: its link, rates, derivations and source tables, as sections of lines.

The command line and the app print the same sheet. A line is a label and cells; the cells of a section are aligned.
Each line has its kind as a word, so that no meaning depends on colour alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ..engine.model.expected_rate import ExpectedRate
from .expectation import datagram_rates, model_deviation_percent, rates_to_show
from .number_text import (
    DERIVATION_DIGITS,
    format_bytes,
    format_number,
    format_quantity,
    format_rate,
    group_digits,
    significant_decimals,
)
from .preset import DocumentTable, DocumentValue, LinkSpec, Preset, Rate, as_bit_s, as_transactions_s
from .wire import (
    DEFAULT_VARIANT,
    FRAMING_NAMES,
    SEGMENTS_PER_ACK,
    SONET_SHARE,
    TUNNEL_NAMES,
    Derivation,
    Overhead,
    Variant,
    derive,
    derive_datagrams,
)

_DUPLEX: Final = {"full": "full", "half": "half: one direction at a time", None: "unknown"}
_FLOWS: Final = {
    "simplex": "one direction",
    "out": "out",
    "in": "in",
    "duplex": "both directions, total",
    "exchange": "transactions",
}


@dataclass(frozen=True, slots=True)
class SheetLine:
    """A label and its cells. A `head` names the cells below it, a `result` follows from the lines above."""

    label: str
    cells: tuple[str, ...] = ()
    kind: Literal["plain", "head", "result", "slip", "note"] = "plain"


@dataclass(frozen=True, slots=True)
class Section:
    """A title and its lines."""

    title: str
    lines: tuple[SheetLine, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A preset's id and name, and its sections."""

    id: str
    name: str
    sections: tuple[Section, ...]


def build_sheet(preset: Preset, variant: Variant = DEFAULT_VARIANT, language: str = "en") -> Sheet:
    """Return the sheet of a preset with these options; raise PlanError if its link cannot have them."""
    sections = [
        Section("link", tuple(_link(preset, variant))),
        Section("expected rates", tuple(_expected(preset, variant))),
        *_computed(preset.link, variant),
        *(_source_table(preset, table) for table in preset.tables),
        Section("errors in the document: shown as printed, not used", tuple(_slips(preset))),
        Section("notes", tuple(SheetLine(note, kind="note") for note in preset.notes)),
    ]
    return Sheet(preset.id, preset.name_in(language), tuple(s for s in sections if s.lines))


def _link(preset: Preset, variant: Variant) -> Iterator[SheetLine]:
    link = preset.link
    yield SheetLine("family", (preset.family,))
    yield SheetLine("framing", (FRAMING_NAMES[link.framing],))
    if link.line_rate_bit_s is not None:
        yield SheetLine("line rate", (format_rate(link.line_rate_bit_s, 2),))
    yield SheetLine("MTU", ("unknown" if link.mtu_bytes is None else format_quantity(link.mtu_bytes, "byte"),))
    yield SheetLine("duplex", (_DUPLEX[link.duplex],))
    yield SheetLine("TCP timestamps", ("on (RFC 1323)" if link.timestamps else "off",))
    if link.tunnel is not None:
        yield SheetLine("tunnel", (TUNNEL_NAMES[link.tunnel],))
    if preset.suggested_window_bytes is not None:
        yield SheetLine("suggested window", (format_bytes(preset.suggested_window_bytes),))
    yield SheetLine("document", (preset.source.title,))
    if variant.changes(link):
        yield SheetLine("with options", (variant.description,))


def _expected(preset: Preset, variant: Variant) -> Iterator[SheetLine]:
    changed = variant.changes(preset.link)
    if changed and preset.link.duplex == "half":
        yield SheetLine("No expected rate: the wire model does not cover half duplex.", kind="note")
        return
    rates, computed = rates_to_show(preset, variant)
    for rate in rates:
        yield SheetLine(_situation(rate), tuple(_rate_cells(preset, rate)))
        if rate.why is not None:
            yield SheetLine(rate.why, kind="note")
    for flow, expected in computed:
        yield _computed_line(_FLOWS[flow], expected)
    for flow, expected in datagram_rates(preset.link, variant).items():
        yield _computed_line(f"udp, {_FLOWS[flow]}", expected)
    if changed and preset.rates:
        yield SheetLine("The document's own rates are for the link without these options.", kind="note")
    if not changed and not rates and not computed:
        yield SheetLine(
            "No expected rate: no document has one, and without a line none can be computed.", kind="note"
        )


def _computed_line(label: str, expected: ExpectedRate) -> SheetLine:
    return SheetLine(label, (format_rate(expected.bit_s, DERIVATION_DIGITS), expected.basis, expected.source))


def _situation(rate: Rate) -> str:
    workload = "" if rate.workload == "stream" else f"{rate.workload}, "
    sessions = format_quantity(rate.sessions, "session")
    return f"{workload}{_FLOWS[rate.flow]}, {sessions}{'' if rate.sessions == 1 else ' or more'}"


def _rate_cells(preset: Preset, rate: Rate) -> Iterator[str]:
    """Yield the rate, its source, its deviation from the model and its baseline, and its CPU cost."""
    number = preset.value_of(rate)
    yield _amount(number)
    yield "documented"
    yield preset.source_of(rate)
    off = model_deviation_percent(preset, rate)
    derived = derive(preset.link, rate.flow)
    if off is not None and derived is not None:
        side = "above" if off > 0 else "below"
        yield f"computed {format_rate(derived.bit_s, DERIVATION_DIGITS)}, {abs(off):.1f} % {side} it"
    if rate.baseline_row is not None:
        base = preset.find_value(rate.table, rate.baseline_row, rate.column)
        yield f"baseline {_amount(base)} ({rate.baseline_row})"
    cpu = preset.find_value(rate.table, rate.row, rate.cpu_column)
    if cpu is not None:
        yield f"CPU {format_number(cpu.value)} %"
    cost = preset.find_value(rate.table, rate.row, rate.cost_column)
    if cost is not None:
        yield f"{format_number(cost.value)} {cost.column}"


def _amount(number: DocumentValue | None) -> str:
    if number is None:
        return "unknown"
    transactions = as_transactions_s(number)
    if transactions is not None:
        return f"{format_number(transactions)} transactions/s"
    bit_s = as_bit_s(number)
    return "unknown" if bit_s is None else format_rate(bit_s, significant_decimals(bit_s / 1e6))


def _computed(link: LinkSpec, variant: Variant) -> Iterator[Section]:
    """Yield the wire model's arithmetic for one direction and, if it differs, for both."""
    simplex, duplex = derive(link, "simplex", variant), derive(link, "duplex", variant)
    if simplex is None or duplex is None:
        return
    shared = link.duplex == "half"
    title = "computed, one direction or both" if shared else "computed, one direction"
    yield Section(title, tuple(_with_and_without_timestamps(link, variant, simplex)))
    if not shared:
        yield Section("computed, both directions", tuple(_rate_lines(duplex)))
    datagrams = derive_datagrams(link, "simplex", variant)
    if datagrams is not None:
        title = "UDP, computed, both directions together" if shared else "UDP, computed, each direction"
        yield Section(title, tuple(_derivation_lines(datagrams)))


def _with_and_without_timestamps(link: LinkSpec, variant: Variant, simplex: Derivation) -> Iterator[SheetLine]:
    """Yield the steps, and the result with the other choice of TCP timestamps, since hosts differ in it."""
    on = link.timestamps if variant.timestamps is None else variant.timestamps
    this, that = ("with", "without") if on else ("without", "with")
    yield from _derivation_lines(simplex, f"{this} TCP timestamps: ")
    other = derive(link, simplex.flow, variant.with_timestamps(not on))
    if other is not None:
        yield _result_line(other, f"{that} TCP timestamps: ")


def _derivation_lines(derived: Derivation, prefix: str = "") -> Iterator[SheetLine]:
    """Yield a derivation step by step: a packet's payload, its size on the wire, its share of the line.

    The last step is the result, with `prefix` as the beginning of its label.
    """
    if derived.usable_bit_s != derived.line_bit_s:
        yield SheetLine("line rate", (format_rate(derived.line_bit_s, 2),))
        share = f"× {SONET_SHARE.numerator}/{SONET_SHARE.denominator}"
        yield SheetLine("share of SONET's frame for cells", (share,))
        yield SheetLine("rate left for cells", (format_rate(derived.usable_bit_s, 2),), "result")
    if derived.tunnel_overhead:
        outer = derived.mtu_bytes + sum(part.bytes for part in derived.tunnel_overhead)
        yield SheetLine("MTU of the link", (format_quantity(outer, "byte"),))
        yield from _parts("−", derived.tunnel_overhead)
        yield SheetLine("MTU inside the tunnel", (format_quantity(derived.mtu_bytes, "byte"),), "result")
    yield SheetLine("largest IP packet (MTU)", (format_quantity(derived.packet_bytes, "byte"),))
    yield from _parts("−", derived.headers)
    yield SheetLine("payload of a packet", (format_quantity(derived.payload_bytes, "byte"),), "result")
    yield SheetLine("largest IP packet (MTU)", (format_quantity(derived.packet_bytes, "byte"),))
    yield from _parts("+", derived.framing_overhead)
    yield SheetLine("packet on the wire", (format_quantity(derived.wire_bytes, "byte"),), "result")
    yield from _rate_lines(derived, prefix)


def _rate_lines(derived: Derivation, prefix: str = "") -> Iterator[SheetLine]:
    """Yield the last steps of a derivation: the size of acknowledgements, and the rate."""
    if derived.ack_parts:
        yield SheetLine(f"one acknowledgement for every {SEGMENTS_PER_ACK} packets shares the line")
        yield from _parts("+", derived.ack_parts)
        yield SheetLine("acknowledgement on the wire", (format_quantity(derived.ack_bytes, "byte"),), "result")
    yield _result_line(derived, prefix)


def _result_line(derived: Derivation, prefix: str = "") -> SheetLine:
    """Return the last step of a derivation: the rate, as the payload's share of the line."""
    return SheetLine(prefix + _product(derived), (format_rate(derived.bit_s, DERIVATION_DIGITS),), "result")


def _parts(sign: str, parts: Iterable[Overhead]) -> Iterator[SheetLine]:
    for part in parts:
        yield SheetLine(f"{sign} {part.name}", (format_quantity(part.bytes, "byte"),))


def _product(derived: Derivation) -> str:
    line = format_rate(derived.usable_bit_s, 2)
    payload, wire = group_digits(derived.payload_bytes), group_digits(derived.wire_bytes)
    if derived.directions > 1:
        line = f"{derived.directions} × {line}"
    if not derived.ack_parts:
        return f"{line} × {payload} / {wire}"
    many = derived.segments
    return f"{line} × {many} × {payload} / ({many} × {wire} + {group_digits(derived.ack_bytes)})"


def _source_table(preset: Preset, table: DocumentTable) -> Section:
    """Return a document's table as printed. Its columns are the lines, because it has few rows."""
    title = f"{preset.source.name_of(table.table)}, as printed"
    slips = {preset.value_of(mark) for mark in preset.marks}
    rows = {row.row: row.values for row in table.rows}
    lines = [SheetLine("", tuple(rows), "head")]
    for place, column in enumerate(table.columns):
        printed = [
            DocumentValue(preset.source.id, table.table, row, column, values[place]) for row, values in rows.items()
        ]
        cells = tuple(f"{format_number(each.value)}{' (error)' if each in slips else ''}" for each in printed)
        kind: Literal["slip", "plain"] = "slip" if slips.intersection(printed) else "plain"
        lines.append(SheetLine(column, cells, kind))
    return Section(title, tuple(lines))


def _slips(preset: Preset) -> Iterator[SheetLine]:
    for mark in preset.marks:
        number = preset.value_of(mark)
        value = "" if number is None else format_number(number.value)
        name = preset.source.name_of(mark.table)
        yield SheetLine(f"{name}, {mark.column}", (value, mark.reason), "slip")
