"""A test of many flows in words: a table of the kinds of flows, and sentences about members of a group of links."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from ....engine.model.directions import Direction
from ....engine.results.flows.flow_result import DirectionFlows, FlowClass, FlowsResult, Transport
from ....engine.results.flows.loss_judgement import LossKind
from ....engine.results.flows.member_share import MemberShare
from ....engine.results.flows.parting import Parting
from ....presets.number_text import format_percent, format_rate
from ...words import numbers
from ...words.table import NAMES, Column, Strong, Table

_COLUMNS: Final = (
    NAMES,
    Column("flows"),
    Column("sent"),
    Column("lost", is_key=True),
    Column("late", rank=1),
    Column("reordered", rank=2),
    Column("delay"),
)
_WAYS: Final = {"out": "on the way out", "in": "on the way in"}
_LOST: Final = {Transport.UDP: "lost", Transport.TCP: "sent again"}
_LISTED_PORTS: Final = 64


def heading(result: FlowsResult) -> str:
    """Return a line about the test."""
    flows = max((len(each.flows) for each in result.directions), default=0) + len(result.silent_ports)
    size = f", {result.datagram_bytes} bytes" if result.datagram_bytes else ""
    return (
        f"{result.peer} port {result.peer_port}, IPv{result.ip_version}: {flows} flows of "
        f"{result.transport.value.upper()} by source port{size}, {format_rate(result.rate_bit_s)} in each "
        f"direction, {result.seconds:.0f} s"
    )


def class_table(flows: DirectionFlows) -> Table:
    """Return a row for each kind of flow. Delays are medians above the least one of the direction."""
    medians = [each.median_ns for each in flows.flows]
    least_ns = min((each for each in medians if each is not None), default=0)
    rows = [_row(flows, kind, places, medians, least_ns) for kind, places in flows.classes().items()]
    return Table(_COLUMNS, rows, f"way {flows.direction.value}")


def _row(
    flows: DirectionFlows,
    kind: FlowClass,
    places: Sequence[int],
    medians: Sequence[float | None],
    least_ns: float,
) -> tuple[str, ...]:
    chosen = [flows.flows[place] for place in places]
    sent, lost = sum(each.sent for each in chosen), sum(each.lost for each in chosen)
    known = [middle - least_ns for place in places if (middle := medians[place]) is not None]
    lost_text = numbers.percent(100 * lost / sent, 2) if sent else numbers.UNKNOWN
    return (
        kind.value,
        numbers.count(len(chosen)),
        numbers.count(sent),
        Strong(lost_text) if kind in {FlowClass.LOSSY, FlowClass.LOSSY_SLOW} else lost_text,
        numbers.count(sum(each.late for each in chosen)),
        numbers.count(sum(each.reordered for each in chosen)),
        f"+{numbers.latency(median(known))}" if known else numbers.UNKNOWN,
    )


def direction_sentences(flows: DirectionFlows, transport: Transport = Transport.UDP) -> Iterator[str]:
    """Yield what was found in a direction, in a sentence each."""
    way, losses, delays = _WAYS[flows.direction.value], flows.losses, flows.delays
    lost = _LOST[transport]
    share = losses.share
    if share is not None:
        text = (
            f"{_percent(losses.high)} of the packets on {len(losses.bad)} of {losses.total} flows are {lost} "
            f"{way}, {_percent(losses.low)} on the others: {member_text(share, 'loses packets')}."
        )
        yield text if losses.is_confirmed else f"{text} Repeated datagrams have not confirmed it."
    elif losses.kind is LossKind.ALIKE:
        yield f"{_percent(losses.low)} of the packets are {lost} {way}, on all flows alike: not one member."
    elif losses.kind is LossKind.FEW:
        yield f"{_percent(losses.low)} of the packets are {lost} {way}: too few to tell whether flows differ."
    slow = delays.share
    if slow is not None:
        slower = numbers.latency(delays.slower_ns)
        text = f"{len(delays.slow)} of {delays.total} flows are slower by {slower} {way}"
        yield f"{text}: {member_text(slow, f'is {slower} slower')}."
    if flows.is_sprayed:
        pairs, reordered = sum(each.pairs for each in flows.flows), sum(each.reordered for each in flows.flows)
        yield (
            f"Packets of the same flow overtake each other {way}, in {_percent(reordered / pairs)} of the pairs: "
            "packets are balanced one by one, so that no flow stays on one member."
        )
    if share is None and slow is None and losses.kind is LossKind.NONE:
        yield f"No packet is {lost} {way}, and the delays of all flows are alike."


def parting_sentence(parting: Parting) -> str:
    """Return where a bad and a good flow part, and which hops do not tell."""
    counted = "" if parting.direction is Direction.OUT else " from the remote end"
    flows = f"Port {parting.bad_port} (bad) and port {parting.good_port} (good)"
    ttl, silent, common = parting.ttl, parting.silent, parting.last_common
    if ttl is None:
        text = f"{flows} pass the same hops: the bad member is within one hop, such as a LAG"
        return f"{text}, or at {_hops(silent)}, which {_verb(silent)} silent." if silent else f"{text}."
    hop = parting.hop(ttl)
    behind = f"behind hop {common.ttl} ({common.good[0]})" if common is not None else "at the sending host"
    text = f"{flows} part {behind}: at hop {ttl}{counted}, {hop.bad[0]} answers instead of {hop.good[0]}"
    if silent:
        text += f"; {_hops(silent)} before it {_verb(silent)} silent"
    if parting.joined is not None:
        text += f". They are on the same way again from hop {parting.joined} on"
    return f"{text}."


def _hops(ttls: Sequence[int]) -> str:
    return f"hop{'s' if len(ttls) > 1 else ''} {', '.join(map(str, ttls))}"


def _verb(ttls: Sequence[int]) -> str:
    return "are" if len(ttls) > 1 else "is"


def silent_sentence(result: FlowsResult) -> str | None:
    """Return a sentence about the flows on which nothing came back; None without any."""
    share = result.silent_share
    if share is None:
        return None
    return (
        f"Nothing came back on {share.count} of {share.total} flows: {member_text(share, 'carries nothing')}, "
        "in one direction or both."
    )


def member_text(share: MemberShare, what: str) -> str:
    """Return the number of members that fits a share: `about 1 of 4 members loses packets`."""
    if share.members is not None:
        return f"about 1 of {share.members} members {what}"
    between = f"between {_percent(share.low)} and {_percent(share.high)} of flows"
    possible = share.possible_members
    if not possible:
        return f"{between}, which is more or less than one member of 2 to 16"
    return f"{between}, as if 1 of {possible[0]} to {possible[-1]} members {what}"


def bad_ports(flows: DirectionFlows) -> Iterator[str]:
    """Yield a line for each kind of bad flow: its source ports."""
    for kind, places in flows.classes().items():
        if kind is not FlowClass.GOOD:
            yield f"{kind.value} ports: {port_list([flows.flows[place].port for place in places])}"


def port_list(ports: Sequence[int]) -> str:
    """Return ports in order, the first ones if there are many."""
    shown = ", ".join(map(str, sorted(ports)[:_LISTED_PORTS]))
    more = len(ports) - _LISTED_PORTS
    return f"{shown} and {more} more, which --csv and --json have" if more > 0 else shown


def _percent(share: float) -> str:
    return format_percent(share)
