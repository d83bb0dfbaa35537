"""A measured policer or shaper, printed: a sentence for each direction, its numbers, and the command that fits."""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import Direction
from ....engine.model.texts.shell_commands import shell_command
from ....engine.results.shape.shape_result import DirectionShape, LimitKind, ShapeResult, Spread
from ....presets.diagnosis.trial import rate_text
from ....presets.number_text import format_bytes, format_rate, format_time
from ...words import numbers

_NAMES_WIDTH: Final = 6
_KINDS: Final = {
    LimitKind.POLICER: "a policer: it drops what is faster, without delay",
    LimitKind.SHAPER: "a shaper: it delays what is faster",
    LimitKind.LINE: "a line without a burst allowance: what is faster waits from the first packet on",
    LimitKind.NONE: "no policer or shaper found",
    LimitKind.UNKNOWN: "not measured: too few bursts could be read; try again without other load",
}


def shape_lines(result: ShapeResult) -> Iterator[str]:
    """Yield a line about the path, and for each direction its sentence and its numbers."""
    yield _heading(result)
    for each in result.directions:
        yield f"{numbers.arrow(each.direction)} {each.direction:3} {shape_sentence(each)}"
        for name, value in shape_numbers(each, result.round_trip_ns, result.peer):
            yield f"      {name:<{_NAMES_WIDTH}} {value}"


def shape_sentence(shape: DirectionShape) -> str:
    """Return what limits a direction, with the rate up to which nothing does."""
    text = _KINDS[shape.kind]
    if shape.kind is LimitKind.NONE:
        return f"{text} up to {format_rate(shape.offered_bit_s)} of frames, the highest rate that was sent"
    if shape.queue is not None and shape.queue_is_full:
        return f"{text}, and drops what does not fit its queue"
    return text


def shape_numbers(shape: DirectionShape, round_trip_ns: int | None, peer: str) -> list[tuple[str, str]]:
    """Return the names and values of a direction's numbers; none without a limit."""
    if shape.cir is None or shape.cbs is None:
        return []
    rows = [("rate", _rate(shape, shape.cir))]
    if shape.kind is not LimitKind.LINE:
        rows.append(("burst", _burst(shape, shape.cbs, shape.cir)))
    if shape.queue is not None and shape.queue_ns is not None:
        rows.append(("queue", _queue(shape, shape.queue, shape.queue_ns)))
    needed = shape.round_trip_bytes(round_trip_ns)
    holds = shape.holds_round_trip(round_trip_ns)
    if holds is not None and needed is not None and round_trip_ns is not None:
        word = "holds" if holds else "does not hold"
        rtt = format_time(round_trip_ns / 1_000)
        rows.append(("TCP", f"the burst {word} a round trip at CIR: {_size(needed)} in {rtt}"))
    if shape.fitting_bit_s is not None and shape.fitting_bit_s >= 1_000:
        rows.append(("fits", fitting_command(shape, peer)))
    return rows


def fitting_command(shape: DirectionShape, peer: str) -> str:
    """Return the command of a test of UDP that passes without loss."""
    words = ["linkgauge", "run", peer, "--workload", "udp"]
    if shape.direction is not Direction.OUT:
        words += ["--direction", shape.direction.value]
    return shell_command(*words, "--datagram", shape.datagram_bytes, "--rate", rate_text(shape.fitting_bit_s or 0))


def _rate(shape: DirectionShape, cir: Spread) -> str:
    payload = format_rate(shape.payload_bit_s or 0.0)
    return (
        f"CIR {format_rate(cir.median)} of Ethernet frames ({format_rate(cir.low)} to {format_rate(cir.high)}), "
        f"{payload} of UDP payload"
    )


def _burst(shape: DirectionShape, cbs: Spread, cir: Spread) -> str:
    time = format_time(cbs.median * 8e6 / cir.median)
    least = "" if shape.is_settled else "at least "
    more = "" if shape.is_settled else "; it still grew with the pause before it"
    return f"CBS {least}{_size(cbs.median)} ({_size(cbs.low)} to {_size(cbs.high)}), {time} of CIR{more}"


def _queue(shape: DirectionShape, queue: Spread, queue_ns: Spread) -> str:
    text = f"{_size(queue.median)}, {format_time(queue_ns.median / 1_000)} of waiting"
    return f"{text} when it is full" if shape.queue_is_full else f"more than {text}: it never was full"


def _size(size_bytes: float) -> str:
    return format_bytes(round(size_bytes)).partition(" (")[0]


def _heading(result: ShapeResult) -> str:
    rtt = "" if result.round_trip_ns is None else f", round trip {format_time(result.round_trip_ns / 1_000)}"
    return f"policer or shaper to {numbers.sanitize(result.peer)}, IPv{result.ip_version}{rtt}"
