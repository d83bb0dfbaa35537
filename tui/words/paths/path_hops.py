"""The hops of a path, its queues and its losses, as text: a table and sentences. Pure."""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import Direction
from ....engine.results.path.path_result import HopResult, PathResult, Place, QueuePlace, Way
from .. import numbers
from ..responsiveness import load_name, rise
from ..table import NAMES, Column, Strong, Table
from .hop_strip import LOSS_MARK, QUEUE_MARK

_COLUMNS: Final = (
    NAMES,
    Column("address", is_text=True, wraps=True),
    Column("idle"),
    Column("loaded"),
    Column("rise", is_key=True),
    Column("lost", rank=1),
    Column("", is_text=True, wraps=True),
)
_ANSWERS: Final = {
    "silent": "silent",
    "limited": "limits its answers",
    "slow": "answers late itself, and forwards in time",
    "all": "",
}
_COUNTED: Final = {Direction.OUT: "", Direction.IN: " from the remote end"}
_WAYS: Final = {Direction.OUT: "on the way out", Direction.IN: "on the way in"}


def way_name(way: Way) -> str:
    """Return the heading of a direction: `way out, hops from the local end, load out`."""
    load = "" if way.load is None else f", {load_name(way.load)}"
    return f"way {way.direction.value}, hops from the {way.sender.label} end{load}"


def way_table(way: Way) -> Table:
    """Return the hops of a direction: a row for each, from its sender on."""
    return Table(_COLUMNS, [_row(way, hop) for hop in way.hops], way_name(way))


def _row(way: Way, hop: HopResult) -> tuple[str, ...]:
    name = way.sender.other.label if hop.is_end else str(hop.ttl)
    has_queue = any(queue.before_ttl == hop.ttl for queue in way.queues)
    risen = rise(hop.rise_ns)
    return (
        name,
        ", ".join([*hop.routers, *([] if hop.name is None else [numbers.sanitize(hop.name)])]) or numbers.UNKNOWN,
        numbers.latency(hop.idle_ns),
        numbers.latency(hop.loaded_ns),
        Strong(risen) if has_queue else risen,
        numbers.UNKNOWN if hop.lost_percent is None else numbers.percent(hop.lost_percent),
        "; ".join(_notes(way, hop)),
    )


def _notes(way: Way, hop: HopResult) -> Iterator[str]:
    if any(queue.before_ttl == hop.ttl for queue in way.queues):
        yield f"{QUEUE_MARK} queue before it"
    if way.loss is not None and way.loss.is_located and way.loss.before_ttl == hop.ttl:
        yield f"{LOSS_MARK} loss before it"
    if _ANSWERS[hop.answers]:
        yield _ANSWERS[hop.answers]
    if hop.mtu_bytes is not None:
        yield f"MTU {hop.mtu_bytes} behind it"


def path_sentences(path: PathResult) -> list[str]:
    """Return what was found, in a sentence each: queues, losses, MTUs, and hops whose answers mislead."""
    sentences = [sentence for way in path.ways for sentence in (*_place_sentences(way), *_further_sentences(way))]
    if not any(way.load for way in path.ways):
        sentences.insert(0, "No hop is judged: nothing was measured under load.")
    elif not any(way.queues for way in path.ways):
        sentences.insert(0, "No hop has a queue that delays other traffic under load.")
    return sentences


def place_sentences(path: PathResult) -> list[str]:
    """Return only the sentences about queues and losses."""
    return [sentence for way in path.ways for sentence in _place_sentences(way)]


def _place_sentences(way: Way) -> Iterator[str]:
    for number, queue in enumerate(way.queues):
        yield _queue_sentence(way, queue, "The" if number == 0 else "Another")
    if way.loss is not None:
        lost = f"{numbers.percent(way.loss.lost_percent)} of the probes are lost {_WAYS[way.direction]}"
        if way.loss.is_located:
            yield f"The loss is {_place_text(way, way.loss)}: {lost}."
        else:
            yield f"{lost[0].upper()}{lost[1:]}; the hops do not tell where."


def _further_sentences(way: Way) -> Iterator[str]:
    rise_ns = max((hop.kept_rise_ns or 0 for hop in way.hops), default=0)
    if way.answers_wait and rise_ns:
        yield (
            f"RTT rises by {numbers.latency(rise_ns)} {_WAYS[way.direction]}, too, without a queue there: "
            f"the answers wait in the queue {_WAYS[way.direction.opposite]}."
        )
    for report in way.mtus:
        yield f"Behind {report.router}, {_WAYS[way.direction]}, the MTU is {report.mtu_bytes} bytes."
    if slow := [str(hop.ttl) for hop in way.hops if hop.answers == "slow"]:
        counted = _COUNTED[way.direction]
        hops = f"Hop {slow[0]}{counted} answers" if len(slow) == 1 else f"Hops {', '.join(slow)}{counted} answer"
        yield f"{hops} late, but traffic passes in time: a slow control plane, not a queue."
    if not way.is_reached:
        other = way.sender.other.label
        yield f"No probe came back from the {other} end: nothing is judged {_WAYS[way.direction]}."


def _queue_sentence(way: Way, queue: QueuePlace, article: str) -> str:
    before = way.hop(queue.before_ttl)
    place = _place_text(way, queue)
    text = f"{article} queue is {place}, {_WAYS[way.direction]}"
    if before is None or article != "The":
        return f"{text}: RTT rises there by another {numbers.latency(queue.rise_ns)} under load."
    rises = f"from {numbers.latency(before.idle_ns)} to {numbers.latency(before.loaded_ns)}"
    return f"{text}: RTT rises there {rises} under load."


def _place_text(way: Way, place: Place) -> str:
    """Return a place in words: `before hop 3 (10.0.2.1)`, with the silent hops in between."""
    before = way.hop(place.before_ttl)
    if before is None:
        return "at an unknown hop"
    counted = _COUNTED[way.direction]
    if before.is_end:
        name = f"before the {way.sender.other.label} end"
        if place.after_ttl == 0 and place.before_ttl == 1:
            return f"on the link between the ends or in the {way.sender.label} host"
    else:
        name = f"before hop {before.ttl}{counted} ({_router(before)})"
    silent = [str(ttl) for ttl in range(place.after_ttl + 1, place.before_ttl)]
    if silent:
        hops = f"hop {silent[0]} does" if len(silent) == 1 else f"hops {' and '.join(silent)} do"
        name += f" and behind {_after_text(way, place.after_ttl)} ({hops} not tell)"
    return name


def _after_text(way: Way, ttl: int) -> str:
    return f"hop {ttl}" if ttl else f"the {way.sender.label} host"


def _router(hop: HopResult) -> str:
    if hop.name is None:
        return hop.routers[0] if hop.routers else "silent"
    return f"{numbers.sanitize(hop.name)}, {hop.routers[0]}"
