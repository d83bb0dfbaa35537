"""The results that both ends of an iperf3 test exchange at its end.

Pure. Every number is bounded where it is read. Unknown is None; iperf3 writes -1, and up to version 3.13 its
largest number without a sign.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, cast

from ...model.directions import Direction
from ...model.errors import RemoteProtocolError, make_printable
from ...model.events import SessionTotal
from ...model.plan import MAX_SESSIONS, SECOND_NS
from .json_bodies import as_object, read_number, read_text, read_whole

_MAX_STREAMS: Final = 2 * MAX_SESSIONS
_MAX_COUNT: Final = 2**62
_MAX_CPU_PERCENT: Final = 10_000_000.0
_MAX_SPAN_S: Final = 1_000_000.0
_MAX_JITTER_S: Final = 1_000_000.0
_MAX_CONGESTION: Final = 15
_MAX_OUTPUT: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StreamResult:
    """One end's counts of a stream, without the omitted part; None is unknown.

    `errors` are lost datagrams and `packets` the highest number; both include the omitted part, which
    `omitted_errors` and `omitted_packets` have alone.
    """

    id: int
    bytes: int
    retransmits: int | None = None
    jitter_s: float = 0.0
    errors: int = 0
    omitted_errors: int | None = 0
    packets: int = 0
    omitted_packets: int | None = 0
    span_s: float | None = None


@dataclass(frozen=True, slots=True)
class EndResults:
    """The results of one end.

    CPU is in percent of one core. `has_retransmits` is 1 for an end that sends and counts retransmits, 0 for one
    that sends and does not, and -1 for one that only receives.
    """

    streams: tuple[StreamResult, ...]
    cpu_total_percent: float = 0.0
    cpu_user_percent: float = 0.0
    cpu_system_percent: float = 0.0
    has_retransmits: int = -1
    congestion: str | None = None
    server_output: str | dict[str, Any] | None = None


def total_of(
    result: StreamResult, direction: Direction, session: int, span_ns: int, *, receives: bool, is_udp: bool
) -> SessionTotal:
    """Return an end's counts of a session, as a total.

    Up to version 3.13 the parts of the warm-up are unknown: both counts of datagrams then include them.

    Args:
        result: The count.
        direction: The single direction of the session.
        session: The session.
        span_ns: The time if the end does not name one, as up to version 3.1.
        receives: Whether that end receives the session.
        is_udp: Whether it is of UDP.
    """
    if result.span_s:
        span_ns = round(result.span_s * SECOND_NS)
    if not is_udp:
        retransmits = None if receives else result.retransmits
        return SessionTotal(direction, session, result.bytes, span_ns, retransmits=retransmits)
    packets = max(0, result.packets - (result.omitted_packets or 0))
    if not receives:
        return SessionTotal(direction, session, result.bytes, span_ns, sent=packets)
    lost = max(0, result.errors - (result.omitted_errors or 0))
    return SessionTotal(
        direction,
        session,
        result.bytes,
        span_ns,
        received=max(0, packets - lost),
        lost=lost,
        jitter_ns=round(result.jitter_s * SECOND_NS),
    )


def encode_results(results: EndResults) -> dict[str, Any]:
    """Return the document of an end's results."""
    document: dict[str, Any] = {
        "cpu_util_total": results.cpu_total_percent,
        "cpu_util_user": results.cpu_user_percent,
        "cpu_util_system": results.cpu_system_percent,
        "sender_has_retransmits": results.has_retransmits,
    }
    if results.congestion is not None:
        document["congestion_used"] = results.congestion
    if isinstance(results.server_output, str):
        document["server_output_text"] = results.server_output
    elif results.server_output is not None:
        document["server_output_json"] = results.server_output
    return document | {"streams": [_encode_stream(stream) for stream in results.streams]}


def _encode_stream(stream: StreamResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": stream.id,
        "bytes": stream.bytes,
        "retransmits": -1 if stream.retransmits is None else stream.retransmits,
        "jitter": stream.jitter_s,
        "errors": stream.errors,
        "packets": stream.packets,
        "start_time": 0,
    }
    if stream.omitted_errors is not None and stream.omitted_packets is not None:
        document |= {"omitted_errors": stream.omitted_errors, "omitted_packets": stream.omitted_packets}
    if stream.span_s is not None:
        document["end_time"] = stream.span_s
    return document


def decode_results(document: object) -> EndResults:
    """Return the results of the other end; raise RemoteProtocolError if they cannot be used."""
    members = as_object(document)
    if members is None:
        raise RemoteProtocolError("the results of iperf3 are not a JSON object")
    streams = members.get("streams")
    if not isinstance(streams, list) or len(cast("list[object]", streams)) > _MAX_STREAMS:
        raise RemoteProtocolError(f"the results of iperf3 have no list of at most {_MAX_STREAMS} streams")
    decoded = tuple(_decode_stream(item) for item in cast("list[object]", streams))
    if len({stream.id for stream in decoded}) < len(decoded):
        raise RemoteProtocolError("the results of iperf3 name a stream twice")
    has_retransmits = read_whole(members, "sender_has_retransmits")
    return EndResults(
        streams=decoded,
        cpu_total_percent=_read_bounded(members, "cpu_util_total", _MAX_CPU_PERCENT) or 0.0,
        cpu_user_percent=_read_bounded(members, "cpu_util_user", _MAX_CPU_PERCENT) or 0.0,
        cpu_system_percent=_read_bounded(members, "cpu_util_system", _MAX_CPU_PERCENT) or 0.0,
        has_retransmits=-1 if has_retransmits is None else min(1, max(0, has_retransmits)),
        congestion=read_text(members, "congestion_used", _MAX_CONGESTION),
        server_output=_read_output(members),
    )


def _decode_stream(item: object) -> StreamResult:
    members = as_object(item)
    number = None if members is None else read_whole(members, "id")
    count = None if members is None else _read_count(members, "bytes")
    if members is None or number is None or count is None or not 1 <= number <= _MAX_STREAMS + 1:
        raise RemoteProtocolError("a stream of the results of iperf3 has no id or no number of bytes")
    omitted_errors = _read_count(members, "omitted_errors")
    omitted_packets = _read_count(members, "omitted_packets")
    has_both = omitted_errors is not None and omitted_packets is not None
    return StreamResult(
        id=number,
        bytes=count,
        retransmits=_read_count(members, "retransmits"),
        jitter_s=_read_bounded(members, "jitter", _MAX_JITTER_S) or 0.0,
        errors=_read_count(members, "errors") or 0,
        omitted_errors=omitted_errors if has_both else None,
        packets=_read_count(members, "packets") or 0,
        omitted_packets=omitted_packets if has_both else None,
        span_s=_read_bounded(members, "end_time", _MAX_SPAN_S),
    )


def _read_count(members: dict[str, object], key: str) -> int | None:
    value = read_number(members, key)
    return int(value) if value is not None and 0 <= value <= _MAX_COUNT else None


def _read_bounded(members: dict[str, object], key: str, high: float) -> float | None:
    value = read_number(members, key)
    return float(value) if value is not None and 0 <= value <= high else None


def _read_output(members: dict[str, object]) -> str | dict[str, Any] | None:
    """Return the server's output: lines of text without control characters, or its JSON document."""
    text = members.get("server_output_text")
    if isinstance(text, str):
        return "\n".join(make_printable(line.expandtabs()) for line in text[:_MAX_OUTPUT].splitlines())
    document = as_object(members.get("server_output_json"))
    if document is None or len(json.dumps(document)) > _MAX_OUTPUT:
        return None
    return document
