"""A measured policer or shaper for programs: a JSON document, and a row of CSV for each direction. Pure."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from ..csv_export import cell_text
from ..figure_codec import DOCUMENT_VERSION, mbit, ms, round_figure, rounded_seconds
from .shape_result import DirectionShape, ShapeResult, Spread

_INTERVAL: Final = ("", "_low", "_high")


def shape_document(result: ShapeResult) -> dict[str, Any]:
    """Return the document of a result; a direction that was not measured is null."""
    measured = {each.direction.value: direction_document(each, result.round_trip_ns) for each in result.directions}
    return {
        "schema": DOCUMENT_VERSION,
        "peer": result.peer,
        "ip_version": result.ip_version,
        "round_trip_ms": ms(result.round_trip_ns),
        "out": measured.get("out"),
        "in": measured.get("in"),
    }


def direction_document(shape: DirectionShape, round_trip_ns: int | None) -> dict[str, Any]:
    """Return the figures of a direction. Rates and sizes are of Ethernet frames unless they say payload."""
    return {
        "limit": shape.kind.value,
        "bursts": shape.bursts,
        "datagram_bytes": shape.datagram_bytes,
        "frame_bytes": shape.frame_bytes,
        "offered_mbit_s": mbit(shape.offered_bit_s),
        "pause_s": rounded_seconds(shape.pause_ns),
        "burst_is_whole": shape.is_settled,
        **_spread("cir_mbit_s", shape.cir, mbit),
        "cir_payload_mbit_s": mbit(shape.payload_bit_s),
        **_spread("cbs_bytes", shape.cbs, round_figure),
        **_spread("queue_bytes", shape.queue, round_figure),
        **_spread("queue_ms", shape.queue_ns, ms),
        "queue_is_full": shape.queue_is_full if shape.queue is not None else None,
        "round_trip_bytes": round_figure(shape.round_trip_bytes(round_trip_ns)),
        "holds_round_trip": shape.holds_round_trip(round_trip_ns),
        "fitting_rate_bit_s": shape.fitting_bit_s,
    }


def shape_rows(result: ShapeResult) -> Iterator[list[str]]:
    """Yield the names of the columns, then a row for each direction; what is unknown is empty."""
    names: list[str] | None = None
    for each in result.directions:
        figures = direction_document(each, result.round_trip_ns)
        if names is None:
            names = list(figures)
            yield ["peer", "ip_version", "round_trip_ms", "direction", *names]
        round_trip_ms = ms(result.round_trip_ns)
        row = (result.peer, result.ip_version, round_trip_ms, each.direction.value, *figures.values())
        yield [cell_text(value) for value in row]


def _spread(name: str, spread: Spread | None, unit: Callable[[float], float | None]) -> dict[str, float | None]:
    values = (None, None, None) if spread is None else map(unit, (spread.median, spread.low, spread.high))
    return {f"{name}{end}": value for end, value in zip(_INTERVAL, values, strict=True)}
