"""A test of many flows for programs: a JSON document, and a row of CSV for each flow and direction. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from ..csv_export import cell_text
from ..figure_codec import DOCUMENT_VERSION, mbit, ms, percent, round_figure
from .flow_result import DirectionFlows, FlowsResult
from .member_share import MemberShare
from .parting import Parting

_COLUMNS: Final = (
    "port",
    "class",
    "sent",
    "lost",
    "late",
    "reordered",
    "duplicates",
    "unread",
    "least_delay_ms",
    "median_delay_ms",
    "mbit_s",
)


def flows_document(result: FlowsResult) -> dict[str, Any]:
    """Return the document of a result; a direction that was not measured is null."""
    measured = {
        each.direction.value: {**_direction(each), "parting": _parting(result.parting(each.direction))}
        for each in result.directions
    }
    return {
        "schema": DOCUMENT_VERSION,
        "peer": result.peer,
        "peer_port": result.peer_port,
        "ip_version": result.ip_version,
        "transport": result.transport.value,
        "datagram_bytes": result.datagram_bytes,
        "rate_mbit_s": mbit(result.rate_bit_s),
        "seconds": round_figure(result.seconds),
        "has_bad_member": result.has_bad_member,
        "silent_ports": list(result.silent_ports),
        **_share("silent", result.silent_share),
        "out": measured.get("out"),
        "in": measured.get("in"),
    }


def _direction(flows: DirectionFlows) -> dict[str, Any]:
    losses, delays = flows.losses, flows.delays
    return {
        "losses": losses.kind.value,
        "sent": flows.sent,
        "lost": flows.lost,
        "lost_percent_good": percent(losses.low),
        "lost_percent_lossy": percent(losses.high) if losses.bad else None,
        "likelihood_ratio": round_figure(losses.ratio),
        "is_confirmed": losses.is_confirmed if losses.bad else None,
        **_share("lossy", losses.share),
        "slower_ms": ms(delays.slower_ns) if delays.slow else None,
        **_share("slow", delays.share),
        "balances_packets": flows.is_sprayed,
        "flows": [dict(zip(_COLUMNS, cells, strict=True)) for cells in _flows(flows)],
    }


def _parting(parting: Parting | None) -> dict[str, Any] | None:
    if parting is None:
        return None
    return {
        "bad_port": parting.bad_port,
        "good_port": parting.good_port,
        "hop": parting.ttl,
        "joined_hop": parting.joined,
        "silent_hops": list(parting.silent),
        "hops": [{"ttl": each.ttl, "bad": list(each.bad), "good": list(each.good)} for each in parting.hops],
    }


def _share(name: str, share: MemberShare | None) -> dict[str, Any]:
    if share is None:
        return {
            f"{name}_share": None,
            f"{name}_share_low": None,
            f"{name}_share_high": None,
            f"{name}_members": None,
        }
    return {
        f"{name}_share": round_figure(share.share),
        f"{name}_share_low": round_figure(share.low),
        f"{name}_share_high": round_figure(share.high),
        f"{name}_members": share.members,
    }


def _flows(flows: DirectionFlows) -> Iterator[tuple[Any, ...]]:
    least_ns = min((each.least_ns for each in flows.flows if each.least_ns is not None), default=0)
    for place, each in enumerate(flows.flows):
        yield (
            each.port,
            flows.class_of(place).value,
            each.sent,
            each.lost,
            each.late,
            each.reordered,
            each.duplicates,
            each.unread,
            ms(None if each.least_ns is None else each.least_ns - least_ns),
            ms(None if each.median_ns is None else each.median_ns - least_ns),
            mbit(each.bit_s),
        )


def flow_rows(result: FlowsResult) -> Iterator[list[str]]:
    """Yield the names of the columns, then a row for each flow; what is unknown is empty."""
    yield ["peer", "peer_port", "direction", *_COLUMNS]
    for direction in result.directions:
        for cells in _flows(direction):
            row = (result.peer, result.peer_port, direction.direction.value, *cells)
            yield [cell_text(cell) for cell in row]
    for port in result.silent_ports:
        yield [result.peer, str(result.peer_port), "", str(port), "silent", *[""] * (len(_COLUMNS) - 2)]
