"""A preset's sheet: all that is known of it, as sections of lines, for whatever draws them.

The command line and the app's details pane print the same sheet. A line is a label and cells; cells of one
section line up. What kind of line it is goes with it as a word, so that colour never has to speak alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from .derivation import Line, derivation_lines, rate_lines, result_line
from .expectation import MODEL, off_model_percent
from .number_text import EXACT, bytes_words, number_words, rate_words
from .preset import Fact, Flow, Framing, LinkFacts, Preset, Rate, Table, as_bit_s, as_transactions_s
from .wire import PLAIN, TUNNEL_NAMES, Derivation, Variant, derive

_FRAMINGS: Final[dict[Framing, str]] = {
    "ethernet": "Ethernet",
    "atm": "ATM, Classical IP (AAL5, LLC/SNAP)",
    "atm-lane": "ATM, LAN emulation (AAL5)",
    "fddi": "FDDI",
    "none": "no wire",
}
_DUPLEX: Final = {"full": "full", "half": "half: the medium carries one direction at a time", None: "not known"}
_FLOWS: Final = {
    "simplex": "one direction",
    "out": "out",
    "in": "in",
    "duplex": "both directions, total",
    "exchange": "ask and answer",
}


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together, under a title."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A preset's id and name, and its sections."""

    id: str
    name: str
    sections: tuple[Section, ...]


def sheet(preset: Preset, variant: Variant = PLAIN, language: str = "en") -> Sheet:
    """Return the sheet of a preset, had with these options; raise PlanError where it cannot be had so."""
    sections = [
        Section("link", tuple(_link(preset, variant))),
        Section("to expect", tuple(_expected(preset, variant))),
        *_computed(preset.link, variant),
        *(_source_table(preset, table) for table in preset.tables),
        Section("slips of the document, kept as printed and not judged by", tuple(_slips(preset))),
        Section("notes", tuple(Line(note, kind="note") for note in preset.notes)),
    ]
    return Sheet(preset.id, preset.name_in(language), tuple(s for s in sections if s.lines))


def _link(preset: Preset, variant: Variant) -> Iterator[Line]:
    link = preset.link
    yield Line("family", (preset.family,))
    yield Line("framing", (_FRAMINGS[link.framing],))
    if link.line_rate_bit_s is not None:
        yield Line("line rate", (rate_words(link.line_rate_bit_s, 2),))
    yield Line("MTU", ("not known" if link.mtu_bytes is None else f"{link.mtu_bytes} bytes",))
    yield Line("duplex", (_DUPLEX[link.duplex],))
    yield Line("TCP timestamps", ("on (RFC 1323)" if link.timestamps else "off",))
    if link.tunnel is not None:
        yield Line("tunnel", (TUNNEL_NAMES[link.tunnel],))
    if preset.suggested_window_bytes is not None:
        yield Line("suggested window", (bytes_words(preset.suggested_window_bytes),))
    yield Line("document", (preset.source.title,))
    if variant.changes(link):
        yield Line("with options", (variant.words,))


def _expected(preset: Preset, variant: Variant) -> Iterator[Line]:
    if variant.changes(preset.link):
        yield from _expected_with_options(preset, variant)
        return
    for rate in preset.rates:
        yield Line(_situation(rate), tuple(_rate_cells(preset, rate)))
        if rate.why is not None:
            yield Line(rate.why, kind="note")
    for flow in preset.computed:
        derived = derive(preset.link, flow)
        if derived is not None:
            yield Line(_FLOWS[flow], (rate_words(derived.bit_s, EXACT), "computed", MODEL))
    if not preset.rates and not preset.computed:
        yield Line("nothing: no document says, and there is no wire to compute", kind="note")


def _expected_with_options(preset: Preset, variant: Variant) -> Iterator[Line]:
    """Give what a run with these options is held against: the model's rates, for no document has them."""
    half = preset.link.duplex == "half"
    flows: tuple[Flow, ...] = () if half else ("simplex", "duplex")
    for flow in flows:
        derived = derive(preset.link, flow, variant)
        if derived is not None:
            cells = (rate_words(derived.bit_s, EXACT), "computed", f"{MODEL} ({variant.words})")
            yield Line(_FLOWS[flow], cells)
    if half:
        yield Line("nothing: on half duplex, waiting for the wire costs what no model counts", kind="note")
    elif preset.rates:
        yield Line("the document's own rates are for the link without these options", kind="note")


def _situation(rate: Rate) -> str:
    workload = "" if rate.workload == "stream" else f"{rate.workload}, "
    sessions = "1 session" if rate.sessions == 1 else f"{rate.sessions} sessions and more"
    return f"{workload}{_FLOWS[rate.flow]}, {sessions}"


def _rate_cells(preset: Preset, rate: Rate) -> Iterator[str]:
    """Give the rate, its source, how it stands to the model, to its baseline, and what CPU it takes."""
    fact = preset.fact(rate)
    yield _amount(fact)
    yield "documented"
    yield preset.source_of(rate)
    off = off_model_percent(preset, rate)
    derived = derive(preset.link, rate.flow)
    if off is not None and derived is not None:
        side = "above" if off > 0 else "below"
        yield f"computed {rate_words(derived.bit_s, EXACT)}, {abs(off):.1f} % {side} it"
    if rate.baseline_row is not None:
        base = preset.find_fact(rate.table, rate.baseline_row, rate.column)
        yield f"baseline {_amount(base)} ({rate.baseline_row})"
    cpu = preset.find_fact(rate.table, rate.row, rate.cpu_column)
    if cpu is not None:
        yield f"CPU {number_words(cpu.value)} %"
    cost = preset.find_fact(rate.table, rate.row, rate.cost_column)
    if cost is not None:
        yield f"{number_words(cost.value)} {cost.column}"


def _amount(fact: Fact | None) -> str:
    if fact is None:
        return "not known"
    transactions = as_transactions_s(fact)
    if transactions is not None:
        return f"{number_words(transactions)} transactions/s"
    bit_s = as_bit_s(fact)
    return "not known" if bit_s is None else rate_words(bit_s)


def _computed(link: LinkFacts, variant: Variant) -> Iterator[Section]:
    """Give the arithmetic of the wire model for one direction and, where that is another, for both."""
    simplex, duplex = derive(link, "simplex", variant), derive(link, "duplex", variant)
    if simplex is None or duplex is None:
        return
    shared = link.duplex == "half"
    title = "computed, one direction or both" if shared else "computed, one direction"
    yield Section(title, tuple(_with_and_without_timestamps(link, variant, simplex)))
    if not shared:
        yield Section("computed, both directions", tuple(rate_lines(duplex)))


def _with_and_without_timestamps(link: LinkFacts, variant: Variant, simplex: Derivation) -> Iterator[Line]:
    """Give the steps, and their end with TCP timestamps the other way: the first thing that hosts differ in."""
    on = link.timestamps if variant.timestamps is None else variant.timestamps
    this, that = ("with", "without") if on else ("without", "with")
    yield from derivation_lines(simplex, f"{this} TCP timestamps: ")
    other = derive(link, simplex.flow, variant.with_timestamps(not on))
    if other is not None:
        yield result_line(other, f"{that} TCP timestamps: ")


def _source_table(preset: Preset, table: Table) -> Section:
    """Return a document's table as printed, its columns downwards, for they are the many."""
    title = f"{preset.source.name_of(table.table)}, as printed"
    slips = {preset.fact(mark) for mark in preset.marks}
    rows = {row.row: row.values for row in table.rows}
    lines = [Line("", tuple(rows), "head")]
    for place, column in enumerate(table.columns):
        facts = [Fact(preset.source.id, table.table, row, column, values[place]) for row, values in rows.items()]
        cells = tuple(f"{number_words(f.value)}{' (slip)' if f in slips else ''}" for f in facts)
        kind: Literal["slip", "plain"] = "slip" if slips.intersection(facts) else "plain"
        lines.append(Line(column, cells, kind))
    return Section(title, tuple(lines))


def _slips(preset: Preset) -> Iterator[Line]:
    for mark in preset.marks:
        fact = preset.fact(mark)
        value = "" if fact is None else number_words(fact.value)
        name = preset.source.name_of(mark.table)
        yield Line(f"{name}, {mark.column}", (value, mark.reason), "slip")
