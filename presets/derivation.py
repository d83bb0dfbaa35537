"""The wire model's arithmetic as lines that a person can follow with a pencil."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .number_text import DERIVATION_DIGITS, format_rate
from .wire import SEGMENTS_PER_ACK, SONET_SHARE, Derivation, Overhead


@dataclass(frozen=True, slots=True)
class SheetLine:
    """A label and its cells. `head` names the cells below, `result` is what the lines above come to."""

    label: str
    cells: tuple[str, ...] = ()
    kind: Literal["plain", "head", "result", "slip", "note"] = "plain"


def derivation_lines(derived: Derivation, prefix: str = "") -> Iterator[SheetLine]:
    """Yield a derivation step by step: a packet's payload, its size on the wire, its share of the line.

    `prefix` stands before the last step, which is the result.
    """
    if derived.usable_bit_s != derived.line_bit_s:
        yield SheetLine("line rate", (format_rate(derived.line_bit_s, 2),))
        share = f"× {SONET_SHARE.numerator}/{SONET_SHARE.denominator}"
        yield SheetLine("SONET carries cells in the rest of its frame", (share,))
        yield SheetLine("rate left for cells", (format_rate(derived.usable_bit_s, 2),), "result")
    if derived.tunnel_overhead:
        outer = derived.mtu_bytes + sum(part.bytes for part in derived.tunnel_overhead)
        yield SheetLine("MTU of the link", (f"{outer} bytes",))
        yield from _parts("−", derived.tunnel_overhead)
        yield SheetLine("MTU inside the tunnel", (f"{derived.mtu_bytes} bytes",), "result")
    yield SheetLine("largest IP packet (MTU)", (f"{derived.mtu_bytes} bytes",))
    yield from _parts("−", derived.headers)
    yield SheetLine("payload of a packet", (f"{derived.payload_bytes} bytes",), "result")
    yield SheetLine("largest IP packet (MTU)", (f"{derived.mtu_bytes} bytes",))
    yield from _parts("+", derived.framing_overhead)
    yield SheetLine("packet on the wire", (f"{derived.wire_bytes} bytes",), "result")
    yield from rate_lines(derived, prefix)


def rate_lines(derived: Derivation, prefix: str = "") -> Iterator[SheetLine]:
    """Yield the last steps of a derivation: the cost of acknowledgements, and the rate."""
    if derived.ack_parts:
        yield SheetLine(f"an acknowledgement for every {SEGMENTS_PER_ACK} packets shares the wire")
        yield from _parts("+", derived.ack_parts)
        yield SheetLine("acknowledgement on the wire", (f"{derived.ack_bytes} bytes",), "result")
    yield result_line(derived, prefix)


def result_line(derived: Derivation, prefix: str = "") -> SheetLine:
    """Return the last step of a derivation: the share of the line that payload has."""
    return SheetLine(prefix + _product(derived), (format_rate(derived.bit_s, DERIVATION_DIGITS),), "result")


def _parts(sign: str, parts: Iterable[Overhead]) -> Iterator[SheetLine]:
    for part in parts:
        yield SheetLine(f"{sign} {part.name}", (f"{part.bytes} bytes",))


def _product(derived: Derivation) -> str:
    line = format_rate(derived.usable_bit_s, 2)
    if derived.directions > 1:
        line = f"{derived.directions} × {line}"
    if not derived.ack_parts:
        return f"{line} × {derived.payload_bytes} / {derived.wire_bytes}"
    many = derived.segments
    return f"{line} × {many} × {derived.payload_bytes} / ({many} × {derived.wire_bytes} + {derived.ack_bytes})"
