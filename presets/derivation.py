"""The wire model's arithmetic as lines that a person can follow with a pencil."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from .number_text import EXACT, rate_words
from .wire import SEGMENTS_PER_ACK, SONET_SHARE, Derivation, Part


@dataclass(frozen=True, slots=True)
class Line:
    """A label and its cells. `head` names the cells below, `result` is what the lines above come to."""

    label: str
    cells: tuple[str, ...] = ()
    kind: Literal["plain", "head", "result", "slip", "note"] = "plain"


def derivation_lines(derived: Derivation, prefix: str = "") -> Iterator[Line]:
    """Give a derivation step by step: the payload of a packet, the packet on the wire, the share of the line.

    `prefix` stands before the last step, which is the result.
    """
    if derived.usable_bit_s != derived.line_bit_s:
        yield Line("line rate", (rate_words(derived.line_bit_s, 2),))
        share = f"× {SONET_SHARE.numerator}/{SONET_SHARE.denominator}"
        yield Line("SONET carries cells in the rest of its frame", (share,))
        yield Line("rate left for cells", (rate_words(derived.usable_bit_s, 2),), "result")
    if derived.squeezed:
        outer = derived.mtu_bytes + sum(part.bytes for part in derived.squeezed)
        yield Line("MTU of the link", (f"{outer} bytes",))
        yield from _parts("−", derived.squeezed)
        yield Line("MTU inside the tunnel", (f"{derived.mtu_bytes} bytes",), "result")
    yield Line("largest IP packet (MTU)", (f"{derived.mtu_bytes} bytes",))
    yield from _parts("−", derived.headers)
    yield Line("payload of a packet", (f"{derived.payload_bytes} bytes",), "result")
    yield Line("largest IP packet (MTU)", (f"{derived.mtu_bytes} bytes",))
    yield from _parts("+", derived.framing)
    yield Line("packet on the wire", (f"{derived.wire_bytes} bytes",), "result")
    yield from rate_lines(derived, prefix)


def rate_lines(derived: Derivation, prefix: str = "") -> Iterator[Line]:
    """Give the end of a derivation, from the packet on: what acknowledgements cost, and the rate."""
    if derived.ack:
        yield Line(f"an acknowledgement for every {SEGMENTS_PER_ACK} packets shares the wire")
        yield from _parts("+", derived.ack)
        yield Line("acknowledgement on the wire", (f"{derived.ack_bytes} bytes",), "result")
    yield result_line(derived, prefix)


def result_line(derived: Derivation, prefix: str = "") -> Line:
    """Return the last step of a derivation: the share of the line that payload has."""
    return Line(prefix + _product(derived), (rate_words(derived.bit_s, EXACT),), "result")


def _parts(sign: str, parts: Iterable[Part]) -> Iterator[Line]:
    for part in parts:
        yield Line(f"{sign} {part.name}", (f"{part.bytes} bytes",))


def _product(derived: Derivation) -> str:
    line = rate_words(derived.usable_bit_s, 2)
    if derived.directions > 1:
        line = f"{derived.directions} × {line}"
    if not derived.ack:
        return f"{line} × {derived.payload_bytes} / {derived.wire_bytes}"
    many = derived.segments
    return f"{line} × {many} × {derived.payload_bytes} / ({many} × {derived.wire_bytes} + {derived.ack_bytes})"
