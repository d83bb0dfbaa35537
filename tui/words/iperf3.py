"""The words about an end that is an iperf3 or another program: its unknown host, the source of figures. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...engine.model.directions import Direction, End
from ...engine.model.host_info import HostInfo
from ...engine.model.plan import Dialect
from ...engine.model.texts.unseen_host import not_seen
from . import numbers

if TYPE_CHECKING:
    from ...engine.results.summary import Summary

_OBSERVED_COUNTS: Final = {Direction.OUT: "acknowledged", Direction.IN: "received"}
_WHOLE: Final = "its CPU cores, interface, buffers and windows"
_BUT_TCP: Final = "its CPU cores, interface and buffers"  # NDT7 reports TCP_INFO


def host_text(host: HostInfo) -> str:
    """Return system and cores of a host: `Linux 6.12, 8 cores`; for an iperf3, that they are not seen."""
    if host.is_iperf3:
        return "iperf3, which tells nothing of its host"
    if host.is_browser:
        return "a browser, which tells nothing of its host"
    if host.is_quality_client:
        return "a client of networkQuality, which tells nothing of its host"
    if host.speed_protocol is not None:
        return f"{host.speed_protocol.server_name}, which tells nothing of its host"
    if host.is_unseen:
        return "another program, whose host is not seen"
    return f"{numbers.sanitize(host.system)}, {numbers.quantity(host.cores, 'core')}"


def unseen_text(end: End | None, dialect: Dialect = Dialect.IPERF3) -> str:
    """Return what is not seen of the end that is another program; empty if both ends are linkgauge's."""
    if end is None:
        return ""
    unknown = _BUT_TCP if dialect is Dialect.NDT7 else _WHOLE
    return f"the {end.label} host is {not_seen(dialect)}: {unknown} are unknown"


def source_texts(summary: "Summary") -> list[str]:
    """Return the source of a summary's figures for each direction; none if both ends are linkgauge's."""
    if summary.unseen_end is None:
        return []
    if summary.dialect.is_measured_here:
        return [
            f"{numbers.arrow(direction)} {_OBSERVED_COUNTS[direction]}, by the local kernel's count"
            for direction, _, _ in _counters(summary)
        ]
    is_datagram, is_server = summary.plan.workload.is_datagram, summary.unseen_end is End.FAR
    return [
        f"{numbers.arrow(direction)} {_source(counter, is_unseen, is_datagram=is_datagram, is_server=is_server)}"
        for direction, counter, is_unseen in _counters(summary)
    ]


def source_sentences(summary: "Summary") -> list[str]:
    """Return the source of the figures and what is not seen, in sentences for a page."""
    texts = [*source_texts(summary), unseen_text(summary.unseen_end, summary.dialect)]
    return [f"{text[:1].upper()}{text[1:]}." for text in filter(None, texts)]


def remote_name(host: HostInfo, peer: str) -> str:
    """Return the name of a far end with its address: `db-02 (10.0.0.2:5820)`; another program names no host."""
    address = numbers.sanitize(peer)
    return address if host.is_unseen else f"{numbers.sanitize(host.hostname)} ({address})"


def live_source_text(unseen: End | None, direction: Direction, *, is_datagram: bool) -> str:
    """Return which bytes a gauge shows in place of the received: `sent`, `acknowledged`; empty if the received."""
    if unseen is None or not _unseen_receives(unseen, direction):
        return ""
    return "sent" if is_datagram else "acknowledged"


def _unseen_receives(unseen: End, direction: Direction) -> bool:
    return (direction is not Direction.IN) if unseen is End.FAR else (direction is not Direction.OUT)


def _counters(summary: "Summary") -> Sequence[tuple[Direction, str, bool]]:
    unseen = summary.unseen_end or End.FAR
    return [
        (direction, measured.counted_by, _unseen_receives(unseen, direction))
        for direction, measured in summary.measurements
        if direction is not Direction.DUPLEX
    ]


def _source(counter: str, is_unseen: bool, *, is_datagram: bool, is_server: bool) -> str:
    if counter == "sender":
        what = "that were sent" if is_datagram else "that were acknowledged"
        return f"iperf3 reported no results: these are the bytes {what}, by the sender's count"
    if not is_unseen:
        return "received, by linkgauge's own count"
    if not is_datagram:
        return "received, by the count and the clock of iperf3"
    # A server's own rate is lower: its clock goes on while the last datagrams are on their way.
    whose = "count and the clock of iperf3"
    if is_server:
        whose = "count of iperf3, over the time in which linkgauge sent"
    return f"received, by the {whose}; losses at the very end are not in it"
